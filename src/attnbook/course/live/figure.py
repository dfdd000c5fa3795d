"""What the live figures share: the element in the page, the plots' look, the controls."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import bokeh
from bokeh.embed import json_item
from bokeh.events import Pan, Tap
from bokeh.layouts import column, row
from bokeh.models import CustomJS, CustomJSTickFormatter, Div, InlineStyleSheet, Slider
from bokeh.plotting import figure

from attnbook._validation import numbers
from attnbook.course.figures import COLOURS, GREY

SCRIPTS = ("live.js", "fingers.js", "wide.js")  # of every figure, beside its own
BESIDE = """
:host { flex-wrap: wrap; }
:host > .bk-Button { min-width: min-content; }
:host(.wide) > .bk-Slider { flex-basis: calc(100% - 10px) !important; }
"""
ARRANGED = """
:host(.wide) { flex-direction: row; align-items: flex-start; gap: 20px; }
:host(.wide) > .plots { flex: 1 1 0 !important; width: 0 !important; min-width: 0; }
:host(.wide) > .controls { flex: 0 0 340px !important; width: 340px !important; }
"""


@dataclass(frozen=True)
class LiveFigure:
    """A Bokeh layout that draws itself wherever HTML is shown.

    Args:
        name: of the element in the page; one a page.
        title: what stands above it.
        layout: the Bokeh model.
        description: what the figure shows, for a screen reader and where no script runs.
        min_height: the room kept for it before it is drawn, in rem.
        layout_when_wide: whether its controls stand beside the plots where there is room.
    """

    name: str
    title: str
    layout: Any
    description: str
    min_height: int
    layout_when_wide: bool = False

    def __repr__(self) -> str:
        return f"Live figure: {self.description}"

    def wide(self) -> "LiveFigure":
        """The same figure for slides and large screens: controls beside the plots.

        The plots then fill the height of the window. On the website a button does this.
        """
        return replace(self, layout_when_wide=True)

    def _repr_html_(self) -> str:
        parts = {
            "SCRIPT": "".join(_read(name) for name in SCRIPTS),
            "NAME": self.name,
            "TITLE": escape(self.title),
            "DESCRIPTION": escape(self.description),
            "MIN_HEIGHT": f"{self.min_height}rem",
            "LAYOUT": ' data-layout="wide"' if self.layout_when_wide else "",
            "VERSION": bokeh.__version__,
            "ITEM": _stable(json_item(self.layout)).replace("</", "<\\/"),
        }
        page = _read("live.html")
        for placeholder, text in parts.items():
            page = page.replace(f"%{placeholder}%", text)
        return page


def all_of(kind: type, **argument: Any) -> None:
    """Check a list of what a figure shows."""
    ((name, given),) = argument.items()
    if not isinstance(given, list | tuple) or not all(isinstance(one, kind) for one in given):
        got = type(given).__name__
        raise TypeError(f"{name}: got a {got}, expected a list of {kind.__name__}")


def _stable(item: Any) -> str:
    """The item with its ids counted from 1: the same figure gives the same text."""
    ids: dict[str, str] = {}
    return re.sub(
        r'"p\d{4,}"',
        lambda found: ids.setdefault(found[0], f'"{len(ids) + 1}"'),
        json.dumps(item, separators=(",", ":")),
    )


@cache
def _read(name: str) -> str:
    return files("attnbook").joinpath("course", "live", "static", name).read_text(encoding="utf-8")


def read_scripts(*names: str) -> str:
    """Scripts of assets, one after the other."""
    return "".join(map(_read, names))


def plot(**options: Any) -> Any:
    """A plot as wide as the page, grey on transparent, as the still figures are."""
    plot = figure(sizing_mode="stretch_width", toolbar_location=None, tools="", **options)
    plot.background_fill_color = plot.border_fill_color = None
    plot.outline_line_color = None
    plot.grid.grid_line_color = None
    plot.axis.axis_label_text_color = plot.axis.major_label_text_color = GREY
    plot.axis.axis_line_color = plot.axis.major_tick_line_color = GREY
    plot.axis.minor_tick_line_color = None
    plot.axis.axis_label_text_font_style = plot.title.text_font_style = "normal"
    plot.axis.axis_label_text_font_size = plot.title.text_font_size = "14px"
    plot.axis.major_label_text_font_size = "13px"
    plot.title.text_color = GREY
    return plot


def legible() -> dict[str, Any]:
    """The look of the text of a colour bar."""
    return {
        "title_text_color": GREY, "title_text_font_style": "normal", "title_text_font_size": "14px",
        "major_label_text_color": GREY, "major_label_text_font_size": "13px",
    }  # fmt: skip


def control_style() -> dict[str, Any]:
    """Options of a figure's controls: as wide as the page, and in the colour of its text."""
    return {
        "sizing_mode": "stretch_width",
        "stylesheets": [InlineStyleSheet(css=_read("controls.css"))],
    }


