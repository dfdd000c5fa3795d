"""Checks for chapter 5. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook.checks.answers import call, call_lean
from attnbook.checks.verdict import Function, Wrong, check, expect


@check
def crossover_length(function: Function) -> str:
    """function(d): the length at which self-attention costs as much as a GRU, both of width d."""
    for d in (64, 10):
        expect(call(function, d), 1.5 * d, f"for d = {d}", [
            (1.5, "That is n/d: the length grows with the width."),
            (1.5 * d * d, "Divide by n, and then by d: d² is one d too many."),
            (d, "That counts four matrices, or only the orders: here there are three."),
            (3 * d, "Scores and averages are n² d each, and the projections count too."),
            (4.5 * d, "The 3 n d² of the projections are on the wrong side."),
            (0.75 * d, "A product and its sum count once, on both sides."),
            (0, "That is for three matrices: a GRU has three for the input, three for the state."),
            (-0.5 * d, "That is for a plain recurrent layer of two matrices: a GRU has six."),
            (2 * d / 3, "Turned over: solve for n, not for d."),
            (9 * d**3, "That is a number of multiply–adds: return the length."),
        ])  # fmt: skip
    return "below it attention costs less, above it more, and it has no steps to wait for."


@check
def sliding_mask(function: Function) -> str:
    """function(n, width): (n, n), True where key j is query i or one of the width − 1 before it."""
    for n, width in ((6, 3), (5, 1), (4, 9)):
        back = np.arange(n)[:, None] - np.arange(n)  # i − j
        right = (back >= 0) & (back < width)
        expect(call(function, n, width), right, f"for n = {n} and width = {width}", [
            (right.T, "It is transposed: a row belongs to a query, and it looks back."),
            ((back > 0) & (back < width), "No token sees itself: it counts as one of the width."),
            ((back > 0) & (back <= width), "The width counts from i itself, not from i − 1."),
            ((back >= 0) & (back <= width), "One key too many: i and the width − 1 before it."),
            ((back >= 0) & (back < width - 1), "One key too few: i and the width − 1 before it."),
            (abs(back) < width, "It looks ahead as far as it looks back: it is not causal."),
            (abs(back) <= width // 2, "The window is centred on i: it must end there."),
            (back < width, "All that is later may be seen: the mask must be causal too."),
            (back >= 0, "That is causal, but not local: nothing depends on the width."),
            (back >= width, "That is what the window leaves out: True means may attend."),
            (~right, "It is inverted: in this book, True means may attend."),
            (np.where(right, 0, -np.inf), "That is for adding to scores: return True and False."),
        ])  # fmt: skip
    return "each query sees at most width keys, the last of them its own."


def _angles(positions: Any, d: int, frequency: Callable[[Any], Any] | None = None) -> Any:
    """The angles p θ_i, of shape (n, d/2)."""
    share = np.arange(0, d, 2) / d
    theta = 10000.0**-share if frequency is None else frequency(share)
    return np.asarray(positions, dtype=float)[..., None] * theta


def _sinusoidal(positions: Any, d: int) -> np.ndarray:
    a = _angles(positions, d)
    return np.stack([np.sin(a), np.cos(a)], axis=-1).reshape(*a.shape[:-1], d)


OTHER_FREQUENCIES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda share: 10000.0 ** -(share / 2), "The exponent of θ_i is −2i/d, not −i/d."),
    (lambda share: 10000.0 ** -(share * 2), "The 2 of 2i is there twice: i counts pairs."),
    (lambda share: 10000.0**share, "The angles grow from pair to pair: the exponent is negative."),
    (lambda share: 1 + 0 * share, "All pairs turn by the same angle: θ_i depends on the pair i."),
]


@check
def shift_matrix(function: Function) -> str:
    """function(k, d): the matrix that takes the sinusoids of p to those of p + k, for every p."""
    for k, d in ((3, 8), (-2, 6)):
        where = f"for k = {k} and d = {d}".replace("-", "−")
        got, a = call(function, k, d), _angles(k, d)
        right, here, there = _turns(a), _sinusoidal(0, d), _sinusoidal(k, d)
        causes = [
            (right.T, "It shifts by −k. In a pair the sine comes first."),
            (_turns(_angles(1, d)), "It shifts by 1: the angle is k θ_i."),
            (_halves(right), "The sines are not in the first half: a pair is 2i and 2i + 1."),
            (np.eye(d) * right, "That is the diagonal: sin(a + b) has a cosine of a too."),
            (np.diag(there), "A product entry by entry does not add two angles."),
            *((_turns(_angles(k, d, f)), cause) for f, cause in OTHER_FREQUENCIES),
        ]
        if got.shape == (d, d) and np.allclose(here @ got.T, there, atol=1e-5):
            causes.append((got, "That is right for p = 0, and for no other p."))
        expect(got, right, where, causes)
    return "the same rotation at every position: the shift is linear."


def _turns(angles: np.ndarray) -> np.ndarray:
    """A block [[cos, sin], [−sin, cos]] for every angle, along the diagonal."""
    d = 2 * len(angles)
    sines = np.zeros((d, d))
    sines[range(0, d, 2), range(1, d, 2)] = np.sin(angles)
    return np.diag(np.repeat(np.cos(angles), 2)) + sines - sines.T


def _halves(matrix: np.ndarray) -> np.ndarray:
    """The same for positions with all sines before all cosines."""
    order = np.r_[0 : len(matrix) : 2, 1 : len(matrix) : 2]
    return matrix[order][:, order]


@check
def rotary_complex(function: Function) -> str:
    """function(x, positions): x (n, d) with pair (2i, 2i + 1) turned by p θ_i."""
    d, p = 6, np.asarray([0, 1, 4, 4, 40])
    x = np.random.default_rng(4).normal(size=(5, d))
    z, a = x[:, 0::2] + 1j * x[:, 1::2], _angles(p, d)
    first, second = np.split(x, 2, axis=1)
    turned = z * np.exp(1j * a)

    def real(*arguments: Any) -> Any:
        answer = function(*arguments)
        if "complex" in str(getattr(answer, "dtype", "")):
            raise Wrong("your numbers are complex: return two real columns for each of them.")
        return answer

    expect(call(real, x, p), _pairs(turned), "for n, d = 5, 6 and positions 0, 1, 4, 4, 40", [
        (_two_halves((first + 1j * second) * np.exp(1j * a)),
         "Column i is paired with i + d/2, as some libraries do: a pair is 2i and 2i + 1."),
        (_two_halves(turned), "Real parts first, then imaginary ones: put each pair in its place."),
        (_pairs(z * np.exp(-1j * a)), "It turns the other way: the angle is +p θ_i."),
        (_pairs(turned.conj()), "The imaginary part has the wrong sign."),
        (_pairs(z.conj() * np.exp(1j * a)), "That is x_2i − i x_2i+1: the pair is mirrored first."),
        (_pairs(z * np.exp(1j * _angles(range(5), d))), "That numbers the rows: use positions."),
        (_pairs(z * np.exp(1j * _angles(1, d))), "All rows turn alike: p is missing in the angle."),
        (x + _sinusoidal(p, d), "You add: a rotary position multiplies."),
        *((_pairs(z * np.exp(1j * _angles(p, d, f))), cause) for f, cause in OTHER_FREQUENCIES),
    ])  # fmt: skip
    return "one product turns a pair, and no length changes."


def _pairs(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], axis=-1).reshape(len(z), -1)


def _two_halves(z: np.ndarray) -> np.ndarray:
    return np.concatenate([z.real, z.imag], axis=-1)


@check
def bilateral(function: Function) -> str:
    """function(image, h_space, h_value): pixels averaged by place and value."""
    hs, hv, image = 1.3, 0.25, np.random.default_rng(5).uniform(size=(3, 5))
    v, (r, c) = image.ravel(), np.indices(image.shape).reshape(2, -1)
    swapped = np.indices(image.shape[::-1]).reshape(2, -1)

    def squared(*scaled: np.ndarray) -> np.ndarray:
        return np.sum([(a[:, None] - a) ** 2 for a in scaled], axis=0)

    place, value = squared(r / hs, c / hs), squared(v / hv)

    def smooth(score: np.ndarray) -> np.ndarray:
        return (softmax(score) @ v).reshape(image.shape)

    own = np.where(np.eye(len(v)) > 0, -np.inf, 0)
    expect(call(function, image, hs, hv), smooth(-(place + value) / 2), "for an image of 3 by 5", [
        (smooth(-place / 2), "Place alone counts: that is a blur, edges and all."),
        (smooth(-value / 2), "The value alone counts: pixels far away weigh as much as near ones."),
        (smooth(-(place + value)), "The 2 of 2h² is missing."),
        (smooth(-(place * hs + value * hv) / 2), "h is not squared: divide, and then square."),
        (smooth(-(place * hs**2 + value * hv**2) / 2), "The bandwidths have no effect."),
        (smooth(-(place * (hs / hv) ** 2 + value * (hv / hs) ** 2) / 2), "The two h are swapped."),
        (smooth(-((place + value) ** 0.5)), "The distance is not squared: that is no Gaussian."),
        (smooth(-(squared(r / hs) + value) / 2), "The column does not count."),
        (smooth(-(squared(c / hs) + value) / 2), "The row does not count."),
        (smooth(-(squared(*swapped / hs) + value) / 2),
         "Pixels and places are in different order: which shape do you flatten?"),
        (smooth(-(squared(np.arange(len(v)) / hs) + value) / 2),
         "The place is a number from 0 to 14: the end of a row is not near the next one's start."),
        (smooth(own - (place + value) / 2), "No pixel sees itself: it is a key like the others."),
        ((np.exp(-(place + value) / 2) @ v).reshape(3, 5), "The weights of a pixel must sum to 1."),
        ((smooth(-place / 2) + smooth(-value / 2)) / 2, "Two averages: add the scores instead."),
        (image, "That is the image: does a pixel attend to others?"),
    ])  # fmt: skip
    return "what is near and alike is averaged, and the edges stay."


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
        expect(call(function, x, kernel, a), right, where, [
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
