"""Checks for chapter 6. Each knows the usual wrong answers by what they give."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_pair, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect


@build
def multi_head(function: Function) -> str:
    """function(x, w_q, w_k, w_v, w_o, num_heads, mask=None): (n, e), from x and matrices (e, e).

    The build: multi-head self-attention, without biases; where the mask (n, n) is true, a query may
    attend to a key. Head h has rows h d to (h + 1) d of w_q, w_k and w_v, with d = e / num_heads.
    """
    rng = np.random.default_rng(14)
    for n, h, masked in ((5, 3, False), (5, 1, False), (3, 3, True), (5, 3, True)):
        x, matrices = rng.normal(size=(n, 12)), rng.normal(size=(4, 12, 12)) / 12**0.5
        mask = (rng.random((n, n)) < 0.5) | np.eye(n, dtype=bool) if masked else None
        given = (x, *matrices, h) if mask is None else (x, *matrices, h, mask)
        where = f"for n, e, num_heads = {n}, 12, {h}{' and a mask' if masked else ''}"
        causes = _masked_causes(*given) if masked else _head_causes(*given)
        expect(call(function, *given), builds.multi_head(*given), where, causes)
    refuse_writing(function, *given)
    large = (100 * x, *given[1:])
    right = builds.multi_head(*large)
    lost = "Exponentials overflow or vanish: subtract each query's own largest score first."
    got = call(function, *large)
    mistakes = [(np.where(np.isnan(got), np.nan, right), lost)]
    expect(got, right, "for tokens a hundred times as long", mistakes, tolerance=1e-3)
    return "each head asks with its own numbers, and the last matrix mixes what they bring."


def _split(x: np.ndarray, h: int) -> np.ndarray:
    """(heads, n, d) from (n, e)."""
    return x.reshape(len(x), h, -1).swapaxes(0, 1)


def _merged(x: np.ndarray) -> np.ndarray:
    """(n, e) from (heads, n, d)."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def _head_causes(
    x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray, w_o: np.ndarray, h: int
) -> list[tuple[Any, str]]:
    """What the usual mistakes give without a mask."""
    n, e = x.shape
    d = e // h
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T

    def mixed(split: Any, merge: Any = _merged, out: np.ndarray = w_o.T, by: float = 1) -> Any:
        return merge(_averages(by * split(q), split(k), split(v))) @ out

    def halved(x: np.ndarray) -> np.ndarray:
        return _split(x, h)

    def reshaped(x: np.ndarray) -> np.ndarray:
        return x.reshape(h, n, d)

    def flat(x: np.ndarray) -> np.ndarray:
        return x.reshape(n, e)

    s = halved(q) @ halved(k).swapaxes(1, 2) / d**0.5
    own = np.kron(np.eye(h), np.ones((d, d)))  # each head's part of the rows and of the columns
    blocks = _merged(_averages(*(halved(x @ (own * w).T) for w in (w_q, w_k, w_v)))) @ w_o.T
    part = "Each head gets a part of the token: multiply by the matrices first, then cut."
    loose = mixed(halved, lambda x: x.transpose(1, 2, 0).reshape(n, e))
    cut = "A reshape to (heads, n, d) mixes tokens: first (n, heads, d), then exchange the axes."
    back = (_merged, lambda x: x.transpose(1, 2, 0).reshape(n, e))
    woven = [mixed(lambda x: x.reshape(n, d, h).transpose(2, 0, 1), merge) for merge in back]
    tokens = mixed(lambda x: x.reshape(n, h, d), flat)
    turned = _merged(_averages(*(halved(x @ w) for w in (w_q, w_k, w_v))))
    apart = "Each token's heads ask each other: the axis of the heads must come before the tokens."
    divisors = [(e**0.5, "√e"), (1, "nothing"), (d, "d"), (h**0.5, "√num_heads")]
    causes = [
        *((mixed(reshaped, merge), cut) for merge in (_merged, flat)),
        (mixed(halved, flat), "Merging, move the heads back behind the tokens before the reshape."),
        (tokens, apart),
        (blocks, part),
        (
            loose,
            "Merging, keep the d numbers of a head together: (n, heads, d) before the reshape.",
        ),
        *((one, "A head has d neighbouring columns: not every num_heads-th one.") for one in woven),
        (mixed(halved, out=w_o), "W_o is turned: tokens are rows, times w_o.T."),
        (mixed(halved, out=np.eye(e)), "The last matrix, W_o, is missing: it mixes the heads."),
        (turned @ w_o.T, "W_q, W_k and W_v are turned: tokens are rows, so it is x @ w_q.T."),
        (turned @ w_o, "All matrices are turned: tokens are rows, so it is x @ w_q.T."),
        (mixed(lambda x: x[None]), "num_heads has no effect: that is one head."),
        *(
            (
                mixed(halved, by=d**0.5 / by),
                f"The scores are divided by {name}: it should be √d, with d = e / num_heads.",
            )
            for by, name in divisors
        ),
    ]
    for axis, what in ((0, "heads"), (1, "queries")):
        over = f"That softmax runs over the {what}: the weights of each query sum to 1, axis=-1."
        for one in (np.exp(s), np.exp(s - s.max(axis=-1, keepdims=True))):
            weights = one / one.sum(axis=axis, keepdims=True)
            causes.append((_merged(weights @ halved(v)) @ w_o.T, over))
    return causes


