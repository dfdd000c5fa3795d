"""Checks for chapter 7. Each knows the usual wrong answers by what they give."""

from typing import Any

import numpy as np

from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect

EPS = 1e-5


@check
def swiglu_width(function: Function) -> str:
    """function(embed_dim, mlp_dim): the width that makes SwiGLU as large as a plain MLP."""
    for e, f in ((7, 31), (13, 82)):
        right = f * (2 * e + 1) / (3 * e + 2)
        got = call(function, e, f)
        mistakes = [
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
        ]
        expect(got, right, f"for embed_dim, mlp_dim = {e}, {f}", mistakes, secret=True)
    return "about two thirds: three matrices take the place of two."


@check
def even_length(function: Function) -> str:
    """function(embed_dim, mlp_dim): the tokens at which pairs cost as much as matrices."""
    for e, f in ((7, 31), (13, 82)):
        where = f"for embed_dim, mlp_dim = {e}, {f}"
        mistakes = [
            (6 * e, "That is for an MLP four times as wide. Here mlp_dim is given."),
            (e + f / 2, "Twice the matrices' multiplications: the additions count in both parts."),
            (4 * e + 2 * f, "Scores and averages are two products: 2 n² e for each."),
            (2 * e, "The MLP's matrices are missing."),
            (f, "The matrices of the attention are missing."),
            (1.5 * e + f, "The attention has a fourth matrix, behind the heads."),
            (2 * e + f / 2, "The MLP has two matrices."),
            (e * (2 * e + f), "Divide by e: it stands in scores and averages too."),
            (np.sqrt(2 * e + f), "Both parts have a factor n: divide by it, and n is not squared."),
        ]
        expect(call(function, e, f), 2 * e + f, where, mistakes, secret=True)
    return "below this length most of the work is in the matrices."


@check
def norm_jacobian(function: Function) -> str:
    """function(x): (e,) to (e, e), ∂out_i/∂x_j of layer norm without weight and bias."""
    rng = np.random.default_rng(7)
    for x in (np.asarray([1.0, 2.0, 3.0, 6.0]), rng.normal(size=7) - 3, 4e-3 * rng.normal(size=5)):
        e, where = len(x), f"for x = {', '.join(f'{v:.2g}' for v in x[:4])}{', …' * (len(x) > 4)},"
        one, mean, centred = np.eye(e), np.full((e, e), 1 / e), x - x.mean()
        s = np.sqrt(x.var() + EPS)
        out, bare = centred / s, centred / x.std()
        outer = np.outer(out, out) / e
        right = (one - mean - outer) / s
        got = call(function, x)
        if got.shape == (e,):
            raise Wrong(f"{where} you give shape ({e},): each output depends on each entry of x.")
        mistakes = [
            ((one - mean) / s, "You hold √(var + ε) fixed: it changes with x too."),
            ((one - outer) / s, "The mean changes with x too."),
            (one / s, "Mean and variance change with x too."),
            (s * right, "The division by √(var + ε) is missing."),
            ((one - mean - e * outer) / s, "The variance is a mean: divide by e."),
            ((one - mean - np.outer(centred, centred) / e) / s, "The last term has y, not x − x̄."),
            (-right, "The sign is turned."),
            (right / s, "One division by √(var + ε) too many."),
            (right * s**2, "You multiply by √(var + ε): divide."),
            ((one - mean - 2 * outer) / s, "The 2 of the square meets the ½ of the root."),
            ((one - mean - outer / 2) / s, "The 2 of the square meets the ½ of the root."),
            ((one - 1 - outer) / s, "The mean has the derivative 1/e."),
            ((one - mean - np.outer(x, x) / e) / s, "The last term has y, not x."),
            ((one - mean + outer) / s, "The sign of the last term."),
            (np.diag(np.diag(right)), "Off the diagonal it is not 0: all entries share a mean."),
            ((one - mean - np.outer(bare, bare) / e) / x.std(), "The ε is missing."),
        ]
        expect(got, right, where, mistakes)
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
        mistakes = [
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
        ]
        expect(bias, w @ b + c, f"{where}, in the bias,", mistakes)
        mistakes = [
            (z @ w.T, "The norm's weight is missing."),
            (z @ (w * g**2).T, "g is in it once, not squared."),
            (z @ (w + g).T, "The norm's weight multiplies."),
            (z @ (w / g).T, "Multiply by the norm's weight: it stands before the layer."),
            (z @ (w * g[:o, None]).T, "Each entry of g belongs to an input: a column, not a row."),
            (z @ (w * g) if o == e else z @ w.T, "It is transposed: rows are outputs."),
        ]
        expect(z @ weight.T, z @ (w * g).T, f"{where}, in weight times a normed token,", mistakes)
    return "a norm's weight and bias are the next layer's, if nothing else reads them."


