"""Chapter 13's live figure of a plan: a model, a batch, devices and a layout to choose."""

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from bokeh.models import Span

from attnbook.distributed.layout import DEVICES, MODELS, RECOMPUTE
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live import figure

HELD = ("weights", "gradients", "optimizer", "activations")
SPENT = ("compute", "heads", "ring", "experts", "stages", "bubble", "copies")


def planner() -> figure.LiveFigure:
    """A plan of many devices: bars of what each one holds, bars of a step's time, and what binds.

    The page computes attnbook.distributed.plan's formulas anew whenever a control moves. Bars
    follow one another, so that the last one ends at the sum. Sending that hides lies paler under
    computing. What can overlap always does.

    Source: distributed.plan has those of the formulas.
    """
    columns = ("y", "left", "right", "text")
    sources = figure.empty({"held": columns, "spent": columns, "hidden": columns[:-1]})
    above = _bars("above", "GB of a device", HELD, sources["held"], COLOURS["estimate"])
    look = {"line_color": COLOURS["truth"], "line_width": 2}
    limit = Span(location=80, dimension="height", **look)
    above.add_layout(limit)
    figure.legend(above, {"what a device has": above.line([np.nan], [np.nan], **look)})
    below = _bars("below", "seconds of a step", SPENT, sources["spent"], COLOURS["weights"])
    bar: dict[str, Any] = {"left": "left", "right": "right", "height": 0.6, "line_color": None}
    pale = {"fill_color": COLOURS["weights"], "fill_alpha": 0.4}
    hidden = below.hbar("y", source=sources["hidden"], **bar, **pale)
    figure.legend(below, {"sending that computing hides": hidden})
    controls, text = _controls(), figure.words(6)
    drawn = {"above": above, "below": below, "limit": limit, "words": text}
    told: dict[str, Any] = {
        "catalogue": _catalogue(),
        "held_kinds": list(HELD),
        "spent_kinds": list(SPENT),
    }
    scripts = "wording.js", "device_plan.js", "planner.js"
    figure.updated_by(scripts, controls, **sources, **drawn, **told)
    rows = (
        (("model", "device"), "100%"),
        (("reached",), "100%"),
        (("heads", "stages", "ring"), "100%"),
        (("experts", "zero", "recompute"), "100%"),
        (("count", "micro_batches"), "50%"),
        (("batch", "sequence"), "100%"),
    )
    return figure.LiveFigure(
        "live-planner",
        "A plan for many devices",
        figure.arranged(
            (above, below),
            (
                text,
                *(figure.beside(*(controls[one] for one in row), each=each) for row, each in rows),
            ),
        ),
        "1,024 devices train Llama 3 70B. Bars tell how many gigabytes weights, gradients, "
        "optimizer and activations take on each device, beside what it has, and how many seconds "
        "of a step go to computing, to each kind of sending, and to waiting. Choose the model, the "
        "batch, the devices and the layout: the text says what binds.",
        min_height=61,
    )


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
    bars = figure.plot(name=name, height=96 + 27 * len(kinds), x_axis_label=label, **ends)
    bars.hbar(
        "y", left="left", right="right", height=0.6, color=colour, line_color=None, source=source
    )
    look = {"color": GREY, "text_font_size": "13px", "text_baseline": "middle"}
    bars.text("right", "y", text="text", x_offset=5, source=source, **look)
    bars.xaxis.ticker.desired_num_ticks = 5
    return bars


def _controls() -> dict[str, Any]:
    """The controls by the names that static/planner.js has for them."""
    menus: dict[str, tuple[str, list[str], str]] = {
        "model": ("model", list(MODELS), "Llama 3 70B"),
        "device": ("device", list(DEVICES), "H100"),
        "heads": ("heads, ways", ["1", "2", "4", "8"], "8"),
        "stages": ("stages", ["1", "2", "4", "8", "16"], "1"),
        "ring": ("ring, ways", ["1", "2", "4", "8", "16"], "1"),
        "experts": ("experts, ways", ["1", "2", "4", "8"], "1"),
        "zero": ("ZeRO stage", ["0", "1", "2", "3"], "1"),
        "recompute": ("made anew", list(RECOMPUTE), "attention"),
    }
    controls: dict[str, Any] = {
        key: figure.menu(title, key, choices, value=value, min_width=105)
        for key, (title, choices, value) in menus.items()
    }
    controls["reached"] = figure.slider(
        "speed reached, % of the data sheet", "reached", (20, 100), 100
    )
    for key, title, ends, power in (
        ("count", "devices", (3, 14), 10),
        ("batch", "tokens in a batch", (18, 26), 22),
        ("sequence", "tokens in a row", (11, 17), 13),
        ("micro_batches", "micro-batches", (0, 6), 2),
    ):
        controls[key] = figure.doubling_slider(title, key, ends, power)
    return controls
