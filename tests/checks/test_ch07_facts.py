"""Facts behind chapter 7's exercises and their solutions."""

from __future__ import annotations

import numpy as np
import pytest
from checks.ch07 import block, jacobian, loop_block, stream, variance, width, written

from attnbook.layers import norms


def test_the_width_is_the_one_of_the_package():
    torch_blocks = pytest.importorskip("attnbook.torch.blocks")
    e, f = 6, 20
    plain = torch_blocks.MLP(e, f)
    gated = torch_blocks.MLP(e, round(width(e, f)), activation="swiglu")
    assert width(e, f) == 13
    sizes = [sum(p.numel() for p in layer.parameters()) for layer in (plain, gated)]
    assert sizes[0] == sizes[1] == 266


def test_what_layer_norm_cannot_see():
    x = np.random.default_rng(0).normal(size=6)
    y = norms.layer_norm(x, eps=1e-12)
    np.testing.assert_allclose(norms.layer_norm(3 * x - 5, eps=1e-12), y, rtol=1e-9)
    matrix = jacobian(x, eps=0)
    assert np.linalg.matrix_rank(matrix, tol=1e-9) == 4
    np.testing.assert_allclose(matrix @ np.stack([np.ones(6), y, x]).T, 0, atol=1e-9)
    np.testing.assert_allclose(jacobian(10 * x, eps=0), matrix / 10, rtol=1e-9)


def test_the_parts_of_the_logits_are_the_logits():
    rng = np.random.default_rng(1)
    parts, (g, b), w, c = (
        rng.normal(size=(3, 5)),
        rng.normal(size=(2, 5)),
        rng.normal(size=(4, 5)),
        2.0,
    )
    own, rest = written(parts, g, b, w, c)
    logits = norms.layer_norm(parts.sum(0), g, b) @ w.T + c
    np.testing.assert_allclose(own.sum(0) + rest, logits, rtol=1e-9)


def test_the_variance_that_dropout_adds():
    rng = np.random.default_rng(2)
    w, x, y, p = rng.normal(size=(1, 5)), rng.normal(size=5), 1.5, 0.3
    coins = (rng.random((200_000, 5)) >= p) / (1 - p)
    out = (coins * x) @ w[0]
    np.testing.assert_allclose(out.var(), variance(w, x, p)[0], rtol=0.02)
    loss = (y - w[0] @ x) ** 2 + variance(w, x, p)[0]
    np.testing.assert_allclose(np.mean((y - out) ** 2), loss, rtol=0.02)


def test_the_shares_of_the_stream():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(50, 256)), rng.normal(size=(12, 256, 256)) / 16
    halved = np.append(0.5**12, 0.5 ** np.arange(12, 0, -1))
    for placement, expected in (("pre", np.full(13, 1 / 13)), ("post", halved)):
        parts = stream(x, weights, placement)
        shares = np.mean(parts**2, axis=(1, 2)) / np.mean(parts.sum(0) ** 2)
        np.testing.assert_allclose(shares, expected, rtol=0.15)


def test_how_far_the_block_adds_with_bounded_scores():
    rng = np.random.default_rng(0)
    failed = []
    for n in (32, 48, 64):
        wrong = 0
        for _ in range(300):
            sums = np.append(0, rng.integers(0, 2, (2, n)).sum(0))
            digits = block(sums, own=25 / (n + 1), near=25 / n)[1]
            wrong += (np.round(digits) != loop_block(sums)[1]).any()
        failed.append(wrong / 300)
    np.testing.assert_allclose(failed, [0, 0.5, 0.9], atol=0.1)
