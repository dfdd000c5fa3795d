"""Chapter 9's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook.kernel import gaussian_process
from attnbook_course.checks import ch09

solved = solutions(9)
one, weights, error = solved.one_pair, solved.posterior_weights, solved.weights_error
left, layer = solved.posterior_left_out, solved.gradient_layer
unknown, bandwidths = solved.unknown_scale, solved.bandwidths_of


def gauss(x, z, scale):
    return np.exp(-0.5 * ((x[:, None] - z) / scale) ** 2)


def torch_one(distance, value, length_scale, noise):
    k = torch.exp(torch.tensor(-0.5 * (distance / length_scale) ** 2))
    return k * value / (1 + noise**2), 1 - k**2 / (1 + noise**2)


def unit(w):
    return w / w.sum(1, keepdims=True)


def torch_weights(queries, keys, length_scale, noise):
    def covariance(x, z):
        return torch.exp(-0.5 * torch.cdist(x[:, None], z[:, None]) ** 2 / length_scale**2)

    among = covariance(keys, keys) + noise**2 * torch.eye(len(keys), dtype=keys.dtype)
    return torch.cholesky_solve(covariance(keys, queries), torch.linalg.cholesky(among)).T


def least(w, queries, keys, scale, noise):
    return 1 - (weights(queries, keys, scale, noise) * gauss(queries, keys, scale)).sum(1)


def jax_error(w, queries, keys, length_scale, noise):
    x = jnp.concatenate([queries, keys])
    k = jnp.exp(-0.5 * ((x[:, None] - x) / length_scale) ** 2)
    both = jnp.concatenate([-jnp.eye(queries.shape[0]), w], axis=1)
    return jnp.einsum("mi,ij,mj->m", both, k, both) + noise**2 * (w**2).sum(1)


def refits(keys, values, scale, noise):
    """Every key in turn left out, and the posterior computed anew; lists of numbers."""
    means, variances = [], []
    for i in range(len(keys)):
        mean, variance = gaussian_process.posterior(
            keys[[i]], np.delete(keys, i), np.delete(values, i), length_scale=scale, noise=noise
        )
        means.append(mean[0])
        variances.append(variance[0] + noise**2)
    return means, variances


def torch_left(keys, values, length_scale, noise):
    k = torch.exp(-0.5 * ((keys[:, None] - keys) / length_scale) ** 2)
    a = torch.linalg.inv(k + noise**2 * torch.eye(len(keys)))
    return values - a @ values / a.diagonal(), 1 / a.diagonal()


def masked(n, pairs=np.tri):
    queries, right = np.tri(n, k=-1), np.zeros((n, n))
    return np.block([[pairs(n), right], [queries, np.eye(n)]]).astype(bool)


def alternate(n):
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    return masked(n)[order][:, order]


def torch_mask(n):
    i = torch.arange(2 * n)
    pair, place = i < n, i % n
    return (place[:, None] > place) & pair | torch.eye(2 * n, dtype=torch.bool)


def torch_layer(p, n, rate):
    x = torch.eye(p + 1)
    x[p, p] = 0
    return x * (rate / n) ** 0.5, -x * (rate / n) ** 0.5, torch.eye(p + 1) - x.abs()


def jax_unknown(queries, keys, values, length_scales, noise):
    def each(scale):
        def k(x):
            return jnp.exp(-0.5 * ((x[:, None] - keys) / scale) ** 2)

        a, between = k(keys) + noise**2 * jnp.eye(keys.shape[0]), k(queries)
        solved = jnp.linalg.solve(a, values)
        score = -0.5 * (values @ solved + jnp.linalg.slogdet(a)[1])
        variance = 1 - (between * jnp.linalg.solve(a, between.T).T).sum(1)
        return score, between @ solved, variance

    s, m, v = jax.vmap(each)(jnp.asarray(length_scales))
    share = jax.nn.softmax(s)
    return share @ m, share @ v + share @ (m - share @ m) ** 2


FAULT = "allowed = np.tri(len(x) - 1, len(x), k=1, dtype=bool)"


def in_turn(line, *others):
    softmax_too = ("def answers", "from attnbook import softmax\n\n\ndef answers")
    return mended(ch09.IN_TURN, "answers_in_turn", softmax_too, (FAULT, line), *others)


EXP = "softmax(np.array(evidence))"
TOO_SMALL = "np.exp(evidence) / (np.exp(evidence).sum())"
RIGHT = {
    "one_pair": [torch_one],
    "posterior_weights": [
        torch_weights,
        lambda *given: weights(*given).astype(np.float32),
    ],
    "weights_error": [jax_error],
    "posterior_left_out": [refits, torch_left],
    "prefix_mask": [masked, torch_mask, lambda n: masked(n).astype(int)],
    "gradient_layer": [torch_layer, lambda *given: list(layer(*given))],
    "unknown_scale": [jax_unknown],
    "mended_in_turn": [in_turn(FAULT.replace("k=1", "k=0")), in_turn("allowed = np.tri(5, 6) > 0")],
}
WRONG = {
    "one_pair": [
        (altered(one, "k * value / (1 + noise**2)", "value"), "That is Nadaraya–Watson"),
        (altered(one, "-0.5 * (", "-("), "there is a 2"),
        (altered(one, "1 - k**2", "1 - k"), "on the left and on the right"),
        (lambda *given: one(*given)[::-1], "the mean first"),
    ],
    "posterior_weights": [
        (lambda *given: unit(weights(*given)), "need not sum to 1"),
        (
            altered(weights, "np.linalg.solve(noisy, between.T).T", "between @ noisy"),
            "multiplied by",
        ),
        (lambda *given: np.maximum(weights(*given), 0), "below 0 are right"),
        (lambda *given: weights(*given).T, "queries are rows"),
    ],
    "weights_error": [
        (altered(error, "2 * np.sum", "np.sum"), "the square has 2ab"),
        (altered(error, " + noise**2 * np.eye(len(keys))", ""), "noise of the"),
        (least, "use the weights given"),
        (lambda *given: error(*given).mean(), "shape (): one error"),
    ],
    "posterior_left_out": [
        (altered(left, "return values - ", "return "), "not the prediction"),
        (altered(left, " * variance", ""), "Divide by the diagonal"),
        (altered(left, ", variance", ", 1 / variance"), "Turn it over"),
        (lambda *given: left(*given)[::-1], "the mean first"),
    ],
    "prefix_mask": [
        (altered(masked, "np.tri(n, k=-1)", "np.tri(n)"), "that pair holds the answer"),
        (lambda n: masked(n, lambda n: np.ones((n, n))), "with it its answer"),
        (altered(masked, "np.eye(n)", "np.tri(n)"), "to another one"),
        (altered(masked, "np.zeros((n, n))", "np.eye(n)"), "a pair attends to a query"),
        (lambda n: ~masked(n), "the other way round"),
        (lambda n: masked(n).T, "It is transposed"),
        (alternate, "first come all pairs"),
        (lambda n: np.where(masked(n), 0, -np.inf), "neither True nor False"),
        (np.tri, "are 10 tokens"),
    ],
    "gradient_layer": [
        (altered(layer, "-rate", "rate"), "The sign"),
        (altered(layer, " / n", ""), "divide by n"),
        (altered(layer, "-rate / n", "-0.123"), "That is 2.05 times one step"),
        (lambda p, *more: layer(p, *more) * np.append(1, p * [2]), "no multiple of a step"),
        (altered(layer, "* last]", "* (x + last)]"), "changes x"),
        (altered(layer, "[x, x,", "[x + last, x + last,"), "may not contain y"),
        (altered(layer, "[x, x,", "[x + last, x - last,"), "The queries are right"),
        (lambda *given: layer(*given)[1:], "expected three matrices"),
    ],
    "unknown_scale": [
        (altered(unknown, " + np.linalg.slogdet(noisy)[1]", ""), "every short scale"),
        (altered(unknown, EXP, "np.array(evidence) / np.sum(evidence)"), "take exp"),
        (altered(unknown, "mean = share @ means", "mean = means"), "average over the length"),
        (altered(unknown, EXP, TOO_SMALL), "underflow to 0"),
        (altered(unknown, EXP, f"{TOO_SMALL[:-1]} + 1e-300)"), "exponentials underflow?"),
        (altered(unknown, EXP, "np.exp(evidence)"), "The weights must sum to 1"),
        (altered(unknown, " + share @ (means - mean) ** 2", ""), "means differ too"),
    ],
    "bandwidths_of": [
        (altered(bandwidths, "form[1, 1] ** -0.5", "1 / form[1, 1]"), "That is h²"),
        (altered(bandwidths, "-2 * form", "-form"), "there is a 2."),
        (altered(bandwidths, "-2 * form", "2 * form"), "mind the sign"),
        (lambda form: bandwidths(form)[::-1], "return that of x x' first"),
    ],
    "mended_in_turn": [
        (in_turn(FAULT.replace("k=1", "k=-1")), "directly before is hidden too"),
        (in_turn("allowed = np.eye(len(x) - 1, len(x), dtype=bool)"), "All before count"),
        (in_turn(f"{FAULT} | True"), "Every answer sees every pair"),
    ],
}
