"""Chapter 7's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch07

solved = solutions(7)
BUILT, written = solved.block, solved.logit_parts
variance, stream = solved.dropout_variance, solved.stream_parts


def even(e, f):
    """Multiplications per token: the matrices' by those of a pair."""
    return (4 * e * e + 2 * e * f) / (2 * e)


ATTEND = "x + multi_head(z, w_q, w_k, w_v, w_o, num_heads, mask)"
READ, ADD = 'normed(x, weights["norm_2"])', "x + hidden"
ROOT, MLP = "(variance + 1e-5) ** 0.5", f"hidden = np.maximum(0, {READ}"


def block_by_torch(x, weights, num_heads, mask=None):
    """torch.nn's own layer, with the mask turned over."""
    layer = torch.nn.TransformerEncoderLayer(
        len(x[0]), num_heads, len(weights["w_1"]), 0.0, norm_first=True, bias=False, dtype=x.dtype
    )
    w_q, w_k, w_v, *others = (weights[f"w_{name}"] for name in "qkvo12")
    own = layer.self_attn.out_proj, layer.linear1, layer.linear2, layer.norm1, layer.norm2
    layer.self_attn.in_proj_weight.data = torch.cat([w_q, w_k, w_v])
    for part, weight in zip(own, [*others, weights["norm_1"], weights["norm_2"]], strict=True):
        part.weight.data = weight
    return layer(x, None if mask is None else ~mask)


@jax.numpy_dtype_promotion("standard")  # other tests are strict
def block_by_jax(x, weights, num_heads, mask=None):
    def normed(z, name):
        return weights[name] * jax.nn.standardize(z, epsilon=1e-5)

    def split(z, name):
        return (z @ weights[name].T).reshape(1, len(z), num_heads, -1)

    z, mask = normed(jnp.asarray(x), "norm_1"), None if mask is None else mask[None, None]
    q, k, v = (split(z, name) for name in ("w_q", "w_k", "w_v"))
    x = x + jax.nn.dot_product_attention(q, k, v, mask=mask).reshape(z.shape) @ weights["w_o"].T
    return x + jax.nn.relu(normed(x, "norm_2") @ weights["w_1"].T) @ weights["w_2"].T


OLD, FIRST = "x = normed + change", "change = part(normed)"


def stacking(line, old=OLD):
    """The broken stack with one of its lines changed."""
    return mended(ch07.PRE_NORM_STACK, "pre_norm_stack", (old, line))


def torch_written(parts, g, b, w, c):
    """By a matrix that takes the mean away."""
    centre = torch.eye(len(g), dtype=parts.dtype) - 1 / len(g)
    s = torch.sqrt(parts.sum(0).var(correction=0) + 1e-5)
    return parts @ centre @ (w * g).T / s, torch.nn.functional.linear(b, w, c)


def jax_variance(w, x, p):
    return p / (1 - p) * jnp.sum(jnp.square(w * x), axis=1)


def torch_stream(x, weights, placement):
    """Every part divided on its own, by the norm of the sum."""
    found = [x]
    for w in weights:
        now = torch.stack(found).sum(0)
        read = now / now.square().mean(-1, keepdim=True).sqrt() if placement == "pre" else now
        found.append(read @ w.T)
        scale = torch.stack(found).sum(0).square().mean(-1, keepdim=True).sqrt()
        found = [f / scale if placement == "post" else f for f in found]
    return torch.stack(found)


def block(sums, own=40.0, near=20.0):
    n = len(sums)
    scores = own * n * (sums != 1) + near * np.arange(n)
    scores = np.where(np.tri(n, k=-1, dtype=bool), scores, -np.inf)
    scores[0, 0] = 0
    w = np.exp(scores - scores.max(1, keepdims=True))
    w /= w.sum(1, keepdims=True)
    u = sums + w @ (sums == 2)
    return w, np.maximum(0, u) - 2 * np.maximum(0, u - 1) + 2 * np.maximum(0, u - 2)


