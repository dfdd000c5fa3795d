"""Chapter 13's live figure of a plan: a model, a batch, devices and a layout to choose."""

import json
import math
from dataclasses import asdict, replace
from typing import Any

from bokeh.models import CustomJSTickFormatter, Span

from attnbook._validation import one_of, positive_int
from attnbook.distributed.layout import DEVICES, MODELS, RECOMPUTE, Layout
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    empty,
    menu,
    plot,
    slider,
    updated_by,
    words,
)

HELD = ("weights", "gradients", "optimizer", "activations")
SPENT = ("compute", "heads", "ring", "experts", "stages", "bubble", "copies")
WAYS = {  # of each menu
    "heads": (1, 2, 4, 8),
    "stages": (1, 2, 4, 8, 16),
    "ring": (1, 2, 4, 8, 16),
    "experts": (1, 2, 4, 8),
}
# of each slider, as powers of 2
ENDS = {"count": (3, 14), "batch": (18, 26), "sequence": (11, 17), "micro_batches": (0, 6)}
NAMES = {"count": "devices", "micro_batches": "layout.micro_batches"}


def planner(
    model: str = "Llama 3 70B",
    *,
    device: str = "H100",
    devices: int = 1024,
    batch: int = 2**22,
    sequence: int = 8192,
    layout: Layout | None = None,
    name: str = "live-planner",
) -> LiveFigure:
    """A plan of many devices: bars of what each one holds, bars of a step's time, and what binds.

    The page computes attnbook.distributed.plan's formulas anew whenever a control moves. Bars
    follow one another, so that the last one ends at the sum. Sending that hides lies paler under
    computing.

    Args:
        model: to begin with, one of distributed.layout.MODELS.
        device: one of distributed.layout.DEVICES, eight in a machine.
        devices: how many, a power of 2 from 8 to 16,384.
        batch: tokens of a step, a power of 2 from 262,144 to 67,108,864.
        sequence: tokens in a row, a power of 2 from 2,048 to 131,072.
        layout: to begin with, of ways and micro-batches that the controls have; None for 8 ways of
            heads and stage 1 of ZeRO in 4 micro-batches. What can overlap always does.
        name: of the element in the page; one a page.

    Raises:
        ValueError: what the controls do not have.
        TypeError: a layout that is none.

    Source: distributed.plan has those of the formulas.
    """
    model = one_of(tuple(MODELS), model=model)
    device = one_of(tuple(DEVICES), device=device)
    layout = Layout(zero=1, heads=8, micro_batches=4) if layout is None else layout
    if not isinstance(layout, Layout):
        got = type(layout).__name__
        raise TypeError(f"layout: got a {got}, expected a Layout of distributed.layout")
    for key, ways in WAYS.items():
        if getattr(layout, key) not in ways:
            raise ValueError(f"layout.{key}: got {getattr(layout, key)}, expected one of {ways}")
    sizes = {"count": devices, "batch": batch, "sequence": sequence}
    sizes["micro_batches"] = layout.micro_batches
    powers = {key: _power(key, size) for key, size in sizes.items()}
    columns = ("y", "left", "right", "text")
    sources = empty({"held": columns, "spent": columns, "hidden": columns[:-1]})
    above = _bars("above", "GB of a device", HELD, sources["held"], COLOURS["estimate"])
    limit = Span(location=80, dimension="height", line_color=COLOURS["truth"], line_width=2)
    above.add_layout(limit)
    below = _bars("below", "seconds of a step", SPENT, sources["spent"], COLOURS["weights"])
    bar: dict[str, Any] = {"left": "left", "right": "right", "height": 0.6, "line_color": None}
    pale = {"fill_color": COLOURS["weights"], "fill_alpha": 0.4}
    below.hbar("y", source=sources["hidden"], **bar, **pale)
    wide = control_style()
    controls, text = _controls(model, device, powers, layout, wide), words(6, wide)
    drawn = {"above": above, "below": below, "limit": limit, "words": text}
    told = {"catalogue": _catalogue(), "held_kinds": list(HELD), "spent_kinds": list(SPENT)}
    updated_by(("device_plan.js", "planner.js"), controls, **sources, **drawn, **told)
    rows = (
        (("model", "device"), "100%"),
        (("reached",), "100%"),
        (("heads", "stages", "ring"), "100%"),
        (("experts", "zero", "recompute"), "100%"),
        (("count", "micro_batches"), "50%"),
        (("batch", "sequence"), "50%"),
    )
    return LiveFigure(
        name,
        "A plan for many devices",
        arranged(
            (above, below),
            (text, *(beside(*(controls[one] for one in row), each=each) for row, each in rows)),
        ),
        f"{devices:,} devices train {model}. Bars tell how many gigabytes weights, gradients, "
        "optimizer and activations take on each device, beside what it has, and how many seconds "
        "of a step go to computing, to each kind of sending, and to waiting. Choose the model, the "
        "batch, the devices and the layout: the text says what binds.",
        min_height=58,
    )


