"""Checks for chapter 5. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from attnbook.attention import positions, softmax
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_real, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, show


@build
def causal_self_attention(function: Function) -> str:
    """function(x, w_q, w_k, w_v, rotary=False): (n, p), from x (n, e), (d, e), (d, e), (p, e).

    The build: self-attention under a causal mask, and with rotary positions where it is asked for.
    """
    rng = np.random.default_rng(13)
    for rotary in (False, True):
        for n, e, d, p in ((4, 4, 4, 4), (7, 6, 4, 3)):  # wrong sides have a result in the first
            x, w_q, w_k = (rng.normal(size=size) for size in ((n, e), (d, e), (d, e)))
            given = x, w_q, w_k, rng.normal(size=(p, e))
            where = f"for n, e, d, p = {n}, {e}, {d}, {p}{' and rotary = True' if rotary else ''}"
            got = call(function, *given, rotary)
            if got.shape == (2, n, n):
                raise Wrong("you give the weights too:", "return the output alone.")
            right = builds.causal_self_attention(*given, rotary=rotary)
            expect(got, right, where, _causal_causes(*given, rotary=rotary))
            later = np.where(np.arange(n)[:, None] < 3, x, 1e3 * x)
            _no_leak(got[:3], call(function, later, *given[1:], rotary)[:3], where)
    refuse_writing(function, *given)
    x, w_q, _, w_v = given
    long = 1e6 * x, w_q, -w_q, w_v  # a token's score of itself is −10¹² at least
    s, v = -((long[0] @ w_q.T) @ (long[0] @ w_q.T).T) / d**0.5, long[0] @ w_v.T
    finite = "A finite number in place of −∞ leaks when scores are low: hide with −∞."
    leaks = [(softmax(np.where(np.tri(n) > 0, s, low)) @ v, finite) for low in (-1e9, -1e4)]
    got, right = call(function, *long), builds.causal_self_attention(*long)
    lost = "Exponentials overflow or vanish: subtract each query's own largest score first."
    causes = [*leaks, (np.where(np.isnan(got), np.nan, right), lost)]
    expect(got, right, "for scores of 10¹²", causes, tolerance=1e-3)
    return "a token sees itself and what came before, and not one bit of what comes later."


def _causal_causes(
    x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray, *, rotary: bool
) -> list[tuple[Any, str]]:
    """What the usual mistakes give."""
    (n, e), d, p = x.shape, len(w_q), len(w_v)
    places, seen = np.arange(n), np.tri(n, dtype=bool)
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T

    def turned(a: np.ndarray, sign: int = 1) -> np.ndarray:
        return np.asarray(positions.rotary(a, sign * places))

    r_q, r_k = (turned(q), turned(k)) if rotary else (q, k)
    s = r_q @ r_k.T / d**0.5

    def averaged(s: np.ndarray, mask: np.ndarray | None = seen, v: np.ndarray = v) -> np.ndarray:
        weights: Any = softmax(s, mask)
        return np.asarray(weights @ v)

    before = np.tri(n, k=-1, dtype=bool)
    first, last = places[:, None] == 0, places[:, None] == n - 1
    itself = "A token sees itself too: the diagonal is allowed."
    added = "x is added: here the average alone is asked for."
    round_ = "The mask is turned round: token i sees the tokens j ≤ i."
    hidden = np.where(seen, s, -np.inf)
    kernels = np.exp(hidden), np.exp(hidden - hidden.max(axis=1, keepdims=True))
    over = "That softmax runs over the queries: the weights of each query sum to 1, axis=-1."
    divisors = [(1, "nothing"), (d, "d"), (e**0.5, "√e"), (p**0.5, "√p"), (n**0.5, "√n")]
    causes = [
        (averaged(s, ~before), round_),
        (np.where(last, np.nan, averaged(s, ~seen)), round_),
        *((np.where(first, row, averaged(s, before)), itself) for row in (np.nan, 0, v.mean(0))),
        (averaged(s, np.tri(n, k=1, dtype=bool)), "One too far: each token sees the next one too."),
        (averaged(s, None), "The mask is missing: each token sees all."),
        (averaged(s) + (x if p == e else np.nan), added),
        (averaged(np.where(seen, s, 0.0), None), "A hidden key has the score 0, and e⁰ = 1."),
        (np.asarray(softmax(s)) * seen @ v, "Masked after the softmax, rows no longer sum to 1."),
        *((one / one.sum(axis=0) @ v, over) for one in kernels),
        *(
            (averaged(s * d**0.5 / by), f"The scores are divided by {name}: it should be √d.")
            for by, name in divisors
        ),
    ]
    if n == e == d == p:
        side = "Tokens are rows, (n, e): it is x @ w_q.T, and so for keys and values."
        forms = [[x @ w.T, x @ w] for w in (w_q, w_k, w_v)]
        for a, b, c in [*list(product(*forms))[1:], (w_q @ x, w_k @ x, w_v @ x)]:
            r_a, r_b = (turned(a), turned(b)) if rotary else (a, b)
            causes.append((averaged(r_a @ r_b.T / d**0.5, v=c), side))
    if rotary:
        return [*causes, *_rotary_causes(x, w_q, w_k, w_v, averaged, turned)]
    turns = averaged(turned(q) @ turned(k).T / d**0.5)
    return [*causes, (turns, "It turns queries and keys although rotary is false.")]


def _rotary_causes(
    x: np.ndarray,
    w_q: np.ndarray,
    w_k: np.ndarray,
    w_v: np.ndarray,
    averaged: Callable[..., np.ndarray],
    turned: Callable[..., np.ndarray],
) -> list[tuple[Any, str]]:
    """What the usual mistakes with rotary positions give."""
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    halves = np.arange(len(w_q)).reshape(2, -1).T.ravel()  # the columns i and i + d/2 in turn
    tokens = turned(x)

    def by(q: np.ndarray, k: np.ndarray, v: np.ndarray = v) -> np.ndarray:
        return averaged(q @ k.T / len(w_q) ** 0.5, v=v)

    pairs = "Pairs are neighbours here, columns 2i and 2i + 1, and not i and i + d/2."
    early = "Turn queries and keys, after their matrices, and not the tokens."
    causes = [
        (by(q, k), "Nothing is turned."),
        (by(turned(q), k), "Turn the keys too: then only distances count."),
        (by(q, turned(k)), "Turn the queries too: then only distances count."),
        (by(turned(q, -1), turned(k, -1)), "That turns back: the angle is +p θ."),
        (by(turned(q[:, halves]), turned(k[:, halves])), pairs),
        *((by(tokens @ w_q.T, tokens @ w_k.T, own @ w_v.T), early) for own in (x, tokens)),
    ]
    if len(w_v) % 2 == 0:
        values = "Rotary positions turn queries and keys, not values."
        causes.append((by(turned(q), turned(k), turned(v)), values))
    return causes


def _no_leak(before: np.ndarray, after: np.ndarray, where: str) -> None:
    """Wrong unless the rows of earlier tokens are the same, to the bit, whatever comes later."""
    if np.any(np.isnan(after)):
        words = "a later token makes earlier rows NaN. Mask first: the largest score that is"
        raise Wrong(f"{where} {words} subtracted must be one of the visible.")
    if not np.array_equal(before, after):
        change = show(float(np.max(np.abs(before - after))))
        words = "when later tokens change. Only a score of −∞, put in before the largest is"
        raise Wrong(f"{where} earlier rows change by {change} {words} subtracted, hides all.")


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
    """function(slope): by how many positions more ALiBi halves a weight."""
    for m in (0.5, 0.0625):
        mistakes = [
            (1 / m, "At 1/m positions the weight has fallen to 1/e: here it is a half."),
            (0.5 / m, "Half a score is no half of a weight: the softmax takes an exponential."),
            (np.log(2) * m, "The larger the slope, the sooner a weight is halved: divide by it."),
            (-np.log(2) / m, "The sign: log ½ is negative, and the distance is positive."),
        ]
        expect(call(function, m), np.log(2) / m, f"for slope = {m}", mistakes, secret=True)
    return "eight heads of slopes 1/2 to 1/256 halve within 1.4 to 177 positions."


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
    (lambda share: 10000.0 ** -(2 * share), "The exponent is doubled: arange(0, d, 2) is 2i."),
    (lambda share: 10000.0**share, "The angles grow from pair to pair: the exponent is negative."),
]


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
    return "three heads that look at positions alone, and the layer is a convolution."


def _heads(x: np.ndarray, kernel: Any, a: float, *, anchors: int = 1, power: int = 2) -> Any:
    """The three heads' sum at sharpness a, with so many anchors of value 0 at each end."""
    n = len(x)
    i, j = np.arange(n)[:, None], np.arange(-anchors, n + anchors)
    v = np.pad(x, anchors)
    scores = [-a * abs(i + offset - j) ** power for offset in (-1.0, 0.0, 1.0)]
    return sum(f * (softmax(s) @ v) for f, s in zip(kernel, scores, strict=True))


@check
def bilateral(function: Function) -> str:
    """function(image, h_space, h_value): pixels averaged by position and value."""
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
        raise Wrong(f"{given}.", "Average the values alone, not the triples.")
    if got.shape in ((15, 15), (3, 5, 3, 5)):
        raise Wrong(
            f"{where} you give shape {got.shape}.", "Those are weights: average the pixels."
        )
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
