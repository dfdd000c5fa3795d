"""Chapter 9's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import numpy as np
import pytest

from attnbook import nadaraya_watson
from attnbook.course.checks import ch09
from attnbook.kernel import gaussian_process

SCALES = np.geomspace(0.1, 1, 25)


def gauss(x, z, scale):
    return np.exp(-0.5 * ((x[:, None] - z) / scale) ** 2)


def inverse(keys, scale, noise, power=2, off=0.0):
    n = len(keys)
    extra = noise**power * (np.eye(n) + off * (1 - np.eye(n)))
    return np.linalg.inv(gauss(keys, keys, scale) + extra)


def one(r, y, scale, noise):
    k = np.exp(-0.5 * (r / scale) ** 2)
    return k * y / (1 + noise**2), 1 - k**2 / (1 + noise**2)


def first(wrong):
    """The right variance beside another mean, a function of k, y and the noise."""
    return lambda r, y, s, e: (wrong(np.exp(-0.5 * (r / s) ** 2), y, e), one(r, y, s, e)[1])


def second(wrong):
    return lambda r, y, s, e: (one(r, y, s, e)[0], wrong(np.exp(-0.5 * (r / s) ** 2), e))


def weights(queries, keys, scale, noise, **options):
    return gauss(queries, keys, scale) @ inverse(keys, scale, noise, **options)


def unit(w):
    return w / w.sum(1, keepdims=True)


def spread(w, keys, scale, noise, silent=False):
    a = gauss(keys, keys, scale) + (0 if silent else noise**2) * np.eye(len(keys))
    return (w @ a * w).sum(1)


def error(w, queries, keys, scale, noise, silent=False, cross=2):
    between = (w * gauss(queries, keys, scale)).sum(1)
    return spread(w, keys, scale, noise, silent) - cross * between + 1


def all_pairs(w, queries, keys, scale, noise):
    k, a = gauss(queries, keys, scale), np.linalg.inv(inverse(keys, scale, noise))
    return w @ a @ w.T - w @ k.T - k @ w.T + gauss(queries, queries, scale)


def least(w, queries, keys, scale, noise):
    k = gauss(queries, keys, scale)
    return 1 - (weights(queries, keys, scale, noise) * k).sum(1)


def left(keys, values, scale, noise, power=2):
    a = inverse(keys, scale, noise, power)
    variance = 1 / np.diag(a)
    return values - a @ values * variance, variance


def mean_by(wrong):
    """The right variance beside another mean, a function of y, A⁻¹ and the noise."""
    return lambda x, y, s, e: (wrong(y, inverse(x, s, e), e), left(x, y, s, e)[1])


def variance_by(wrong):
    return lambda x, y, s, e: (left(x, y, s, e)[0], wrong(np.diag(inverse(x, s, e)), e))


def refits(keys, values, scale, noise):
    """Every key in turn left out, and the posterior computed anew."""
    means, variances = [], []
    for i in range(len(keys)):
        mean, variance = gaussian_process.posterior(
            keys[[i]], np.delete(keys, i), np.delete(values, i), length_scale=scale, noise=noise
        )
        means.append(mean[0])
        variances.append(variance[0] + noise**2)
    return means, variances


def masked(pairs=np.tri, queries=lambda n: np.tri(n, k=-1), own=np.eye, above=None):
    def answer(n):
        right = above(n) if above else np.zeros((n, n))
        return np.block([[pairs(n), right], [queries(n), own(n)]]).astype(bool)

    return answer


def ones(n):
    return np.ones((n, n))


def others(n):
    return 1 - np.eye(n)


def alternate(n):
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    return masked()(n)[order][:, order]


def layer(factor=lambda p, n, rate: -rate / n, q=0, k=0, v=0):
    """The right answer, and its neighbours: what q and k read of y, and v of x."""

    def answer(p, n, rate):
        x, y = np.diag([1.0] * p + [0]), np.diag([0.0] * p + [1])
        return np.stack([x + q * y, x + k * y, factor(p, n, rate) * (y + v * x)])

    return answer


def evidence(keys, values, scale, noise, fit=0.5, volume=0.5):
    a = gauss(keys, keys, scale) + noise**2 * np.eye(len(keys))
    return -fit * values @ np.linalg.solve(a, values) - volume * np.linalg.slogdet(a)[1]


def means(queries, keys, values, scales, noise):
    return np.stack([weights(queries, keys, s, noise) @ values for s in scales])


def mixed(transform=None, **options):
    def answer(queries, keys, values, scales, noise):
        s = np.asarray([evidence(keys, values, scale, noise, **options) for scale in scales])
        e = transform(s) if transform else np.exp(s - s.max())
        return e / e.sum() @ means(queries, keys, values, scales, noise)

    return answer


def each_variance(queries, keys, scales, noise):
    parts = [weights(queries, keys, s, noise) * gauss(queries, keys, s) for s in scales]
    return np.stack([1 - part.sum(1) for part in parts])


def whole_variance(queries, keys, values, scales, noise):
    """The right variance of the mixture."""
    s = np.asarray([evidence(keys, values, scale, noise) for scale in scales])
    share, m = rowwise(s), means(queries, keys, values, scales, noise)
    return share @ (each_variance(queries, keys, scales, noise) + m**2) - (share @ m) ** 2


def paired(mean):
    """An answer from one to the mean alone."""
    return lambda *a: (mean(*a), whole_variance(*a))


def variance_from(change):
    """The right mean, and a variance from weights, variances and means."""

    def answer(queries, keys, values, scales, noise):
        s = np.asarray([evidence(keys, values, scale, noise) for scale in scales])
        m = means(queries, keys, values, scales, noise)
        v = each_variance(queries, keys, scales, noise)
        return rowwise(s) @ m, change(rowwise(s), v, m)

    return answer


O, P, E = ch09.one_pair, ch09.posterior_weights, ch09.weights_error  # noqa: E741
L, M, G, U = ch09.posterior_left_out, ch09.prefix_mask, ch09.gradient_layer, ch09.unknown_scale
WRONG = [
    (O, lambda *a: one(*a)[::-1], "the mean first"),
    (O, first(lambda k, y, e: y), "That is Nadaraya–Watson"),
    (O, first(lambda k, y, e: k * y), "The noise is missing"),
    (O, first(lambda k, y, e: k * y / (1 + e)), "a standard deviation: square"),
    (O, first(lambda k, y, e: y / (1 + e**2)), "The distance has no effect"),
    (O, first(lambda k, y, e: k**2 * y / (1 + e**2)), "there is a 2"),
    (O, first(lambda k, y, e: 7.0), "in the mean, you give 7, expected"),
    (O, second(lambda k, e: 1 - k**2), "what is divided by?"),
    (O, second(lambda k, e: 1 - k**2 / (1 + e)), "σ is not squared"),
    (O, second(lambda k, e: 1 - k / (1 + e**2)), "on the left and on the right"),
    (O, second(lambda k, e: 1 - k**2 / (1 + e**2) + e**2), "for a noisy value"),
    (O, second(lambda k, e: (1 - k**2 / (1 + e**2)) ** 0.5), "That is a standard deviation."),
    (O, second(lambda k, e: k**2 / (1 + e**2)), "what the pair takes away"),
    (O, lambda *a: one(*a)[0], "two arrays"),
    (P, lambda *a: unit(weights(*a)), "need not sum to 1"),
    (P, lambda q, k, s, e: unit(gauss(q, k, s)), "Those are Nadaraya–Watson's"),
    (P, lambda q, k, s, e: gauss(q, k, s), "K + σ²I is missing"),
    (P, lambda q, k, s, e: gauss(q, k, s) / e**2, "K is missing: only"),
    (P, lambda q, k, s, e: gauss(q, k, s) / (1 + e**2), "keys know of each other."),
    (P, lambda q, k, s, e: weights(q, k, s, 0), "The noise is missing"),
    (P, lambda *a: weights(*a, power=1), "square it"),
    (P, lambda *a: weights(*a, off=1), "on the diagonal alone"),
    (P, lambda q, k, s, e: gauss(q, k, s) @ np.linalg.inv(inverse(k, s, e)), "multiplied by"),
    (P, lambda *a: np.maximum(weights(*a), 0), "below 0 are right"),
    (P, lambda *a: weights(*a).T, "queries are rows"),
    (P, lambda *a: -weights(*a), "The sign is turned"),
    (E, lambda *a: error(*a, silent=True), "noise of the values is missing"),
    (E, lambda w, q, k, s, e: error(w, q, k, s, e**0.5), "square it"),
    (E, lambda w, q, k, s, e: error(w, q, k, s, e, silent=True) + e**2 * w.sum(1) ** 2,
     "not σ² (Σ w)²"),
    (E, lambda w, q, k, s, e: error(w, q, k, s, e, silent=True) + e**2, "weighted too"),
    (E, lambda w, q, k, s, e: error(w, q, k, s, e) + e**2, "without noise"),
    (E, lambda *a: error(*a, cross=1), "the square has 2ab"),
    (E, lambda *a: error(*a, cross=-2), "The sign: where f"),
    (E, least, "use the weights given"),
    (E, lambda *a: error(*a) ** 0.5, "That is the root"),
    (E, all_pairs, "shape (3, 3): one error"),
    (E, lambda *a: error(*a).mean(), "shape (): one error"),
    (E, lambda *a: -error(*a), ", expected"),
    (L, lambda *a: left(*a)[::-1], "the mean first"),
    (L, mean_by(lambda y, a, e: a @ y / np.diag(a)), "not the prediction"),
    (L, mean_by(lambda y, a, e: y + a @ y / np.diag(a)), "The sign"),
    (L, mean_by(lambda y, a, e: y - e**2 * a @ y), "still sees its own value"),
    (L, mean_by(lambda y, a, e: y - a @ y), "Divide by the diagonal"),
    (L, mean_by(lambda y, a, e: y - a @ y / (1 + e**2)), "not of K + σ²I"),
    (L, lambda x, y, s, e: left(x, y, s, 0), "The noise is missing"),
    (L, lambda *a: left(*a, power=1), "square it"),
    (L, mean_by(lambda y, a, e: 0 * y), ", expected"),
    (L, variance_by(lambda d, e: d), "Turn it over"),
    (L, variance_by(lambda d, e: 1 / d - e**2), "That is the function's"),
    (L, variance_by(lambda d, e: e**2 - e**4 * d), "leave key i out"),
    (L, variance_by(lambda d, e: d**-0.5), "That is a standard deviation"),
    (L, lambda x, y, s, e: (left(x, y, s, e)[0], left(x, y, s, 0)[1]), "no noise on the diagonal"),
    (L, lambda *a: left(*a)[0], "two arrays"),
    (M, lambda n: ~masked()(n), "the other way round"),
    (M, lambda n: masked()(n).T, "It is transposed"),
    (M, alternate, "first come all pairs"),
    (M, masked(above=np.eye), "a pair attends to a query"),
    (M, masked(queries=np.tri), "that pair holds the answer"),
    (M, masked(queries=ones), "sees every pair"),
    (M, masked(queries=np.eye), "sees pair i alone"),
    (M, masked(queries=others), "sees later pairs"),
    (M, masked(own=lambda n: 0 * np.eye(n)), "Query 0 has nothing"),
    (M, masked(own=np.tri), "to another one"),
    (M, masked(pairs=ones), "with it its answer"),
    (M, masked(pairs=others), "with it its answer. A pair may see itself"),
    (M, masked(pairs=np.eye), "which pairs do no harm"),
    (M, masked(pairs=lambda n: np.tri(n, k=-1)), "Pair 0 has nothing"),
    (M, lambda n: np.where(masked()(n), 0, -np.inf), "neither True nor False"),
    (M, np.tri, "are 10 tokens"),
    (G, layer(lambda p, n, rate: rate / n), "The sign"),
    (G, layer(lambda p, n, rate: -rate), "divide by n"),
    (G, layer(lambda p, n, rate: -2 * rate / n), "has a ½"),
    (G, layer(lambda p, n, rate: -1 / n), "rate is missing"),
    (G, layer(lambda p, n, rate: -(rate**2) / n), "in it twice"),
    (G, layer(lambda p, n, rate: -((p + 1) ** 0.5) * rate / n), "undo nothing"),
    (G, layer(lambda p, n, rate: 0), "Nothing is added"),
    (G, layer(lambda p, n, rate: -0.123), "That is 2.05 times one step"),
    (G, lambda p, n, rate: layer()(p, n, rate) * np.append(1, np.full(p, 2)), "no multiple of a step"),
    (G, layer(v=1), "changes x"),
    (G, layer(q=1, k=1), "may not contain y"),
    (G, layer(q=1, k=-1), "The queries are right"),
    (G, lambda p, n, rate: layer()(p, n, rate)[1:], "expected three matrices"),
    (U, paired(mixed(np.ones_like)), "count the same"),
    (U, paired(mixed(lambda s: s == s.max())), "likeliest one alone"),
    (U, paired(mixed(volume=0)), "every short scale"),
    (U, paired(mixed(fit=0)), "do the values matter"),
    (U, paired(mixed(fit=1, volume=1)), "Both terms"),
    (U, paired(mixed(volume=1)), "log |A| has a ½"),
    (U, paired(mixed(volume=-0.5)), "The sign of log"),
    (U, paired(mixed(fit=-0.5, volume=-0.5)), "the better fit has less"),
    (U, paired(mixed(lambda s: s)), "take exp"),
    (U, paired(mixed(np.exp)), "underflow"),
    (U, paired(means), "average over the length scales"),
    (U, paired(mixed(fit=0.1, volume=0.2)), ", expected"),
    (U, mixed(), "two arrays"),
    (U, variance_from(lambda w, v, m: w @ v), "means differ too"),
    (U, variance_from(lambda w, v, m: w @ m**2 - (w @ m) ** 2), "a variance of its own"),
    (U, variance_from(lambda w, v, m: w @ (v + m**2)), "Take off the square"),
    (U, variance_from(lambda w, v, m: w @ (v + m**2) - w @ m), "Take off the square"),
    (U, variance_from(lambda w, v, m: w**2 @ v), "One of them is true"),
    (U, variance_from(lambda w, v, m: w @ v**0.5), "average of standard deviations"),
    (U, lambda *a: (mixed()(*a), whole_variance(*a) ** 0.5), "That is a standard deviation"),
    (U, lambda *a: (mixed()(*a), whole_variance(*a) + a[4] ** 2), "for a noisy value"),
    (U, variance_from(lambda w, v, m: v[w.argmax()]), "likeliest one's alone"),
    (U, variance_from(lambda w, v, m: v.mean(0) + m.var(0)), "use the same weights"),
    (U, variance_from(lambda w, v, m: 0 * m[0]), ", expected"),
]  # fmt: skip


def rowwise(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def terms(w, q, k, scale, e, answer):
    """An answer from w A w and w k."""
    a = gauss(k, k, scale) + e**2 * np.eye(len(k))
    return answer((w @ a * w).sum(1), (w * gauss(q, k, scale)).sum(1))


def inverted(k, y, scale, e):
    a = inverse(k, scale, e)
    return a, a @ y, np.diag(a)


def four(n, pairs=None, queries=None, own=None):
    pairs = np.tri(n) if pairs is None else pairs
    queries = np.tri(n, k=-1) if queries is None else queries
    return np.block([[pairs, np.zeros((n, n))], [queries, np.eye(n) if own is None else own]])


def three(p, n, rate, choose):
    last = np.diag([0.0] * p + [1])
    return choose(np.eye(p + 1) - last, last, n, rate)


def hypotheses(q, k, y, scales, e, answer):
    """An answer from the means, the fits and the log determinants of all length scales."""
    each = [gauss(k, k, s) + e**2 * np.eye(len(k)) for s in scales]
    fit = np.asarray([y @ np.linalg.solve(a, y) for a in each])
    return answer(means(q, k, y, scales, e), fit, np.linalg.slogdet(np.stack(each))[1])


WRONG += [
    (ch09.one_pair, lambda r, y, scale, noise: (lambda k: (k * (1 + noise * noise) * y, 1 - k * k * (1 + noise * noise)))(np.exp(-r * r / 2 / scale / scale)), "You multiply by 1 + σ²: divide"),
    (ch09.one_pair, lambda r, y, scale, noise: (lambda k: (k * y / (noise * noise), 1 - k * k / (noise * noise)))(np.exp(-r * r / 2 / scale / scale)), "The pair's own variance is 1 + σ²: its covariance is"),
    (ch09.posterior_weights, lambda q, k, scale, noise: gauss(q, k, scale ** 0.5) @ np.linalg.inv(gauss(k, k, scale ** 0.5) + noise * noise * np.eye(len(k))), "The length scale is squared in the exponent"),
    (ch09.posterior_weights, lambda q, k, scale, noise: gauss(q, k, scale) / (gauss(k, k, scale) + noise * noise * np.eye(len(k))).sum(0), "Take the inverse of the matrix, not of its sums"),
    (ch09.posterior_weights, lambda q, k, scale, noise: gauss(q, k, scale) @ np.linalg.inv(gauss(k, k, scale) + noise ** 4 * np.eye(len(k))), "σ is squared once"),
    (ch09.posterior_weights, lambda q, k, scale, noise: gauss(q, k, scale) @ np.linalg.inv(gauss(k, k, scale) - noise * noise * np.eye(len(k))), "The noise is added: K + σ²I"),
    (ch09.posterior_weights, lambda q, k, scale, noise: gauss(q, k, scale * 2 ** (-0.5)) @ np.linalg.inv(gauss(k, k, scale * 2 ** (-0.5)) + noise * noise * np.eye(len(k))), "The exponent is −(r/ℓ)²/2: there is a 2"),
    (ch09.weights_error, lambda *a: terms(*a, lambda a, c: a - 2 * c), "The 1 is missing: f(q) has the variance 1"),
    (ch09.weights_error, lambda *a: terms(*a, lambda a, c: a + 1), "The cross term is missing: f(q) and the values are related"),
    (ch09.weights_error, lambda *a: terms(*a, lambda a, c: a - 2 * c + 1) * 2, "There is a factor 2 too many"),
    (ch09.weights_error, lambda w, q, k, scale, noise: (w ** 2).sum(1) * noise * noise, "That is the noise alone: the weights miss the function too"),
    (ch09.weights_error, lambda w, q, k, scale, noise: terms(w, q, k, scale, noise, lambda a, c: a - c ** 2 + 1), "The square of a sum has 2ab, not the square of it"),
    (ch09.posterior_left_out, lambda k, y, scale, noise: (lambda inv, a, d: (y - a / d, 1 / d + noise * noise))(*inverted(k, y, scale, noise)), "The noise is in it already: A has σ² on its diagonal"),
    (ch09.posterior_left_out, lambda k, y, scale, noise: (lambda inv, a, d: (y - a / d, 1 - 1 / d))(*inverted(k, y, scale, noise)), "That is what the others tell. What is left?"),
    (ch09.posterior_left_out, lambda k, y, scale, noise: (lambda inv, a, d: (y - a / d, np.full(len(k), 1 + noise * noise)))(*inverted(k, y, scale, noise)), "That is before the other values are seen"),
    (ch09.posterior_left_out, lambda k, y, scale, noise: (lambda inv, a, d: (y - a / d, 1 / d ** 2))(*inverted(k, y, scale, noise)), "One over the diagonal, once"),
    (ch09.prefix_mask, lambda n: four(n, queries=np.triu(np.ones((n, n)))), "The triangle is the other one: pairs before"),
    (ch09.prefix_mask, lambda n: four(n, own=np.tri(n, k=-1)), "A query may attend to itself, and to no other query"),
    (ch09.prefix_mask, lambda n: four(n, queries=np.tri(n, k=-2)), "Pair i − 1 may be seen too: it is before pair i"),
    (ch09.prefix_mask, lambda n: four(n, pairs=np.zeros((n, n))), "Pairs see nothing: those before them do no harm"),
    (ch09.prefix_mask, lambda n: four(n, queries=np.zeros((n, n))), "A query sees no pair: it may see those before its own"),
    (ch09.gradient_layer, lambda *a: three(*a, choose=lambda x, scale, n, r: (x, x, -r / (2 * n) * scale)), "The ½ goes: a square has the derivative 2(…)"),
    (ch09.gradient_layer, lambda p, n, r: three(p, n, r, choose=lambda x, scale, n, r: (x, x, -r / p * scale)), "The mean is over the n pairs, not over the p inputs"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: rowwise(-e / 2 - v / 2 + np.log(a[3])) @ m)), "All length scales are equally likely beforehand: no"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: m[np.argmax(e + v)])), "That is the least likely one: mind the sign"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: np.exp(-e / 2 - v / 2) @ m)), "The weights must sum to 1: a softmax"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: rowwise(-e - v / 2) @ m)), "yᵀA⁻¹y has a ½"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: rowwise((-e / 2 - v / 2) / 2) @ m)), "Each term has one ½"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: rowwise(-e / 2 - np.exp(v) / 2) @ m)), "Take log |A|, not |A|"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: rowwise(-e / 2 / len(a[1]) - v / 2 / len(a[1])) @ m)), "The evidence is no mean over pairs"),
    (ch09.unknown_scale, paired(lambda *a: hypotheses(*a, lambda m, e, v: rowwise(-e / 2 - v / 2) @ m ** 2)), "The means are averaged, without squares"),
    (ch09.unknown_scale, paired(lambda q, k, y, scales, noise: gauss(q, k, scales.mean()) @ np.linalg.solve(gauss(k, k, scales.mean()) + noise * noise * np.eye(len(k)), y)), "Average the predictions, not the length scales"),
]  # fmt: skip


def kernel_in_turn(x, y, h, seen):
    s = np.where(seen > 0, -((x[1:, None] - x) ** 2) / (2 * h**2), -np.inf)
    with np.errstate(all="ignore"):
        return rowwise(s) @ y


def in_turn(seen):
    """Answers from the pairs that seen, of the number of pairs, lets each see."""
    return lambda x, y, h: kernel_in_turn(x, y, h, seen(len(x)))


B, T = ch09.bandwidths_of, ch09.mended_in_turn
WRONG += [
    (B, lambda a: ((-2 * a[0, 2]) ** -0.5, a[1, 1] ** -0.5), "return that of x x' first"),
    (B, lambda a: (1 / a[1, 1], (-2 * a[0, 2]) ** -0.5), "in the first, you give 0.25. That is h²"),
    (B, lambda a: (a[1, 1] ** 0.5, (-2 * a[0, 2]) ** -0.5), "in the first, you give 2. That is 1/h"),
    (B, lambda a: (a[1, 1], (-2 * a[0, 2]) ** -0.5), "the entry, 1/h²"),
    (B, lambda a: ((2 * a[1, 1]) ** -0.5, (-2 * a[0, 2]) ** -0.5), "a 2 too many"),
    (B, lambda a: (a[1, 1] ** -0.5, (-a[0, 2]) ** -0.5), "there is a 2."),
    (B, lambda a: (a[1, 1] ** -0.5, (-a[0, 2] / 2) ** -0.5), "on the wrong side"),
    (B, lambda a: (a[1, 1] ** -0.5, (2 * a[0, 2]) ** -0.5), "mind the sign"),
    (B, lambda a: (a[1, 1] ** -0.5, abs(2 * a[2, 0]) ** -0.5), "in the first column"),
    (B, lambda a: (7.0, 7.0), "in the first, you give 7, expected 0.5"),
    (T, in_turn(lambda n: np.tri(n - 1, n, k=1)), "still sees the pair"),
    (T, in_turn(lambda n: np.tri(n - 1, n, k=-1)), "directly before is hidden too"),
    (T, in_turn(lambda n: 1 - np.eye(n - 1, n, k=1)), "but the later ones are not"),
    (T, in_turn(lambda n: np.eye(n - 1, n)), "All before count"),
    (T, in_turn(lambda n: np.ones((n - 1, n))), "Every answer sees every pair"),
    (T, lambda x, y, h: 0 * y[1:], ", expected"),
]  # fmt: skip


def torch_one(distance, value, length_scale, noise):
    import torch

    k = torch.exp(torch.tensor(-0.5 * (distance / length_scale) ** 2))
    return k * value / (1 + noise**2), 1 - k**2 / (1 + noise**2)


def torch_weights(queries, keys, length_scale, noise):
    import torch

    def covariance(x, z):
        return torch.exp(-0.5 * torch.cdist(x[:, None], z[:, None]) ** 2 / length_scale**2)

    noisy = covariance(keys, keys) + noise**2 * torch.eye(len(keys), dtype=keys.dtype)
    return torch.cholesky_solve(covariance(keys, queries), torch.linalg.cholesky(noisy)).T


def jax_error(w, queries, keys, length_scale, noise):
    import jax.numpy as jnp

    x = jnp.concatenate([queries, keys])
    k = jnp.exp(-0.5 * ((x[:, None] - x) / length_scale) ** 2)
    m = queries.shape[0]
    both = jnp.concatenate([-jnp.eye(m), w], axis=1)
    return jnp.einsum("mi,ij,mj->m", both, k, both) + noise**2 * (w**2).sum(1)


def torch_left(keys, values, length_scale, noise):
    import torch

    k = torch.exp(-0.5 * ((keys[:, None] - keys) / length_scale) ** 2)
    a = torch.linalg.inv(k + noise**2 * torch.eye(len(keys)))
    return values - a @ values / a.diagonal(), 1 / a.diagonal()


def torch_mask(n):
    import torch

    i = torch.arange(2 * n)
    pair, place = i < n, i % n
    strict = (place[:, None] > place) & pair
    return strict & (pair[:, None] | ~pair[:, None]) | torch.eye(2 * n, dtype=torch.bool)


def torch_layer(p, n, rate):
    import torch

    x = torch.eye(p + 1)
    x[p, p] = 0
    return x * (rate / n) ** 0.5, -x * (rate / n) ** 0.5, torch.eye(p + 1) - x.abs()


def jax_unknown(queries, keys, values, length_scales, noise):
    import jax
    import jax.numpy as jnp

    def each(scale):
        def k(x):
            return jnp.exp(-0.5 * ((x[:, None] - keys) / scale) ** 2)

        a = k(keys) + noise**2 * jnp.eye(keys.shape[0])
        solved = jnp.linalg.solve(a, values)
        score = -0.5 * (values @ solved + jnp.linalg.slogdet(a)[1])
        between = k(queries)
        variance = 1 - (between * jnp.linalg.solve(a, between.T).T).sum(1)
        return score, between @ solved, variance

    s, m, v = jax.vmap(each)(jnp.asarray(length_scales))
    share = jax.nn.softmax(s)
    return share @ m, share @ v + share @ (m - share @ m) ** 2


RIGHT = [
    (O, one),
    (O, torch_one),
    (P, weights),
    (P, torch_weights),
    (P, lambda *a: weights(*a).astype(np.float32)),
    (E, error),
    (E, jax_error),
    (L, left),
    (L, refits),
    (L, torch_left),
    (M, masked()),
    (M, torch_mask),
    (M, lambda n: masked()(n).astype(int)),
    (G, layer()),
    (G, lambda *a: list(layer()(*a))),
    (G, torch_layer),
    (U, paired(mixed())),
    (U, jax_unknown),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [O, P, E, L, M, G, U])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert repr(verdict).startswith(f"… {check.__name__}: not written yet")


def test_the_weights_of_eleven_keys():
    keys = np.linspace(-1, 1, 11)
    middle, beyond = weights(np.asarray([0, 1.5]), keys, 0.3, 0.2)
    np.testing.assert_allclose(middle[5:8], [0.62, 0.27, -0.09], atol=0.006)
    np.testing.assert_allclose(beyond[-2:], [-0.52, 0.56], atol=0.006)
    np.testing.assert_allclose([middle.sum(), beyond.sum()], [0.99, 0.22], atol=0.006)


def test_with_large_noise_the_weights_in_proportion_are_nadaraya_watsons():
    queries, keys = np.linspace(-1, 1, 3), np.linspace(-1, 1, 5)
    _, expected = nadaraya_watson(
        queries[:, None], keys[:, None], keys[:, None], bandwidth=0.3, return_weights=True
    )
    np.testing.assert_allclose(unit(weights(queries, keys, 0.3, 1e4)), expected, atol=1e-7)


def test_the_best_bandwidths_and_their_distance_from_the_optimum():
    rng = np.random.default_rng(0)
    for n, bandwidth, ratio in ((4, 0.17, 1.6), (16, 0.09, 1.9), (64, 0.06, 2.0)):
        found, best = np.zeros(3), 0.0
        for _ in range(200):
            keys, queries = rng.uniform(-1, 1, n), rng.uniform(-1, 1, 20)
            for i, h in enumerate(bandwidth * np.asarray([0.8, 1, 1.25])):
                score = -0.5 * ((queries[:, None] - keys) / h) ** 2
                w = unit(np.exp(score - score.max(1, keepdims=True)))
                found[i] += error(w, queries, keys, 0.3, 0.2).mean()
            best += least(None, queries, keys, 0.3, 0.2).mean()
        assert found.argmin() == 1
        assert abs(found[1] / best - ratio) < 0.1


def test_left_out_by_the_weight_of_its_own_value():
    rng = np.random.default_rng(1)
    keys, values = rng.uniform(-1, 1, 7), rng.normal(size=7)
    w = weights(keys, keys, 0.4, 0.3)
    mean, _ = left(keys, values, 0.4, 0.3)
    residual = (values - w @ values) / (1 - np.diag(w))
    np.testing.assert_allclose(values - mean, residual, rtol=1e-8)


def test_what_leaks_through_two_layers():
    n = 5
    for pairs, leaks in ((np.tri, False), (ones, True)):
        mask = masked(pairs=pairs)(n).astype(int)
        one_layer, two_layers = mask[n:, :n], (mask @ mask)[n:, :n]
        late = np.triu(np.ones((n, n), dtype=bool))
        assert not one_layer[late].any()
        assert two_layers[late].any() == leaks


def test_layers_are_steps_of_gradient_descent():
    rng = np.random.default_rng(2)
    p, n, rate = 3, 7, 0.3
    tokens = rng.normal(size=(n + 2, p + 1))
    tokens[n:, p] = 0
    x, y, e, beta = tokens[:n, :p], tokens[:n, p].copy(), tokens.copy(), np.zeros(p)
    w_q, w_k, w_v = layer()(p, n, rate)
    for _ in range(4):
        e = e + (e @ w_q.T) @ (e[:n] @ w_k.T).T @ (e[:n] @ w_v.T)
        beta = beta - rate / n * x.T @ (x @ beta - y)
        np.testing.assert_allclose(e[n:, p], -tokens[n:, :p] @ beta, rtol=1e-10)


def test_many_layers_with_a_covariance_are_the_posterior_without_noise():
    rng = np.random.default_rng(3)
    keys, queries, values = np.linspace(-1, 1, 5), rng.uniform(-1, 1, 3), rng.normal(size=5)
    k, among = gauss(queries, keys, 0.3), gauss(keys, keys, 0.3)
    left_over, prediction = values.copy(), np.zeros(3)
    for _ in range(2000):
        prediction = prediction + 0.5 * k @ left_over
        left_over = left_over - 0.5 * among @ left_over
    expected, _ = gaussian_process.posterior(queries, keys, values, length_scale=0.3, noise=0)
    np.testing.assert_allclose(prediction, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (2, [1.12, 1.31, 1.16]),
        (4, [1.15, 1.27, 1.29]),
        (8, [1.10, 1.15, 1.41]),
        (16, [1.11, 1.12, 1.41]),
        (32, [1.04, 1.06, 1.79]),
    ],
)
def test_the_errors_when_nobody_tells_the_length_scale(n, expected):
    rng, count = np.random.default_rng(1), 2000
    true = np.exp(rng.uniform(np.log(0.1), 0, count))
    x = rng.uniform(-1, 1, (count, n + 1))
    f = gaussian_process.draw(x, true, rng)
    y = (f + 0.2 * rng.standard_normal(f.shape))[:, 1:]

    def posterior(scale):
        mean, _ = gaussian_process.posterior(x[:, :1], x[:, 1:], y, length_scale=scale, noise=0.2)
        return mean[:, 0]

    def score(scale):
        a = gaussian_process.covariance(x[:, 1:], x[:, 1:], scale) + 0.04 * np.eye(n)
        fit = np.sum(y * np.linalg.solve(a, y[..., None])[..., 0], axis=1)
        return -0.5 * (fit + np.linalg.slogdet(a)[1])

    each, s = (np.stack([g(scale) for scale in SCALES]) for g in (posterior, score))
    w = np.exp(s - s.max(0))
    average = (w / w.sum(0) * each).sum(0)
    likeliest = each[s.argmax(0), np.arange(count)]
    single = np.mean((each - f[:, 0]) ** 2, axis=1).min()
    told = np.mean((posterior(true) - f[:, 0]) ** 2)
    errors = [np.mean((g - f[:, 0]) ** 2) for g in (average, likeliest)]
    np.testing.assert_allclose(np.asarray([*errors, single]) / told, expected, atol=0.006)
