"""Chapter 7's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from mending import mended

from attnbook.course.checks import ch07
from attnbook.layers import norms


def width(e, f, *, plain=1, gate=1, out=0):
    return (f * (2 * e + plain) + out * e) / (3 * e + 1 + gate)


def jacobian(x, *, mean=1, spread=1, last=None, eps=1e-5, power=1, divide=True):
    """The right answer, and its neighbours, by its three terms."""
    e, s = len(x), np.sqrt(np.var(x) + eps)
    y = (x - x.mean()) / s if last is None else last(x)
    second, third = mean / e, spread * np.outer(y, y) / (e if divide else 1)
    return (np.eye(e) - second - third) / s**power


def differences(x):
    """By central differences of the package's layer norm."""
    step = 1e-6 * np.std(x) * np.eye(len(x))
    return (norms.layer_norm(x + step) - norms.layer_norm(x - step)).T / (2 * step[0, 0])


def fold(g, b, w, c):
    return w * g, w @ b + c


def written(change=None, scale=None, centre=True, rest=None):
    """The right answer, and its neighbours, by what is done to the parts."""

    def answer(parts, g, b, w, c):
        s = np.sqrt(np.var(parts.sum(0)) + 1e-5) if scale is None else scale(parts)
        own = (parts - parts.mean(1, keepdims=True) if centre else parts) / s * g
        own = own if change is None else change(own, g, b, s)
        return own @ w.T, w @ b + c if rest is None else rest(g, b, w, c)

    return answer


def rms(parts):
    return np.sqrt(np.mean(parts.sum(0) ** 2) + 1e-5)


def variance(w, x, p):
    return p / (1 - p) * (w**2 @ x**2)


def size(x):
    return np.sqrt(np.mean(x**2, -1, keepdims=True))


def stream(x, weights, placement):
    parts = [x]
    for w in weights:
        now = sum(parts)
        if placement == "pre":
            parts.append(now / size(now) @ w.T)
        else:
            parts.append(now @ w.T)
            parts = [p / size(sum(parts)) for p in parts]
    return np.stack(parts)


def streams(x, weights, placement):
    """The stream after each layer."""
    found = [x]
    for i in range(len(weights)):
        found.append(stream(x, weights[: i + 1], placement).sum(0))
    return np.stack(found)


def as_given(x, weights, placement):
    """What the layers gave, as no later norm divides it."""
    before = streams(x, weights, placement)[:-1]
    read = before / size(before) if placement == "pre" else before
    return np.concatenate([x[None], read @ weights.mT])


def newest_alone(x, weights, placement):
    """A norm that divides what was just added."""
    found = as_given(x, weights, placement)
    if placement == "post":
        found[1:] /= size(streams(x, weights, placement)[:-1] + found[1:])
    return found


def read_as_it_is(x, weights, placement):
    if placement == "post":
        return stream(x, weights, placement)
    parts = [x]
    for w in weights:
        parts.append(sum(parts) @ w.T)
    return np.stack(parts)


def sum_of_normed(x, weights, placement):
    if placement == "post":
        return stream(x, weights, placement)
    parts = [x]
    for w in weights:
        scale = size(sum(parts))
        parts = [p / scale for p in parts]
        parts.append(sum(parts) @ w.T)
    return np.stack(parts)


def last_norm(x, weights, placement):
    parts = stream(x, weights, placement)
    return parts / size(parts.sum(0))


def one_size(x, weights, placement):
    """One norm for all tokens together, by a token of all their numbers."""
    n, e = x.shape
    large = np.stack([np.kron(np.eye(n), w) for w in weights])
    return stream(x.reshape(1, -1), large, placement).reshape(-1, n, e)


def teeth(u):
    return np.maximum(0, u) - 2 * np.maximum(0, u - 1) + 2 * np.maximum(0, u - 2)


