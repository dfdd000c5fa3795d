"""Checks for chapter 7. Each knows the usual wrong answers by what they give."""

import numpy as np

from attnbook.checks._ch07_stream import add_by_block, stream_parts
from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check, expect

__all__ = [
    "add_by_block",
    "dropout_variance",
    "folded",
    "logit_parts",
    "norm_jacobian",
    "stream_parts",
    "swiglu_width",
]

EPS = 1e-5


@check
def swiglu_width(function: Function) -> str:
    """function(embed_dim, mlp_dim): the width that makes SwiGLU as large as a plain MLP."""
    for e, f in ((7, 31), (13, 82)):
        right = f * (2 * e + 1) / (3 * e + 2)
        got = call(function, e, f)
        expect(got, right, f"for embed_dim, mlp_dim = {e}, {f}", [
            (2 * f / 3, "That is without biases, or for a width without end: count them."),
            (f / right * f, "You divide by the share: SwiGLU must be the narrower one."),
            (f, "SwiGLU has a third matrix, the gate."),
            (8 * e / 3, "That is for mlp_dim = 4 e, without biases. Here it is given."),
            (f * (2 * e + 1) / (3 * e + 1), "The gate has biases too."),
            (2 * e * f / (3 * e + 2), "The plain MLP has biases in its hidden layer too."),
            ((f * (2 * e + 1) + e) / (3 * e + 2), "The output layer of SwiGLU has biases too."),
            (2 * e * f + f + e, "These are the parameters: at which width has SwiGLU as many?"),
            (np.floor(right), "Do not round: both shall be of one size."),
            (f * 1.5, "You divide by the share: SwiGLU must be the narrower one."),
            (round(right), "Do not round: both shall be of one size."),
        ], secret=True)  # fmt: skip
    return "about two thirds: three matrices take the place of two."


@check
def norm_jacobian(function: Function) -> str:
    """function(x): (e,) to (e, e), ∂out_i/∂x_j of layer norm without weight and bias."""
    rng = np.random.default_rng(7)
    for x in (np.asarray([1.0, 2.0, 3.0, 6.0]), rng.normal(size=7) - 3, 4e-3 * rng.normal(size=5)):
        e, where = len(x), f"for x = {', '.join(f'{v:.2g}' for v in x[:4])}{', …' * (len(x) > 4)},"
        one, mean, centred = np.eye(e), np.full((e, e), 1 / e), x - x.mean()
        s = np.sqrt(x.var() + EPS)
        out, bare = centred / s, centred / x.std()
        right = (one - mean - np.outer(out, out) / e) / s
        got = call(function, x)
        if got.shape == (e,):
            raise Wrong(f"{where} you give shape ({e},): each output depends on each entry of x.")
        expect(got, right, where, [
            ((one - mean) / s, "You hold √(var + ε) fixed: it changes with x too."),
            ((one - np.outer(out, out) / e) / s, "The mean changes with x too."),
            (one / s, "Mean and variance change with x too."),
            (s * right, "The division by √(var + ε) is missing."),
            ((one - mean - np.outer(out, out)) / s, "The variance is a mean: divide by e."),
            ((one - mean - np.outer(centred, centred) / e) / s, "The last term has y, not x − x̄."),
            (-right, "The sign is turned."),
            (right / s, "One division by √(var + ε) too many."),
            (right * s**2, "You multiply by √(var + ε): divide."),
            ((one - mean - 2 * np.outer(out, out) / e) / s,
             "The 2 of the square meets the ½ of the root."),
            ((one - mean - np.outer(out, out) / e / 2) / s,
             "The 2 of the square meets the ½ of the root."),
            ((one - 1 - np.outer(out, out) / e) / s, "The mean has the derivative 1/e."),
            ((one - mean - np.outer(x, x) / e) / s, "The last term has y, not x."),
            ((one - mean + np.outer(out, out) / e) / s, "The sign of the last term."),
            (np.diag(np.diag(right)), "Off the diagonal it is not 0: all entries share a mean."),
            ((one - mean - np.outer(bare, bare) / e) / x.std(), "The ε is missing."),
        ])  # fmt: skip
    return "what is left is across two directions: all ones, and the output itself."


