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
            (2 * e * f / (3 * e + 2), "The plain MLP has biases in its hidden layer too."),
        ]
        expect(got, right, f"for embed_dim, mlp_dim = {e}, {f}", mistakes, secret=True)
    return "about two thirds: three matrices take the place of two."


@check
def even_length(function: Function) -> str:
    """function(embed_dim, mlp_dim): the tokens at which pairs cost as much as matrices."""
    for e, f in ((7, 31), (13, 82)):
        where = f"for embed_dim, mlp_dim = {e}, {f}"
        mistakes = [
            (e + f / 2, "Twice the matrices' multiplications: the additions count in both parts."),
            (4 * e + 2 * f, "Scores and averages are two products: 2 n² e for each."),
            (f, "The matrices of the attention are missing."),
            (e * (2 * e + f), "Divide by e: it stands in scores and averages too."),
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
        out = centred / s
        outer = np.outer(out, out) / e
        right = (one - mean - outer) / s
        got = call(function, x)
        mistakes = [
            ((one - mean) / s, "You hold √(var + ε) fixed: it changes with x too."),
            (one / s, "Mean and variance change with x too."),
            (s * right, "The division by √(var + ε) is missing."),
            ((one - mean - e * outer) / s, "The variance is a mean: divide by e."),
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
            (w @ (g * b) + c, "The norm's weight does not act on the norm's bias."),
        ]
        expect(bias, w @ b + c, f"{where}, in the bias,", mistakes)
        mistakes = [
            (z @ w.T, "The norm's weight is missing."),
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
        (x + parts[0](normed(x)), "The second part is missing: is the return inside the loop?"),
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
        s = np.sqrt(total.var() + EPS)
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
        ]
        expect(rest, w @ b + c, f"{where}, in the rest,", mistakes)
        mistakes = [
            ((centred * g / own) @ w.T, "Each part by its own size: the norm divides their sum."),
            (((parts - total.mean()) * g / s) @ w.T, "Take off a part's mean, not the stream's."),
            ((parts * g / s) @ w.T, "The norm takes the mean away: each part gives its share."),
            ((centred / s) @ w.T, "The norm's weight is missing."),
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
        mistakes = [
            (p * (1 - p) * squares, "What stays is divided by 1 − p."),
            ((1 - p) / p * squares, "p is the share left out, not the share that stays."),
            (p / (1 - p) * (w @ x) ** 2, "Each input has its own coin: their variances add up."),
            (p * squares, "What stays is divided by 1 − p, its square by (1 − p)²."),
        ]
        expect(got, right, where, mistakes, secret=True)
    return "a penalty on squared weights, each with the square of its input."


def _parts(x: np.ndarray, layers: np.ndarray, post: bool, wrong: str = "") -> np.ndarray:
    """What each has in the stream at its end, (layers + 1, n, e), or a wrong answer."""

    def size(y: np.ndarray) -> np.ndarray:
        if wrong == "spread":
            return np.asarray(y.std(axis=-1, keepdims=True))
        return np.asarray(np.sqrt(np.mean(y * y, axis=-1, keepdims=True)))

    parts, latest, stream = [x], [x], x
    for w in layers:
        normed = not post and wrong != "read as it is"
        part = (stream / size(stream) if normed else stream) @ w.T
        scale = size(stream + part) if post else 1
        stream = (stream + part) / scale
        parts = [p / scale for p in [*parts, part]]
        latest.append(part / scale)
    return np.stack(latest if wrong == "latest" else parts)


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
            (_parts(x, layers, post, "spread"), "N takes no mean away: divide by the root alone."),
            (_parts(x, layers, not post), f"That is {other!r}."),
            (_parts(x, layers, post, "latest"), "A norm divides the earlier parts too."),
            (_parts(x, layers, post, "read as it is"), "A layer reads the normed stream."),
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
        (total, "The carry is right, but 2 and 3 are no digits: what stays in the place?"),
        (_digits(sums, "its neighbour"), "A carry passes on through places whose sum is 1."),
        *([(got, flat)] if flat else []),
    ]
    expect(got, right, where, mistakes, tolerance=0.05)
