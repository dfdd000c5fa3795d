"""Checks for chapter 7. Each knows the usual wrong answers by what they give."""

from typing import Any

import numpy as np

from attnbook.layers import activations
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_pair, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect

EPS = 1e-5


@build
def block(function: Function) -> str:
    """function(x, weights, num_heads, mask=None): (n, e), a pre-norm block on tokens (n, e).

    The build: attention, then an MLP with ReLU, each added to the stream that it reads through its
    own layer norm; no biases. The weights, by name: norm_1 and norm_2 (e,), the gains; w_q, w_k,
    w_v and w_o (e, e); w_1 (f, e) and w_2 (e, f).
    """
    rng = np.random.default_rng(77)
    n, e, f, h = 5, 6, 11, 3
    square = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (e, e))
    shapes = {"norm_1": (e,), **square, "norm_2": (e,), "w_1": (f, e), "w_2": (e, f)}
    weights = {name: rng.normal(size=shape) / 2 for name, shape in shapes.items()}
    x = (rng.normal(size=(n, e)) + 0.5).astype(np.float32).astype(float)
    small = 3e-3 * x  # beside which ε counts
    quiet = {**weights, "w_o": weights["w_o"] / 300, "w_2": weights["w_2"] / 300}
    causal = np.tri(n, dtype=bool)
    cases = ((x, weights, h), "for five tokens"), ((small, quiet, h), "for entries of 0.003")
    for given, where in (*cases, ((x, weights, h, causal), "for a causal mask")):
        expect(call(function, *given), builds.block(*given), where, _block_causes(*given))
    refuse_writing(function, *given)
    still = {**weights, "w_o": 0 * weights["w_o"], "w_2": 0 * weights["w_2"]}
    if not np.array_equal(call(function, x, still, h), x):
        raise Wrong("with w_o and w_2 of zeros, x should leave the block as it came, to the bit.")
    return "two parts read the stream through a norm, and add to it what they find."


def _block_causes(
    x: np.ndarray, weights: dict[str, np.ndarray], num_heads: int, mask: Any = None
) -> list[tuple[Any, str]]:
    """What the usual mistakes in a block give."""
    w = weights

    def attend(z: np.ndarray, seen: Any = mask) -> np.ndarray:
        return np.asarray(
            builds.multi_head(z, w["w_q"], w["w_k"], w["w_v"], w["w_o"], num_heads, seen)
        )

    def mlp(z: np.ndarray, activation: Function = activations.relu) -> np.ndarray:
        return np.asarray(activation(z @ w["w_1"].T) @ w["w_2"].T)

    def norm(
        z: np.ndarray,
        gain: Any,
        axis: int | None = -1,
        ddof: int = 0,
        inside: float = EPS,
        out: float = 0,
    ) -> np.ndarray:
        variance = z.var(axis, ddof=ddof, keepdims=True)
        centred = z - z.mean(axis, keepdims=True)
        return np.asarray(gain * centred / (np.sqrt(variance + inside) + out))

    def rms(z: np.ndarray, gain: Any) -> np.ndarray:
        return np.asarray(gain * z / np.sqrt((z**2).mean(-1, keepdims=True) + EPS))

    def bare(z: np.ndarray, gain: Any) -> np.ndarray:
        return z

    def pre(first: Function = norm, second: Function = norm, **how: Any) -> np.ndarray:
        y = x + attend(first(x, w["norm_1"], **how))
        return y + mlp(second(y, w["norm_2"], **how))

    def plain(z: np.ndarray, gain: Any) -> np.ndarray:
        return norm(z, 1.0)

    one, two = w["norm_1"], w["norm_2"]
    z = norm(x, one)
    a = attend(z)
    y = x + a
    of_y = norm(y, two)
    after = norm(x + attend(x), one)
    lost = "A part's change takes the stream's place: add it to what was there."
    gains = "A gain is missing: norm_1 and norm_2 multiply what is normed."
    starts = "A sum starts at the normed stream: norm what a part reads, add to what was there."
    turned = (norm(x, two), norm(x + attend(norm(x, two)), one))
    swapped = x + attend(turned[0]) + mlp(turned[1])
    causes = [
        (y, "The MLP is missing."),
        (x + mlp(norm(x, two)), "Attention is missing."),
        (x + mlp(of_y), "What attention found is lost: the second sum starts at Y, not at X."),
        *((one, starts) for one in (z + a + mlp(norm(z + a, two)), of_y + mlp(of_y))),
        (norm(z + a, two) + mlp(norm(z + a, two)), starts),
        *((one, lost) for one in (a + mlp(norm(a, two)), mlp(of_y), mlp(norm(a, two)))),
        (y + mlp(norm(x, two)), "The MLP reads the old x: it should read Y, with attention in it."),
        (y + mlp(z), "The MLP reads the first norm's output: it should read LN₂(Y)."),
        (pre(second=bare), "The second norm is missing: the MLP reads through one as well."),
        (pre(first=bare), "The first norm is missing: attention reads through one as well."),
        (pre(bare, bare), "Both norms are missing."),
        (norm(after + mlp(after), two), "That is post-norm: the norms stand behind the sums."),
        (pre(axis=None), "The norm has one mean for all tokens: each has its own, axis=-1."),
        (pre(axis=0), "The norm runs over the tokens: each token has a mean of its own, axis=-1."),
        (pre(ddof=1), "The variance divides by e − 1: it is a mean, over e."),
        (pre(rms, rms), "The norm does not subtract the mean: that is an RMS norm."),
        (pre(inside=0, out=EPS), "ε is added to the root: it stands beside the variance, inside."),
        (pre(inside=0), "ε is missing: 1e-5 beside the variance."),
        *((one, gains) for one in (pre(plain, plain), pre(plain), pre(second=plain))),
        (x + attend(z) + mlp(norm(y, one)), "norm_1 stands in both norms: the second has norm_2."),
        (swapped, "norm_1 and norm_2 have changed places."),
        (y + mlp(of_y, lambda s: s), "The activation is missing: max(0, ·) between w_1 and w_2."),
        (y + mlp(of_y, activations.gelu), "That is GELU: here the hidden units are max(0, ·)."),
    ]
    if mask is not None:
        y = x + attend(z, None)
        causes.append((y + mlp(norm(y, two)), "The mask has no effect: hand it to the attention."))
    else:
        y = x + attend(z, np.tri(len(x), dtype=bool))
        causes.append((y + mlp(norm(y, two)), "Without a mask every token sees all others."))
    return causes


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
            raise Wrong(f"{where} you give shape {got.shape}, expected (5, 3, 5).", hint)
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
            raise Wrong(f"{where} a place looks at a higher one:", "carries come from below.")
        if not (np.all(w >= 0) and np.allclose(w.sum(1)[1:], 1, atol=1e-4)):
            raise Wrong(f"{where} from the second row on weights are not below 0 and sum to 1.")
        _name_wrong_digits(got, sums, w, where)
        # the carry must be the average of some value that each of the sums 0, 1 and 2 has
        carry, read = ((sums + _digits(sums, "the last")) % 2)[1:], (w @ np.eye(3)[sums])[1:]
        values = np.linalg.lstsq(read, carry, rcond=None)[0]
        if np.abs(read @ values - carry).max() > 0.25:
            text = "the digits are right, but these weights do not find the carries"
            raise Wrong(f"{where} {text}:", "an average of each token's own value should.")
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