@check
def folded(function: Function) -> str:
    """function(norm_weight, norm_bias, weight, bias): one weight and bias after a bare norm."""
    rng = np.random.default_rng(17)
    for e, o in ((5, 5), (7, 3)):
        g, b, c = rng.normal(size=e), rng.normal(size=e), rng.normal(size=o)
        w, z = rng.normal(size=(o, e)), rng.normal(size=(3 * e, e))
        z = (z - z.mean(1, keepdims=True)) / z.std(1, keepdims=True)
        weight, bias = call_pair(function, g, b, w, c)
        where = f"for a layer from {e} to {o} numbers"
        if weight.shape != (o, e):
            raise Wrong(f"{where} you give a weight of shape {weight.shape}, expected ({o}, {e}).")
        expect(bias, w @ b + c, f"{where}, in the bias,", [
            (c, "The norm's bias goes through the linear layer and arrives there too."),
            (w @ b, "The layer's own bias is missing."),
            (w @ b - c, "The layer's own bias is added."),
            (w @ (b / g) + c, "The norm's bias is added after g: leave g out."),
            (c + b.sum(), "The norm's bias goes through the weight."),
            ((w * g) @ b, "The layer's own bias is missing, and b does not meet g."),
            (w @ (b + c) if o == e else c, "The layer's own bias does not go through its weight."),
            (b + c if o == e else c, "The norm's bias goes through the linear layer: multiply."),
            (w @ (g * b) + c, "The norm's weight does not act on the norm's bias."),
            (b @ w + c if o == e else c, "The weight is (out, in): multiply by it from the left."),
        ])  # fmt: skip
        expect(z @ weight.T, z @ (w * g).T, f"{where}, in weight times a normed token,", [
            (z @ w.T, "The norm's weight is missing."),
            (z @ (w * g**2).T, "g is in it once, not squared."),
            (z @ (w + g).T, "The norm's weight multiplies."),
            (z @ (w / g).T, "Multiply by the norm's weight: it stands before the layer."),
            (z @ (w * g[:o, None]).T, "Each entry of g belongs to an input: a column, not a row."),
            (z @ (w * g) if o == e else z @ w.T, "It is transposed: rows are outputs."),
        ])  # fmt: skip
    return "a norm's weight and bias are the next layer's, if nothing else reads them."


@check
def logit_parts(function: Function) -> str:
    """function(parts, norm_weight, norm_bias, weight, bias): each part's logits, and the rest."""
    rng = np.random.default_rng(27)
    for p, e, v, size in ((3, 5, 2, 1.0), (4, 6, 7, 1.0), (2, 5, 3, 4e-3)):
        parts = size * (rng.normal(size=(p, e)) + 1)
        g, b, w, c = rng.normal(size=e), rng.normal(size=e), rng.normal(size=(v, e)), np.ones(v)
        total, centred = parts.sum(0), parts - parts.mean(1, keepdims=True)
        s, rms = np.sqrt(total.var() + EPS), np.sqrt((total**2).mean() + EPS)
        own = np.sqrt(parts.var(1, keepdims=True) + EPS)
        got, rest = call_pair(function, parts, g, b, w, c)
        where = f"for {p} parts of width {e} and {v} logits"
        if got.shape != (p, v) or rest.shape != (v,):
            shapes = f"you give shapes {got.shape} and {rest.shape}"
            raise Wrong(f"{where} {shapes}, expected ({p}, {v}) and ({v},).")
        right = (centred * g / s) @ w.T
        expect(rest, w @ b + c, f"{where}, in the rest,", [
            (c, "The norm's bias comes from no part either: its logits are missing."),
            (w @ b, "The readout's bias comes from no part either."),
            (w @ (g * b) + c, "The norm's weight does not act on the norm's bias."),
            ((w @ b + c) / p, "The rest is there once: do not divide it among the parts."),
            (0 * c, "Both biases come from no part: their logits are the rest."),
            (right.sum(0) + w @ b + c, "These are all logits: which of them come from no part?"),
        ])  # fmt: skip
        expect(got, right, f"{where}, in the parts,", [
            ((centred * g / own) @ w.T, "Each part by its own size: the norm divides their sum."),
            (((parts - total.mean()) * g / s) @ w.T,
             "Each part takes off its own mean: these take off that of the whole stream each."),
            (((parts - total.mean() / p) * g / s) @ w.T, "Each part takes off its own mean."),
            (((parts - parts.mean(0)) * g / s) @ w.T, "The mean is over the entries of a part."),
            ((parts * g / s) @ w.T, "The norm takes the mean away: each part gives its share."),
            ((centred / s) @ w.T, "The norm's weight is missing."),
            ((centred * g) @ w.T, "The division by √(var + ε) of the stream is missing."),
            (parts @ w.T, "The norm is missing."),
            ((centred * g / total.std()) @ w.T, "The ε is missing."),
            ((centred * g / s**2) @ w.T, "Divide by the root: √(var + ε)."),
            ((centred * g / np.sqrt(total.var(ddof=1) + EPS)) @ w.T, "The variance divides by e."),
            ((centred * g / parts.std()) @ w.T, "The norm divides by the size of the sum."),
            (right + (w @ b + c) / p, "What comes from no part is in the rest, not in shares."),
            ((centred * g / rms) @ w.T, "The variance of the stream is around its mean."),
            ((parts * g / rms) @ w.T, "That is RMS norm."),
            ((centred * g / s + b) @ w.T, "Only one norm's bias is there, and it is in the rest."),
            (right + c, "The readout's bias is added once, and it is in the rest."),
        ])  # fmt: skip
    return "with the scale held, every logit is a sum over those who wrote."