def block(own=40.0, near=20.0, reach=-1, digit=teeth, keys=lambda s: s != 1):
    """The right answer, and its neighbours: scores, mask and MLP."""

    def answer(sums):
        n = len(sums)
        scores = own * n * keys(sums) + near * np.arange(n)
        scores = np.where(np.tri(n, k=reach, dtype=bool), scores + np.zeros((n, 1)), -np.inf)
        scores[0, 0] = 0
        w = np.exp(scores - scores.max(1, keepdims=True))
        w /= w.sum(1, keepdims=True)
        u = sums + w @ (sums == 2)
        return w, digit(u)

    return answer


def loop_block(sums):
    """Weights by search, digits by counting on."""
    w, digits, carry = np.zeros((len(sums), len(sums))), [], 0
    for i, s in enumerate(sums):
        below = [j for j in range(i) if sums[j] != 1]
        w[i, below[-1] if below else 0] = 1
        digits.append((s + carry) % 2)
        carry = (s + carry) // 2
    return w, digits


def up_down(u):
    return np.maximum(0, u) - 2 * np.maximum(0, u - 1)


def up_down_flat(u):
    return up_down(u) + np.maximum(0, u - 2)


def negative(sums):
    return -loop_block(sums)[0], loop_block(sums)[1]


W, J, F, D = ch07.swiglu_width, ch07.norm_jacobian, ch07.folded, ch07.dropout_variance
L, S, A = ch07.logit_parts, ch07.stream_parts, ch07.add_by_block
right_parts = written()
WRONG = [
    (W, lambda e, f: 2 * f / 3, "without biases, or for a width"),
    (W, lambda e, f: f * (3 * e + 2) / (2 * e + 1), "the narrower one"),
    (W, lambda e, f: f, "a third matrix"),
    (W, lambda e, f: 8 * e / 3, "mlp_dim = 4 e"),
    (W, lambda e, f: width(e, f, gate=0), "The gate has biases too"),
    (W, lambda e, f: width(e, f, plain=0), "in its hidden layer too"),
    (W, lambda e, f: width(e, f, out=1), "The output layer of SwiGLU"),
    (W, lambda e, f: 2 * e * f + f + e, "These are the parameters"),
    (W, lambda e, f: round(width(e, f)), "Do not round"),
    (W, lambda e, f: e, "you give 7, expected a larger number"),
    (J, lambda x: jacobian(x, spread=0), "You hold √(var + ε) fixed"),
    (J, lambda x: jacobian(x, mean=0), "The mean changes with x too"),
    (J, lambda x: jacobian(x, mean=0, spread=0), "Mean and variance change"),
    (J, lambda x: jacobian(x, power=0), "The division by √(var + ε) is missing"),
    (J, lambda x: jacobian(x, divide=False), "divide by e"),
    (J, lambda x: jacobian(x, last=lambda x: x - x.mean()), "The last term has y"),
    (J, lambda x: np.diag(np.diag(jacobian(x))), "Off the diagonal"),
    (J, lambda x: jacobian(x, eps=0), "The ε is missing"),
    (J, lambda x: np.diag(jacobian(x)), "each output depends on each entry"),
    (J, lambda x: jacobian(x, spread=-1), "The sign of the last term"),
    (F, lambda g, b, w, c: (w * g, c), "arrives there too"),
    (F, lambda g, b, w, c: (w * g, w @ b), "The layer's own bias"),
    (F, lambda g, b, w, c: (w * g, b + c), "goes through the linear layer: multiply"),
    (F, lambda g, b, w, c: (w * g, (w * g) @ b + c), "does not act on the norm's bias"),
    (F, lambda g, b, w, c: (w * g, b @ w + c), "from the left"),
    (F, lambda g, b, w, c: (w, w @ b + c), "The norm's weight is missing"),
    (F, lambda g, b, w, c: (w / g, w @ b + c), "Multiply by the norm's weight"),
    (F, lambda g, b, w, c: (w * g[: len(w), None], w @ b + c), "a column, not a row"),
    (F, lambda g, b, w, c: ((w * g).T, w @ b + c), "It is transposed"),
    (F, lambda g, b, w, c: (g, w @ b + c), "a weight of shape (5,)"),
    (F, lambda g, b, w, c: (-w * g, w @ b + c), ", expected"),
    (F, lambda g, b, w, c: w * g, "two arrays"),
    (L, written(rest=lambda g, b, w, c: c), "comes from no part either: its logits"),
    (L, written(rest=lambda g, b, w, c: w @ b), "The readout's bias comes from no part"),
    (L, written(rest=lambda g, b, w, c: w @ (g * b) + c), "does not act on the norm's bias"),
    (L, lambda *a: (right_parts(*a)[0], sum(right_parts(*a)[0]) + right_parts(*a)[1]),
     "These are all logits"),
    (L, written(scale=lambda p: np.sqrt(p.var(1, keepdims=True) + 1e-5)), "Each part by its own"),
    (L, written(centre=False), "The norm takes the mean away"),
    (L, written(lambda own, g, b, s: own / g), "The norm's weight is missing"),
    (L, written(scale=lambda p: 1), "of the stream is missing"),
    (L, lambda p, g, b, w, c: (p @ w.T, w @ b + c), "The norm is missing"),
    (L, written(scale=rms), "around its mean"),
    (L, written(scale=rms, centre=False), "That is RMS norm"),
    (L, written(lambda own, g, b, s: own + b), "Only one norm's bias"),
    (L, lambda *a: (right_parts(*a)[0] + 1, right_parts(*a)[1]), "added once"),
    (L, lambda *a: (sum(right_parts(*a)[0]), right_parts(*a)[1]), "shapes (2,) and (2,), expected"),
    (L, written(lambda own, g, b, s: -own), ", expected"),
    (D, lambda w, x, p: (1 - p) ** 2 * variance(w, x, p), "What stays is divided by 1 − p."),
    (D, lambda w, x, p: variance(w, x, 1 - p), "not the share that stays"),
    (D, lambda w, x, p: p / (1 - p) * (w @ x) ** 2, "its own coin"),
    (D, lambda w, x, p: variance(w, x, p) / (1 - p), "The variance of a coin"),
    (D, lambda w, x, p: variance(w, x, p) / p, "take off the squared mean"),
    (D, lambda w, x, p: p * (w**2 @ x**2), "its square by (1 − p)²"),
    (D, lambda w, x, p: variance(w, x, p) ** 0.5, "the standard deviation"),
    (D, lambda w, x, p: p / (1 - p) * (w @ x**2), "A weight multiplies"),
    (D, lambda w, x, p: p / (1 - p) * (w**2 @ x), "An input multiplies"),
    (D, lambda w, x, p: variance(w, x, p).sum(), "you give one number"),
    (D, lambda w, x, p: 0 * variance(w, x, p), "you give 0, expected"),
    (S, lambda x, w, p: stream(x, w, "pre"), "That is 'pre'"),
    (S, lambda x, w, p: stream(x, w, "post"), "That is 'post'"),
    (S, streams, "the stream after each layer"),
    (S, as_given, "by then"),
    (S, newest_alone, "divides the earlier parts too"),
    (S, read_as_it_is, "A layer reads the normed stream"),
    (S, sum_of_normed, "for the layer alone"),
    (S, lambda x, w, p: stream(x, w.mT, p), "multiply by w.T"),
    (S, last_norm, "no norm at the end"),
    (S, one_size, "by its own size"),
    (S, lambda *a: stream(*a)[1:], "The embedding is a part too"),
    (S, lambda *a: stream(*a).sum(0), "Return parts, not a sum"),
    (S, lambda *a: -stream(*a), ", expected"),
    (A, block(digit=lambda u: u), "2 and 3 are no digits"),
    (A, block(digit=lambda u: np.minimum(u, 1)), "must come down again"),
    (A, block(digit=up_down), "and leave a 1 in the place"),
    (A, block(digit=up_down_flat), "and leave a 1 in the place"),
    (A, lambda s: (loop_block(s)[0], s % 2), "Nothing is carried"),
    (A, lambda s: (loop_block(s)[0], s), "These are the sums"),
    (A, lambda s: (loop_block(s)[0], (s + loop_block(s)[1]) % 2), "These are the carries"),
    (A, block(own=0), "passes on through places"),
    (A, block(reach=0), "A place looks at itself"),
    (A, block(near=0), "of its weight to the last sum before it"),
    (A, block(near=0.5), "of its weight to the last sum before it"),
    (A, block(near=-20.0), "Nothing is carried. A place gives 0.00 of its weight to the last sum before it"),
    (A, block(reach=1), "a place looks at a higher one"),
    (A, negative, "not below 0 and sum to 1"),
    (A, lambda s: (np.tri(len(s), k=-1), s), "not below 0 and sum to 1"),
    (A, lambda s: (0 * s, s), "shapes (8,) and (8,), expected (8, 8)"),
    (A, lambda s: (loop_block(s)[0], 1 - np.asarray(loop_block(s)[1])), "in entry [0], counted from 0, you give 1, expected 0"),
    (A, lambda s: loop_block(s)[1], "two arrays"),
]  # fmt: skip


