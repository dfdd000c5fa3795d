"""What the live figures share: the element in the page, the plots' look, the controls."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import bokeh
import numpy as np
from bokeh.embed import json_item
from bokeh.events import ButtonClick, Pan, Tap
from bokeh.layouts import column, row
from bokeh.models import (
    Button,
    ColorBar,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    FixedTicker,
    InlineStyleSheet,
    Legend,
    LegendItem,
    LinearColorMapper,
    Select,
    Slider,
    Widget,
)
from bokeh.palettes import cividis
from bokeh.plotting import figure

from attnbook_course.figures import COLOURS, GREY

CENTRED = {"text_font_size": "12px", "text_align": "center", "text_baseline": "middle"}
LEGEND = {
    "background_fill_color": None,
    "border_line_color": None,
    "label_text_color": GREY,
    "label_text_font_size": "13px",
}
SQUARE = {"aspect_ratio": 1, "min_width": 280, "max_width": 440}  # two side by side, or one below
SCRIPTS = ("live.js", "fingers.js", "wide.js")  # of every figure, beside its own
BESIDE = """
:host { flex-wrap: wrap; }
:host > .bk-Button { min-width: min-content; }
:host(.wide) > .bk-Button { min-width: 150px; }
:host(.wide) > .bk-Slider { flex-basis: calc(100% - 10px) !important; }
"""
ARRANGED = """
:host(.wide) { flex-direction: row; align-items: flex-start; gap: 20px; }
:host(.wide) > .plots { flex: 1 1 0 !important; width: 0 !important; min-width: 0; }
:host(.wide) > .controls { flex: 0 0 340px !important; width: 340px !important; --wrap: normal; }
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
    """

    name: str
    title: str
    layout: Any
    description: str
    min_height: int

    def __repr__(self) -> str:
        return f"Live figure: {self.description}"

    def _repr_html_(self) -> str:
        parts = {
            "SCRIPT": read_scripts(*SCRIPTS),
            "NAME": self.name,
            "TITLE": escape(self.title),
            "DESCRIPTION": escape(self.description),
            "MIN_HEIGHT": f"{self.min_height}rem",
            "VERSION": bokeh.__version__,
            "ITEM": _stable(json_item(self.layout)).replace("</", "<\\/"),
        }
        page = _read("live.html")
        for placeholder, text in parts.items():
            page = page.replace(f"%{placeholder}%", text)
        return page


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
    return files("attnbook_course").joinpath("live", "static", name).read_text(encoding="utf-8")


def read_scripts(*names: str) -> str:
    """Scripts of assets, one after the other."""
    return "".join(map(_read, names))


def plane_points(**argument: Any) -> np.ndarray:
    """Points of a plane, two or more, as float64 of shape (n, 2)."""
    ((name, given),) = argument.items()
    points = np.asarray(given, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2:
        raise ValueError(f"{name}: got shape {points.shape}, expected (n, 2) with n of 2 or more")
    return points


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


def empty(columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Sources by their names, with these columns; the script fills them in."""
    return {
        name: ColumnDataSource({column: [] for column in of}, name=name)
        for name, of in columns.items()
    }


def framed(width: float = 2) -> dict[str, Any]:
    """The look of a line around what is chosen."""
    return {"fill_color": None, "line_color": COLOURS["weights"], "line_width": width}


def squares(plane: Any, source: Any, column: str) -> Any:
    """A square for each row of the source, in the colour of a column from 0 to 1; the colours."""
    mapper = LinearColorMapper(palette=cividis(101), low=0, high=1)
    colour = {"field": column, "transform": mapper}
    plane.rect("x", "y", width=1, height=1, color=colour, source=source)
    return mapper


def colour_bar(plane: Any, mapper: Any, title: str, **options: Any) -> Any:
    """The scale of the colours, below a plot."""
    bar = ColorBar(color_mapper=mapper, title=title, height=8, **options)
    bar.background_fill_color = None
    bar.title_text_color = bar.major_label_text_color = GREY
    bar.title_text_font_style = "normal"
    bar.title_text_font_size, bar.major_label_text_font_size = "14px", "13px"
    plane.add_layout(bar, "below")
    return bar


def legend(plane: Any, drawn: Mapping[str, Any], **options: Any) -> None:
    """The labels of what is drawn, in a row above a plot."""
    items = [LegendItem(label=label, renderers=[one]) for label, one in drawn.items()]
    room = {"margin": 0, "spacing": 6, "padding": 4, "label_standoff": 3, **options}
    plane.add_layout(Legend(items=items, orientation="horizontal", **LEGEND, **room), "above")


def points_and_curves(
    plane: Any, data: Any, size: Any, truth: tuple[Any, Any], curve: Any
) -> dict[str, Any]:
    """The data as dots, the true curve and the estimate, each by what a legend calls it."""
    look = {"color": COLOURS["data"], "alpha": 0.7}
    return {
        "data": plane.scatter("x", "y", size=size, source=data, **look),
        "truth": plane.line(*truth, color=COLOURS["truth"], line_width=1),
        "estimate": plane.line(
            "x", "estimate", color=COLOURS["estimate"], line_width=3, source=curve
        ),
    }


