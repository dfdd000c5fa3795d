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
            (3 * d, "Scores and averages are n² d each, and the projections count too."),
            (4.5 * d, "The 3 n d² of the projections are on the wrong side."),
            (0.75 * d, "A product and its sum count once, on both sides."),
            (0, "That is for three matrices: a GRU has three for the input, three for the state."),
            (-0.5 * d, "That is for a plain recurrent layer of two matrices: a GRU has six."),
            (2 * d / 3, "Turned over: solve for n, not for d."),
            (np.floor(1.5 * d), "Do not round: the length need not be whole."),
            (np.ceil(1.5 * d), "Do not round: the length need not be whole."),
            (d / 2, "A GRU has six matrices: three are left, and n² comes twice."),
            (2 * d, "That counts one matrix too many: three of six are left."),
            (6 * d, "The projections count, and scores and averages are two products."),
            (1.5 * d**2 / 1.5, "Divide by n, and then by d: d² is one d too many."),
            (3, "That is the number of matrices: the length grows with the width."),
            (9 * d**3, "That is a number of multiply–adds: return the length."),
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
            (2 / m, "The weight is e^(−m t): solve e^(−m t) = ½."),
            (np.log(2) * m, "The larger the slope, the sooner a weight is halved: divide by it."),
            (-np.log(2) / m, "The sign: log ½ is negative, and the distance is positive."),
            (np.log10(2) / m, "That is the logarithm of base 10: the softmax takes e."),
            (1 / m / np.log(2), "Turned over: log 2 stands above."),
            (np.exp(-m / 2), "That is a factor of a weight: return a number of places."),
            (np.exp(-m), "That is the factor for one place: return a number of places."),
            (np.log(2), "The slope has no effect: the steeper, the sooner."),
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
        blocks = right * (j[:, None] // width == j // width)
        mistakes = [
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
            ((back % n) < width, "i − j is negative for later keys: no remainder."),
            (blocks, "These are blocks that stand still: the window moves with i."),
            ((back >= 0) & (j < width), "Those are the first keys: the window moves with i."),
            ((back >= 0) & (j >= n - width), "Those are the last keys: the window moves with i."),
            ((back >= -width) & (back <= 0), "It looks ahead: i − j is 0 or more."),
            (back == width - 1, "That is the farthest key alone: all between it and i count too."),
            (np.eye(n), "A token sees itself alone: the width − 1 before it too."),
            (np.ones((n, n)), "All see all: the window ends at i, and begins width − 1 before."),
            (np.where(right, 1, -np.inf), "That is for adding to scores: return True and False."),
            (np.where(right, 0, -1e9), "That is for adding to scores: return True and False."),
            (right * -1e9, "That is for adding to scores: return True and False."),
            (np.where(right, 0, -np.inf), "That is for adding to scores: return True and False."),
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
    (lambda share: 10000.0 ** -(share * 2), "The 2 of 2i is there twice: i counts pairs."),
    (lambda share: 10000.0**share, "The angles grow from pair to pair: the exponent is negative."),
    (lambda share: 1000.0**-share, "The base is 10000."),
    (lambda share: 10000.0 ** -(share + share[1] / 2), "The exponent is −2i/d, with i from 0."),
    (
        lambda share: 10000.0 ** -(share * (len(share) / max(1, len(share) - 1))),
        "The exponent divides by d, so the last θ_i is above 1/10000.",
    ),
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
            (k * _turns(_angles(1, d)), "k belongs to the angle, not in front of the matrix."),
            (_turns(_angles(k, d)[::-1]), "The frequencies fall from pair to pair, from θ_0 = 1."),
            (np.abs(right), "The signs are lost."),
            (_turns(np.deg2rad(_angles(k, d))), "Angles are in radians: no degrees."),
            (_turns(2 * np.pi * _angles(k, d)), "There is no 2π in the angle."),
            (np.roll(np.eye(d), k, axis=0), "That moves columns: a shift of p turns every pair."),
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
        (_pairs(turned.conj()), "The imaginary part has the wrong sign."),
        (_pairs(z.conj() * np.exp(1j * a)), "That is x_2i − i x_2i+1: the pair is mirrored first."),
        (_pairs(z * np.exp(1j * _angles(range(5), d))), "That numbers the rows: use positions."),
        (_pairs(z * np.exp(1j * _angles(1, d))), "All rows turn alike: p is missing in the angle."),
        (_pairs(turned * np.exp(1j * _angles(1, d))), "Use positions as they are, from 0."),
        (_pairs(turned.imag + 1j * turned.real), "Real part first, then the imaginary part."),
        (_pairs(z * np.exp(2j * np.pi * a)), "There is no 2π in the angle."),
        (_pairs(z.real * np.cos(a) + 1j * z.imag * np.sin(a)), "A complex product has four terms."),
        (_pairs(z * np.cos(a)), "Only the cosine: e^{ia} has a sine too."),
        (_pairs(z * np.exp(a)), "The i in the exponent is missing: that grows."),
        (_pairs(np.abs(turned.real) + 1j * np.abs(turned.imag)), "The signs are lost."),
        (x + _sinusoidal(p, d), "You add: a rotary position multiplies."),
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
    met = (np.cumsum(k, 0) * q).sum(1, keepdims=True)
    mistakes = [
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
        (met * v, "Each key meets its own value."),
        (met * np.cumsum(v, 0), "A product of two sums: each key meets its own value alone."),
        (np.tril(s, 1) @ v, "A query sees the next key too: one add too many before you read."),
        (np.tril(k @ k.T) @ v, "The queries have no effect."),
        (np.exp(w) @ v, "There is no exponential: here a score is a weight as it is."),
        (np.tril(np.exp(s)) @ v, "There is no exponential: here a score is a weight as it is."),
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
        mistakes = [
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
    swapped = np.indices(image.shape[::-1]).reshape(2, -1)

    def squared(*scaled: np.ndarray) -> np.ndarray:
        return np.sum([(a[:, None] - a) ** 2 for a in scaled], axis=0)

    place, value = squared(r / hs, c / hs), squared(v / hv)

    def smooth(score: np.ndarray) -> np.ndarray:
        return (softmax(score) @ v).reshape(image.shape)

    def scored(*axes: np.ndarray) -> np.ndarray:
        points = np.stack(axes, axis=-1)
        return smooth(points @ points.T / 3**0.5)

    kernel, steps = np.exp(-(place + value) / 2), [abs(a[:, None] - a) for a in (r, c)]
    window = {k: np.where(np.maximum(*steps) <= k, 0, -np.inf) for k in (1, 2)}
    own = np.where(np.eye(len(v)) > 0, -np.inf, 0)
    near, alike, right = softmax(-place / 2), softmax(-value / 2), smooth(-(place + value) / 2)
    got, where = call(function, image, hs, hv), "for an image of 3 by 5"
    if got.shape in ((15,), (15, 1)):
        raise Wrong(f"{where} you give shape {got.shape}, expected (3, 5), as the image has.")
    if got.shape in ((15, 3), (3, 5, 3), (3, 15)):
        raise Wrong(
            f"{where} you give shape {got.shape}. Average the values alone, not the triples."
        )
    if got.shape in ((15, 15), (3, 5, 3, 5)):
        raise Wrong(f"{where} you give shape {got.shape}. Those are weights: average the pixels.")
    disordered = smooth(-(squared(*swapped / hs) + value) / 2)
    numbered = smooth(-(squared(np.arange(len(v)) / hs) + value) / 2)
    added = smooth(-((steps[0] + steps[1]) ** 2 / hs**2 + value) / 2)
    bare = -(place * hs**2 + value * hv**2) / 2
    windowed = [smooth(mask - (place + value) / 2) for mask in window.values()]
    causes = [
        (((near * alike) @ v).reshape(3, 5), "A product of two softmaxes does not sum to 1."),
        ((near @ alike @ v).reshape(3, 5), "Two averages: add the scores instead."),
        (((near + alike) @ v).reshape(3, 5), "Two averages: add the scores instead."),
        (smooth(-place * value / 2), "The two terms of the score are added, not multiplied."),
        (smooth((place + value) / 2), "The sign: far pixels weigh most."),
        (smooth(-(place + value) / 2 / 3**0.5), "Nothing divides by √3: the Gaussian score has h."),
        (smooth(-(place**0.5 + value**0.5) / 2), "The distances are not squared."),
        (image - right, "That is what the filter takes away: return the new image."),
        (right.ravel().reshape(5, 3).T, "Flatten and unflatten in the same order."),
        (smooth(-place / 2), "Place alone counts: that is a blur, edges and all."),
        (smooth(-value / 2), "The value alone counts: pixels far away weigh as much as near ones."),
        (smooth(-(place + value)), "The 2 of 2h² is missing."),
        (smooth(-(place * hs + value * hv) / 2), "h is not squared: divide, and then square."),
        (smooth(bare), "The bandwidths have no effect."),
        (smooth(-(place * (hs / hv) ** 2 + value * (hv / hs) ** 2) / 2), "The two h are swapped."),
        (smooth(-((place + value) ** 0.5)), "The distance is not squared: that is no Gaussian."),
        (smooth(-(squared(r / hs) + value) / 2), "The column does not count."),
        (smooth(-(squared(c / hs) + value) / 2), "The row does not count."),
        (disordered, "Pixels and places differ in order: which shape do you flatten?"),
        (
            numbered,
            "Places are numbers from 0 to 14: the end of a row is not near the next one's start.",
        ),
        (smooth(own - (place + value) / 2), "No pixel sees itself: it is a key like the others."),
        ((np.exp(-(place + value) / 2) @ v).reshape(3, 5), "The weights of a pixel must sum to 1."),
        ((smooth(-place / 2) + smooth(-value / 2)) / 2, "Two averages: add the scores instead."),
        ((kernel / kernel.sum(0)) @ v, "The weights of a query must sum to 1, not those of a key."),
        (smooth(-(place + value / 2)), "The place lacks its 2: 2h² divides both parts."),
        (smooth(-(place / 2 + value)), "The value lacks its 2: 2h² divides both parts."),
        (smooth(-(place + value) / 8), "Divide by 2h², and not by 8h²."),
        (smooth(-(place + value) / 4), "Divide by 2h², and not by 4h²."),
        (smooth(bare / hs**2), "h_space divides both parts: each part has its own."),
        (smooth(bare / hv**2), "h_value divides both: each part has its own."),
        (smooth(bare / (hs * hv)), "A product of the two h divides both parts: each has its own."),
        (smooth(bare / (hs**2 + hv**2)), "The sum of squared h divides both: each has its own."),
        (smooth(-(place * hs**4 + value * hv**4) / 2), "You multiply by h: divide by it."),
        (smooth((value - place) / 2), "The value has the wrong sign: unlike pixels weigh most."),
        (smooth((place - value) / 2), "The place has the wrong sign: far pixels weigh most."),
        (right / hv, "The values that are averaged are the pixels as they are, not over h_value."),
        (scored(r / hs, c / hs, v / hv), "That is a dot product: the score is Gaussian."),
        (scored(r, c, v), "That is a dot product, without h: the score is Gaussian."),
        (smooth(kernel), "The exponential is there twice: the softmax takes it itself."),
        *((near_ones, "Only neighbours count: each pixel sees all.") for near_ones in windowed),
        (added, "That adds the steps and then squares: square the rows and the columns apart."),
        (smooth(-((steps[0] + steps[1]) / hs**2 + value) / 2), "The steps are not squared."),
        ((kernel @ v) / len(v), "Divide by the sum of the weights, not by the number of pixels."),
        (image, "That is the image: does a pixel attend to others?"),
    ]
    expect(got, right, where, [(np.reshape(wrong, (3, 5)), cause) for wrong, cause in causes])
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
        (softmax(np.where(seen, s, s.min())), "The lowest score still gives a hidden key weight."),
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