@check
def dropout_variance(function: Function) -> str:
    """function(weight, x, p): variance of each output of a linear layer behind dropout."""
    rng = np.random.default_rng(37)
    cases = (([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]], [1.0, 2.0, -4.0], 0.2),
             (rng.normal(size=(3, 5)), rng.normal(size=5), 0.6))  # fmt: skip
    for weight, given, p in cases:
        w, x = np.asarray(weight), np.asarray(given)
        squares = (w * w) @ (x * x)
        right = p / (1 - p) * squares
        got = call(function, w, x, p)
        where = f"for {len(x)} inputs, {len(w)} outputs and p = {p}"
        if got.shape == ():
            raise Wrong(f"{where} you give one number: each of the outputs has a variance.")
        if got.shape == w.shape:
            raise Wrong(f"{where} you give shape {got.shape}: add up over the inputs.")
        expect(got, right, where, [
            (p * (1 - p) * squares, "What stays is divided by 1 − p."),
            ((1 - p) / p * squares, "p is the share left out, not the share that stays."),
            (p / (1 - p) * (w @ x) ** 2, "Each input has its own coin: their variances add up."),
            (p / (1 - p) ** 2 * squares, "The variance of a coin is p (1 − p), and not p."),
            (squares / (1 - p), "That is the mean of the square: take off the squared mean."),
            (p * squares, "What stays is divided by 1 − p, its square by (1 − p)²."),
            (w @ x, "That is the mean: which spread is around it?"),
            (p / (1 - p) * (w @ x), "Squares: weight and input are squared in a variance."),
            (p / (1 - p) * (np.abs(w) @ x**2), "A weight multiplies the variance by its square."),
            (p / (1 - p) * ((w * w) @ x) ** 2, "Square each input, then add up."),
            (right / len(x), "Variances add up: no mean over the inputs."),
            (2 * right, "There is no 2: p/(1 − p) is the variance of one coin."),
            ((p / (1 - p)) ** 2 * squares, "p/(1 − p) is a variance already: no square."),
            ((1 - p) * squares, "p is the share left out, and what stays is divided."),
            (np.sqrt(right), "That is the standard deviation."),
            (p / (1 - p) * (w @ (x * x)), "A weight multiplies the variance by its square."),
            (p / (1 - p) * ((w * w) @ x), "An input multiplies the variance by its square."),
        ], secret=True)  # fmt: skip
    return "a penalty on squared weights, each with the square of its input."