def bar_chart(labels: Sequence[str], what: str, *, height: int, room: int) -> Any:
    """A plot for bars from 0 to 1, one below the other, with room for their labels on the left."""
    places = list(range(1, len(labels) + 1))
    chart = plot(
        x_axis_label=what,
        x_range=(0, 1),
        y_range=(len(labels) + 0.6, 0.4),
        height=height,
        min_border_left=room,
        min_border_right=12,
    )
    chart.yaxis.ticker = FixedTicker(ticks=places)
    chart.yaxis.major_tick_line_color = None
    chart.yaxis.major_label_overrides = dict(zip(places, labels, strict=True))
    return chart


def token_axis(axis: Any) -> Any:
    """An axis with room for a label a token; the script sets them."""
    axis.ticker = FixedTicker(ticks=[])
    axis.major_tick_line_color = None
    axis.major_label_text_font_size = "12px"
    axis.major_label_text_line_height = 1
    return axis


def visible(tokens: Sequence[str]) -> list[str]:
    """The tokens, a blank one as the sign for a blank."""
    return [token if token.strip() else "␣" for token in tokens]


def menu(title: str, name: str, choices: Sequence[Any], **options: Any) -> Any:
    """A menu of texts, or of pairs (value, text), which begins with the first."""
    first = choices[0] if isinstance(choices[0], str) else choices[0][0]
    return Select(**{"title": title, "name": name, "options": choices, "value": first, **options})


def slider(title: str, name: str, ends: tuple[float, float], value: float, **options: Any) -> Any:
    """A slider of whole numbers, or of others by its step."""
    look = {"bar_color": "#8a939e", "step": 1, **options}  # reads on light and dark alike
    return Slider(title=title, name=name, start=ends[0], end=ends[1], value=value, **look)


def power_slider(*given: Any, **options: Any) -> Any:
    """A slider of a logarithm to base 10, which shows the number itself."""
    power = CustomJSTickFormatter(code="return Math.pow(10, tick).toPrecision(3)")
    return slider(*given, step=0.01, format=power, **options)


def doubling_slider(*given: Any, **options: Any) -> Any:
    """A slider of a logarithm to base 2, which shows the number itself."""
    doubled = CustomJSTickFormatter(code="return Math.pow(2, tick).toLocaleString('en')")
    return slider(*given, format=doubled, **options)


def signed_slider(*given: Any, **options: Any) -> Any:
    """A slider of a number of either sign, with two decimals and a minus that is one."""
    signed = CustomJSTickFormatter(code='return tick.toFixed(2).replace("-", "\u2212")')
    return slider(*given, step=0.01, format=signed, **options)


def buttons(labels: Mapping[str, str], min_width: int, **options: Any) -> dict[str, Any]:
    """Buttons by their names."""
    return {
        name: Button(label=label, name=name, min_width=min_width, **options)
        for name, label in labels.items()
    }


def words(lines: int, name: str = "words", **options: Any) -> Any:
    """A text that says what the plots show; its room does not change with its length.

    A token in it may look like HTML, and is shown as it is.
    """
    room = {"min-height": f"{1.5 * lines:g}em"}
    return Div(**{"name": name, "styles": room, "render_as_text": True, **options})


def beside(*models: Any, each: str = "100%") -> Any:
    """Models in a row that fills the page, below each other where they are too wide for it.

    Where controls stand beside the plots, each slider takes that share of their column.
    """
    style = InlineStyleSheet(css=BESIDE.replace("100%", each))
    return row(*models, stylesheets=[style], sizing_mode="stretch_width")


def arranged(plots: Sequence[Any], controls: Sequence[Any]) -> Any:
    """A figure's layout: the plots, and below them, or beside them where it is wide, the rest.

    Its controls become as wide as the page, and have the colour of its text.
    """
    parts = [
        column(*models, css_classes=[name], sizing_mode="stretch_width")
        for name, models in (("plots", plots), ("controls", controls))
    ]
    layout = column(
        *parts, stylesheets=[InlineStyleSheet(css=ARRANGED)], sizing_mode="stretch_width"
    )
    style = InlineStyleSheet(css=_read("controls.css"))
    for widget in layout.select({"type": Widget}):
        widget.update(sizing_mode="stretch_width", stylesheets=[style, *widget.stylesheets])
    return layout


def handle(plot: Any, source: Any, x: str = "x", y: str = "y") -> None:
    """A disc to take hold of: a finger that begins elsewhere in the plot scrolls the page."""
    colour = COLOURS["weights"]
    look = {"fill_color": colour, "fill_alpha": 0.15, "line_color": colour, "line_alpha": 0.5}
    plot.scatter(x, y, size=26, source=source, name="handle", **look)


def updated_by(
    scripts: Sequence[str],
    controls: Mapping[str, Any],
    pressed: Mapping[str, Any] | None = None,
    **models: Any,
) -> Any:
    """Scripts of assets, to run on these by name when a value changes or a button is pressed."""
    args = {**controls, **(pressed or {}), **models}
    update = CustomJS(args=args, code=read_scripts(*scripts), name="update")
    for control in controls.values():
        control.js_on_change("value", update)
    for button in (pressed or {}).values():
        button.js_on_event(ButtonClick, update)
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
