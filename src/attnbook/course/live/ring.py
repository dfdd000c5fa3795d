"""Chapter 13's live figure: keys and values travel round a ring of devices, step by step."""

import math
from typing import Any

from bokeh.events import ButtonClick
from bokeh.models import (
    Button,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Legend,
    LegendItem,
    Select,
)

from attnbook._validation import numbers
from attnbook.course.figures import COLOURS, GREY
from attnbook.course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    plot,
    power_slider,
    read_scripts,
    slider,
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
    if numbers.positive_int(world=world) not in WORLDS:
        raise ValueError(f"world: got {world}, expected one of {WORLDS}")
    exponent = math.log2(numbers.positive_int(tokens=tokens))
    if not exponent.is_integer() or not TOKENS[0] <= exponent <= TOKENS[1]:
        low, high = (2**end for end in TOKENS)
        raise ValueError(f"tokens: got {tokens}, expected a power of 2 from {low:,} to {high:,}")
    if not 1e9 <= numbers.positive(bandwidth=bandwidth) <= 1e12:
        raise ValueError(f"bandwidth: got {bandwidth:g}, expected 1e9 to 1e12 bytes per second")
    machine = {
        "width": numbers.positive_int(width=width),
        "itemsize": numbers.positive_int(itemsize=itemsize),
        "flops": numbers.positive(flops=flops),
        "latency": numbers.nonnegative(latency=latency),
    }
    sources = _sources()
    circle, table, timeline = _circle(sources), _table(sources), _timeline(sources)
    wide = control_style()
    controls = _controls(world, exponent, math.log10(bandwidth / 1e9), wide)
    play = Button(label="play", name="play", align="end", min_width=80, **wide)
    text = words(4, wide)
    update = CustomJS(
        args=dict(
            **controls, **sources, **machine, play=play, circle=circle, square=table,
            timeline=timeline, words=text, busy=BUSY, filled=[PALE, INK],
            empty=[None, GREY], seen_colour=SEEN,
        ),
        code=read_scripts("ring.js"),
        name="update",
    )  # fmt: skip
    for control in controls.values():
        control.js_on_change("value", update)
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
    return {
        name: ColumnDataSource({column: [] for column in of}, name=name)
        for name, of in columns.items()
    }


def _controls(
    world: int, exponent: float, speed: float, style: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """The controls by the names that static/ring.js has for them."""
    menus = {
        "devices": ([str(w) for w in WORLDS], str(world)),
        "split": (["contiguous", "zigzag"], "contiguous"),
        "mask": (["causal", "none"], "causal"),
    }
    controls: dict[str, Any] = {
        name: Select(title=name, name=name, options=options, value=value, min_width=105, **style)
        for name, (options, value) in menus.items()
    }
    doubled = CustomJSTickFormatter(code="return Math.pow(2, tick).toLocaleString('en')")
    controls["step"] = slider(
        title="step", name="step", start=1, end=world, value=2, step=1, **style
    )
    controls["tokens"] = slider(
        title="tokens", name="tokens", start=TOKENS[0], end=TOKENS[1], value=int(exponent),
        step=1, format=doubled, **style,
    )  # fmt: skip
    controls["speed"] = power_slider(
        title="link, GB/s", name="speed", start=SPEEDS[0], end=SPEEDS[1], value=speed, **style
    )
    return controls


def _square(**options: Any) -> Any:
    """A square plot without axes, with room for two beside each other, or for one on a phone."""
    plane = plot(aspect_ratio=1, min_width=165, max_width=360, **options)
    plane.axis.visible = False
    return plane


def _circle(sources: dict[str, Any]) -> Any:
    """The devices with their queries, and outside of them the blocks, which are handed on."""
    circle = _square(
        name="circle", title="Q stays, KV travels",
        x_range=(-1.42, 1.42), y_range=(-1.42, 1.42),
    )  # fmt: skip
    circle.circle(0, 0, radius=1.18, fill_color=None, line_color=GREY, line_alpha=0.35)
    circle.scatter(
        "x", "y", size=11, marker="triangle", angle="angle", color=SENDING, source=sources["hops"]
    )
    circle.scatter(
        "x", "y", size="size", fill_color="colour", line_color=COLOURS["other"],
        line_width=2, source=sources["ranks"],
    )  # fmt: skip
    circle.scatter(
        "x", "y", size="size", marker="square", fill_color="#b9b9b9", line_color=SENDING,
        source=sources["blocks"],
    )  # fmt: skip
    for source, colour in (("ranks", "ink"), ("blocks", INK)):
        circle.text(
            "x", "y", text="name", color=colour, text_font_size="12px", text_align="center",
            text_baseline="middle", source=sources[source],
        )  # fmt: skip
    return circle


def _table(sources: dict[str, Any]) -> Any:
    """Queries by keys in tiles: met before, being met, still to come; what is hidden is empty."""
    table = _square(name="square", title="Q down, KV across", x_range=(0, 1), y_range=(0, 1))
    table.rect(
        "x", "y", width=0.9, height=0.9, fill_color="colour", fill_alpha="alpha", line_color=GREY,
        line_width=0.7, source=sources["tiles"],
    )  # fmt: skip
    table.text(
        "x", "y", text="name", color=GREY, text_font_size="12px", text_align="center",
        text_baseline="middle", source=sources["names"],
    )  # fmt: skip
    return table


def _timeline(sources: dict[str, Any]) -> Any:
    """Bars of what each device does from step to step, computing above sending."""
    timeline = plot(
        name="timeline", height=270, x_range=(0, 1), y_range=(1, -1),
        x_axis_label="milliseconds", y_axis_label="rank",
    )  # fmt: skip
    items = []
    for source, colour, label in (
        ("computing", BUSY, "computes"),
        ("sending", SENDING, "sends"),
        ("waiting", None, "waits"),
    ):
        bars = timeline.hbar(
            "y", left="left", right="right", height=0.36, fill_color=colour, fill_alpha="alpha",
            line_color=None if colour else GREY, line_alpha="alpha", line_dash="dotted",
            source=sources[source],
        )  # fmt: skip
        items.append(LegendItem(label=label, renderers=[bars]))
    timeline.segment(
        "x", -1, "x", WORLDS[-1], line_color=GREY, line_alpha=0.5, line_dash="dashed",
        source=sources["ends"],
    )  # fmt: skip
    legend = Legend(
        items=items, orientation="horizontal", background_fill_color=None,
        border_line_color=None, label_text_color=GREY, label_text_font_size="13px", spacing=16,
        margin=0, padding=2, glyph_width=18, glyph_height=12, label_standoff=4,
    )  # fmt: skip
    timeline.add_layout(legend, "above")
    timeline.yaxis.ticker = list(range(WORLDS[0]))
    return timeline