def own_norm(x, mean=1, spread=1, eps=1e-5):
    e, s = len(x), np.sqrt(x.var() + eps)
    y = (x - x.mean()) / s
    return (np.eye(e) - mean / e - spread * np.outer(y, y) / e) / s


def logits_of(parts, g, b, w, c, normed):
    total = parts.sum(0)
    s = np.sqrt(total.var() + 1e-5)
    return normed(parts, total, s) * g @ w.T, w @ b + c


def streamed(x, weights, placement, norm=size):
    parts = [x]
    for w in weights:
        now = sum(parts)
        if placement == "pre":
            parts.append(now / norm(now) @ w.T)
        else:
            parts.append(now @ w.T)
            scale = norm(sum(parts))
            parts = [part / scale for part in parts]
    return np.stack(parts)


def reads_embedding(x, weights, placement):
    return np.stack([x] + [x @ w.T for w in weights])


def adds(s, digit):
    w, digits = loop_block(s)
    carry = (s + np.asarray(digits)) % 2
    return w, np.asarray([digit(a, b) for a, b in zip(s, carry, strict=True)])


WRONG += [
    (ch07.norm_jacobian, lambda x: own_norm(x) / np.sqrt(x.var() + 1e-05), "One division by √(var + ε) too many"),
    (ch07.norm_jacobian, lambda x: own_norm(x, spread=2), "The 2 of the square meets the ½ of the root"),
    (ch07.norm_jacobian, lambda x: own_norm(x, mean=len(x)), "The mean has the derivative 1/e"),
    (ch07.norm_jacobian, lambda x: own_norm(x, spread=0.5), "The 2 of the square meets the ½ of the root"),
    (ch07.norm_jacobian, lambda x: -own_norm(x), "The sign is turned"),
    (ch07.norm_jacobian, lambda x: own_norm(x) * np.sqrt(x.var() + 1e-05) ** 2, "You multiply by √(var + ε): divide"),
    (ch07.folded, lambda g, b, w, c: (w * g, w @ (b / g) + c), "The norm's bias is added after g: leave g out"),
    (ch07.folded, lambda g, b, w, c: (w + g, w @ b + c), "The norm's weight multiplies"),
    (ch07.folded, lambda g, b, w, c: (w * g, c + b.sum()), "The norm's bias goes through the weight"),
    (ch07.folded, lambda g, b, w, c: (w * g ** 2, w @ b + c), "g is in it once, not squared"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - total.mean()) / s), "Each part takes off its own mean: these take off that of"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - total.mean() / len(parts)) / s), "Each part takes off its own mean"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean()) / s), "Each part takes off its own mean"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(0)) / s), "The mean is over the entries of a part"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / s ** 2), "Divide by the root: √(var + ε)"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / parts.std()), "The norm divides by the size of the sum"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / np.sqrt(total.var(ddof=1) + 1e-05)), "The variance divides by e"),
    (ch07.logit_parts, lambda parts, g, b, w, c: logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / total.std()), "The ε is missing"),
    (ch07.logit_parts, lambda parts, g, b, w, c: (logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / s)[0], 0 * c), "Both biases come from no part: their logits are the rest"),
    (ch07.logit_parts, lambda parts, g, b, w, c: (logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / s)[0] + (w @ b + c) / len(parts), 0 * c), "Both biases come from no part: their logits are the rest"),
    (ch07.logit_parts, lambda parts, g, b, w, c: (logits_of(parts, g, b, w, c, lambda parts, total, s: (parts - parts.mean(1, keepdims=True)) / s)[0], (w @ b + c) / len(parts)), "The rest is there once: do not divide it among the parts"),
    (ch07.dropout_variance, lambda w, x, p: w @ x, "That is the mean: which spread is around it?"),
    (ch07.dropout_variance, lambda w, x, p: p / (1 - p) * (w ** 2 @ x) ** 2, "Square each input, then add up"),
    (ch07.dropout_variance, lambda w, x, p: p / (1 - p) * (w ** 2 @ x ** 2) / len(x), "Variances add up: no mean over the inputs"),
    (ch07.dropout_variance, lambda w, x, p: (1 / (1 - p) - 1) * (w ** 2 @ x ** 2) * 2, "There is no 2: p/(1 − p) is the variance of one coin"),
    (ch07.dropout_variance, lambda w, x, p: w ** 2 @ x ** 2 * (1 - p), "p is the share left out, and what stays is divided"),
    (ch07.dropout_variance, lambda w, x, p: p ** 2 / (1 - p) ** 2 * (w ** 2 @ x ** 2), "p/(1 − p) is a variance already: no square"),
    (ch07.dropout_variance, lambda w, x, p: p / (1 - p) * (w @ x), "Squares: weight and input are squared in a variance"),
    (ch07.stream_parts, reads_embedding, "A layer reads the stream so far, not the embedding"),
    (ch07.stream_parts, lambda *a: streamed(*a, norm=lambda y: np.linalg.norm(y, axis=-1, keepdims=True)), "N has the root of a mean: yours is that of a sum"),
    (ch07.stream_parts, lambda *a: streamed(*a, norm=lambda y: y.std(-1, keepdims=True)), "N takes no mean away: divide by the root alone"),
    (ch07.stream_parts, lambda *a: streamed(*a, norm=lambda y: np.mean(y ** 2, -1, keepdims=True)), "The root is missing in the norm"),
    (ch07.stream_parts, lambda *a: streamed(*a)[::-1], "The embedding's part is the first"),
    (ch07.stream_parts, lambda *a: streamed(*a) / streamed(*a).sum(0), "These are shares: return the parts themselves"),
    (ch07.add_by_block, lambda s: (np.eye(len(s)), adds(s, lambda a, b: (a + b) % 2)[1]), "for 8 places, sums 0, 0, 1, 2, 1, 1, 0, 2, the digits are"),
    (ch07.add_by_block, lambda s: (np.tri(len(s), k=-1) / np.maximum(1, np.arange(len(s)))[:, None], adds(s, lambda a, b: (a + b) % 2)[1]), "for 8 places, sums 0, 0, 1, 2, 1, 1, 0, 2, the digits are"),
]  # fmt: skip


