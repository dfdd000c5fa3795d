"""The last checks of chapter 6: a previous-token head and an induction head by hand."""

from collections.abc import Iterator

import numpy as np

from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check


@check
def previous_token_qk(function: Function) -> str:
    """function(d): a query and a key (d,) which rotary positions turn to the token before."""
    n = 200
    for d in (64, 32):
        q, k = call_pair(function, d)
        where = f"for d = {d}"
        if not q.shape == k.shape == (d,):
            given = f"{where} you give shapes {q.shape} and {k.shape}"
            raise Wrong(f"{given}, expected ({d},) twice: one query and one key for all tokens.")
        turn = np.exp(1j * np.arange(n)[:, None] * 10_000.0 ** (-np.arange(0, d, 2) / d))
        a, b = (x[::2] + 1j * x[1::2] for x in (q, k))
        s = ((a * turn) @ (b * turn).conj().T).real / d**0.5
        shut = np.where(np.tri(n, dtype=bool), s, -np.inf)
        w = np.exp(shut - shut.max(1, keepdims=True))
        w /= w.sum(1, keepdims=True)
        i = int(1 + np.argmin(np.diag(w, -1)))
        if not w[i, i - 1] >= 0.99:
            looks = f"{where} query {i} gives the token before it a weight of {w[i, i - 1]:.3f}"
            raise Wrong(f"{looks}. {_offset(s, w[i], i, np.angle(a * b.conj()))}")
    return "a query turned back by one step, and enough slow pairs to look no further."


def _offset(s: np.ndarray, w: np.ndarray, i: int, phase: np.ndarray) -> str:
    """Why query i does not look at the token before it."""
    middle = len(s) // 2
    offset = int(np.argmax(s[middle])) - middle
    far = i - int(np.argmax(w * (np.arange(len(w)) < i - 5)))
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
    if far > 5 and w[i - far] > 10 * w[i - far : i].min():
        return f"It looks {far} tokens back too: fast pairs come round again, slow ones do not."
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
            raise Wrong(f"{where} some logits are NaN. Does a query have no key to look at?")
        scale = float(np.ptp(np.append(0, logits[np.isfinite(logits)])))
        changed = call(function, np.append(tokens[:half], tokens[half:][::-1]), vocab)
        if not np.allclose(changed[:half], logits[:half], rtol=0, atol=1e-4 * scale):
            late = f"tokens from position {half} on change logits before it"
            raise Wrong(f"{where} {late}: a query sees the future. Has each layer its mask?")
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
        raise Wrong(f"{len(found)} of {tested} predictions are wrong. {words}")
    return "one head marks every token with the one before it, the next finds the mark."


def _signs(tokens: np.ndarray, i: int, j: int, rival: int) -> dict[str, bool]:
    """The likely causes, and which fit: rival is predicted at i, whose token was at j before."""
    counts = np.bincount(tokens[: i + 1], minlength=rival + 1)
    later = j + 2 <= i and rival == tokens[j + 2]
    return {
        "Only the first token fails: nothing is before it, so its own mark is wrong.": j == 0,
        "Only a token that comes twice in a row fails: may a query look at itself?": j == i - 1,
        "You repeat the token: are keys the tokens before, values the own?": rival == tokens[i],
        "That came one token later: the marks are from two tokens back.": later,
        "That is the token before the query's.": rival == tokens[i - 1],
        "That is the commonest token so far: are scores too flat?": counts[rival] == counts.max(),
    }


def _sequences() -> Iterator[tuple[np.ndarray, int]]:
    """Tokens and the size of their vocabulary: repeated permutations, chance, and two traps."""
    rng = np.random.default_rng(10)
    yield np.tile(np.append(0, 1 + rng.permutation(10)), 2), 13
    yield np.tile(rng.permutation(30), 2), 30
    yield from ((rng.integers(0, 7, 20), 7) for _ in range(4))
    yield np.asarray([3, 1, 1, 4, 0, 2, 2, 5, 3, 0]), 6
    yield np.asarray([2, 2, 0, 4, 3, 0, 1]), 5
