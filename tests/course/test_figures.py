"""The book's plots: which line is which, in the colour that it has everywhere."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from attnbook_course import figures

X, Y = np.array([[1.0], [2.0], [4.0]]), np.array([[3.0], [5.0], [4.0]])


@pytest.fixture(autouse=True)
def drawn():
    """Without a screen, and the settings as they were afterwards."""
    mpl.use("agg")
    with mpl.rc_context():
        yield
    figures.plt.close("all")


@pytest.mark.parametrize("given", ["data", "truth", "estimate"])
def test_one_line_each(given):
    _, axes = figures.panels()
    figures.regression(axes, **{given: (X, 2 * Y)}, title="a", units=("s", "m"))
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 4])
    np.testing.assert_array_equal(line.get_ydata(), [6, 10, 8])
    assert to_hex(line.get_color()) == figures.COLOURS[given]
    assert (line.get_linestyle() == "None") == (given == "data")
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("a", "s", "m")


def test_on_a_phone_of_390_pixels_type_has_nine():
    """A figure fills the screen; what is saved has a margin of a tenth of an inch on both sides."""
    figures.use_style()
    figure, axes = figures.panels()
    figures.regression(axes, (X, Y), title="a")
    figures.label(axes, "b", (1, 2), "truth")
    figure.draw_without_rendering()  # the axes get their numbers
    points = [one.get_size() for one in figure.findobj(mpl.text.Text) if one.get_text()]
    assert len(points) > 6 and min(points) * 389 / (72 * (figure.get_figwidth() + 0.2)) >= 9


def test_the_same_figure_gives_the_same_file():
    """matplotlib names clip paths at random unless the style says otherwise."""
    figures.use_style()
    files = []
    for _ in range(2):
        _, axes = figures.panels()
        figures.regression(axes, data=(X, Y), estimate=(X, Y))
        axes.figure.savefig(file := io.BytesIO(), format="svg", metadata={"Date": None})
        files.append(file.getvalue())
    assert b"clip-path" in files[0] and files[0] == files[1]