def _masked_causes(
    x: np.ndarray,
    w_q: np.ndarray,
    w_k: np.ndarray,
    w_v: np.ndarray,
    w_o: np.ndarray,
    h: int,
    mask: np.ndarray,
) -> list[tuple[Any, str]]:
    """What the usual mistakes with a mask give."""
    q, k, v = (_split(x @ w.T, h) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5

    def mixed(weights: Any) -> np.ndarray:
        return _merged(weights @ v) @ w_o.T

    causes = [
        (mixed(softmax(s)), "The mask has no effect."),
        (mixed(softmax(s, ~mask)), "The mask is inverted: true says that a query may attend."),
        (mixed(softmax(s, mask.T)), "The mask is turned: its rows are queries, its columns keys."),
        (mixed(softmax(np.where(mask, s, 0.0))), "A hidden key has the score 0, and e⁰ = 1."),
        (mixed(softmax(s + mask)), "An added mask adds 1 or 0: a hidden key needs −∞."),
        (mixed(softmax(s) * mask), "Masked after the softmax, rows no longer sum to 1."),
    ]
    if h == len(x):
        axis = "The mask lies on the wrong axes: all heads share it, so it is (n, n) or (1, n, n)."
        full = np.all(mask, axis=0, keepdims=True).T  # of no head the rows are empty
        empty = np.where(full, mixed(softmax(s)), np.nan)
        causes += [(mixed(softmax(s, mask[:, None])), axis), (empty, axis)]
    return causes


@check
def cache_bytes(function: Function) -> str:
    """function(tokens, layers, num_kv_heads, head_dim, bytes_per_number): keys and values kept."""
    for t, layers, g, d, b in ((23, 5, 3, 7, 4), (11, 2, 5, 13, 1)):
        right = 2 * t * layers * g * d * b
        numbers = ", ".join(str(n) for n in (t, layers, g, d, b))
        got = call(function, t, layers, g, d, b)
        mistakes = [
            (right / 2, "Keys or values alone: a later query needs both."),
            (right * 3 / 2, "A query is used at its own step alone: it need not be kept."),
            (right / b, "These are numbers, not bytes."),
            (right / layers, "Each layer has its own keys and values."),
            (right * t, "It grows with tokens, not with their square: scores are not kept."),
        ]
        expect(got, right, f"for ({numbers})", mistakes, secret=True)
    return "two vectors for each token, layer and key head."


@check
def lost_share(function: Function) -> str:
    """function(w): the share of the variance of a that w a + (1 − w) b loses."""
    for w in (0.8, 0.3):
        u = 1 - w
        both = w**2 + u**2
        mistakes = [
            (w**2 / both, "That is what is kept of a: the rest is lost."),
            (u, "Weights are no shares of a variance: variances take squares."),
            (u**2, "That is for the multiple 1: the best multiple of the mixture does better."),
            (w / both, "That is the best multiple: what does it leave of the variance?"),
        ]
        expect(call(function, w), u**2 / both, f"for w = {w}", mistakes, secret=True)
    return "and b loses the rest: the two losses sum to 1 at every weight."


GROUPED_HEADS = '''
def grouped_heads(q, k, v):
    """One average per query head: q (H, n, d), k and v (G, n, d); neighbours share."""
    shared = len(q) // len(k)
    k = np.repeat(k, shared, axis=0)
    v = np.tile(v, (shared, 1, 1))
    s = q @ np.swapaxes(k, 1, 2) / np.sqrt(q.shape[2])
    w = np.exp(s - s.max(axis=2, keepdims=True))
    return w / w.sum(axis=2, keepdims=True) @ v
'''


@check
def grouped_heads(function: Function) -> str:
    """function(q, k, v): (H, n, d), neighbouring query heads share one of G keys and values."""
    fault = "v = np.tile(v, (shared, 1, 1))"
    return repaired(function, GROUPED_HEADS, fault=fault, test=_in_groups)


def _in_groups(function: Function) -> str:
    rng = np.random.default_rng(7)
    for h, g in ((4, 2), (6, 2)):
        q = rng.normal(size=(h, 5, 3))
        k, v = rng.normal(size=(2, g, 5, 3))
        groups, turns, none = np.repeat(np.arange(g), h // g), np.arange(h) % g, [0] * h
        right = _averages(q, k[groups], v[groups])
        mistakes = [
            (_averages(q, k[groups], v[turns]), "Keys come from one group, values from another."),
            (_averages(q, k[turns], v[turns]), "Heads take turns: here neighbours share."),
            (_averages(q, k[none], v[none]), "All heads share the first group."),
            (_averages(q * 3**0.5, k[groups], v[groups]), "The scores are not divided by √d."),
        ]
        expect(call(function, q, k, v), right, f"for {h} query heads and {g} shared ones", mistakes)
    return "Query heads that share keys share the values that belong to them."


def _averages(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One average per head, all of shape (heads, n, d)."""
    weights: Any = softmax(q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5)
    return weights @ v


@check
def circuits(function: Function) -> str:
    """function(w_q, w_k, w_v, w_o, num_heads): QK and OV matrices, (heads, e, e) both."""
    rng = np.random.default_rng(6)
    for e, h in ((6, 2), (15, 3)):
        d = e // h
        q, k, v, o = rng.normal(size=(4, e, e))
        parts = [slice(i * d, (i + 1) * d) for i in range(h)]
        first, second = call_pair(function, q, k, v, o, h)
        where = f"for e = {e} and {h} heads"
        if not first.shape == second.shape == (h, e, e):
            given = f"{where} you give shapes {first.shape} and {second.shape}"
            raise Wrong(f"{given}:", f"for each head return a matrix of shape ({e}, {e}), twice.")
        qk = np.stack([q[r].T @ k[r] for r in parts])
        ov = np.stack([o[:, r] @ v[r] for r in parts])
        if np.allclose(first, ov, atol=1e-4):
            raise Wrong(f"{where} the first is OV:", "return QK first.")
        columns = "In the (out, in) convention head h has rows of W_q, W_k and W_v, not columns."
        mistakes = [
            (qk.mT, "It is transposed: the query's token stands on the left."),
            (qk / d**0.5, "The division by √d is not part of it here."),
            (np.stack([q[:, r] @ k[:, r].T for r in parts]), columns),
        ]
        expect(first, qk, f"{where}, in QK,", mistakes)
        mistakes = [
            (np.stack([o[r].T @ v[r] for r in parts]), "Head h has columns of W_o, not rows."),
            (np.stack([o @ v] * h), "These are all heads together: each has its part."),
        ]
        expect(second, ov, f"{where}, in OV,", mistakes)
    return "one matrix says where a head looks, the other what it brings back."


@check
def source_token(function: Function) -> str:
    """function(n, num_heads, head_dim): whose numbers x.reshape(n, e) of (heads, n, d) holds."""
    for n, h, d in ((5, 3, 2), (4, 7, 3)):
        flat = np.arange(n * h * d).reshape(n, h * d)
        row = np.indices((n, h * d))[0]
        got = call(function, n, h, d)
        where = f"for n, num_heads, head_dim = {n}, {h}, {d}"
        mistakes = [
            (row, "That is the right merge: this one forgets to move the heads back."),
            (flat // (n * d), "That is the head an entry came from: which token?"),
            (flat // d, "That counts on through all heads: after n vectors a new head begins."),
            (flat % n, "A token has head_dim numbers in a row, not one."),
        ]
        expect(got, flat // d % n, where, mistakes)
    return "rows of the same head stand where other heads of the same token belong."


@check
def previous_token_qk(function: Function) -> str:
    """function(d): a query and a key (d,) which rotary positions turn to the token before."""
    n = 200
    for d in (64, 32):
        q, k = call_pair(function, d)
        where = f"for d = {d}"
        if not q.shape == k.shape == (d,):
            given = f"{where} you give shapes {q.shape} and {k.shape}"
            raise Wrong(f"{given}, expected ({d},) twice:", "one query and one key for all tokens.")
        turn = np.exp(1j * np.arange(n)[:, None] * 10_000.0 ** (-np.arange(0, d, 2) / d))
        a, b = (x[::2] + 1j * x[1::2] for x in (q, k))
        s = ((a * turn) @ (b * turn).conj().T).real / d**0.5
        shut = np.where(np.tri(n, dtype=bool), s, -np.inf)
        w = np.exp(shut - shut.max(1, keepdims=True))
        w /= w.sum(1, keepdims=True)
        i = int(1 + np.argmin(np.diag(w, -1)))
        if not w[i, i - 1] >= 0.99:
            looks = f"{where} query {i} gives the token before it a weight of {w[i, i - 1]:.3f}"
            raise Wrong(f"{looks}.", _offset(s, i, np.angle(a * b.conj())))
    return "a query turned back by one step, and enough slow pairs to look no further."


def _offset(s: np.ndarray, i: int, phase: np.ndarray) -> str:
    """Why query i does not look at the token before it."""
    middle = len(s) // 2
    offset = int(np.argmax(s[middle])) - middle
    if not 1e-9 < np.ptp(s) < np.inf:
        return "All scores are the same, or they are not finite."
    if offset == 0 and np.allclose(phase, 0, atol=1e-6):
        return "Without a turn a token looks at itself: turn the query or the key by one position."
    if offset == 1:
        return "Without the mask it looks at the token after. Turn the other way, or the other one."
    if offset != -1 and np.ptp(phase) < 1e-6:
        return "You turn all pairs by one angle: each has its own, θ_i."
    rivals = np.where(np.arange(len(s)) == i - 1, -np.inf, s[i])[: i + 1]
    back = i - int(np.argmax(rivals))
    if back <= 5 and abs(rivals.max() - s[i, i - 1]) < 1e-6 * np.ptp(s):
        other = "itself" if back == 0 else f"the token {back} back"
        return f"It gives {other} the same score, at any size: turn by one position exactly."
    if offset == -1:
        return "It is the largest one, but too small: make all scores larger."
    if offset == 0:
        pairs = "Are your pairs the columns 2i and 2i + 1"
        return f"It looks at itself. {pairs}, and is the turn one whole position?"
    return f"Without the mask it looks at position i {'−' if offset < 0 else '+'} {abs(offset)}."


@check
def induction_by_hand(function: Function) -> str:
    """function(tokens, vocab_size): logits (n, vocab_size) that copy what followed before."""
    found: list[dict[str, bool]] = []
    words, tested = "", 0
    for tokens, vocab in _sequences():
        n, half, where = len(tokens), len(tokens) // 2, f"for {len(tokens)} tokens of {vocab} kinds"
        logits = call(function, tokens, vocab)
        if logits.shape != (n, vocab):
            hint = " Return logits, not tokens." if logits.shape == (n,) else ""
            raise Wrong(f"{where} you give shape {logits.shape}, expected ({n}, {vocab}).{hint}")
        if np.any(np.isnan(logits)):
            raise Wrong(f"{where} some logits are NaN.", "Does a query have no key to look at?")
        scale = float(np.ptp(np.append(0, logits[np.isfinite(logits)])))
        changed = call(function, np.append(tokens[:half], tokens[half:][::-1]), vocab)
        if not np.allclose(changed[:half], logits[:half], rtol=0, atol=1e-4 * scale):
            late = f"tokens from position {half} on change logits before it"
            raise Wrong(f"{where} {late}:", "a query sees the future. Has each layer its mask?")
        for i in range(n):
            before = np.flatnonzero(tokens[:i] == tokens[i])
            if len(before) != 1:
                continue
            j, right, tested = before[0], tokens[before[0] + 1], tested + 1
            others = np.delete(np.arange(vocab), right)
            rival = int(others[np.argmax(logits[i, others])])
            a, b = logits[i, right], logits[i, rival]
            if a > b and not np.isclose(a, b, rtol=1e-4):
                continue
            found.append(_signs(tokens, i, j, rival))
            now = f"Token {tokens[i]}, at position {i}, came before at {j}, followed by {right}"
            words = words or f"{now}: you rank {rival} as high or higher."
    if found:
        fit = [cause for cause in found[0] if np.mean([signs[cause] for signs in found]) >= 0.9]
        words = " ".join([words, *fit[:1]])
        raise Wrong(f"{len(found)} of {tested} predictions are wrong.", words)
    return "one head marks every token with the one before it, the next finds the mark."


def _signs(tokens: np.ndarray, i: int, j: int, rival: int) -> dict[str, bool]:
    """The likely causes, and which fit: rival is predicted at i, whose token was at j before."""
    later = j + 2 <= i and rival == tokens[j + 2]
    own = rival == tokens[i]
    looking = "Does its query look one position back, or one ahead, where the mask hides the key?"
    return {
        "Only the first token fails: nothing is before it, so its own mark is wrong.": j == 0,
        "Only a token that comes twice in a row fails: may a query look at itself?": j == i - 1,
        f"The first attention writes an average of all tokens so far. {looking}": own,
        "That came one token later: the marks are from two tokens back.": later,
    }


def _sequences() -> Iterator[tuple[np.ndarray, int]]:
    """Tokens and the size of their vocabulary: repeated permutations, chance, and two traps."""
    rng = np.random.default_rng(10)
    yield np.tile(np.append(0, 1 + rng.permutation(10)), 2), 13
    yield np.tile(rng.permutation(30), 2), 30
    yield from ((rng.integers(0, 7, 20), 7) for _ in range(4))
    yield np.asarray([3, 1, 1, 4, 0, 2, 2, 5, 3, 0]), 6
    yield np.asarray([2, 2, 0, 4, 3, 0, 1]), 5
