"""Chapter 9's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import torch
from mending import altered, solutions

solved = solutions(9)
one, weights, error = solved.one_pair, solved.posterior_weights, solved.weights_error
left, layer = solved.posterior_left_out, solved.gradient_layer
unknown, BUILT = solved.unknown_scale, solved.train_form


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


EARLIER, OF_GAIN = (
    "np.tri(values.shape[1], dtype=bool)",
    "gain - rate * (of_answers * averages).sum()",
)
HALVES = "features[:, 1:], features[:, :-1]  #", "values, targets = y[:, :-1], y[:, 1:]"
WITH_OWN = f"np.tri({EARLIER[7:22]}"


def trained_by_torch(x, y, start, rate, steps):
    z = torch.stack([torch.ones_like(x), x, x**2], -1)
    hidden = torch.ones(x.shape[1] - 1, x.shape[1] - 1, dtype=torch.bool).triu(1)
    form, gain = start.clone().requires_grad_(), torch.ones((), dtype=x.dtype, requires_grad=True)
    for _ in range(steps):
        s = torch.einsum("mqa,ab,mkb->mqk", z[:, 1:], form, z[:, :-1])
        w = s.masked_fill(hidden, -torch.inf).softmax(-1)
        loss = (gain * (w @ y[:, :-1, None])[..., 0] - y[:, 1:]).square().mean()
        loss.backward()
        with torch.no_grad():
            for part in (form, gain):
                part -= rate * part.grad
                part.grad = None
    return form, gain


@jax.jit
def step_by_jax(x, y, form, gain, rate):
    def loss(form, gain):
        z = jnp.stack([jnp.ones_like(x), x, x**2], axis=-1)
        s = z[:, 1:] @ form @ z[:, :-1].mT
        w = jax.nn.softmax(s, where=jnp.tri(s.shape[1], dtype=bool))
        return jnp.mean((gain * (w @ y[:, :-1, None])[..., 0] - y[:, 1:]) ** 2)

    of_form, of_gain = jax.grad(loss, (0, 1))(form, gain)
    return form - rate * of_form, gain - rate * of_gain


def trained_by_jax(x, y, start, rate, steps):
    form, gain = jnp.asarray(start), jnp.ones(())
    for _ in range(steps):
        form, gain = step_by_jax(x, y, form, gain, rate)
    return form, gain


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
    "train_form": [trained_by_torch, trained_by_jax],
    "one_pair": [torch_one],
    "posterior_weights": [torch_weights],
    "weights_error": [jax_error],
    "unknown_scale": [jax_unknown],
}
WRONG = {
    "train_form": [
        (altered(BUILT, "shape[1], dtype", "shape[1], k=1, dtype"), "one too far: among"),
        (
            altered(
                BUILT,
                "features[:, :-1]",
                "features",
                "y[:, :-1], y",
                "y, y",
                EARLIER,
                "np.tri(x.shape[1] - 1, x.shape[1], k=1, dtype=bool)",
            ),
            "sees its own y",
        ),
        (
            altered(BUILT, EARLIER, "np.tri(values.shape[1], k=-1, dtype=bool)"),
            "sees no pair at all",
        ),
        (altered(BUILT, EARLIER, "True"), "the mask is missing"),
        (altered(BUILT, "2 * (gain", "(gain"), "has a factor 2"),
        (altered(BUILT, " / targets.size", ""), "a sum over functions and queries"),
        (
            altered(BUILT, "form - rate", "form + rate", "gain - rate", "gain + rate"),
            "walks uphill",
        ),
        (altered(BUILT, "range(steps)", "range(1, steps)"), "The form has not moved"),
        (altered(BUILT, OF_GAIN, "gain"), "The gain does not learn"),
        (altered(BUILT, "gain * of_answers", "of_answers"), "lacks the gain"),
        (
            altered(BUILT, "weights * apart", "weights * values[:, None, :]"),
            "a sum that moves as well",
        ),
        (
            altered(
                BUILT,
                "form @ keys",
                "form.T @ keys",
                "(queries.swapaxes(1, 2) @ of_scores @ keys).sum(axis=0)",
                "(queries.swapaxes(1, 2) @ of_scores @ keys).sum(axis=0).T",
            ),
            "The form is turned",
        ),
        (altered(BUILT, "s - s.max(axis=2, keepdims=True)", "s"), "Exponentials overflow"),
        (
            altered(BUILT, "form = form - rate * of_form", "form -= rate * of_form"),
            "writes into its caller's start",
        ),
        (
            altered(
                BUILT,
                "form - rate * of_form",
                "form - rate * of_form",
                "return form, gain",
                "return gain, form",
            ),
            "return the form first",
        ),
    ],
    "one_pair": [(lambda *given: one(*given)[::-1], "the mean first")],
    "posterior_weights": [(lambda *given: unit(weights(*given)), "need not sum to 1")],
    "posterior_left_out": [(lambda *given: left(*given)[::-1], "the mean first")],
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
}