def stacking(line, old="x = normed + change"):
    """The broken stack with one of its lines changed."""
    return mended(ch07.PRE_NORM_STACK, "pre_norm_stack", (old, line))


E, P = ch07.even_length, ch07.pre_norm_stack
WRONG += [
    (E, lambda e, f: 6 * e, "That is for an MLP four times as wide"),
    (E, lambda e, f: e + f / 2, "Twice the matrices' multiplications"),
    (E, lambda e, f: 4 * e + 2 * f, "Scores and averages are two products"),
    (E, lambda e, f: 2 * e, "The MLP's matrices are missing"),
    (E, lambda e, f: f, "The matrices of the attention are missing"),
    (E, lambda e, f: 1.5 * e + f, "The attention has a fourth matrix"),
    (E, lambda e, f: 2 * e + f / 2, "The MLP has two matrices"),
    (E, lambda e, f: e * (2 * e + f), "it stands in scores and averages too"),
    (E, lambda e, f: (2 * e + f) ** 0.5, "Both parts have a factor n"),
    (P, stacking("x = change"), "The parts replace the stream: add to it"),
    (P, stacking("x = x + normed"), "What the part writes is not in it"),
    (P, stacking("x = x - change"), "The change is added, not subtracted"),
    (P, stacking("x = x + normed + change"), "Add the change alone"),
    (P, stacking("x = x + part(x)"), "The parts read the stream without its norm"),
    (P, stacking("x = x"), "Nothing is added"),
    (P, stacking("change = part(x)", "change = part(normed)"), "the fault is in another line than you changed"),
    (P, stacking("change = x - normed + part(normed)", "change = part(normed)"), "the answers are right, but the faulty line still stands"),
]  # fmt: skip