PRE_NORM_STACK = '''
def pre_norm_stack(x, parts):
    """The stream (n, e) behind all parts; each reads it through a layer norm."""
    for part in parts:
        centred = x - np.mean(x, axis=-1, keepdims=True)
        size = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
        normed = centred / size
        change = part(normed)
        x = normed + change
    return x
'''


@check
def pre_norm_stack(function: Function) -> str:
    """function(x, parts): (n, e) and functions of (n, e), to the stream behind all of them."""
    return repaired(function, PRE_NORM_STACK, fault="x = normed + change", test=_adds_to_the_stream)


# Parts of operators alone, so that any library's arrays pass.
def _square(z: Any) -> Any:
    return z * z


def _bend(z: Any) -> Any:
    return 3.0 * z - z * z * z


def _adds_to_the_stream(function: Function) -> str:
    x = np.asarray([[1.0, 2.0, 3.0, 7.0, 9.0], [2.0, 0.0, 1.0, 1.0, 5.0]])
    parts = [_square, _bend]

    def normed(z: np.ndarray) -> np.ndarray:
        centred = z - z.mean(-1, keepdims=True)
        return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPS))

    def stack(step: Function) -> np.ndarray:
        found = x
        for part in parts:
            found = step(found, part)
        return found

    right = stack(lambda z, part: z + part(normed(z)))
    got = call(function, x, parts)
    mistakes = [
        (stack(lambda z, part: normed(z) + part(normed(z))), "The sum starts from normed tokens."),
        (stack(lambda z, part: part(normed(z))), "The parts replace the stream: add to it."),
        (stack(lambda z, part: normed(z + part(z))), "That is post-norm."),
        (stack(lambda z, part: z + part(z)), "The parts read the stream without its norm."),
        (stack(lambda z, part: z + normed(z)), "What the part writes is not in it."),
        (stack(lambda z, part: z + normed(part(z))), "The norm is in front of the part."),
        (stack(lambda z, part: z - part(normed(z))), "The change is added, not subtracted."),
        (stack(lambda z, part: z + normed(z) + part(normed(z))), "Add the change alone."),
        (x + parts[0](normed(x)), "The second part is missing: is the return inside the loop?"),
        (x, "Nothing is added."),
    ]
    expect(got, right, "for two tokens and two parts", mistakes)
    return "The norm stands in the branch, and the stream runs straight on."


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
        mistakes = [
            (c, "The norm's bias comes from no part either: its logits are missing."),
            (w @ b, "The readout's bias comes from no part either."),
            (w @ (g * b) + c, "The norm's weight does not act on the norm's bias."),
            ((w @ b + c) / p, "The rest is there once: do not divide it among the parts."),
            (0 * c, "Both biases come from no part: their logits are the rest."),
            (right.sum(0) + w @ b + c, "These are all logits: which of them come from no part?"),
        ]
        expect(rest, w @ b + c, f"{where}, in the rest,", mistakes)
        mistakes = [
            ((centred * g / own) @ w.T, "Each part by its own size: the norm divides their sum."),
            (((parts - total.mean()) * g / s) @ w.T, "Take off a part's mean, not the stream's."),
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
        ]
        expect(got, right, f"{where}, in the parts,", mistakes)
    return "with the scale held, every logit is a sum over those who wrote."


