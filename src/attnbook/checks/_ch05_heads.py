"""The last checks of chapter 5: a running state, and heads that make a convolution."""

from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook.checks.answers import call, call_lean
from attnbook.checks.verdict import Function, Wrong, check, expect


@check
def running_attention(function: Function) -> str:
    """function(q, k, v): Σ_{j ≤ i} (q_i · k_j) v_j for all i, with one state of shape (d, p)."""
    rng = np.random.default_rng(9)
    q, k, v = (rng.normal(size=size) for size in ((5, 3), (5, 3), (5, 2)))
    s = q @ k.T
    w = np.tril(s)
    expect(call(function, q, k, v), w @ v, "for n, d, p = 5, 3, 2", [
        (s @ v, "Each query sees all keys: add to the state step by step, and read it each time."),
        (np.tril(s, -1) @ v, "You read before you add: a query sees its own key too."),
        (np.triu(s) @ v, "You run from the last token to the first."),
        (np.diag(np.diag(s)) @ v, "The state keeps nothing: add to it."),
        (np.tril(s.T) @ v, "q and k are exchanged: the state is made of keys."),
        (w @ v / 3**0.5, "Here nothing divides by √d."),
        (w @ v / w.sum(1, keepdims=True), "Here nothing divides by the sum of the scores."),
        (w @ v / np.arange(1, 6)[:, None], "That is a mean over the keys: here it is a sum."),
        (np.cumsum(s, axis=1) @ v, "Sum over pairs: add to the state, not to the scores."),
        (np.cumsum((q * k).sum(1, keepdims=True) * v, axis=0), "q_i stands outside of the sum."),
        ((np.cumsum(k, 0) * q).sum(1, keepdims=True) * v, "Each key meets its own value."),
        ((np.cumsum(k, 0) * q).sum(1, keepdims=True) * np.cumsum(v, 0),
         "A product of two sums: each key meets its own value alone."),
        (np.tril(s, 1) @ v, "A query sees the next key too: one add too many before you read."),
        (np.tril(k @ k.T) @ v, "The queries have no effect."),
        (np.exp(w) @ v, "There is no exponential: here a score is a weight as it is."),
        (np.tril(np.exp(s)) @ v, "There is no exponential: here a score is a weight as it is."),
        (softmax(s, np.tri(5) > 0) @ v, "There is a softmax: here a score is a weight as it is."),
    ])  # fmt: skip
    q, k, v = (rng.normal(size=(2400, width)) for width in (53, 53, 47))
    try:
        got = call_lean(function, q, k, v)
    except Wrong as wrong:
        raise Wrong(f"{wrong} Or keep a state for every position? One is enough.") from None
    expect(got, np.tril(q @ k.T) @ v, "for n, d, p = 2400, 53, 47", tolerance=1e-3)
    return "a recurrent network: its state is d × p numbers, however long the text."


@check
def convolution_by_heads(function: Function) -> str:
    """function(x, kernel, sharpness): a x_{i−1} + b x_i + c x_{i+1} by three heads, x (n,)."""
    x, kernel = np.random.default_rng(3).normal(size=7), np.asarray([0.5, -2.0, 1.25])
    no_anchor = "At an end there is no such neighbour: which key takes the weight there?"
    ring = kernel @ [np.roll(x, 1), x, np.roll(x, -1)]
    inside = kernel[:, None] * [np.arange(7) > 0, np.ones(7), np.arange(7) < 6]
    for a in (50.0, 0.7):
        where = f"for kernel = (0.5, −2, 1.25) and sharpness = {a:g}"
        right = _heads(x, kernel, a)
        got = call(function, x, kernel, a)
        if got.shape in ((3, 7), (7, 3)):
            raise Wrong(f"{where} you give shape {got.shape}: add the three heads up.")
        if got.shape == (9,):
            raise Wrong(f"{where} you give 9 numbers: anchors are keys, and no queries.")
        expect(got, right, where, [
            (_heads(x, kernel[::-1], a), "The kernel is flipped: a belongs to the token before."),
            (_heads(x, kernel, a, anchors=0), no_anchor),
            (_heads(x, kernel, a, anchors=2), "One anchor at each end: more take weight."),
            (_heads(x, inside, a, anchors=0), "Anchors are keys of every query, and take weight."),
            (ring, "The first token and the last are neighbours: the sequence is no ring."),
            (right / 3, "That is the mean of the heads: it is their sum."),
            (_heads(x, softmax(kernel), a), "The kernel is no score: it multiplies the heads."),
            (_heads(x, np.ones(3), a), "The heads are added as they are: the kernel is missing."),
            (_heads(x, kernel, 50), "That is the convolution itself: here the heads blur it."),
            (_heads(x, kernel, 1), "The sharpness has no effect."),
            (_heads(x, kernel, a, power=1), "The distance is not squared."),
            (_heads(x, kernel, a / 2), "There is no ½ here: sharpness times the squared distance."),
            (_heads(x, kernel, a * a), "The sharpness is squared: only the distance is."),
            (_heads(x, kernel, 1 / a), "You divide by the sharpness: it multiplies."),
            (_heads(x, np.roll(kernel, 1), a), "The offsets are −1, 0 and 1, in this order."),
            (_heads(x, kernel / kernel.sum(), a), "The kernel need not sum to 1."),
            (_heads(x, np.abs(kernel), a), "The signs of the kernel are lost."),
            (_heads(x, kernel, a**0.5), "Only the distance is squared: the sharpness is as it is."),
            (_heads(x, kernel, np.log(a)), "The sharpness is in no logarithm."),
            (_heads(x, kernel, -a), "The sign: a score falls with the distance."),
            (_heads(x, kernel, 2 * a), "There is no 2: sharpness times the squared distance."),
            (right[::-1], "The sequence is turned round."),
            (_heads(np.pad(x, 1, mode="edge"), kernel, a)[1:-1], "An anchor has the value 0."),
            (_heads(x, kernel, 1 / (2 * a * a)), "That takes the sharpness for a bandwidth."),
        ])  # fmt: skip
    return "three heads that look at places alone, and the layer is a convolution."


def _heads(x: np.ndarray, kernel: Any, a: float, *, anchors: int = 1, power: int = 2) -> Any:
    """The three heads' sum at sharpness a, with so many anchors of value 0 at each end."""
    n = len(x)
    i, j = np.arange(n)[:, None], np.arange(-anchors, n + anchors)
    v = np.pad(x, anchors)
    scores = [-a * abs(i + offset - j) ** power for offset in (-1.0, 0.0, 1.0)]
    return sum(f * (softmax(s) @ v) for f, s in zip(kernel, scores, strict=True))