def torch_jacobian(x):
    import torch

    return torch.autograd.functional.jacobian(
        lambda t: torch.nn.functional.layer_norm(t, t.shape), x
    )


def jax_jacobian(x):
    import jax
    import jax.numpy as jnp

    return jax.jacobian(norms.layer_norm)(jnp.asarray(x))


def torch_written(parts, g, b, w, c):
    """By a matrix that takes the mean away."""
    import torch

    e = len(g)
    centre = torch.eye(e, dtype=parts.dtype) - 1 / e
    s = torch.sqrt(parts.sum(0).var(correction=0) + 1e-5)
    return parts @ centre @ (w * g).T / s, torch.nn.functional.linear(b, w, c)


def torch_fold(g, b, w, c):
    import torch

    return w @ torch.diag(g), torch.nn.functional.linear(b, w, c)


def centred_fold(g, b, w, c):
    """A weight whose rows sum to 0 gives the same."""
    folded = w * g
    return folded - folded.mean(1, keepdims=True), w @ b + c


def jax_variance(w, x, p):
    import jax.numpy as jnp

    return p / (1 - p) * jnp.sum(jnp.square(w * x), axis=1)


def torch_stream(x, weights, placement):
    """Every part divided on its own, by the norm of the sum."""
    import torch

    found = [x]
    for w in weights:
        now = torch.stack(found).sum(0)
        new = (
            now / now.square().mean(-1, keepdim=True).sqrt() if placement == "pre" else now
        ) @ w.T
        scale = (now + new).square().mean(-1, keepdim=True).sqrt()
        found = [f / scale if placement == "post" else f for f in (*found, new)]
    return torch.stack(found)


