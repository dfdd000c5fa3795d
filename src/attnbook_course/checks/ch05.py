"""Checks for chapter 5. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course.checks.call import call, call_real, call_with_memory_limit
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect


@check
def crossover_length(function: Function) -> str:
    """function(d): the length at which self-attention costs as much as a GRU, both of width d."""
    for d in (64, 7):
        mistakes = [
            (1.5, "That is n/d: the length grows with the width."),
            (1.5 * d * d, "Divide by n, and then by d: d² is one d too many."),
            (d, "That counts four matrices, or only the orders: here there are three."),
            (4.5 * d, "The 3 n d² of the projections are on the wrong side."),
        ]
        expect(call(function, d), 1.5 * d, f"for d = {d}", mistakes, secret=True)
    return "below it attention costs less, above it more, and it has no steps to wait for."


@check
def half_distance(function: Function) -> str:
    """function(slope): by how many places more ALiBi halves a weight."""
    for m in (0.5, 0.0625):
        mistakes = [
            (1 / m, "At 1/m places the weight has fallen to 1/e: here it is a half."),
            (0.5 / m, "Half a score is no half of a weight: the softmax takes an exponential."),
            (np.log(2) * m, "The larger the slope, the sooner a weight is halved: divide by it."),
            (-np.log(2) / m, "The sign: log ½ is negative, and the distance is positive."),
        ]
        expect(call(function, m), np.log(2) / m, f"for slope = {m}", mistakes, secret=True)
    return "eight heads of slopes 1/2 to 1/256 halve within 1.4 to 177 places."


@check
def sliding_mask(function: Function) -> str:
    """function(n, width): (n, n), True where key j is query i or one of the width − 1 before it."""
    for n, width in ((6, 3), (5, 1), (4, 9)):
        j = np.arange(n)
        back = j[:, None] - j  # i − j
        right = (back >= 0) & (back < width)
        mistakes = [
            (right.T, "It is transposed: a row belongs to a query, and it looks back."),
            ((back > 0) & (back < width), "No token sees itself: it counts as one of the width."),
            ((back >= 0) & (back <= width), "One key too many: i and the width − 1 before it."),
            (abs(back) < width, "It looks ahead as far as it looks back: it is not causal."),
            (back < width, "All that is later may be seen: the mask must be causal too."),
            (~right, "It is inverted: in this book, True means may attend."),
        ]
        expect(call(function, n, width), right, f"for n = {n} and width = {width}", mistakes)
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
    (lambda share: 10000.0**share, "The angles grow from pair to pair: the exponent is negative."),
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

    where = "for n, d = 5, 6 and positions 0, 1, 4, 4, 40"
    split = _two_halves((first + 1j * second) * np.exp(1j * a))
    mistakes = [
        (split, "Column i is paired with i + d/2, as some libraries do: a pair is 2i and 2i + 1."),
        (_two_halves(turned), "Real parts first, then imaginary ones: put each pair in its place."),
        (_pairs(z * np.exp(-1j * a)), "It turns the other way: the angle is +p θ_i."),
        (_pairs(z * np.exp(1j * _angles(range(5), d))), "That numbers the rows: use positions."),
        *((_pairs(z * np.exp(1j * _angles(p, d, f))), cause) for f, cause in OTHER_FREQUENCIES),
    ]
    expect(call_real(function, x, p), _pairs(turned), where, mistakes)
    return "one product turns a pair, and no length changes."


def _pairs(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], axis=-1).reshape(len(z), -1)


def _two_halves(z: np.ndarray) -> np.ndarray:
    return np.concatenate([z.real, z.imag], axis=-1)


@check
def running_attention(function: Function) -> str:
    """function(q, k, v): Σ_{j ≤ i} (q_i · k_j) v_j for all i, with one state of shape (d, p)."""
    rng = np.random.default_rng(9)
    q, k, v = (rng.normal(size=size) for size in ((5, 3), (5, 3), (5, 2)))
    s = q @ k.T
    w = np.tril(s)
    mistakes = [
        (s @ v, "Each query sees all keys: add to the state step by step, and read it each time."),
        (np.tril(s, -1) @ v, "You read before you add: a query sees its own key too."),
        (w @ v / w.sum(1, keepdims=True), "Here nothing divides by the sum of the scores."),
        (softmax(s, np.tri(5) > 0) @ v, "There is a softmax: here a score is a weight as it is."),
    ]
    expect(call(function, q, k, v), w @ v, "for n, d, p = 5, 3, 2", mistakes)
    q, k, v = (rng.normal(size=(2400, width)) for width in (53, 53, 47))
    try:
        got = call_with_memory_limit(function, q, k, v)
    except Wrong as wrong:
        raise Wrong(f"{wrong} Or keep a state for every position? One is enough.") from None
    expect(got, np.tril(q @ k.T) @ v, "for n, d, p = 2400, 53, 47", tolerance=1e-3)
    return "a recurrent network: its state is d × p numbers, however long the text."


@check
def convolution_by_heads(function: Function) -> str:
    """function(x, kernel, sharpness): a x_{i−1} + b x_i + c x_{i+1} by three heads, x (n,)."""
    x, kernel = np.random.default_rng(3).normal(size=7), np.asarray([0.5, -2.0, 1.25])
    no_anchor = "At an end there is no such neighbour: which key takes the weight there?"
    for a in (50.0, 0.7):
        where = f"for kernel = (0.5, −2, 1.25) and sharpness = {a:g}"
        right = _heads(x, kernel, a)
        got = call(function, x, kernel, a)
        mistakes = [
            (_heads(x, kernel[::-1], a), "The kernel is flipped: a belongs to the token before."),
            (_heads(x, kernel, a, anchors=0), no_anchor),
            (_heads(x, kernel, a, power=1), "The distance is not squared."),
        ]
        expect(got, right, where, mistakes)
    return "three heads that look at places alone, and the layer is a convolution."


def _heads(x: np.ndarray, kernel: Any, a: float, *, anchors: int = 1, power: int = 2) -> Any:
    """The three heads' sum at sharpness a, with so many anchors of value 0 at each end."""
    n = len(x)
    i, j = np.arange(n)[:, None], np.arange(-anchors, n + anchors)
    v = np.pad(x, anchors)
    scores = [-a * abs(i + offset - j) ** power for offset in (-1.0, 0.0, 1.0)]
    return sum(f * (softmax(s) @ v) for f, s in zip(kernel, scores, strict=True))


