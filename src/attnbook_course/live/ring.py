"""Chapter 13's live figure: keys and values travel round a ring of devices, step by step."""

import math
from typing import Any

from bokeh.events import ButtonClick
from bokeh.models import Button, CustomJSTickFormatter

from attnbook._validation import nonnegative, positive, positive_int
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.figure import (
    CENTRED,
    LiveFigure,
    arranged,
    beside,
    control_style,
    empty,
    legend,
    menu,
    plot,
    power_slider,
    slider,
    updated_by,
    words,
)

WORLDS = (2, 4, 8)
TOKENS = (12, 20)  # ends of the slider, as powers of 2
SPEEDS = (0.0, 3.0)  # of the link in GB/s, as powers of 10
BUSY, SENDING, SEEN = COLOURS["weights"], COLOURS["data"], COLOURS["estimate"]
PALE, INK = "#eda678", "#222222"  # on what is filled, light or dark


def ring(
    *,
    world: int = 4,
    tokens: int = 32_768,
    width: int = 4096,
    itemsize: int = 2,
    flops: float = 4e14,
    latency: float = 1e-5,
    bandwidth: float = 1e11,
    name: str = "live-ring",
) -> LiveFigure:
    """Ring attention in steps: what each device computes and sends, and how long that takes.

    A device has c = tokens / W queries. In each of W steps they meet the c keys that are there,
    4 c² width operations, or the share of them that a causal mask leaves, in whole blocks; in the
    zigzag a device has the pieces r and 2W − 1 − r of 2W. But for the last step it meanwhile sends
    2 c width numbers in latency + bytes / bandwidth seconds. A step ends when the slowest device
    has done both. This is attnbook.distributed.traffic's model of a link, and no measurement.

    Args:
        world: W, how many devices there are to begin with: 2, 4 or 8.
        tokens: of the sequence to begin with, a power of 2 from 4,096 to 1,048,576.
        width: numbers in a key, and in a value, of all heads together.
        itemsize: bytes of one number.
        flops: operations per second of one device.
        latency: seconds before a message begins to arrive, 0 or more.
        bandwidth: bytes per second to begin with, from 1e9 to 1e12.
        name: of the element in the page; one a page.

    Raises:
        ValueError: a number that the controls do not have, or that is not above 0.

    Source: Liu, Zaharia and Abbeel (2023); Brandon et al. (2023) for balancing the mask.
    """
    if positive_int(world=world) not in WORLDS:
        raise ValueError(f"world: got {world}, expected one of {WORLDS}")
    exponent = math.log2(positive_int(tokens=tokens))
    if not exponent.is_integer() or not TOKENS[0] <= exponent <= TOKENS[1]:
        low, high = (2**end for end in TOKENS)
        raise ValueError(f"tokens: got {tokens}, expected a power of 2 from {low:,} to {high:,}")
    if not 1e9 <= positive(bandwidth=bandwidth) <= 1e12:
        raise ValueError(f"bandwidth: got {bandwidth:g}, expected 1e9 to 1e12 bytes per second")
    machine = {
        "width": positive_int(width=width),
        "itemsize": positive_int(itemsize=itemsize),
        "flops": positive(flops=flops),
        "latency": nonnegative(latency=latency),
    }
    sources = _sources()
    circle, table, timeline = _circle(sources), _table(sources), _timeline(sources)
    wide = control_style()
    controls = _controls(world, exponent, math.log10(bandwidth / 1e9), wide)
    play = Button(label="play", name="play", align="end", min_width=80, **wide)
    text = words(4, wide)
    drawn = {"circle": circle, "square": table, "timeline": timeline, "words": text}
    colours = {"busy": BUSY, "filled": [PALE, INK], "empty": [None, GREY], "seen_colour": SEEN}
    models = {**sources, **machine, **drawn, **colours}
    update = updated_by("ring.js", controls, play=play, **models)
    play.js_on_event(ButtonClick, update)
    layout = arranged(
        (beside(circle, table), timeline),
        (
            text,
            beside(*(controls[one] for one in ("devices", "split", "mask"))),
            beside(controls["step"], play, each="50%"),
            beside(controls["tokens"], controls["speed"], each="50%"),
        ),
    )
    return LiveFigure(
        name,
        "Blocks on a ring",
        layout,
        f"{world} devices on a ring. Each keeps its queries and hands a block of keys and values "
        "to the next one, step by step. A table of squares tells which queries have met which "
        "keys, and bars tell how long each device computes and sends in each step, and where it "
        "waits. Choose the number of devices, the mask, contiguous or zigzag pieces, the length "
        "of the sequence and the speed of the link: the text gives the time of all steps and the "
        "share of it in which a device computes.",
        min_height=62,
    )