def jax_block(sums):
    import jax
    import jax.numpy as jnp

    n, numbers = len(sums), jnp.asarray(sums, dtype=float)
    place = 20.0 * jnp.arange(n, dtype=numbers.dtype)
    scores = 40.0 * n * (numbers != 1).astype(numbers.dtype) + place
    w = jax.nn.softmax(jnp.where(jnp.tri(n, k=-1, dtype=bool), scores, -1e9)).at[0].set(0.0)
    u = numbers + w @ (numbers == 2).astype(numbers.dtype)
    return w, jax.nn.relu(u) - 2 * jax.nn.relu(u - 1) + 2 * jax.nn.relu(u - 2)


RIGHT = [
    (E, lambda e, f: 2 * e + f),
    (P, stacking("x = x + change")),
    (P, stacking("x = change + x")),
    (W, width),
    (J, jacobian),
    (J, differences),
    (J, torch_jacobian),
    (J, jax_jacobian),
    (F, fold),
    (F, centred_fold),
    (F, torch_fold),
    (L, written()),
    (L, torch_written),
    (D, variance),
    (D, jax_variance),
    (S, stream),
    (S, torch_stream),
    (A, block()),
    (A, loop_block),
    (A, jax_block),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [W, E, J, F, L, D, S, A])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert repr(verdict).startswith(f"… {check.__name__}: not written yet")