@check
def dropout_variance(function: Function) -> str:
    """function(weight, x, p): variance of each output of a linear layer behind dropout."""
    rng = np.random.default_rng(37)
    cases = (
        ([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]], [1.0, 2.0, -4.0], 0.2),
        (rng.normal(size=(3, 5)), rng.normal(size=5), 0.6),
    )
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
        mistakes = [
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
        ]
        expect(got, right, where, mistakes, secret=True)
    return "a penalty on squared weights, each with the square of its input."


def _parts(x: np.ndarray, layers: np.ndarray, post: bool, wrong: str = "") -> np.ndarray:
    """What each has in the stream at its end, (layers + 1, n, e), or a wrong answer."""

    def size(y: np.ndarray) -> np.ndarray:
        axis = {"all tokens": None, "columns": 0}.get(wrong, -1)
        if wrong == "spread":
            return np.asarray(y.std(axis=-1, keepdims=True))
        square = np.mean(y * y, axis=axis, keepdims=True)
        factor = y.shape[-1] if wrong == "sum" else 1
        return np.asarray(square if wrong == "no root" else np.sqrt(factor * square))

    parts, given, latest, streams, stream = [x], [x], [x], [x], x
    for w in layers:
        normed = not post and wrong != "read as it is"
        part = (stream / size(stream) if normed else stream) @ (w if wrong == "turned" else w.T)
        scale = size(stream + part) if post else size(stream) if wrong == "sum of normed" else 1
        stream = (stream + part) / scale if post else stream / scale + part
        parts = [p / scale for p in parts] + [part / scale if post else part]
        given, latest, streams = [*given, part], [*latest, part / scale], [*streams, stream]
    if wrong == "last norm":
        parts = [p / size(stream) for p in parts]
    others = {"given": given, "latest": latest, "streams": streams}
    return np.stack(others.get(wrong, parts))


@check
def stream_parts(function: Function) -> str:
    """function(x, weights, placement): what each layer has in the last stream, (L + 1, n, e)."""
    rng = np.random.default_rng(47)
    x, layers = rng.normal(size=(3, 5)), rng.normal(size=(4, 5, 5))
    for post in (False, True):
        placement, other = ("post", "pre") if post else ("pre", "post")
        got = call(function, x, layers, placement)
        where = f"for 4 layers and {placement!r}"
        right = _parts(x, layers, post)
        if got.shape != right.shape:
            hint = "The embedding is a part too." if len(got) == 4 else "Return parts, not a sum."
            raise Wrong(f"{where} you give shape {got.shape}, expected (5, 3, 5). {hint}")
        embedding = np.stack([x, *(x @ w.T for w in layers)])
        mistakes = [
            (embedding, "A layer reads the stream so far, not the embedding."),
            (right[::-1], "The embedding's part is the first."),
            (right / right.sum(0), "These are shares: return the parts themselves."),
            (_parts(x, layers, post, "sum"), "N has the root of a mean: yours is that of a sum."),
            (_parts(x, layers, post, "spread"), "N takes no mean away: divide by the root alone."),
            (_parts(x, layers, post, "no root"), "The root is missing in the norm."),
            (_parts(x, layers, post, "columns"), "Each token is divided by its own size: axis −1."),
            (_parts(x, layers, not post), f"That is {other!r}."),
            (_parts(x, layers, post, "streams"), "That is the stream after each layer."),
            (_parts(x, layers, post, "given"), "A norm divides all that is in the stream by then."),
            (_parts(x, layers, post, "latest"), "A norm divides the earlier parts too."),
            (_parts(x, layers, post, "read as it is"), "A layer reads the normed stream."),
            (_parts(x, layers, post, "sum of normed"), "The norm is for the layer alone."),
            (_parts(x, layers, post, "turned"), "A weight is (out, in): multiply by w.T."),
            (_parts(x, layers, post, "last norm"), "There is no norm at the end here."),
            (_parts(x, layers, post, "all tokens"), "Each token is divided by its own size."),
            (np.cumsum(right, axis=0), "These are running sums: return the parts."),
        ]
        expect(got, right, where, mistakes)
    return "pre-norm keeps what was written, post-norm halves it at each step."


