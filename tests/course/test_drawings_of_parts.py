"""Drawings of chapters 11 and 12: their dots and numbers are those of the estimators and parts."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from attnbook import softmax
from attnbook.exact import paged_cache
from attnbook_course import drawings
from attnbook_course.drawings import states, tiles

SVG = "{http://www.w3.org/2000/svg}"


def test_delta_is_one_pass_and_posterior_the_full_inverse():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 2))
    gram, y = x @ x.T + np.eye(5), rng.normal(size=(5, 3))
    found = states.matrices(gram, 0.3)
    assert list(found) == ["sum", "delta", "posterior"]
    np.testing.assert_array_equal(found["sum"], np.eye(5))
    np.testing.assert_allclose((gram + 0.09 * np.eye(5)) @ found["posterior"] @ y, y, atol=1e-12)
    written = np.zeros((5, 3))  # what a memory still lacks, one pair after the other
    for j in range(5):
        written[j] = y[j] - gram[j] @ written
    np.testing.assert_allclose(found["delta"] @ y, written, atol=1e-12)


@pytest.mark.parametrize(("query", "noise"), [(0.7, 0.2), (2.0, 0.5)])
def test_one_matrix_predicts(query, noise):
    keys, values = np.array(states.KEYS), np.array(states.VALUES)
    gram = np.exp(-((keys[:, None] - keys) ** 2) / (2 * 0.6**2))
    kernel = np.exp(-((query - keys) ** 2) / (2 * 0.6**2))
    posterior = kernel @ np.linalg.solve(gram + noise**2 * np.eye(5), values)
    drawing = drawings.one_matrix(query, noise)
    answers = [float(t) for t in drawing.texts if re.fullmatch(r"-?\d\.\d\d", t)]
    assert answers[0] == pytest.approx(kernel @ values, abs=0.005)
    assert answers[2] == pytest.approx(posterior, abs=0.005)
    assert len(answers) == 3


def test_signed_weights_are_told_apart_without_colour():
    sheet = drawings.Canvas("x", 10, "x")
    sheet.signed([(0, 0), (1, 0), (2, 0)], [1, -1, 0], radius=10, full=1)
    dot, ring = (ET.fromstring(part) for part in sheet.parts)
    assert dot.get("fill") and not dot.get("stroke")
    assert ring.get("stroke") and not ring.get("fill")
    outer = float(ring.get("r")) + float(ring.get("stroke-width")) / 2
    assert outer == float(dot.get("r")) == 10


@pytest.mark.parametrize(("d", "p", "times"), [(4, 3, (2, 5, 8)), (3, 2, (1, 4, 7))])
def test_a_state_keeps_its_size_and_a_cache_grows(d, p, times):
    texts = drawings.fixed_state(d, p, times).texts
    counts = [int(t) for t in texts if t.isdigit()]
    assert counts == [n for t in times for n in (np.zeros((d, p)).size, np.zeros((t, d + p)).size)]
    assert texts.count(f"{d} × {p}") == 2


@pytest.mark.parametrize(("tokens", "chunk"), [(12, 4), (12, 3), (10, 5)])
def test_chunks_weigh_inside_and_hand_on_a_state(tokens, chunk):
    drawing = drawings.chunks(tokens, chunk)
    dots = len(re.findall(r"<circle", drawing.svg))
    assert dots == tokens // chunk * np.tri(chunk).sum()
    handed = [t for t in drawing.texts if re.fullmatch(r"S\d+", t)]
    assert handed == [f"S{k}" for k in range(chunk, tokens, chunk)]


@pytest.mark.parametrize(("decay", "beta"), [(0.9, 0.8), (0.5, 0.3)])
def test_the_triangle_is_what_tokens_write_one_after_another(decay, beta):
    keys = np.random.default_rng(4).normal(size=(4, 8))[[0, 1, 2, 3, 0, 1]]
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    met, written = states.triangle_and_inverse(decay, beta)
    state = np.zeros((8, 6))  # values are one-hot, so a row of T is what its token writes
    for t, key in enumerate(keys):
        state = decay * state
        np.testing.assert_allclose(beta * (np.eye(6)[t] - key @ state), written[t], atol=1e-12)
        state = state + np.outer(key, written[t])
    assert np.triu(met).max() == 0 == np.triu(written, 1).max()
    row = next(t for t in drawings.delta_triangle(decay, beta).texts if t.startswith("u5 ="))
    shares = re.findall(r"([−=+]) (-?\d\.\d\d) v(\d)", row)
    assert [int(j) for _, _, j in shares] == [5, 4, 3, 2, 1]
    for sign, share, j in shares:
        signed = float(share) * (-1 if sign == "−" else 1)
        assert signed == pytest.approx(written[4, int(j) - 1], abs=0.005)


def test_two_parts_are_the_softmax_over_both():
    texts = drawings.parts().texts
    scores, values = (np.concatenate([*map(np.array, of)]) for of in (tiles.SCORES, tiles.VALUES))
    assert texts[-1] == f"{softmax(scores) @ values:.2f}"
    assert texts[-2] == f"{np.exp(scores - scores.max()).sum():.2f}"
    assert texts[-3] == f"{scores.max():.1f}"
    for group, of in zip(tiles.SCORES, tiles.VALUES, strict=True):
        assert f"{softmax(np.array(group)) @ of:.2f}" in texts
    factors = [float(t.split("= ")[1]) for t in texts if t.startswith("× e")]
    assert factors == [round(np.exp(max(group) - scores.max()), 2) for group in tiles.SCORES]


@pytest.mark.parametrize(("m", "n", "block", "d"), [(256, 320, 64, 32), (30, 20, 10, 8)])
def test_no_shape_that_is_kept_grows_with_the_table(m, n, block, d):
    drawing = drawings.flash_blocks(m, n, block, d)
    assert f"weighted {block} × {d}" in drawing.texts
    assert f"never stored: {m} × {n}" in drawing.texts
    for name, size in (("Q", m), ("K", n), ("V", n)):
        assert [t for t in drawing.texts if re.fullmatch(rf"{name}\d", t)] == [
            f"{name}{k + 1}" for k in range(size // block)
        ]


def test_masks_are_the_past_the_near_past_and_the_document():
    for name, rule in tiles.masks(5, (3, 8, 12)).items():
        allowed = rule(np.arange(12)[:, None], np.arange(12))
        for i in range(12):
            for j in range(12):
                same = [i < e for e in (3, 8, 12)] == [j < e for e in (3, 8, 12)]
                expected = {"causal": True, "window": i - 5 < j, "documents": same}[name]
                assert allowed[i, j] == (expected and j <= i)


def test_block_masks_counts_its_tiles():
    expected = []
    for rule in tiles.masks(10, (6, 16, 24)).values():
        pairs = rule(np.arange(24)[:, None], np.arange(24)).reshape(6, 4, 6, 4)
        some, every = pairs.any(axis=(1, 3)).sum(), pairs.all(axis=(1, 3)).sum()
        expected += [f"{every} full", f"{some - every} partial", f"{36 - some} empty"]
    assert [t for t in drawings.block_masks().texts if t[0].isdigit()] == expected
    assert expected[:3] == ["15 full", "6 partial", "15 empty"]


@pytest.mark.parametrize(("tokens", "size", "shared"), [(10, 4, 2), (8, 4, 2), (3, 2, 1)])
def test_a_fork_has_one_page_of_its_own(tokens, size, shared):
    drawing = drawings.page_table(tokens, size)
    pool = paged_cache.Pool(9, size, 2, 2)
    first = paged_cache.Sequence(pool)
    for _ in range(tokens):
        first.write(np.ones(2), np.ones(2))
    for sequence in (first, first.fork()):
        sequence.write(np.ones(2), np.ones(2))
    assert sum(n == 2 for n in pool.readers) == shared
    used, apart = sum(n > 0 for n in pool.readers), sum(pool.readers)
    assert f"{used} pages in use, {apart} without sharing" in drawing.texts
    slots = [t for t in drawing.texts if re.fullmatch(rf"{tokens + 1}[AB]", t)]
    assert sorted(slots) == [f"{tokens + 1}A", f"{tokens + 1}B"]