@check
def bilateral(function: Function) -> str:
    """function(image, h_space, h_value): pixels averaged by place and value."""
    hs, hv, image = 1.3, 0.25, np.random.default_rng(5).uniform(size=(3, 5))
    v, (r, c) = image.ravel(), np.indices(image.shape).reshape(2, -1)

    def squared(*scaled: np.ndarray) -> np.ndarray:
        return np.sum([(a[:, None] - a) ** 2 for a in scaled], axis=0)

    def smooth(score: np.ndarray) -> np.ndarray:
        return (softmax(score) @ v).reshape(image.shape)

    place, value = squared(r / hs, c / hs), squared(v / hv)
    points = np.stack([r / hs, c / hs, v / hv], axis=-1)
    product = (softmax(-place / 2) * softmax(-value / 2)) @ v
    got, where = call(function, image, hs, hv), "for an image of 3 by 5"
    if got.shape in ((15, 3), (3, 5, 3), (3, 15)):
        given = f"{where} you give shape {got.shape}"
        raise Wrong(f"{given}. Average the values alone, not the triples.")
    if got.shape in ((15, 15), (3, 5, 3, 5)):
        raise Wrong(f"{where} you give shape {got.shape}. Those are weights: average the pixels.")
    causes = [
        (product.reshape(3, 5), "A product of two softmaxes does not sum to 1."),
        (smooth((place + value) / 2), "The sign: far pixels weigh most."),
        (smooth(-(place + value)), "The 2 of 2h² is missing."),
        (smooth(points @ points.T / 3**0.5), "That is a dot product: the score is Gaussian."),
    ]
    expect(got, smooth(-(place + value) / 2), where, causes)
    return "what is near and alike is averaged, and the edges stay."


CAUSAL_WEIGHTS = '''
def causal_weights(s):
    """Weights under the causal mask, (n, n): row i has nothing after column i."""
    n = len(s)
    allowed = np.arange(n)[None, :] <= np.arange(1, n + 1)[:, None]
    masked = np.where(allowed, s, -np.inf)
    parts = np.exp(masked - masked.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)
'''


@check
def causal_weights(function: Function) -> str:
    """function(s): softmax of the scores under the causal mask, of shape (n, n)."""
    fault = "allowed = np.arange(n)[None, :] <= np.arange(1, n + 1)[:, None]"
    return repaired(function, CAUSAL_WEIGHTS, fault=fault, test=_without_leak)


def _without_leak(function: Function) -> str:
    s = np.random.default_rng(6).normal(size=(5, 5))
    seen = np.tri(5) > 0
    right = softmax(s, seen)
    finite = "A finite number hides a key only while all scores are far above it."
    mistakes = [
        (softmax(np.where(seen, s, 0.0)), "A hidden key has the score 0, a score like any other."),
        (softmax(s), "All keys are seen: the mask has no effect."),
        (softmax(s, seen.T), "The mask is turned round: it shows the future alone."),
        (softmax(s) * seen, "The rows no longer sum to 1: mask the scores, not the weights."),
        (softmax(s, np.tri(5, k=1) > 0), "A query sees the next key too."),
        *((softmax(np.where(seen, s, -low)), finite) for low in (1.0, 2.0, 5.0, 10.0)),
    ]
    expect(call(function, s), right, "for 5 by 5 scores", mistakes)
    for low in (100.0, 1000.0):
        leaks = [(softmax(np.where(seen, s - low, -much)), finite) for much in (0.0, low)]
        expect(call(function, s - low), right, f"for scores around −{low:g}", leaks)
    return "A query sees its own key and those before it, and no later one."
