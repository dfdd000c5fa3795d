"""Drawings of chapter 13: shares, blocks and steps are those of the arguments."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

from attnbook_course import drawings
from attnbook_course.drawings import canvas

SVG = "{http://www.w3.org/2000/svg}"
BLOCK = re.compile(r"K(\d) V\1")


def shapes_of(drawing, tag, role):
    """The elements of one kind that are filled in a role's colour."""
    root = ET.fromstring(drawing.svg)
    return [e for e in root.iter(f"{SVG}{tag}") if e.get("fill") == canvas.colour(role)]


@pytest.mark.parametrize(("workers", "rows"), [(2, 16), (3, 24), (4, 16), (4, 4)])
def test_every_row_is_one_workers_and_shares_are_equal(workers, rows):
    drawing = drawings.data_parallel(workers=workers, rows=rows)
    assert len(shapes_of(drawing, "circle", "keys")) == rows
    share = "1 row" if rows == workers else f"{rows // workers} rows"
    assert drawing.texts.count(share) == workers
    gradients = {t for t in drawing.texts if re.fullmatch(r"g\d", t)}
    assert gradients == {f"g{r}" for r in range(workers)}
    (average,) = (t for t in drawing.texts if t.startswith("all-reduce"))
    assert average.endswith(f"g{workers - 1}) / {workers}")


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_the_parts_of_a_sharded_model_are_disjoint_and_cover_it(workers):
    drawing = drawings.data_parallel(workers=workers, rows=2 * workers)
    for role in ("output", "weights"):
        held = [e for e in shapes_of(drawing, "rect", role) if e.get("fill-opacity") == "0.6"]
        wide = (canvas.WIDTH - 100) / workers
        starts = [(float(e.get("x")) - 96) % wide - (wide - 72) / 2 for e in held]
        np.testing.assert_allclose(starts, 72 / workers * np.arange(workers), atol=0.2)
        assert sum(float(e.get("width")) for e in held) == pytest.approx(72, abs=0.3)


@pytest.mark.parametrize(("ranks", "heads", "units"), [(2, 4, 16), (3, 6, 12), (4, 8, 24)])
def test_every_head_and_unit_is_one_ranks_and_sums_stand_in_four_places(ranks, heads, units):
    drawing = drawings.heads_split(ranks=ranks, num_heads=heads, hidden_dim=units)
    assert [int(t) for t in drawing.texts if t.isdigit()] == list(range(1, heads + 1))
    assert len(shapes_of(drawing, "circle", "values")) == units
    assert (f"{heads} heads" in drawing.texts) and (f"{units} units" in drawing.texts)
    bars = [e for e in shapes_of(drawing, "rect", "output") if e.get("height") == "26"]
    dashed = [e for e in bars if e.get("stroke-dasharray")]
    assert (len(bars), len(dashed)) == (4 * ranks, 2 * ranks)
    assert drawing.texts.count("forward") == drawing.texts.count("backward") == 2
    assert drawing.texts.count("norm") == 2 * ranks


@pytest.mark.parametrize("world", [2, 3, 4, 5, 6])
def test_blocks_on_the_ring_are_handed_on(world):
    """What a rank has is what the one before had a step earlier; the ring is a row of the table."""
    tables = set()
    for step in range(1, world + 1):
        drawing = drawings.ring(devices=world, step=step)
        blocks = [int(m[1]) for t in drawing.texts if (m := BLOCK.fullmatch(t))]
        shown, table = blocks[:world], np.reshape(blocks[world:], (world, world))
        np.testing.assert_array_equal(table[0], np.arange(world))
        for before, after in pairwise(table):
            np.testing.assert_array_equal(after, np.roll(before, 1))
        np.testing.assert_array_equal(shown, table[step - 1])
        cells = [e for e in shapes_of(drawing, "rect", "output") if e.get("width") == "14"]
        seen = [e.get("fill-opacity") == "0.7" for e in cells]
        expected = [[j in table[:step, r] for j in range(world)] for r in range(world)]
        np.testing.assert_array_equal(np.reshape(seen, (world, world)), expected)
        assert f"each sends {world - 1} K and {world - 1} V, of n/{world} tokens" in drawing.texts
        tables.add(drawing.texts[-1])
    assert len(tables) == 1


@pytest.mark.parametrize(
    ("steps", "every", "killed", "last"),
    [(12, 4, 10, 8), (12, 4, 12, 8), (6, 2, 5, 4), (9, 3, 4, 3)],
)
def test_the_run_goes_on_at_the_newest_checkpoint(steps, every, killed, last):
    drawing = drawings.killed_worker(steps=steps, every=every, killed=killed)
    counts = [drawing.texts.count(str(k)) for k in range(1, steps + 1)]
    expected = [1 + (k < killed) + (k > last) for k in range(1, steps + 1)]
    assert counts == expected
    kept = [t for t in drawing.texts if t.startswith("step-")]
    assert kept == [f"step-{k}" for k in range(every, killed, every)] and kept[-1] == f"step-{last}"
    twice = sum(count == 3 for count in counts)
    words = {0: "no step", 1: "1 step"}.get(twice, f"{twice} steps")
    assert drawing.texts[-1] == f"{words} done twice, the same end"


def test_a_step_has_the_same_batch_in_every_run():
    """As the dots of a step depend on its number alone, and differ from step to step."""
    drawing = drawings.killed_worker()
    radii = [e.get("r") for e in shapes_of(drawing, "circle", "values")]
    batches = [tuple(radii[i : i + 3]) for i in range(0, len(radii), 3)]
    steps = [int(t) for t in drawing.texts if t.isdigit()]
    of_step = {}
    for step, batch in zip(steps, batches, strict=True):
        of_step.setdefault(step, set()).add(batch)
    assert {len(found) for found in of_step.values()} == {1}
    assert len(set.union(*of_step.values())) == 12
