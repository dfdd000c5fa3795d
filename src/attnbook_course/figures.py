"""The book's plots: one style, one palette: grey for data, green for what is true, blue and orange.

The data are dots, the truth is a thin line, an estimate a thick one. Backgrounds are transparent
and the grey is made for a light page; on a dark one the website shows figures a little brighter.
"""

import logging
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import is_color_like
from matplotlib.figure import Figure

from attnbook._validation import positive, positive_int
from attnbook_course.columns import pair

# else the first figure of a machine's life comes with a warning that fonts are looked for
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
GREY = "#737373"  # axes, text and data: contrast 4.6 on the light page, 4.7 on the dark one
COLOURS = {
    "data": GREY,
    "truth": "#009e73",
    "estimate": "#1f7fc4",
    "weights": "#d55e00",
    "other": "#b8639b",
}  # after Okabe and Ito: told apart with any kind of colour vision

STYLE = {
    "figure.figsize": (5.6, 3.2),
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "svg.hashsalt": "attnbook",  # the same figure gives the same file
    "font.size": 10,  # 9.5 pixels on a phone of 390, where a figure has its whole width
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.titlecolor": GREY,
    "axes.prop_cycle": plt.cycler(color=[c for k, c in COLOURS.items() if k != "data"]),
    "xtick.color": GREY,
    "ytick.color": GREY,
    "text.color": GREY,
    "legend.frameon": False,
    "lines.linewidth": 2.2,
    "lines.solid_capstyle": "round",
}


def use_style() -> None:
    """Set the book's style for every figure that follows; in a notebook, figures become SVG."""
    plt.rcParams.update(STYLE)
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None})
    except (ImportError, AttributeError):  # not in a notebook
        pass


def panels(
    rows: int = 1, columns: int = 1, *, height: float = 3.2, **kwargs: Any
) -> tuple[Figure, Any]:
    """A figure of rows × columns axes, as wide as the page."""
    positive_int(rows=rows)
    positive_int(columns=columns)
    positive(height=height)
    return plt.subplots(rows, columns, figsize=(STYLE["figure.figsize"][0], height), **kwargs)


def regression(
    axes: Axes,
    data: tuple[np.ndarray, np.ndarray] | None = None,
    truth: tuple[np.ndarray, np.ndarray] | None = None,
    estimate: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    title: str = "",
    units: tuple[str, str] = ("x", "y"),
) -> None:
    """Dots, thin line, thick line: data, truth and estimate, each a pair (x, y)."""
    _drawn_on(axes)
    _text(title=title)
    if not isinstance(units, list | tuple) or len(units) != 2:
        raise ValueError(f"units: got {units!r}, expected a pair of strings")
    for unit in units:
        _text(units=unit)
    for name, given in (("data", data), ("truth", truth), ("estimate", estimate)):
        if given is not None:
            pair(**{name: given})
    if data is not None:
        axes.plot(*map(np.ravel, data), ".", color=COLOURS["data"], ms=4, alpha=0.6, zorder=3)
    if truth is not None:
        axes.plot(*map(np.ravel, truth), color=COLOURS["truth"], linewidth=1)
    if estimate is not None:
        axes.plot(*map(np.ravel, estimate), color=COLOURS["estimate"])
    axes.set(title=title, xlabel=units[0], ylabel=units[1])


def label(axes: Axes, text: str, at: tuple[float, float], colour: str) -> None:
    """Name a line where it is, in its colour."""
    _drawn_on(axes)
    _text(text=text)
    if not is_color_like(COLOURS.get(colour, colour)):
        expected = f"one of {', '.join(COLOURS)}, or a colour of Matplotlib's"
        raise ValueError(f"colour: got {colour!r}, expected {expected}")
    place = np.asarray(at)
    if place.shape != (2,) or place.dtype.kind not in "iuf" or not np.all(np.isfinite(place)):
        raise ValueError(f"at: got {at!r}, expected a pair of finite numbers")
    axes.annotate(text, at, color=COLOURS.get(colour, colour))


def _drawn_on(axes: Any) -> None:
    if not isinstance(axes, Axes):
        got = type(axes).__name__
        raise TypeError(f"axes: got a {got}, expected Matplotlib's Axes, one of those of panels")


def _text(**argument: Any) -> None:
    for name, text in argument.items():
        if not isinstance(text, str):
            raise TypeError(f"{name}: got {text!r}, expected a string")