def _sources() -> dict[str, Any]:
    """What the plots show; the script fills it in."""
    columns = {
        "ranks": ("x", "y", "name", "size", "colour", "ink"),
        "blocks": ("x", "y", "name", "size"),
        "hops": ("x", "y", "angle"),
        "tiles": ("x", "y", "colour", "alpha"),
        "names": ("x", "y", "name"),
        "computing": ("y", "left", "right", "alpha"),
        "sending": ("y", "left", "right", "alpha"),
        "waiting": ("y", "left", "right", "alpha"),
        "ends": ("x",),
        "turn": ("count",),  # of the changes; what was to happen after an earlier one does not
    }
    return empty(columns)


def _controls(world: int, exponent: float, speed: float, style: dict[str, Any]) -> dict[str, Any]:
    """The controls by the names that static/ring.js has for them."""
    narrow = {"min_width": 105, **style}
    controls: dict[str, Any] = {
        "devices": menu("devices", "devices", list(map(str, WORLDS)), value=str(world), **narrow),
        "split": menu("split", "split", ["contiguous", "zigzag"], **narrow),
        "mask": menu("mask", "mask", ["causal", "none"], **narrow),
    }
    doubled = CustomJSTickFormatter(code="return Math.pow(2, tick).toLocaleString('en')")
    whole = {"step": 1, **style}
    controls["step"] = slider("step", "step", (1, world), 2, **whole)
    controls["tokens"] = slider("tokens", "tokens", TOKENS, int(exponent), format=doubled, **whole)
    controls["speed"] = power_slider("link, GB/s", "speed", SPEEDS, speed, **style)
    return controls


def _square(**options: Any) -> Any:
    """A square plot without axes, with room for two beside each other, or for one on a phone."""
    plane = plot(aspect_ratio=1, min_width=165, max_width=360, **options)
    plane.axis.visible = False
    return plane


def _circle(sources: dict[str, Any]) -> Any:
    """The devices with their queries, and outside of them the blocks, which are handed on."""
    ends = {"x_range": (-1.42, 1.42), "y_range": (-1.42, 1.42)}
    circle = _square(name="circle", title="Q stays, KV travels", **ends)
    circle.circle(0, 0, radius=1.18, fill_color=None, line_color=GREY, line_alpha=0.35)
    circle.scatter(
        "x", "y", size=11, marker="triangle", angle="angle", color=SENDING, source=sources["hops"]
    )
    look = {"fill_color": "colour", "line_color": COLOURS["other"], "line_width": 2}
    circle.scatter("x", "y", size="size", source=sources["ranks"], **look)
    look = {"marker": "square", "fill_color": "#b9b9b9", "line_color": SENDING}
    circle.scatter("x", "y", size="size", source=sources["blocks"], **look)
    for name, colour in (("ranks", "ink"), ("blocks", INK)):
        circle.text("x", "y", text="name", color=colour, source=sources[name], **CENTRED)
    return circle


def _table(sources: dict[str, Any]) -> Any:
    """Queries by keys in tiles: met before, being met, still to come; what is hidden is empty."""
    table = _square(name="square", title="Q down, KV across", x_range=(0, 1), y_range=(0, 1))
    look = {"fill_color": "colour", "fill_alpha": "alpha", "line_color": GREY, "line_width": 0.7}
    table.rect("x", "y", width=0.9, height=0.9, source=sources["tiles"], **look)
    table.text("x", "y", text="name", color=GREY, source=sources["names"], **CENTRED)
    return table


def _timeline(sources: dict[str, Any]) -> Any:
    """Bars of what each device does from step to step, computing above sending."""
    labels = {"x_axis_label": "milliseconds", "y_axis_label": "rank"}
    timeline = plot(name="timeline", height=270, x_range=(0, 1), y_range=(1, -1), **labels)
    drawn, ends = {}, {"left": "left", "right": "right", "height": 0.36}
    for name, colour, label in (
        ("computing", BUSY, "computes"),
        ("sending", SENDING, "sends"),
        ("waiting", None, "waits"),
    ):
        look = {
            "fill_color": colour,
            "fill_alpha": "alpha",
            "line_alpha": "alpha",
            "line_color": None if colour else GREY,
            "line_dash": "dotted",
        }
        drawn[label] = timeline.hbar("y", source=sources[name], **ends, **look)
    dashed = {"line_color": GREY, "line_alpha": 0.5, "line_dash": "dashed"}
    timeline.segment("x", -1, "x", WORLDS[-1], source=sources["ends"], **dashed)
    room = {"spacing": 16, "padding": 2, "label_standoff": 4}
    legend(timeline, drawn, glyph_width=18, glyph_height=12, **room)
    timeline.yaxis.ticker = list(range(WORLDS[0]))
    return timeline
