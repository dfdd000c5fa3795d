"""Chapter 9's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, solutions

solved = solutions(9)
one, weights, error = solved.one_pair, solved.posterior_weights, solved.weights_error
left, layer = solved.posterior_left_out, solved.gradient_layer
unknown, bandwidths = solved.unknown_scale, solved.bandwidths_of


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


def jax_error(w, queries, keys, length_scale, noise):
    x = jnp.concatenate([queries, keys])
    k = jnp.exp(-0.5 * ((x[:, None] - x) / length_scale) ** 2)
    both = jnp.concatenate([-jnp.eye(queries.shape[0]), w], axis=1)
    return jnp.einsum("mi,ij,mj->m", both, k, both) + noise**2 * (w**2).sum(1)


def masked(n, pairs=np.tri):
    queries, right = np.tri(n, k=-1), np.zeros((n, n))
    return np.block([[pairs(n), right], [queries, np.eye(n)]]).astype(bool)


def alternate(n):
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    return masked(n)[order][:, order]


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


EXP = "softmax(np.array(evidence))"
TOO_SMALL = "np.exp(evidence) / (np.exp(evidence).sum())"
RIGHT = {
    "one_pair": [torch_one],
    "posterior_weights": [torch_weights],
    "weights_error": [jax_error],
    "unknown_scale": [jax_unknown],
}
WRONG = {
    "one_pair": [(lambda *given: one(*given)[::-1], "the mean first")],
    "posterior_weights": [(lambda *given: unit(weights(*given)), "need not sum to 1")],
    "posterior_left_out": [(lambda *given: left(*given)[::-1], "the mean first")],
    "prefix_mask": [
        (altered(masked, "np.zeros((n, n))", "np.eye(n)"), "a pair attends to a query"),
        (lambda n: ~masked(n), "the other way round"),
        (alternate, "first come all pairs"),
        (lambda n: np.where(masked(n), 0, -np.inf), "neither True nor False"),
        (np.tri, "are 10 tokens"),
    ],
    "gradient_layer": [
        (altered(layer, "-rate / n", "-0.123"), "That is 2.05 times one step"),
        (altered(layer, "[x, x,", "[x + last, x - last,"), "The queries are right"),
        (altered(layer, "* last]", "* (x + last)]"), "changes x"),
        (lambda *given: layer(*given)[1:], "expected three matrices"),
    ],
    "unknown_scale": [
        (altered(unknown, EXP, TOO_SMALL), "underflow to 0"),
        (altered(unknown, EXP, f"{TOO_SMALL[:-1]} + 1e-300)"), "exponentials underflow?"),
    ],
    "bandwidths_of": [(lambda form: bandwidths(form)[::-1], "return that of x x' first")],
}
