"""Chapter 5's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from mending import mended

from attnbook.course.checks import ch05
from attnbook.course.checks.broken_mask import CAUSAL_WEIGHTS


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def window(rule):
    """A mask by a rule for i − j and the width."""
    return lambda n, width: rule(np.arange(n)[:, None] - np.arange(n), width)


def in_window(back, width):
    return (back >= 0) & (back < width)


def one_place(n, width):
    answer = window(in_window)(n, width)
    answer[0, -1] = True
    return answer


def theta(d, of=lambda share: 10000.0**-share):
    return of(np.arange(0, d, 2) / d)


def sinusoid(p, d):
    return np.stack([np.sin(p * theta(d)), np.cos(p * theta(d))], axis=1).ravel()


def blocks(factor=None, of=lambda share: 10000.0**-share):
    """The right answer, block by block, and its neighbours by their angles."""

    def answer(k, d):
        m = np.zeros((d, d))
        for pair, angle in enumerate((k if factor is None else factor) * theta(d, of)):
            i = 2 * pair
            c, s = np.cos(angle), np.sin(angle)
            m[i : i + 2, i : i + 2] = [[c, s], [-s, c]]
        return m

    return answer


def in_halves(k, d):
    c, s = np.diag(np.cos(k * theta(d))), np.diag(np.sin(k * theta(d)))
    return np.block([[c, s], [-s, c]])


def fitted(k, d):
    """M from a least-squares fit to some positions."""
    here, there = (np.stack([sinusoid(p + q, d) for p in range(0, 5000, 97)]) for q in (0, k))
    return np.linalg.lstsq(here, there, rcond=None)[0].T


def for_one_position(k, d):
    return np.outer(sinusoid(k, d), sinusoid(0, d)) / (d / 2)


def rotary(
    x,
    positions,
    of=lambda share: 10000.0**-share,
    sign=1,
    split=lambda x: (x[:, 0::2], x[:, 1::2]),
    join=lambda a, b: np.stack([a, b], axis=-1).reshape(len(a), -1),
):
    """The right answer with real numbers, and its neighbours."""
    angles = sign * np.asarray(positions)[:, None] * theta(x.shape[1], of)
    a, b = split(x)
    c, s = np.cos(angles), np.sin(angles)
    return join(a * c - b * s, a * s + b * c)


def halves(x):
    return np.split(x, 2, axis=1)


def side_by_side(a, b):
    return np.concatenate([a, b], axis=1)


def added(x, positions):
    return x + np.stack([sinusoid(p, x.shape[1]) for p in positions])


def still_complex(x, positions):
    return (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * positions[:, None] * theta(x.shape[1]))


def filtered(score=lambda r, c, v: -(r + c + v) / 2, hs=2, hv=2, places=None, own=True):
    """The right answer, pixel by pixel, and its neighbours by squared differences over h."""

    def answer(image, h_space, h_value):
        pixels = list(np.ndindex(image.shape)) if places is None else places(image)
        values, new = image.ravel(), []
        for (r, c), v in zip(pixels, values, strict=True):
            s = [score(((r - a) ** 2) / h_space**hs, ((c - b) ** 2) / h_space**hs,
                       (v - u) ** 2 / h_value**hv) for (a, b), u in zip(pixels, values, strict=True)]  # fmt: skip
            s = np.asarray(s)
            if not own:
                s[len(new)] = -np.inf
            new.append(softmax(s) @ values)
        return np.reshape(new, image.shape)

    return answer


def columns_first(image):
    return list(np.ndindex(image.shape[::-1]))


def line(image):
    return [(i, 0) for i in range(image.size)]


def unnormalised(image, h_space, h_value):
    p = np.stack([*np.indices(image.shape) / h_space, image / h_value], axis=-1).reshape(-1, 3)
    w = np.exp(-((p[:, None] - p) ** 2).sum(-1) / 2)
    return (w @ image.ravel()).reshape(image.shape)


def two_averages(*a):
    place, value = filtered(lambda r, c, v: -(r + c) / 2), filtered(lambda r, c, v: -v / 2)
    return (place(*a) + value(*a)) / 2


def masked(mask=np.tril, over=lambda s: 1.0, pair=lambda q, k: q @ k.T):
    """The (n, n) way, and its neighbours by mask and divisor."""
    return lambda q, k, v: mask(pair(q, k)) @ v / over(mask(pair(q, k)))


def running(q, k, v):
    state, out = np.zeros((k.shape[1], v.shape[1])), []
    for a, b, c in zip(q, k, v, strict=True):
        state += b[:, None] * c
        out.append(a @ state)
    return out


def stale(q, k, v):
    state, out = np.zeros((k.shape[1], v.shape[1])), []
    for a, b, c in zip(q, k, v, strict=True):
        out.append(a @ state)
        state = state + np.outer(b, c)
    return out


def all_states(q, k, v):
    return np.einsum("nd,ndp->np", q, np.cumsum(k[:, :, None] * v[:, None], axis=0))


def heads(at=lambda a: a, anchors=1, power=2, factors=lambda f: f, empty=False):
    """The right answer, head by head and token by token, and its neighbours."""

    def answer(x, kernel, sharpness):
        n = len(x)
        keys, values = np.arange(-anchors, n + anchors), np.pad(x, anchors)
        y = np.zeros(n)
        for f, o in zip(factors(kernel), (-1, 0, 1), strict=True):
            for i in range(n):
                w = softmax(-at(sharpness) * np.abs(i + o - keys) ** float(power))
                y[i] += 0 if empty and not 0 <= i + o < n else f * (w @ values)
        return y

    return answer


def convolution(x, kernel, sharpness=None):
    return np.convolve(x, kernel[::-1], mode="same")


def ring(x, kernel, sharpness):
    return kernel[0] * np.roll(x, 1) + kernel[1] * x + kernel[2] * np.roll(x, -1)


def a_third(*a):
    return heads()(*a) / 3


X, W, S, R = ch05.crossover_length, ch05.sliding_mask, ch05.shift_matrix, ch05.rotary_complex
B, A, C = ch05.bilateral, ch05.running_attention, ch05.convolution_by_heads
WRONG = [
    (X, lambda d: 1.5, "That is n/d"),
    (X, lambda d: 1.5 * d**2, "one d too many"),
    (X, lambda d: d, "the orders"),
    (X, lambda d: 3 * d, "n² d each, and the projections"),
    (X, lambda d: 4.5 * d, "on the wrong side"),
    (X, lambda d: 0.75 * d, "count once"),
    (X, lambda d: 0, "three for the state"),
    (X, lambda d: -d / 2, "a GRU has six"),
    (X, lambda d: 2 * d / 3, "Turned over"),
    (X, lambda d: 9 * d**3, "return the length"),
    (X, lambda d: 5, "you give 5, expected a larger number"),
    (W, window(lambda back, width: in_window(-back, width)), "It is transposed"),
    (W, window(lambda back, width: (back > 0) & (back < width)), "No token sees itself"),
    (W, window(lambda back, width: (back > 0) & (back <= width)), "counts from i itself"),
    (W, window(lambda back, width: (back >= 0) & (back <= width)), "One key too many"),
    (W, window(lambda back, width: (back >= 0) & (back < width - 1)), "One key too few"),
    (W, window(lambda back, width: abs(back) < width), "It looks ahead"),
    (W, window(lambda back, width: abs(back) <= width // 2), "centred on i"),
    (W, window(lambda back, width: back < width), "must be causal too"),
    (W, window(lambda back, width: back >= 0), "not local"),
    (W, window(lambda back, width: back >= width), "what the window leaves out"),
    (W, lambda n, width: ~window(in_window)(n, width), "inverted"),
    (W, lambda n, width: np.where(window(in_window)(n, width), 0, -np.inf), "adding to scores"),
    (W, lambda n, width: np.arange(n) < width, "give shape (6,), expected (6, 6)"),
    (W, one_place, "in entry [0, 5], counted from 0, you give 1, expected 0"),
    (S, lambda k, d: blocks()(k, d).T, "It shifts by −k"),
    (S, lambda k, d: blocks()(-k, d), "It shifts by −k"),
    (S, blocks(factor=1), "It shifts by 1"),
    (S, in_halves, "not in the first half"),
    (S, lambda k, d: blocks()(k, d) * np.eye(d), "That is the diagonal"),
    (S, lambda k, d: np.diag(sinusoid(k, d)), "entry by entry"),
    (S, blocks(of=lambda share: 10000.0 ** -(share / 2)), "not −i/d"),
    (S, blocks(of=lambda share: 10000.0 ** (-2 * share)), "there twice"),
    (S, blocks(of=lambda share: 10000.0**share), "exponent is negative"),
    (S, blocks(of=np.ones_like), "by the same angle"),
    (S, for_one_position, "right for p = 0, and for no other"),
    (S, lambda k, d: sinusoid(k, d), "give shape (8,), expected (8, 8)"),
    (S, lambda k, d: np.eye(d), "expected −0.99"),
    (R, lambda x, p: rotary(x, p, split=halves, join=side_by_side), "as some libraries do"),
    (R, lambda x, p: rotary(x, p, join=side_by_side), "Real parts first"),
    (R, lambda x, p: rotary(x, -p), "the other way"),
    (R, lambda x, p: rotary(x, p) * [1, -1, 1, -1, 1, -1], "the wrong sign"),
    (R, lambda x, p: rotary(x * [1, -1, 1, -1, 1, -1], p), "is mirrored first"),
    (R, lambda x, p: rotary(x, np.arange(len(x))), "numbers the rows"),
    (R, lambda x, p: rotary(x, 1 + 0 * p), "All rows turn alike"),
    (R, added, "You add"),
    (R, lambda x, p: rotary(x, p, of=lambda share: 10000.0 ** -(share / 2)), "not −i/d"),
    (R, lambda x, p: rotary(x, p, of=lambda share: 10000.0 ** (-2 * share)), "there twice"),
    (R, lambda x, p: rotary(x, p, of=lambda share: 10000.0**share), "exponent is negative"),
    (R, lambda x, p: rotary(x, p, of=np.ones_like), "by the same angle"),
    (R, still_complex, "numbers are complex"),
    (R, lambda x, p: still_complex(x, p).real, "give shape (5, 3), expected (5, 6)"),
    (R, lambda x, p: x, "expected −0.4619"),
    (B, filtered(lambda r, c, v: -(r + c) / 2), "that is a blur"),
    (B, filtered(lambda r, c, v: -v / 2), "The value alone"),
    (B, filtered(lambda r, c, v: -(r + c + v)), "2 of 2h² is missing"),
    (B, filtered(hs=1, hv=1), "h is not squared"),
    (B, filtered(hs=0, hv=0), "have no effect"),
    (B, lambda image, a, b: filtered()(image, b, a), "two h are swapped"),
    (B, filtered(lambda r, c, v: -((r + c + v) ** 0.5)), "distance is not squared"),
    (B, filtered(lambda r, c, v: -(r + v) / 2), "The column does not count"),
    (B, filtered(lambda r, c, v: -(c + v) / 2), "The row does not count"),
    (B, filtered(places=columns_first), "which shape do you flatten"),
    (B, filtered(places=line), "a number from 0 to 14"),
    (B, filtered(own=False), "No pixel sees itself"),
    (B, unnormalised, "must sum to 1"),
    (B, two_averages, "Two averages"),
    (B, lambda image, a, b: image, "That is the image"),
    (B, lambda *a: filtered()(*a).ravel(), "give shape (15,), expected (3, 5)"),
    (B, lambda image, a, b: 0 * image, "expected "),
    (A, masked(mask=lambda s: s), "sees all keys"),
    (A, stale, "read before you add"),
    (A, masked(mask=np.triu), "from the last token"),
    (A, lambda q, k, v: (q * k).sum(1, keepdims=True) * v, "keeps nothing"),
    (A, masked(pair=lambda q, k: k @ q.T), "are exchanged"),
    (A, masked(over=lambda s: 3**0.5), "divides by √d"),
    (A, masked(over=lambda s: s.sum(1, keepdims=True)), "the sum of the scores"),
    (A, masked(over=lambda s: np.arange(1, len(s) + 1)[:, None]), "a mean over the keys"),
    (A, lambda q, k, v: softmax(np.where(np.tri(len(q)) > 0, q @ k.T, -np.inf)) @ v, "There is a softmax"),
    (A, masked(), "Or keep a state"),
    (A, masked(pair=lambda q, k: np.float32(q) @ np.float32(k).T), "Or keep a state"),
    (A, all_states, "Or keep a state"),
    (A, lambda q, k, v: k.T @ v, "give shape (3, 2), expected (5, 2)"),
    (A, lambda q, k, v: v, "expected "),
    (C, heads(factors=lambda f: f[::-1]), "The kernel is flipped"),
    (C, lambda x, f, a: np.convolve(x, f, mode="same"), "The kernel is flipped"),
    (C, heads(anchors=0), "At an end there is no such neighbour"),
    (C, ring, "no ring"),
    (C, a_third, "the mean of the heads"),
    (C, heads(factors=softmax), "no score"),
    (C, heads(factors=np.ones_like), "the kernel is missing"),
    (C, convolution, "the convolution itself"),
    (C, heads(at=lambda a: 1), "The sharpness has no effect"),
    (C, heads(power=1), "distance is not squared"),
    (C, heads(at=lambda a: a / 2), "There is no ½"),
    (C, heads(at=lambda a: a**2), "The sharpness is squared"),
    (C, heads(anchors=2), "One anchor at each end"),
    (C, heads(anchors=0, empty=True), "keys of every query"),
    (C, heads(at=lambda a: 1 / a), "You divide"),
    (C, heads(at=lambda a: 1 / (2 * a * a)), "for a bandwidth"),
    (C, lambda x, f, a: x, "expected "),
]  # fmt: skip


def back(n):
    return np.arange(n)[:, None] - np.arange(n)


def shift(k, d, t=theta, sg=1):
    m = np.zeros((d, d))
    for i, a in enumerate(k * t(d)):
        c, s = np.cos(a), sg * np.sin(a)
        m[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return m


def complex_pairs(x):
    return x[:, ::2] + 1j * x[:, 1::2]


def turned(x, p, t=theta):
    z = complex_pairs(x) * np.exp(1j * np.asarray(p)[:, None] * t(x.shape[1]))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def pixels(image, h_space, h_value, answer):
    """An answer from squared distances of place and value over h, the values, and the shape."""
    rows, columns = np.indices(image.shape)
    r, c, v = ((a.ravel()[:, None] - a.ravel()) ** 2 for a in (rows, columns, image))
    return answer((r + c) / h_space**2, v / h_value**2, image.ravel(), image.shape)


def by_key(weights):
    """Weights that sum to 1 for every key."""
    return weights / weights.sum(0)


def bilateral_of(image, a, b):
    return pixels(image, a, b, lambda s, v, x, z: (softmax(-(s + v) / 2) @ x).reshape(z))


def bilateral_dot(image, a, b):
    points = np.stack([*np.indices(image.shape) / a, image / b], axis=-1).reshape(-1, 3)
    return (softmax(points @ points.T / 3**0.5) @ image.ravel()).reshape(image.shape)


def bilateral_near(image, a, b, most, squared=lambda r, c: r**2 + c**2):
    """With neighbours up to so many steps away, and another square of the steps."""
    r, c = (abs(x.ravel()[:, None] - x.ravel()) for x in np.indices(image.shape))
    shut = np.where(np.maximum(r, c) <= most, 0, -np.inf)
    x = image.ravel()
    value = (x[:, None] - x) ** 2 / b**2
    return (softmax(shut - (squared(r, c) / a**2 + value) / 2) @ x).reshape(image.shape)


def three(x, f, a, off=(-1, 0, 1)):
    n = len(x)
    i, j, v = np.arange(n)[:, None], np.arange(-1, n + 1), np.pad(x, 1)
    each = [softmax(-a * (i + o - j) ** 2.0) @ v for o in off]
    return sum(factor * one for factor, one in zip(f, each, strict=True))


WRONG += [
    (ch05.crossover_length, lambda d: round(1.5 * d), "Do not round: the length need not be whole"),
    (ch05.crossover_length, lambda d: 3 * d // 2, "Do not round: the length need not be whole"),
    (ch05.crossover_length, lambda d: d / 2, "A GRU has six matrices: three are left, and n² comes twice"),
    (ch05.crossover_length, lambda d: 2 * d, "That counts one matrix too many: three of six are left"),
    (ch05.crossover_length, lambda d: 6 * d, "The projections count, and scores and averages are two"),
    (ch05.crossover_length, lambda d: None, "your function returns nothing: does it end with return?"),
    (ch05.crossover_length, lambda d: 3, "That is the number of matrices: the length grows with the"),
    (ch05.sliding_mask, lambda n, w: back(n) % n < w, "i − j is negative for later keys: no remainder"),
    (ch05.sliding_mask, lambda n, w: [[1] * n] * n, "All see all: the window ends at i, and begins width − 1"),
    (ch05.sliding_mask, lambda n, w: (back(n) >= 0) & (np.arange(n) < w), "Those are the first keys of all"),
    (ch05.sliding_mask, lambda n, w: (back(n) >= 0) & (np.arange(n) >= n - w), "Those are the last keys of all"),
    (ch05.sliding_mask, lambda n, w: (back(n) >= -w) & (back(n) <= 0), "It looks ahead: i − j is 0 or more"),
    (ch05.sliding_mask, lambda n, w: back(n) == w - 1, "That is the farthest key alone"),
    (ch05.sliding_mask, lambda n, w: np.eye(n), "A token sees itself alone: the width − 1 before it too"),
    (ch05.sliding_mask, lambda n, w: (back(n) >= 0) & (back(n) // w == 0) & (np.arange(n) // w == np.arange(n)[:, None] // w), "These are blocks that stand still: the window moves with i"),
    (ch05.shift_matrix, lambda k, d: np.roll(np.eye(d), k, 0), "That moves columns: a shift of p turns every pair"),
    (ch05.shift_matrix, lambda k, d: shift(k, d, t=lambda d: 10000.0 ** (-np.arange(d // 2) / (d // 2 - 1))), "The exponent divides by d, so the last θ_i is above 1/10000"),
    (ch05.shift_matrix, lambda k, d: shift(k, d, t=lambda d: 10000.0 ** (-np.arange(1, d + 1, 2) / d)), "The exponent is −2i/d, with i from 0"),
    (ch05.shift_matrix, lambda k, d: shift(k, d, t=lambda d: 1000.0 ** (-np.arange(0, d, 2) / d)), "The base is 10000"),
    (ch05.shift_matrix, lambda k, d: shift(k, d, t=lambda d: theta(d) * 2 * np.pi), "There is no 2π in the angle"),
    (ch05.shift_matrix, lambda k, d: k * shift(1, d), "k belongs to the angle, not in front of the matrix"),
    (ch05.shift_matrix, lambda k, d: shift(k, d, t=lambda d: theta(d)[::-1]), "The frequencies fall from pair to pair, from θ_0 = 1"),
    (ch05.shift_matrix, lambda k, d: np.abs(shift(k, d)), "The signs are lost"),
    (ch05.shift_matrix, lambda k, d: shift(np.deg2rad(k), d), "Angles are in radians: no degrees"),
    (ch05.rotary_complex, lambda x, p: np.stack([turned(x, p)[:, 1::2], turned(x, p)[:, ::2]], -1).reshape(x.shape), "Real part first, then the imaginary part"),
    (ch05.rotary_complex, lambda x, p: turned(x, p + 1), "Use positions as they are, from 0"),
    (ch05.rotary_complex, lambda x, p: turned(x, p, t=lambda d: np.repeat(theta(d), 1) * 2 * np.pi), "There is no 2π in the angle"),
    (ch05.rotary_complex, lambda x, p: np.abs(turned(x, p)), "The signs are lost"),
    (ch05.rotary_complex, lambda x, p: x * np.cos(p[:, None] * np.repeat(theta(6), 2)), "Only the cosine: e^{ia} has a sine too"),
    (ch05.rotary_complex, lambda x, p: turned(x, p, t=lambda d: 10000.0 ** (-np.arange(1, d, 2) / d)), "The exponent is −2i/d, with i from 0"),
    (ch05.rotary_complex, lambda x, p: ((x[:, ::2] + 1j * x[:, 1::2]) * np.exp(p[:, None] * theta(6))).view(float), "The i in the exponent is missing: that grows"),
    (ch05.rotary_complex, lambda x, p: np.stack([x[:, ::2] * np.cos(p[:, None] * theta(6)), x[:, 1::2] * np.sin(p[:, None] * theta(6))], -1).reshape(x.shape), "A complex product has four terms"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-s / 2) * softmax(-v / 2) @ x).reshape(z)), "A product of two softmaxes does not sum to 1"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (by_key(np.exp(-(s + v) / 2)) @ x).reshape(z)), "must sum to 1, not those of a key"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(s + v / 2)) @ x).reshape(z)), "The place lacks its 2"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(s / 2 + v)) @ x).reshape(z)), "The value lacks its 2"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(s + v) / 8) @ x).reshape(z)), "not by 8h²"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(s + v) / 4) @ x).reshape(z)), "not by 4h²"),
    (ch05.bilateral, lambda i, a, b: bilateral_of(i, a, a), "h_space divides both parts"),
    (ch05.bilateral, lambda i, a, b: bilateral_of(i, b, b), "h_value divides both"),
    (ch05.bilateral, lambda i, a, b: bilateral_of(i, (a * b) ** 0.5, (a * b) ** 0.5), "A product of the two h"),
    (ch05.bilateral, lambda i, a, b: bilateral_of(i, np.hypot(a, b), np.hypot(a, b)), "The sum of the squared h"),
    (ch05.bilateral, lambda i, a, b: bilateral_of(i, 1 / a, 1 / b), "You multiply by h: divide"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax((v - s) / 2) @ x).reshape(z)), "The value has the wrong sign"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax((s - v) / 2) @ x).reshape(z)), "The place has the wrong sign"),
    (ch05.bilateral, lambda i, a, b: bilateral_of(i, a, b) / b, "are the pixels as they are, not over h_value"),
    (ch05.bilateral, lambda i, a, b: bilateral_dot(i, a, b), "That is a dot product: the score is"),
    (ch05.bilateral, lambda i, a, b: bilateral_dot(i, 1, 1), "That is a dot product, without h"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(np.exp(-(s + v) / 2)) @ x).reshape(z)), "The exponential is there twice"),
    (ch05.bilateral, lambda i, a, b: bilateral_near(i, a, b, 1), "Only neighbours count"),
    (ch05.bilateral, lambda i, a, b: bilateral_near(i, a, b, 2), "Only neighbours count"),
    (ch05.bilateral, lambda i, a, b: bilateral_near(i, a, b, 9, lambda r, c: (r + c) ** 2), "adds the steps and then squares"),
    (ch05.bilateral, lambda i, a, b: bilateral_near(i, a, b, 9, lambda r, c: r + c), "The steps are not squared"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (np.exp(-(s + v) / 2) @ x / len(x)).reshape(z)), "not by the number of pixels"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: softmax(-(s + v) / 2) @ x), "give shape (15,), expected (3, 5)"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: softmax(-(s + v) / 2) @ np.stack([x] * 3, 1)), "Average the values alone, not the triples"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: softmax(-(s + v) / 2)), "Those are weights: average the pixels"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-s * v / 2) @ x).reshape(z)), "The two terms of the score are added, not multiplied"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax((s + v) / 2) @ x).reshape(z)), "The sign: far pixels weigh most"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(s + v) / 2) @ x).reshape(z[::-1]).T), "Flatten and unflatten in the same order"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(s + v) / 2 / 3 ** 0.5) @ x).reshape(z)), "Nothing divides by √3: the Gaussian score has h"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (softmax(-(np.sqrt(s) + np.sqrt(v)) / 2) @ x).reshape(z)), "The distances are not squared"),
    (ch05.bilateral, lambda *a: pixels(*a, lambda s, v, x, z: (x - softmax(-(s + v) / 2) @ x).reshape(z)), "That is what the filter takes away: return the new image"),
    (ch05.running_attention, lambda q, k, v: np.cumsum(q @ k.T, 1) @ v, "Sum over pairs: add to the state, not to the scores"),
    (ch05.running_attention, lambda q, k, v: np.cumsum((q * k).sum(1, keepdims=True) * v, 0), "q_i stands outside of the sum"),
    (ch05.running_attention, lambda q, k, v: (np.cumsum(k, 0) * q).sum(1, keepdims=True) * v, "Each key meets its own value"),
    (ch05.running_attention, lambda q, k, v: (np.cumsum(k, 0) * q).sum(1, keepdims=True) * np.cumsum(v, 0), "A product of two sums: each key meets its own value alone"),
    (ch05.running_attention, lambda q, k, v: np.exp(np.tril(q @ k.T)) @ v, "There is no exponential: here a score is a weight as it is"),
    (ch05.running_attention, lambda q, k, v: np.tril(q @ k.T, 1) @ v, "A query sees the next key too: one add too many before"),
    (ch05.running_attention, lambda q, k, v: np.tril(k @ k.T) @ v, "The queries have no effect"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, f, np.sqrt(a)), "Only the distance is squared: the sharpness is as it is"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, f, -a), "The sign: a score falls with the distance"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, np.abs(f), a), "The signs of the kernel are lost"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, f / f.sum(), a), "The kernel need not sum to 1"),
    (ch05.convolution_by_heads, lambda x, f, a: three(np.pad(x, 1), f, a), "anchors are keys, and no queries"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, f, a * 2), "There is no 2: sharpness times the squared distance"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, f, a)[::-1], "The sequence is turned round"),
    (ch05.convolution_by_heads, lambda x, f, a: three(x, f, np.log(a)), "The sharpness is in no logarithm"),
]  # fmt: skip


def torch_window(n, width):
    import torch

    return torch.ones(n, n).tril().triu(1 - width).bool()


def jax_window(n, width):
    import jax.numpy as jnp

    return jnp.tril(jnp.triu(jnp.ones((n, n)), 1 - width))


def loop_window(n, width):
    return [[0 <= i - j < width for j in range(n)] for i in range(n)]


def torch_shift(k, d):
    import torch

    angles = k * 10000 ** (-torch.arange(0, d, 2) / d)
    turns = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles]
    return torch.block_diag(*turns)


def jax_shift(k, d):
    import jax
    import jax.numpy as jnp

    def turn(angle):
        return jax.scipy.linalg.expm(jnp.array([[0, angle], [-angle, 0]]))

    return jax.scipy.linalg.block_diag(*map(turn, k * 10000.0 ** (-jnp.arange(0, d, 2) / d)))


def torch_rotary(x, positions):
    import torch

    angles = torch.outer(positions.float(), 10000 ** (-torch.arange(0, x.shape[1], 2) / x.shape[1]))
    z = torch.view_as_complex(x.float().reshape(len(x), -1, 2))
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(1)


def jax_rotary(x, positions):
    import jax.numpy as jnp

    z = (x[:, 0::2] + 1j * x[:, 1::2]) * jnp.exp(1j * positions[:, None] * theta(x.shape[1]))
    return jnp.stack([jnp.real(z), jnp.imag(z)], axis=-1).reshape(x.shape)


def view_rotary(x, positions):
    turned = x.view(complex) * np.exp(1j * np.outer(positions, theta(x.shape[1])))
    return turned.view(float)


def torch_bilateral(image, h_space, h_value):
    import torch

    where = torch.cartesian_prod(*(torch.arange(size) for size in image.shape)) / h_space
    points = torch.cat([where, image.reshape(-1, 1) / h_value], dim=1)
    weights = torch.softmax(-(torch.cdist(points, points) ** 2) / 2, dim=-1)
    return (weights @ image.reshape(-1, 1)).reshape(image.shape)


def jax_bilateral(image, h_space, h_value):
    import jax
    import jax.numpy as jnp

    r, c = jnp.indices(image.shape, dtype=image.dtype)
    s = [-((a.ravel()[:, None] - a.ravel()) ** 2) / (2 * h * h) for a, h in
         ((r, h_space), (c, h_space), (image, h_value))]  # fmt: skip
    return (jax.nn.softmax(sum(s)) @ image.ravel()).reshape(image.shape)


def torch_running(q, k, v):
    import torch

    state, out = torch.zeros(k.shape[1], v.shape[1], dtype=v.dtype), []
    for a, b, c in zip(q, k, v, strict=True):
        state.addr_(b, c)
        out.append(a @ state)
    return torch.stack(out)


def jax_running(q, k, v):
    import jax
    import jax.numpy as jnp

    def step(state, token):
        a, b, c = token
        state = state + jnp.outer(b, c)
        return state, a @ state

    return jax.lax.scan(step, jnp.zeros((k.shape[1], v.shape[1]), v.dtype), (q, k, v))[1]


def chunked(q, k, v, size=100):
    """A masked product inside each chunk, and a state for what came before it."""
    state, out = np.zeros((k.shape[1], v.shape[1])), []
    for start in range(0, len(q), size):
        a, b, c = (x[start : start + size] for x in (q, k, v))
        out.append(a @ state + np.tril(a @ b.T) @ c)
        state += b.T @ c
    return np.concatenate(out)


def torch_heads(x, kernel, sharpness):
    import torch

    i, j = torch.arange(len(x))[:, None], torch.arange(-1, len(x) + 1)
    places = i + torch.tensor([-1, 0, 1])[:, None, None]
    w = torch.softmax(-sharpness * (places - j).double() ** 2, dim=-1)
    return torch.einsum("h,hij,j->i", kernel, w, torch.nn.functional.pad(x, (1, 1)))


def jax_heads(x, kernel, sharpness):
    import jax
    import jax.numpy as jnp

    queries, keys = (jnp.arange(a, len(x) - a, dtype=x.dtype) for a in (0, -1))
    k = jnp.stack([keys, keys**2], axis=1)
    heads = [
        jax.nn.softmax(sharpness * jnp.stack([2 * (queries + o), -jnp.ones_like(x)], axis=1) @ k.T)
        for o in (-1, 0, 1)
    ]
    return sum(f * (w @ jnp.pad(x, 1)) for f, w in zip(kernel, heads, strict=True))


RIGHT = [
    (X, lambda d: 3 * d / 2),
    (X, lambda d: [d + d / 2]),
    (W, torch_window),
    (W, jax_window),
    (W, loop_window),
    (W, window(in_window)),
    (S, torch_shift),
    (S, jax_shift),
    (S, fitted),
    (S, blocks()),
    (R, torch_rotary),
    (R, jax_rotary),
    (R, view_rotary),
    (R, rotary),
    (B, torch_bilateral),
    (B, jax_bilateral),
    (B, filtered()),
    (A, torch_running),
    (A, jax_running),
    (A, running),
    (A, chunked),
    (A, lambda *a: chunked(*(x.astype(np.float32) for x in a))),
    (C, torch_heads),
    (C, jax_heads),
    (C, heads()),
]


H, L = ch05.half_distance, ch05.causal_weights


def causal(hidden=-np.inf, seen=lambda n: np.tri(n) > 0, over=1):
    """Weights under a mask whose hidden scores are these."""

    def answer(s):
        low = hidden(s) if callable(hidden) else hidden
        return softmax(np.where(seen(len(s)), s, low)) / over

    return answer


WRONG += [
    (H, lambda m: 1 / m, "has fallen to 1/e"),
    (H, lambda m: 0.5 / m, "Half a score is no half of a weight"),
    (H, lambda m: 2 / m, "solve e^(−m t) = ½"),
    (H, lambda m: np.log(2) * m, "divide by it"),
    (H, lambda m: np.log(0.5) / m, "the distance is positive"),
    (H, lambda m: np.log10(2) / m, "of base 10"),
    (H, lambda m: 1 / (m * np.log(2)), "Turned over"),
    (H, lambda m: np.exp(-m), "the factor for one place"),
    (H, lambda m: np.exp(-m / 2), "a factor of a weight"),
    (H, lambda m: np.log(2), "The slope has no effect"),
    (L, causal(0.0), "which is a score like any other"),
    (L, causal(np.min), "has the lowest score of all"),
    (L, softmax, "the mask has no effect"),
    (L, causal(seen=lambda n: np.tri(n).T > 0), "it shows the future alone"),
    (L, lambda s: softmax(s) * np.tri(len(s)), "The rows no longer sum to 1"),
    (L, causal(seen=lambda n: np.tri(n, k=1) > 0), "A query sees the next key too"),
    (L, causal(-100.0), "A finite number hides a key"),
    (L, causal(-1.0), "A finite number hides a key"),
    (L, causal(over=2), "expected "),
]  # fmt: skip
RIGHT += [
    (H, lambda m: np.log(2) / m),
    (H, lambda m: -np.log(0.5) / m),
    (L, causal()),
    (L, causal(-1e9)),
    (L, mended(CAUSAL_WEIGHTS, "causal_weights", ("1, n + 1", "n"))),
]


@pytest.mark.parametrize(
    ("old", "new", "heard"),
    [
        (
            "1, n + 1",
            "2, n + 2",
            "that is the faulty line, but it is not right yet. For 5 by 5 scores",
        ),
        ("max(axis=1, keep", "max(axis=0, keep", "the fault is in another line than you changed."),
        (
            "    parts",
            "    masked[np.triu_indices(n, 1)] = -np.inf\n    parts",
            "the faulty line still stands",
        ),
    ],
)
def test_the_leak_is_to_be_mended_where_it_is(old, new, heard):
    verdict = L(mended(CAUSAL_WEIGHTS, "causal_weights", (old, new)))
    assert verdict.status == "wrong"
    assert heard in verdict.message


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [X, W, S, R, B, A, C, H, L])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert repr(verdict).startswith(f"… {check.__name__}: not written yet")


def test_how_sharp_the_heads_of_the_convolution_exercise_must_be():
    kernel = np.asarray([-1.0, 2.0, -1.0])
    constant, ramp, alternating = np.ones(40), np.arange(40.0), (-1.0) ** np.arange(40)

    def errors(x, sharpness):
        y = convolution(x, kernel)
        return np.abs(heads()(x, kernel, sharpness) - y) / np.abs(y).max()

    for sharpness in (1, 2, 4, 6, 9, 12):
        worst = [errors(x, sharpness).max() for x in (constant, ramp, alternating)]
        assert worst[2] == max(worst)
    assert errors(alternating, 6).max() < 0.01 < errors(alternating, 5.9).max()
    assert errors(alternating, 6 + np.log(10)).max() < 0.001
    np.testing.assert_allclose(errors(alternating, 9)[3:-3], 4 * np.exp(-9), rtol=1e-2)
    for x in (constant, ramp):
        assert errors(x, 6)[4:-4].max() < 1e-6 < errors(x, 6).max()
