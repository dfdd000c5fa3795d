"""Chapter 13's live figure: keys and values travel round a ring of devices, step by step."""

from typing import Any

from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live import figure

WORLDS = (2, 4, 8)
WORLD = 4  # to begin with
# numbers in a key, and in a value, of all heads together; bytes of one; of one device operations
# per second, and seconds before a message begins to arrive
MACHINE: dict[str, Any] = {"width": 4096, "itemsize": 2, "flops": 4e14, "latency": 1e-5}
BUSY, SENDING, SEEN = COLOURS["weights"], COLOURS["data"], COLOURS["estimate"]
PALE, INK = "#eda678", "#222222"  # on what is filled, light or dark


def ring() -> figure.LiveFigure:
    """Ring attention in steps: what each device computes and sends, and how long that takes.

    A device has c = tokens / W queries. In each of W steps they meet the c keys that are there,
    4 c² width operations, or the share of them that a causal mask leaves, in whole blocks; in the
    zigzag a device has the pieces r and 2W − 1 − r of 2W. But for the last step it meanwhile sends
    2 c width numbers in latency + bytes / bandwidth seconds. A step ends when the slowest device
    has done both. This is attnbook.distributed.traffic's model of a link, and no measurement.

    Source: Liu, Zaharia and Abbeel (2023); Brandon et al. (2023) for balancing the mask.
    """
    sources = _sources()
    circle, table, timeline = _circle(sources), _table(sources), _timeline(sources)
    controls = _controls()
    text = figure.words(4)
    drawn = {"circle": circle, "square": table, "timeline": timeline, "words": text}
    colours: dict[str, Any] = {
        "busy": BUSY,
        "filled": [PALE, INK],
        "empty": [None, GREY],
        "seen_colour": SEEN,
    }
    scripts = "wording.js", "ring_times.js", "ring.js"
    figure.updated_by(scripts, controls, **sources, **MACHINE, **drawn, **colours)
    devices, split, mask, step, tokens, speed = controls.values()
    rows = (
        figure.beside(devices, split, mask),
        step,
        figure.beside(tokens, speed, each="50%"),
    )
    return figure.LiveFigure(
        "live-ring",
        "Blocks on a ring",
        figure.arranged((figure.beside(circle, table), timeline), (text, *rows)),
        f"{WORLD} devices on a ring. Each keeps its queries and hands a block of keys and values "
        "to the next one, step by step. A table of squares tells which queries have met which "
        "keys, and bars tell how long each device computes and sends in each step, and where it "
        "waits. Choose the number of devices, the mask, contiguous or zigzag pieces, the length "
        "of the sequence and the speed of the link: the text gives the time of all steps and the "
        "share of it in which a device computes.",
        min_height=62,
    )


def _sources() -> dict[str, Any]:
    """What the plots show; the script fills it in."""
    return figure.empty(
        {
            "ranks": ("x", "y", "name", "size", "colour", "ink"),
            "blocks": ("x", "y", "name", "size"),
            "hops": ("x", "y", "angle"),
            "tiles": ("x", "y", "colour", "alpha"),
            "names": ("x", "y", "name"),
            "computing": ("y", "left", "right", "alpha"),
            "sending": ("y", "left", "right", "alpha"),
            "waiting": ("y", "left", "right", "alpha"),
            "ends": ("x",),
        }
    )


def _controls() -> dict[str, Any]:
    """The controls by the names that static/ring.js has for them."""
    narrow = {"min_width": 105}
    return {
        "devices": figure.menu(
            "devices", "devices", list(map(str, WORLDS)), value=str(WORLD), **narrow
        ),
        "split": figure.menu("split", "split", ["contiguous", "zigzag"], **narrow),
        "mask": figure.menu("mask", "mask", ["causal", "none"], **narrow),
        "step": figure.slider("step", "step", (1, WORLD), 2),
        "tokens": figure.doubling_slider("tokens", "tokens", (12, 20), 15),
        "speed": figure.power_slider("link, GB/s", "speed", (0, 3), 2),
    }


def _square(**options: Any) -> Any:
    """A square plot without axes, with room for two beside each other, or for one on a phone."""
    plane = figure.plot(aspect_ratio=1, min_width=165, max_width=360, **options)
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
        circle.text("x", "y", text="name", color=colour, source=sources[name], **figure.CENTRED)
    return circle


def _table(sources: dict[str, Any]) -> Any:
    """Queries by keys in tiles: met before, being met, still to come; what is hidden is empty."""
    table = _square(name="square", title="Q down, KV across", x_range=(0, 1), y_range=(0, 1))
    look = {"fill_color": "colour", "fill_alpha": "alpha", "line_color": GREY, "line_width": 0.7}
    table.rect("x", "y", width=0.9, height=0.9, source=sources["tiles"], **look)
    table.text("x", "y", text="name", color=GREY, source=sources["names"], **figure.CENTRED)
    return table


def _timeline(sources: dict[str, Any]) -> Any:
    """Bars of what each device does from step to step, computing above sending."""
    labels = {"x_axis_label": "milliseconds", "y_axis_label": "rank"}
    timeline = figure.plot(name="timeline", height=270, x_range=(0, 1), y_range=(1, -1), **labels)
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
    figure.legend(timeline, drawn, glyph_width=18, glyph_height=12, **room)
    timeline.yaxis.ticker = list(range(WORLDS[0]))
    return timeline