def slider(**options: Any) -> Any:
    """A slider whose bar reads on light and dark alike, unless it has a colour of its own."""
    return Slider(**{"bar_color": "#8a939e", **options})


def power_slider(**options: Any) -> Any:
    """A slider of a logarithm to base 10, which shows the number itself."""
    power = CustomJSTickFormatter(code="return Math.pow(10, tick).toPrecision(3)")
    return slider(step=0.01, format=power, **options)


def between(least: float, most: float, **argument: Any) -> float:
    """A real number within its bounds."""
    ((name, given),) = argument.items()
    if not numbers.is_such(given, lambda number: least <= number <= most):
        raise ValueError(f"{name}: got {given!r}, expected a number from {least:g} to {most:g}")
    return float(given)


def powers(least: float, most: float, **argument: Any) -> Iterator[float]:
    """The logarithms to base 10 of a slider's ends and of the number it begins with."""
    return map(math.log10, (least, most, between(least, most, **argument)))


def signed_slider(**options: Any) -> Any:
    """A slider of a number of either sign, with two decimals and a minus that is one."""
    signed = CustomJSTickFormatter(code='return tick.toFixed(2).replace("-", "\u2212")')
    return slider(step=0.01, format=signed, **options)


def words(lines: int, style: dict[str, Any]) -> Any:
    """The text that says what the plots show; its room does not change with its length."""
    return Div(name="words", styles={"min-height": f"{1.5 * lines:g}em"}, **style)


def beside(*models: Any, each: str = "100%") -> Any:
    """Models in a row that fills the page, below each other where they are too wide for it.

    Where controls stand beside the plots, each slider takes that share of their column.
    """
    style = InlineStyleSheet(css=BESIDE.replace("100%", each))
    return row(*models, stylesheets=[style], sizing_mode="stretch_width")


def arranged(plots: Sequence[Any], controls: Sequence[Any]) -> Any:
    """A figure's layout: the plots, and below them, or beside them where it is wide, the rest."""
    parts = [
        column(*models, css_classes=[name], sizing_mode="stretch_width")
        for name, models in (("plots", plots), ("controls", controls))
    ]
    return column(*parts, stylesheets=[InlineStyleSheet(css=ARRANGED)], sizing_mode="stretch_width")


def handle(plot: Any, source: Any, x: str = "x", y: str = "y") -> None:
    """A disc to take hold of: a finger that begins elsewhere in the plot scrolls the page."""
    plot.scatter(
        x, y, size=26, fill_color=COLOURS["weights"], fill_alpha=0.15,
        line_color=COLOURS["weights"], line_alpha=0.5, source=source, name="handle",
    )  # fmt: skip


def updated_by(scripts: str | Sequence[str], controls: Sequence[Any], **models: Any) -> Any:
    """Scripts of assets, to run on the models by name whenever a control's value changes."""
    names = [scripts] if isinstance(scripts, str) else scripts
    update = CustomJS(args=models, code=read_scripts(*names), name="update")
    for control in controls:
        control.js_on_change("value", update)
    return update


def follow_pointer(plot: Any, *, events: Sequence[Any] = (Tap, Pan), **sliders: Any) -> None:
    """A tap or a drag in the plot sets a slider of x, and one of y, to where the pointer is."""
    for axis, slider in sliders.items():
        move = CustomJS(
            args={"p": slider},
            code=f"p.value = Math.max(p.start, Math.min(p.end, cb_obj.{axis}))",
        )
        for event in events:
            plot.js_on_event(event, move)