def _digits(sums: np.ndarray, places: str) -> np.ndarray:
    """The digits, if the carry is looked up in other places."""
    carry = []
    for i in range(len(sums)):
        near = sums[: i + (places == "up to its own")]
        chosen = near if places == "its neighbour" else near[near != 1]
        carry.append(len(chosen) > 0 and chosen[-1] == 2)
    return (sums + np.asarray(carry)) % 2


@check
def add_by_block(function: Function) -> str:
    """function(sums): weights (n, n) and digits (n,) of the sum of two binary numbers."""
    rng = np.random.default_rng(57)
    chain = np.asarray([0, 2] + [1] * 40 + [0, 1, 2, 2, 1])
    few = np.asarray([0, 0, 1, 2, 1, 1, 0, 2])
    drawn = [np.append(0, rng.integers(0, 2, (2, n)).sum(0)) for n in (9, 30, 63, 63)]
    for sums in (few, *drawn, chain):
        n = len(sums)
        where = f"for {n} places, sums {', '.join(str(s) for s in sums[:8])}{', …' * (n > 8)},"
        w, got = call_pair(function, sums)
        if (w.shape, got.shape) != ((n, n), (n,)):
            shapes = f"you give shapes {w.shape} and {got.shape}"
            raise Wrong(f"{where} {shapes}, expected ({n}, {n}) and ({n},).")
        if np.any(np.triu(w, 1)):
            raise Wrong(f"{where} a place looks at a higher one: carries come from below.")
        if not (np.all(w >= 0) and np.allclose(w.sum(1)[1:], 1, atol=1e-4)):
            raise Wrong(f"{where} from the second row on weights are not below 0 and sum to 1.")
        _name_wrong_digits(got, sums, w, where)
        # the carry must be the average of some value that each of the sums 0, 1 and 2 has
        carry, read = ((sums + _digits(sums, "the last")) % 2)[1:], (w @ np.eye(3)[sums])[1:]
        values = np.linalg.lstsq(read, carry, rcond=None)[0]
        if np.abs(read @ values - carry).max() > 0.25:
            text = "the digits are right, but these weights do not find the carries"
            raise Wrong(f"{where} {text}: an average of each token's own value should.")
    return "attention finds the place a carry comes from, the MLP adds it."


def _name_wrong_digits(got: np.ndarray, sums: np.ndarray, w: np.ndarray, where: str) -> None:
    """Wrong unless all digits are right; the cause is in them, or in too flat weights."""
    right = _digits(sums, "the last")
    carry = (sums + right) % 2
    total, flat = sums + carry, ""
    source = [max((j for j in range(i) if sums[j] != 1), default=0) for i in range(len(sums))]
    least = min(w[i, source[i]] for i in range(1, len(sums)))
    if least < 0.9:
        flat = f"A place gives {least:.2f} of its weight to the last sum before it that is not 1."
    mistakes = [
        (sums % 2, f"Nothing is carried. {flat}"),
        (sums, "These are the sums: a digit is 0 or 1, and a carry is added before."),
        (total, "The carry is right, but 2 and 3 are no digits: what stays in the place?"),
        (carry, "These are the carries: add them to the sums."),
        (np.minimum(total, 1), "2 leaves a 0 in its place: the MLP must come down again."),
        (1 - np.abs(total - 1), "1 + 1 and a carry make 3, and leave a 1 in the place."),
        (total % 3 % 2, "1 + 1 and a carry make 3, and leave a 1 in the place."),
        (_digits(sums, "its neighbour"), "A carry passes on through places whose sum is 1."),
        (_digits(sums, "up to its own"), "A place looks at itself: it asks those below."),
        *([(got, flat)] if flat else []),
    ]
    expect(got, right, where, mistakes, tolerance=0.05)
