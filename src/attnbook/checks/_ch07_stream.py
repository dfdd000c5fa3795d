"""The last checks of chapter 7: what stays in the stream, and a block that adds."""

import numpy as np

from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check, expect


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
        expect(got, right, where, [
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
        ])  # fmt: skip
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
    expect(got, right, where, [
        (sums % 2, f"Nothing is carried. {flat}"),
        (sums, "These are the sums: a digit is 0 or 1, and a carry is added before."),
        (total, "The carry is right, but 2 and 3 are no digits: what stays in the place?"),
        (carry, "These are the carries: add them to the sums."),
        (np.minimum(total, 1), "2 leaves a 0 in its place: the MLP must come down again."),
        (1 - np.abs(total - 1), "1 + 1 and a carry make 3, and leave a 1 in the place."),
        (total % 3 % 2, "1 + 1 and a carry make 3, and leave a 1 in the place."),
        (_digits(sums, "its neighbour"), "A carry passes on through places whose sum is 1."),
        (_digits(sums, "up to its own"), "A place looks at itself: it asks those below."),
        (got if flat else right, flat),
    ], tolerance=0.05)  # fmt: skip
