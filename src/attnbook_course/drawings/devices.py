"""Drawings of many devices: a batch in shares, heads in shares, a ring, a worker that is killed."""

import math

import numpy as np

from attnbook._validation import int_between, positive_int
from attnbook_course.drawings.canvas import Canvas, Drawing, Point

LEFT, RIGHT = 96.0, 476.0  # between them each worker has a lane


def data_parallel(*, workers: int = 4, rows: int = 16) -> Drawing:
    """A batch in shares for copies of a model, and below it the same with shares of the model.

    The gradient of the whole batch is g = Σ_r (n_r / n) g_r, a weighted average of the workers'.

    Args:
        workers: W, at most 4.
        rows: n, of the batch; a multiple of W, at most 8 W.

    Raises:
        ValueError: too many workers, or rows that they cannot share.
    """
    world = int_between(2, 4, workers=workers)
    count = positive_int(rows=rows)
    if count % world or count > 8 * world:
        raise ValueError(
            f"rows: got {count} for {world} workers, expected a multiple of {world} up to "
            f"{8 * world}"
        )
    canvas = Canvas(
        "data_parallel",
        560,
        f"Above, {count} rows in {world} shares. Each worker has a copy of the model and the "
        "gradient of its share; an all-reduce averages the gradients. Below, each worker holds one "
        f"part in {world} of the model. An all-gather makes a block whole before it computes, "
        "forward and again backward, and a reduce-scatter leaves each worker the averaged gradient "
        "of its own part.",
    )
    canvas.text(4, 14, "data parallel: every worker has a copy", anchor="start", bold=True)
    canvas.text(4, 322, "fully sharded: every worker has a part", anchor="start", bold=True)
    canvas.line((4, 298), (476, 298), dashed=True)
    for y, label, role in (
        *((50, "batch", "ink"), (124, "model", "output"), (174, "gradients", "weights")),
        *((274, "step", "output"), (356, "held", "output"), (440, "one block", "output")),
        (532, "kept", "weights"),
    ):
        canvas.text(4, y, label, role, anchor="start")
    canvas.box(286, 50, 380, 26, role="keys", fill=0.06, radius=3)
    terms = "g_0 + g_1" if world == 2 else f"g_0 + … + g_{world - 1}"
    average = f"all-reduce: g = ({terms}) / {world}"
    canvas.box(286, 222, 380, 34, average, "weights", fill=0.14, bold=True)
    canvas.box(
        286, 398, 380, 30, "all-gather, forward and again backward", "output", fill=0.14, bold=True
    )
    canvas.box(
        286, 486, 380, 30, "reduce-scatter of its gradients", "weights", fill=0.14, bold=True
    )
    for r, x in enumerate(_lanes(world)):
        _copy(canvas, x, r, count // world)
        if r:
            edge = LEFT + r * (RIGHT - LEFT) / world
            canvas.line((edge, 37), (edge, 63), role="ink", width=2)
        _slices(canvas, x, 356, r, world, "output")
        canvas.arrow((x, 372), (x, 382), role="output")
        canvas.arrow((x, 414), (x, 424), role="output")
        canvas.box(x, 440, 72, 28, "θ", "output", fill=0.35, bold=True)
        canvas.arrow((x, 455), (x, 470), role="weights")
        canvas.arrow((x, 502), (x, 517), role="weights")
        _slices(canvas, x, 532, r, world, "weights")
    return canvas.drawing()


def _lanes(world: int) -> list[float]:
    """The middles of the workers' lanes."""
    wide = (RIGHT - LEFT) / world
    return [LEFT + wide * (r + 0.5) for r in range(world)]


def _copy(canvas: Canvas, x: float, r: int, share: int) -> None:
    """One worker: its rows, its copy of the model, its gradient, and the step that all take."""
    places = [(x + 10 * (j - (share - 1) / 2), 50) for j in range(share)]
    canvas.dots(places, [1] * share, "keys", radius=4)
    canvas.text(x, 76, f"{share} rows" if share > 1 else "1 row", "keys")
    canvas.arrow((x, 88), (x, 105))
    canvas.box(x, 124, 72, 36, "θ", "output", fill=0.35, bold=True)
    canvas.arrow((x, 144), (x, 160), role="weights")
    canvas.dots([(x - 14, 174)], [1], radius=9)
    canvas.text(x + 10, 174, f"g_{r}", "weights", bold=True)
    canvas.arrow((x, 188), (x, 203), role="weights")
    canvas.arrow((x, 241), (x, 258), role="weights")
    canvas.text(x, 274, "θ − ηg", "output")


def _slices(canvas: Canvas, x: float, y: float, r: int, world: int, role: str) -> None:
    """A model in as many parts as there are workers, of which worker r has one."""
    wide = 72 / world
    canvas.box(x - 36 + wide * (r + 0.5), y, wide, 28, role=role, fill=0.6, radius=0, edge=0)
    for k in range(1, world):
        canvas.line((x - 36 + wide * k, y - 14), (x - 36 + wide * k, y + 14), role=role, width=0.7)
    canvas.box(x, y, 72, 28, role=role, fill=0, radius=2)


def heads_split(*, ranks: int = 2, num_heads: int = 4, hidden_dim: int = 16) -> Drawing:
    """A block whose heads and hidden units are divided: sums over ranks stand in four places.

    Args:
        ranks: W, at most 4.
        num_heads: of attention, a multiple of W, at most 8.
        hidden_dim: units of the MLP, a multiple of W, at most 24.

    Raises:
        ValueError: too many ranks, or heads or units that they cannot share.
    """
    world = int_between(2, 4, ranks=ranks)
    heads = int_between(1, 8, num_heads=num_heads)
    units = int_between(1, 24, hidden_dim=hidden_dim)
    for name, size in (("num_heads", heads), ("hidden_dim", units)):
        if size % world:
            raise ValueError(f"{name}: got {size}, expected a multiple of {world} ranks")
    canvas = Canvas(
        "heads_split",
        548,
        f"A block on {world} ranks, its stream upwards and whole on each. Of {heads} heads and "
        f"{units} hidden units each rank has its share. Behind the heads and behind the units an "
        "all-reduce adds the ranks' outputs in the forward pass. Before them another adds the "
        "gradients in the backward pass.",
    )
    for base, label in ((486, f"{heads} heads"), (276, f"{units} units")):
        canvas.text(4, base - 112, label, "weights" if base > 300 else "values", anchor="start")
        for y, way in ((base - 66, "backward"), (base - 160, "forward")):
            canvas.text(4, y, way, "output", anchor="start", bold=way == "forward")
    for r, x in enumerate(_lanes(world)):
        wide = (RIGHT - LEFT) / world
        stream, middle = x - wide / 2 + 14, x + 8
        canvas.text(x, 14, f"rank {r}", bold=True)
        canvas.arrow((stream, 516), (stream, 60), role="output", width=3)
        canvas.text(stream + 12, 52, "Z", "output", anchor="start", bold=True)
        canvas.text(stream + 12, 516, "X", "output", anchor="start", bold=True)
        for base in (486, 276):
            _share(canvas, (stream, middle, wide - 32), base)
            joined = (r > 0, r + 1 < world)
            for y, forward in ((base - 66, False), (base - 160, True)):
                _all_reduce(canvas, (middle, wide - 32, wide), y, forward, joined)
        _heads(
            canvas, middle, wide - 32, [heads // world * r + h + 1 for h in range(heads // world)]
        )
        _units(canvas, middle, wide - 32, units // world)
    return canvas.drawing()


def _share(canvas: Canvas, lane: tuple[float, float, float], base: float) -> None:
    """One rank's half of a block: from the stream through the norm, its share, and back."""
    stream, middle, wide = lane
    canvas.arrow((stream, base), (middle, base), (middle, base - 15))
    canvas.box(middle, base - 28, min(wide, 64), 24, "norm")
    for above, below in ((40, 53), (79, 90), (134, 145)):
        canvas.arrow((middle, base - above), (middle, base - below))
    canvas.arrow((middle, base - 174), (middle, base - 190), (stream + 13, base - 190))
    canvas.plus(stream, base - 190)


def _all_reduce(
    canvas: Canvas,
    lane: tuple[float, float, float],
    y: float,
    forward: bool,
    joined: tuple[bool, bool],
) -> None:
    """A rank's part of a sum over all ranks; dashed where gradients are added, on the way back."""
    middle, wide, step = lane
    fill, label = 0.35 if forward else 0.05, "all-reduce" if wide > 96 else "+"
    canvas.box(middle, y, wide, 26, label, "output", fill=fill, dashed=not forward, bold=forward)
    if joined[1]:
        start, end = middle + wide / 2, middle + step - wide / 2
        canvas.line((start, y), (end, y), role="output", width=3, dashed=not forward)


def _heads(canvas: Canvas, middle: float, wide: float, names: list[int]) -> None:
    """The heads of one rank, each a box with its weights as dots."""
    each = wide / len(names)
    rng = np.random.default_rng(names[0])
    for k, h in enumerate(names):
        x = middle + each * (k - (len(names) - 1) / 2)
        canvas.box(x, 374, each - 4, 40, role="weights")
        count = 3 if each > 36 else 2
        places = [(x + 11 * (j - (count - 1) / 2), 385) for j in range(count)]
        canvas.dots(places, rng.uniform(0.1, 1, count).tolist(), radius=5, full=1)
        canvas.text(x, 366, str(h), "weights", bold=True)


def _units(canvas: Canvas, middle: float, wide: float, count: int) -> None:
    """The hidden units of one rank, as dots."""
    canvas.box(middle, 164, wide, 40, role="values")
    lines = 1 if 11 * count <= wide - 8 else 2
    each = math.ceil(count / lines)
    places = [
        (middle + 11 * (j % each - (each - 1) / 2), 164 + 14 * (j // each - (lines - 1) / 2))
        for j in range(count)
    ]
    canvas.dots(places, [1] * count, "values", radius=4)


def ring(*, devices: int = 4, step: int = 2) -> Drawing:
    """Devices on a ring: queries stay, keys and values travel, and parts combine.

    At step t, counted from 1, rank r has block (r − t + 1) mod W.

    Args:
        devices: W, at most 6.
        step: the step that the ring shows, from 1 to W.
    """
    world = int_between(2, 6, devices=devices)
    now = int_between(1, world, step=step)
    low = 356.0
    canvas = Canvas(
        "ring",
        low + 66 + 25 * world,
        f"{world} devices on a ring, in step {now} of {world}. Each keeps its queries and has one "
        "block of keys and values, which it hands to the next device. A row of squares tells whose "
        "blocks are in its part of the average. Below, a table of the blocks that each device has "
        f"at each step. Each device sends {2 * (world - 1)} blocks in all.",
    )
    angles = [2 * math.pi * r / world for r in range(world)]
    places = [(240 + 176 * math.sin(a), 172 - 126 * math.cos(a)) for a in angles]
    if world == 2:
        places = [(90, 172), (390, 172)]
    canvas.text(240, 160, f"step {now} of {world}", bold=True, size=18)
    canvas.text(240, 186, "K, V travel", "keys")
    for r, here in enumerate(places):
        _device(canvas, here, r, now, world)
        _hop(canvas, here, places[(r + 1) % world], world=world)
    _schedule(canvas, low, now, world)
    return canvas.drawing()


def _device(canvas: Canvas, place: Point, r: int, now: int, world: int) -> None:
    """A device: its queries, the block that it has, and whose keys its part has seen."""
    x, y = place
    block = (r - now + 1) % world
    canvas.box(x, y, 124, 88, fill=0.05)
    canvas.text(x, y - 28, f"rank {r}", bold=True)
    canvas.box(x - 38, y - 1, 38, 26, f"Q_{r}", "queries", fill=0.2, radius=4)
    canvas.box(x + 22, y - 1, 68, 26, f"K_{block} V_{block}", "keys", fill=0.2, radius=4)
    seen = {(r - t) % world for t in range(now)}
    for j in range(world):
        at = x + 17 * (j - (world - 1) / 2)
        fill = 0.7 if j in seen else 0
        canvas.box(at, y + 28, 14, 14, role="output", fill=fill, radius=2, edge=1)


def _hop(canvas: Canvas, here: Point, there: Point, *, world: int) -> None:
    """An arrow from a device to the next, round the outside of the ring."""
    (x0, y0), (x1, y1) = here, there
    right, down = (1 if x1 > x0 else -1), (1 if y1 > y0 else -1)
    if abs(y1 - y0) < 1:  # beside each other
        shift = -38 * right if world == 2 else 0
        points = [(x0 + 66 * right, y0 + shift), (x1 - 66 * right, y1 + shift)]
    elif abs(x1 - x0) < 100:  # below each other, or nearly
        points = [(x0, y0 + 48 * down), (x1, y1 - 48 * down)]
    elif abs(x0 - 240) < abs(x1 - 240):  # from the top or the bottom outwards
        points = [(x0 + 66 * right, y0), (x1, y0), (x1, y1 - 48 * down)]
    else:
        points = [(x0, y0 + 48 * down), (x0, y1), (x1 - 66 * right, y1)]
    canvas.arrow(*points, role="keys", width=2.5)


def _schedule(canvas: Canvas, low: float, now: int, world: int) -> None:
    """Which block each device has at each step, and how many blocks it sends."""
    wide = 372 / world
    for r in range(world):
        canvas.text(104 + wide * (r + 0.5), low + 12, f"rank {r}")
    for t in range(1, world + 1):
        y = low + 14 + 25 * t
        if t == now:
            canvas.box(240, y, 472, 24, role="weights", fill=0.13, radius=4, edge=0)
        canvas.text(
            12, y, f"step {t}", "ink" if t == now else "keys", anchor="start", bold=t == now
        )
        for r in range(world):
            block = (r - t + 1) % world
            canvas.text(104 + wide * (r + 0.5), y, f"K_{block} V_{block}", "keys", bold=t == now)
    said = f"each sends {world - 1} K and {world - 1} V, of n/{world} tokens"
    canvas.text(240, low + 48 + 25 * world, said, bold=True)


def killed_worker(*, steps: int = 12, every: int = 4, killed: int = 10) -> Drawing:
    """A run that nothing disturbs, one that is killed, and the one that goes on from it.

    Args:
        steps: of the whole run, at most 12.
        every: so many steps there is a checkpoint.
        killed: the step in which a worker is killed; a checkpoint stands before it.

    Raises:
        ValueError: a step that is not reached, or one without a checkpoint before it.
    """
    total = int_between(2, 12, steps=steps)
    apart = int_between(2, total, every=every)
    if not apart < positive_int(killed=killed) <= total:
        raise ValueError(
            f"killed: got step {killed}, expected one from {apart + 1}, after the first "
            f"checkpoint, to {total}"
        )
    last = (killed - 1) // apart * apart
    canvas = Canvas(
        "killed_worker",
        372,
        f"Three time lines of {total} steps. The first is not disturbed. The second is killed in "
        f"step {killed}, after checkpoints every {apart} steps. The third starts from the "
        f"checkpoint of step {last} and takes steps {last + 1} to {total} with the same batches.",
    )
    wide = 364 / total
    places = [112 + wide * (k + 0.5) for k in range(total)]
    for y, name in ((40, "not\ndisturbed"), (136, "killed"), (262, "goes on")):
        canvas.text(4, y, name, anchor="start", bold=True)
    for k, x in enumerate(places, 1):
        _step_box(canvas, x, 40, k, wide)
        if k < killed:
            _step_box(canvas, x, 136, k, wide, again=k > last)
        if k > last:
            _step_box(canvas, x, 262, k, wide)
    x = places[killed - 1]
    for turn in (-1, 1):
        canvas.line((x - 9, 136 - 9 * turn), (x + 9, 136 + 9 * turn), role="weights", width=4)
    for k in range(apart, killed, apart):
        at = 112 + wide * k
        canvas.line((at, 108), (at, 184), role="output", width=2.5)
        canvas.text(at, 196, f"step-{k}", "output", bold=k == last)
    at = 112 + wide * last
    canvas.arrow((at, 210), (at, 262), (at + 5, 262), role="output", width=2.5)
    canvas.text(104, 310, "dots: the batch, which follows from", "keys", anchor="start")
    canvas.text(104, 332, "the seed and the number of the step", "keys", anchor="start")
    lost = killed - 1 - last
    said = f"{lost} step{'s' * (lost != 1)} done twice" if lost else "no step done twice"
    canvas.text(104, 360, f"{said}, the same end", anchor="start", bold=True)
    return canvas.drawing()


def _step_box(
    canvas: Canvas, x: float, y: float, k: int, wide: float, *, again: bool = False
) -> None:
    """A step: its number, and its batch as three dots drawn by that number."""
    canvas.box(x, y, min(wide, 40) - 3, 52, role="line", fill=0.08, radius=4, dashed=again)
    canvas.text(x, y - 11, str(k), "keys" if again else "ink")
    batch = np.random.default_rng(k).uniform(0.1, 1, 3).tolist()
    canvas.dots(
        [(x + 8.5 * (j - 1), y + 13) for j in range(3)], batch, "values", radius=4.2, full=1
    )