def _power(key: str, size: Any) -> int:
    """The logarithm to base 2 of what a slider has."""
    name, (low, high) = NAMES.get(key, key), ENDS[key]
    exponent = math.log2(positive_int(**{name: size}))
    if not exponent.is_integer() or not low <= exponent <= high:
        ends = f"{2**low:,} to {2**high:,}"
        raise ValueError(f"{name}: got {size}, expected a power of 2 from {ends}")
    return int(exponent)


def _catalogue() -> str:
    """Models and devices as JSON, by the names that the menus have."""
    models = {
        name: asdict(replace(model, key_heads=model.key_heads or model.heads))
        for name, model in MODELS.items()
    }
    devices = {
        name: {key: part if isinstance(part, float) else asdict(part) for key, part in of.items()}
        | {"per_machine": 8}
        for name, of in DEVICES.items()
    }
    return json.dumps({"models": models, "devices": devices})


def _bars(name: str, label: str, kinds: tuple[str, ...], source: Any, colour: str) -> Any:
    """A bar for each kind from above, with its number behind its end."""
    ends = {"x_range": (0, 1), "y_range": list(reversed(kinds))}
    bars = plot(name=name, height=70 + 27 * len(kinds), x_axis_label=label, **ends)
    bars.hbar(
        "y", left="left", right="right", height=0.6, color=colour, line_color=None, source=source
    )
    look = {"color": GREY, "text_font_size": "13px", "text_baseline": "middle"}
    bars.text("right", "y", text="text", x_offset=5, source=source, **look)
    bars.xaxis.ticker.desired_num_ticks = 5
    return bars


def _controls(
    model: str, device: str, powers: dict[str, int], layout: Layout, style: dict[str, Any]
) -> dict[str, Any]:
    """The controls by the names that static/planner.js has for them."""
    menus: dict[str, tuple[str, list[str], str]] = {
        "model": ("model", list(MODELS), model),
        "device": ("device", list(DEVICES), device),
        "zero": ("ZeRO stage", ["0", "1", "2", "3"], str(layout.zero)),
        "recompute": ("made anew", list(RECOMPUTE), layout.recompute),
    }
    titles = {"heads": "heads, ways", "stages": "stages", "ring": "ring, ways"}
    for key, ways in WAYS.items():
        title = titles.get(key, "experts, ways")
        menus[key] = (title, [str(one) for one in ways], str(getattr(layout, key)))
    controls: dict[str, Any] = {
        key: menu(title, key, choices, value=value, min_width=105, **style)
        for key, (title, choices, value) in menus.items()
    }
    title = "speed reached, % of the data sheet"
    controls["reached"] = slider(title, "reached", (20, 100), 100, step=1, **style)
    doubled = CustomJSTickFormatter(code="return Math.pow(2, tick).toLocaleString('en')")
    titles = {"count": "devices", "batch": "tokens in a batch", "sequence": "tokens in a row"}
    for key, ends in ENDS.items():
        title, options = titles.get(key, "micro-batches"), {"step": 1, "format": doubled, **style}
        controls[key] = slider(title, key, ends, powers[key], **options)
    return controls
