"""Facts behind chapter 6's exercises."""

from __future__ import annotations

import numpy as np
from checks.ch06 import cached, frequencies, induction, previous, read, softmax

from attnbook import attend
from attnbook.attention.heads import merge_heads, split_heads
from attnbook.attention.positions import rotary


def two_tokens(tokens, vocab):
    """The query's own token and the one before it, both compared."""
    n = len(tokens)
    own, mask = np.eye(vocab)[tokens], np.tri(n, dtype=bool)
    one, two = (softmax(50 * np.eye(n, k=-k), mask) @ own for k in (1, 2))
    late = 100.0 * (np.arange(n) < 2)
    return softmax(50 * (own @ one.T + one @ two.T) - late, mask) @ own


def test_the_numbers_of_the_cache_exercise():
    for heads, gigabytes in ((64, 10.7), (8, 1.3)):
        assert round(cached(4096, 80, heads, 128, 2) / 1e9, 1) == gigabytes


def test_one_or_two_tokens_on_sequences_that_repeat():
    rng = np.random.default_rng(0)
    right = []
    for _ in range(200):
        tokens = np.tile(rng.integers(0, 16, 32), 2)
        i = np.arange(32, 63)
        answers = [rule(tokens, 16)[i].argmax(1) for rule in (induction(), two_tokens)]
        right.append([np.mean(answer == tokens[i + 1]) for answer in answers])
    assert np.allclose(np.mean(right, axis=0), [0.34, 0.89], atol=0.02)


def test_a_previous_token_head_may_start_anywhere():
    query, key = previous()(32)
    for start in (0, 1000):
        turn = np.exp(1j * (start + np.arange(200))[:, None] * frequencies(32))
        q, k = ((x[::2] + 1j * x[1::2]) * turn for x in (query, key))
        w = softmax((q @ k.conj().T).real / 32**0.5, np.tri(200, dtype=bool))
        assert np.diag(w, -1).min() > 0.999


def test_the_two_matrices_of_a_head_give_what_attention_gives():
    rng = np.random.default_rng(3)
    x, (w_q, w_k, w_v, w_o) = rng.normal(size=(7, 6)), rng.normal(size=(4, 6, 6))
    q, k, v = (split_heads(x @ w.T, 2) for w in (w_q, w_k, w_v))
    expected = merge_heads(attend(q, k, v)) @ w_o.T
    qk, ov = read()(w_q, w_k, w_v, w_o, 2)
    w = softmax(x @ qk @ x.T / 3**0.5)  # (heads, 7, 7)
    np.testing.assert_allclose((w @ x @ ov.mT).sum(0), expected, rtol=1e-12)


def test_the_check_turns_pairs_as_the_package_does():
    query, key = (x[None].repeat(7, 0) for x in previous()(32))
    p = np.arange(7.0)
    w = softmax(rotary(query, p) @ rotary(key, p).T / 32**0.5, np.tri(7, dtype=bool))
    assert np.diag(w, -1).min() > 0.999