def test_the_width_is_the_one_of_the_package():
    torch_blocks = pytest.importorskip("attnbook.torch.blocks")
    e, f = 6, 20
    plain = torch_blocks.MLP(e, f)
    gated = torch_blocks.MLP(e, round(width(e, f)), activation="swiglu")
    assert width(e, f) == 13
    sizes = [sum(p.numel() for p in layer.parameters()) for layer in (plain, gated)]
    assert sizes[0] == sizes[1] == 266


def test_what_layer_norm_cannot_see():
    x = np.random.default_rng(0).normal(size=6)
    y = norms.layer_norm(x, eps=1e-12)
    np.testing.assert_allclose(norms.layer_norm(3 * x - 5, eps=1e-12), y, rtol=1e-9)
    matrix = jacobian(x, eps=0)
    assert np.linalg.matrix_rank(matrix, tol=1e-9) == 4
    np.testing.assert_allclose(matrix @ np.stack([np.ones(6), y, x]).T, 0, atol=1e-9)
    np.testing.assert_allclose(jacobian(10 * x, eps=0), matrix / 10, rtol=1e-9)


def test_the_parts_of_the_logits_are_the_logits():
    rng = np.random.default_rng(1)
    parts, (g, b), w, c = (
        rng.normal(size=(3, 5)),
        rng.normal(size=(2, 5)),
        rng.normal(size=(4, 5)),
        2.0,
    )
    own, rest = written()(parts, g, b, w, c)
    logits = norms.layer_norm(parts.sum(0), g, b) @ w.T + c
    np.testing.assert_allclose(own.sum(0) + rest, logits, rtol=1e-9)


def test_the_variance_that_dropout_adds():
    rng = np.random.default_rng(2)
    w, x, y, p = rng.normal(size=(1, 5)), rng.normal(size=5), 1.5, 0.3
    coins = (rng.random((200_000, 5)) >= p) / (1 - p)
    out = (coins * x) @ w[0]
    np.testing.assert_allclose(out.var(), variance(w, x, p)[0], rtol=0.02)
    loss = (y - w[0] @ x) ** 2 + variance(w, x, p)[0]
    np.testing.assert_allclose(np.mean((y - out) ** 2), loss, rtol=0.02)


def test_the_shares_of_the_stream():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(50, 256)), rng.normal(size=(12, 256, 256)) / 16
    halved = np.append(0.5**12, 0.5 ** np.arange(12, 0, -1))
    for placement, expected in (("pre", np.full(13, 1 / 13)), ("post", halved)):
        parts = stream(x, weights, placement)
        shares = np.mean(parts**2, axis=(1, 2)) / np.mean(parts.sum(0) ** 2)
        np.testing.assert_allclose(shares, expected, rtol=0.15)


def test_how_far_the_block_adds_with_bounded_scores():
    rng = np.random.default_rng(0)
    failed = []
    for n in (32, 48, 64):
        wrong = 0
        for _ in range(300):
            sums = np.append(0, rng.integers(0, 2, (2, n)).sum(0))
            digits = block(own=25 / (n + 1), near=25 / n)(sums)[1]
            wrong += (np.round(digits) != loop_block(sums)[1]).any()
        failed.append(wrong / 300)
    np.testing.assert_allclose(failed, [0, 0.5, 0.9], atol=0.1)
