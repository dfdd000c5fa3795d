"""The live figure of chapter 13 has the times and bytes of attnbook.distributed.traffic, step by step."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from live_visits import FIND, alone, choose, figure, read, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page

from attnbook.distributed import traffic
from attnbook_course import live

FLOPS, LATENCY, WIDTH, ITEMSIZE = 4e14, 1e-5, 4096, 2
LABEL = f"{FIND}('play').label"
CASES = [
    (world, split, mask)
    for world in (2, 4, 8)
    for split, mask in (("contiguous", "causal"), ("zigzag", "causal"), ("contiguous", "none"))
]


# a click on the button the moment that the step comes, however busy the machine is
PAUSE_AT = f"""(step) => {{
  const slider = {FIND}("step"), button = {FIND}("play");
  const press = () => {{
    seen.push([slider.value, button.label]);
    if (slider.value === step) Bokeh.index.find_one(button).click();
  }};
  window.seen = [];
  seen.leave = () => slider.properties.value.change.disconnect(press);
  slider.properties.value.change.connect(press);
}}"""
shown = partial(figure, "ring")


def show(
    page: Page, world: int, split: str, mask: str, step: int = 1, tokens: int = 15, speed: float = 2
) -> None:
    """Set the controls; tokens as a power of 2, the speed as one of 10 in GB/s."""
    choose(page, devices=str(world), split=split, mask=mask, tokens=tokens, speed=speed, step=step)


def rows_of(world: int, split: str) -> list[np.ndarray]:
    """The tokens of each rank, of four for each."""
    pieces = np.arange(4 * world).reshape(2 * world, 2)
    if split == "contiguous":
        return list(pieces.reshape(world, 4))
    return [np.concatenate([pieces[r], pieces[2 * world - 1 - r]]) for r in range(world)]


def shares(world: int, split: str, mask: str) -> np.ndarray:
    """By step and rank, the share of a block's pairs that is computed: pieces with a pair to see."""
    rows, size = rows_of(world, split), 2 if split == "zigzag" else 4
    found = np.zeros((world, world))
    for step in range(world):
        for rank in range(world):
            allowed = rows[rank][:, None] >= rows[(rank - step) % world]
            tiles = allowed.reshape(4 // size, size, 4 // size, size).any(axis=(1, 3))
            found[step, rank] = 1 if mask == "none" else tiles.mean()
    return found


def times(world: int, split: str, mask: str, tokens: int, speed: float) -> tuple[np.ndarray, float]:
    """Seconds of computing by step and rank, and of sending one block of keys and values."""
    length = 2**tokens / world
    compute = shares(world, split, mask) * 4 * length**2 * WIDTH / FLOPS
    link = traffic.Link(LATENCY, 1e9 * 10**speed)
    return compute, traffic.seconds(1, 2 * length * WIDTH * ITEMSIZE, link)


def said(page: Page) -> tuple[float, float, float]:
    """Of the text, the seconds of all steps, the share of computing, and the bytes sent."""
    found = re.search(
        r"steps take ([\d.]+) (\S+)\. A device computes ([\d.]+)% .* sends ([\d.]+) (\S+)\. ",
        text(page),
    )
    assert found is not None
    units = {"s": 1, "ms": 1e-3, "µs": 1e-6, "GB": 1e9, "MB": 1e6, "kB": 1e3}
    total, unit, share, size, of = found.groups()
    return float(total) * units[unit], float(share) / 100, float(size) * units[of]


@pytest.mark.parametrize(("tokens", "speed"), [(15, 2), (15, 1), (12, 0.5)])
@pytest.mark.parametrize(("world", "split", "mask"), CASES)
def test_every_bar_is_pythons(
    page: Page, world: int, split: str, mask: str, tokens: int, speed: float
) -> None:
    compute, send = times(world, split, mask, tokens, speed)
    show(page, world, split, mask, world, tokens, speed)
    sends = np.where(np.arange(world) < world - 1, send, 0)
    lasts = np.maximum(compute.max(axis=1), sends)
    starts = np.concatenate([[0], np.cumsum(lasts)])
    assert_allclose(read(page, "ends")["x"], 1e3 * starts[1:], rtol=1e-9)
    of_kind = {"computing": compute, "sending": np.repeat(sends[:, None], world, axis=1)}
    for kind, expected in of_kind.items():
        drawn, seen = read(page, kind), np.zeros((world, world))
        for y, left, right in zip(drawn["y"], drawn["left"], drawn["right"], strict=True):
            step = int(np.flatnonzero(np.isclose(1e3 * starts, left))[0])
            seen[step, round(y)] = (right - left) / 1e3
        assert_allclose(seen, expected, rtol=1e-9)
    waits = read(page, "waiting")
    waited = np.sum(waits["right"]) - np.sum(waits["left"])
    assert_allclose(waited / 1e3, (lasts[:, None] - compute).sum(), rtol=1e-6, atol=1e-15)
    total, share, _ = said(page)
    assert_allclose(total, lasts.sum(), rtol=6e-3)
    assert_allclose(share, compute.mean() * world / lasts.sum(), rtol=6e-3)
    least = compute.max(axis=1)[:-1].min()  # of the steps with something to send
    told = text(page)
    if least <= LATENCY:
        assert told.endswith(" The latency alone is longer than computing.")
    else:
        hides = float(re.findall(r"hides from ([\d.]+) GB/s on\.$", told)[0])
        size = 2 * 2**tokens / world * WIDTH * ITEMSIZE
        assert_allclose(size / (hides * 1e9) + LATENCY, least, rtol=6e-3)


@pytest.mark.parametrize("world", [2, 4, 8])
def test_totals_are_those_of_traffic(page: Page, world: int) -> None:
    """The ring's efficiency without a mask, the imbalance with one, the bytes, the least block."""
    length = 2**15 // world
    block = length * WIDTH * ITEMSIZE
    for speed in (0.7, 2.5):
        show(page, world, "contiguous", "none", speed=speed)
        link = traffic.Link(LATENCY, 1e9 * 10**speed)
        expected = traffic.ring_efficiency(length, WIDTH, world, flops=FLOPS, link=link)
        _, share, size = said(page)
        assert_allclose([share, size], [expected, traffic.ring(block, world)], rtol=6e-3)
    (hides,) = re.findall(r"hides from ([\d.]+) GB/s on\.$", text(page))
    link = traffic.Link(LATENCY, 1e9 * float(hides))
    assert_allclose(traffic.least_block(FLOPS, link, width=WIDTH), length, rtol=6e-3)
    for split in ("contiguous", "zigzag"):
        show(page, world, split, "causal", speed=3)
        imbalance = traffic.causal_imbalance(world, zigzag=split == "zigzag")
        assert_allclose(said(page)[1], 1 / imbalance, rtol=6e-3)


@pytest.mark.parametrize(("world", "split", "mask"), CASES)
def test_blocks_travel_and_the_table_fills(page: Page, world: int, split: str, mask: str) -> None:
    """After step t a rank's queries have met the blocks of t ranks, its own and those before it."""
    rows, size = rows_of(world, split), 2 if split == "zigzag" else 4
    owner = np.empty(4 * world, dtype=int)
    for rank, own in enumerate(rows):
        owner[own] = rank
    for step in range(1, world + 1):
        show(page, world, split, mask, step)
        ranks, blocks = read(page, "ranks"), read(page, "blocks")
        for j in range(world):
            at = (j + step - 1) % world
            inner, outer = (np.array([one["x"], one["y"]]) for one in (ranks, blocks))
            assert_allclose(outer[:, j] / 1.18, inner[:, at] / 0.6, atol=1e-9)
        tiles = read(page, "tiles")
        places = zip(tiles["y"], tiles["x"], tiles["alpha"], strict=True)
        seen = {(int(y), int(x)): alpha for y, x, alpha in places}
        expected = {}
        for a in range(4 * world // size):
            for b in range(4 * world // size):
                if mask == "none" or b <= a:
                    when = (owner[a * size] - owner[b * size]) % world + 1
                    expected[a, b] = 0.9 if when == step else 0.55 if when < step else 0
        assert seen == expected
        busy = [colour is not None for colour in ranks["colour"]]
        assert busy == (shares(world, split, mask)[step - 1] > 0).tolist()
        assert len(read(page, "hops")["x"]) == (world if step < world else 0)


def test_sentences(page: Page) -> None:
    show(page, 4, "contiguous", "causal", 3)
    assert text(page) == (
        "Step 3 of 4: 2 devices compute for 2.75 ms, 2 wait. Each sends 134 MB in 1.35 ms, which "
        "hides behind computing. The 4 steps take 11.0 ms. A device computes 62.5% of that, on "
        "average, and sends 403 MB. All of the sending hides from 49.0 GB/s on."
    )
    show(page, 4, "contiguous", "causal", 4, speed=0)
    assert text(page).startswith(
        "Step 4 of 4: one device computes for 2.75 ms, 3 wait. Nothing is sent"
    )
    show(page, 2, "zigzag", "causal", 1, speed=0)
    assert "both devices compute" in text(page)
    assert ", longer than computing. " in text(page)
    show(page, 8, "zigzag", "causal", 1, tokens=12)
    assert text(page).endswith(" The latency alone is longer than computing.")


def test_the_text_follows_the_controls(page: Page) -> None:
    show(page, 4, "contiguous", "causal", 4)
    choose(page, devices="2")
    assert text(page).startswith("Step 2 of 2: ") and value(page, "step") == 2
    show(page, 2, "zigzag", "none")
    assert text(page).startswith("Step 1 of 2: both devices compute for 11.0 ms. ")
    show(page, 2, "zigzag", "none", tokens=16, speed=0)
    assert text(page).startswith("Step 1 of 2: both devices compute for 44.0 ms. ")
    assert "Each sends 537 MB in 537 ms, longer than computing." in text(page)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_it_plays_to_the_end_and_pauses(page: Page, motion: str) -> None:
    page.emulate_media(reduced_motion="reduce" if motion == "reduce" else "no-preference")
    page.clock.install()
    show(page, 4, "contiguous", "causal", 4)
    play = page.get_by_role("button", name="play")
    page.evaluate(PAUSE_AT, 2)
    play.press("Enter")  # at the end: from the beginning
    assert page.evaluate("seen[0]") == [1, "pause"]
    page.wait_for_function(f"{FIND}('step').value === 2")
    page.clock.run_for(5_000)  # longer than a step
    assert (value(page, "step"), page.evaluate(LABEL)) == (2, "play")
    assert page.evaluate("seen.length") == 2
    page.evaluate("seen.leave()")
    show(page, 2, "contiguous", "causal", 1)
    play.press("Enter")
    page.wait_for_function(f"{FIND}('step').value === 2 && {LABEL} === 'play'")


def test_a_ring_of_ones_own(browser: Browser, tmp_path: Path) -> None:
    figure = live.ring(world=2, tokens=2**14, width=1000, itemsize=4, flops=1e13, latency=0)
    with alone(browser, tmp_path, figure) as seen:
        total, share, size = said(seen.page)
        assert_allclose(total, 2 * 4 * 8192**2 * 1000 / 1e13, rtol=6e-3)
        assert_allclose([share, size], [0.75, 2 * 8192 * 1000 * 4], rtol=6e-3)