def loop_block(sums):
    """Weights by search, digits by counting on."""
    w, digits, carry = np.zeros((len(sums), len(sums))), [], 0
    for i, s in enumerate(sums):
        below = [j for j in range(i) if sums[j] != 1]
        w[i, below[-1] if below else 0] = 1
        digits.append((s + carry) % 2)
        carry = (s + carry) // 2
    return w, digits


SPREAD, MEAN = "np.var(np.sum(parts, axis=0))", " - np.mean(parts, axis=1, keepdims=True)"
RIGHT = {
    "block": [block_by_torch, block_by_jax],
    "even_length": [even],
    "logit_parts": [torch_written],
    "dropout_variance": [jax_variance],
    "stream_parts": [torch_stream],
}
WRONG = {
    "block": [
        (altered(BUILT, ATTEND, "z" + ATTEND[1:]), "starts at the normed stream"),
        (altered(BUILT, READ, "(x := " + READ + ")"), "starts at the normed stream"),
        (altered(BUILT, "x = " + ATTEND, "y = " + ATTEND), "Attention is missing"),
        (altered(BUILT, "x = " + ATTEND, "y = " + ATTEND, ADD, "y + hidden"), "reads the old x"),
        (altered(BUILT, READ, "z"), "reads the first norm's output"),
        (altered(BUILT, '(x, weights["norm_2"]) @', "(x, 1) @"), "norm_2"),
        (
            altered(
                BUILT,
                "x.mean(axis=-1,",
                "x.mean(axis=0,",
                "**2).mean(axis=-1,",
                "**2).mean(axis=0,",
            ),
            "runs over the tokens",
        ),
        (
            altered(BUILT, "(centred**2).mean(axis=-1, ", "x.var(axis=-1, ddof=1, "),
            "divides by e − 1",
        ),
        (altered(BUILT, ROOT, "(variance**0.5 + 1e-5)"), "ε is added to the root"),
        (altered(BUILT, ROOT, "variance**0.5"), "ε is missing"),
        (altered(BUILT, READ, "x"), "The second norm is missing"),
        (altered(BUILT, 'z = normed(x, weights["norm_1"])', "z = x"), "The first norm is missing"),
        (
            altered(
                BUILT,
                "x = " + ATTEND,
                f"x = normed({ATTEND.replace('(z', '(x')}, weights['norm_1'])",
                READ,
                "x",
                "return " + ADD + ' @ weights["w_2"].T',
                f"return normed({ADD} @ weights['w_2'].T, weights['norm_2'])",
            ),
            "That is post-norm",
        ),
        (altered(BUILT, "x = " + ATTEND, "x += " + ATTEND[4:]), "writes into its caller's x"),
        (
            altered(BUILT, "(weights[name] for", "(weights.pop(name) for"),
            "into its caller's weights",
        ),
        (altered(BUILT, ", mask)", ")"), "The mask has no effect"),
        (altered(BUILT, "np.maximum(0, ", "("), "The activation is missing"),
        (lambda x, weights, num_heads, mask=None: weights["w_3"], "KeyError"),
    ],
    "pre_norm_stack": [
        (stacking("change = x - normed + part(normed)", FIRST), "the faulty line still stands")
    ],
    "logit_parts": [
        (
            altered(written, "return (centred", "return sum(centred"),
            "shapes (2,) and (2,), expected",
        )
    ],
    "stream_parts": [
        (lambda *given: stream(*given)[1:], "The embedding is a part too"),
        (lambda *given: stream(*given).sum(0), "Return parts, not a sum"),
    ],
    "add_by_block": [
        (altered(block, "20.0", "0.5"), "of its weight to the last sum before it"),
        (altered(block, "k=-1", "k=1"), "a place looks at a higher one"),
        (altered(loop_block, "] = 1\n", "] = -1\n"), "not below 0 and sum to 1"),
        (altered(loop_block, "return w", "return sums"), "shapes (8,) and (8,), expected (8, 8)"),
        (altered(loop_block, "return w", "return np.eye(len(w))"), "do not find the carries"),
    ],
}
