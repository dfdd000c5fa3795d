"""The book's plots: which line is which, in the colour that it has everywhere."""

import io
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from attnbook_course import figures
from attnbook_course.drawings import canvas

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


def test_the_truth_is_thinner_than_the_estimate():
    figures.use_style()
    _, axes = figures.panels()
    figures.regression(axes, truth=(X, Y), estimate=(X, Y))
    truth, estimate = axes.lines
    assert truth.get_linewidth() == 1
    assert estimate.get_linewidth() == 2.2


def test_panels_are_as_wide_as_the_page():
    figure, axes = figures.panels(2, 3, height=1.5, sharex=True)
    assert axes.shape == (2, 3)
    assert tuple(figure.get_size_inches()) == (5.6, 1.5)
    assert axes[0, 0].get_shared_x_axes().joined(axes[0, 0], axes[1, 2])
    figure, _ = figures.panels()
    assert tuple(figure.get_size_inches()) == (5.6, 3.2)


@pytest.mark.parametrize(("colour", "expected"), [("truth", "#009e73"), ("red", "#ff0000")])
def test_label_by_name_of_the_colour(colour, expected):
    _, axes = figures.panels()
    figures.label(axes, "f", (2.0, 5.0), colour)
    (text,) = axes.texts
    assert text.get_text() == "f"
    assert text.xy == (2.0, 5.0)
    assert to_hex(text.get_color()) == expected


def test_the_same_figure_gives_the_same_file():
    """matplotlib names clip paths at random unless the style says otherwise."""
    figures.use_style()
    files = []
    for _ in range(2):
        figure, axes = figures.panels()
        figures.regression(axes, data=(X, Y), estimate=(X, Y))
        figure.savefig(file := io.BytesIO(), format="svg", metadata={"Date": None})
        files.append(file.getvalue())
    assert b"clip-path" in files[0]
    assert files[0] == files[1]


def test_style_outside_a_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib_inline.backend_inline", None)
    figures.use_style()
    assert mpl.rcParams["axes.edgecolor"] == figures.GREY
    assert mpl.rcParams["figure.facecolor"] == "none"


def test_style_in_a_notebook_asks_for_svg(monkeypatch):
    """Without a date in it, so that the same figure gives the same file."""
    inline = pytest.importorskip("matplotlib_inline.backend_inline")
    asked = []
    monkeypatch.setattr(inline, "set_matplotlib_formats", lambda *a, **how: asked.append((a, how)))
    figures.use_style()
    assert asked == [(("svg",), {"metadata": {"Date": None}})]


def luminance(colour):
    """Relative luminance, as WCAG defines it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, two):
    """Of two colours, 1 to 21."""
    dark, light = sorted(map(luminance, (one, two)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("grey", [figures.GREY, canvas.COLOURS["ink"]])
def test_the_grey_reads_on_both_pages(grey):
    """As the site shows it: as it is on the light page, brighter on the dark one."""
    static = Path(__file__).parents[2] / "_ext" / "attnbook_site" / "static"
    page = (static / "page.css").read_text("utf-8")
    light, dark = re.findall(r"--pst-color-background: (#\w{6})", page)
    (more,) = re.findall(r"brightness\(([\d.]+)\)", (static / "content.css").read_text("utf-8"))
    assert contrast(grey, light) >= 4.5
    assert contrast(np.minimum(1, float(more) * np.array(to_rgb(grey))), dark) >= 4.5
