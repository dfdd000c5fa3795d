"""The last check of chapter 3: a mean that counts."""

import numpy as np

from attnbook.checks._numbers import softmax
from attnbook.checks.answers import call_pair
from attnbook.checks.verdict import Function, Wrong, check


@check
def counting_scores(function: Function) -> str:
    """function(digits): n + 1 scores and values, the anchor's last; p/(1 − p) counts the 4s."""
    mixed = np.repeat(np.arange(10), [3, 7, 1, 9, 5, 2, 15, 6, 8, 4])
    others = [np.repeat(a, n) for a, n in (([4, 9], 30), ([4], 60), ([4], 1), ([9], 31), ([9], 0))]
    seen = []
    for bag in (np.random.default_rng(7).permutation(mixed), mixed[::3].copy(), *others):
        n, fours = len(bag), bag == 4
        s, v = call_pair(function, bag)
        where = f"for {n} digits, {fours.sum()} of them 4s, you give"
        if not s.shape == v.shape == (n + 1,):
            raise Wrong(f"{where} shapes {s.shape} and {v.shape}, expected ({n + 1},) for both.")
        with np.errstate(all="ignore"):
            w = softmax(s)
            p = w @ v
            seen.append(np.stack([s[:-1] - s[-1], v[:-1], v[-1] + np.zeros(n)])[:, fours])
            wrong = _miscount(bag, w, p, p / (1 - p))
        if wrong:
            raise Wrong(f"{where} p = {p:.4g}. {wrong}")
    table = np.concatenate(seen, axis=1)
    if not np.allclose(table, table[:, :1], atol=1e-3):
        raise Wrong("the counts are right, but a 4 or the anchor varies. Is the anchor last?")
    return "from no 4 to 60 of them: the anchor tells a mean how many it averages."


def _miscount(bag: np.ndarray, w: np.ndarray, p: float, odds: float) -> str:
    """Why the odds p/(1 − p) are not the number of 4s; nothing where they are."""
    counts = np.bincount(bag, minlength=10)
    if abs(odds - counts[4]) < 1e-3:
        return ""
    if w[-1] < 1e-6:
        return "The anchor has no weight: p is a mean over the digits, a frequency and no count."
    if np.isnan(p):
        return "0 times ∞ is NaN, and so is a softmax of −∞ alone."
    if not -1e-9 < p < 1 - 1e-9:
        return "p must be at least 0 and below 1: which values have a 4 and the anchor?"
    if abs(odds * counts[4] - 1) < 1e-3:
        return "p/(1 − p) is one over the number: the values of a 4 and the anchor are swapped."
    words = f"p/(1 − p) is {odds:.5g}, not {counts[4]}"
    for digit in np.flatnonzero(np.abs(odds - counts) < 1e-3):
        return f"{words}: the number of {digit}s."
    if (leak := w[:-1][bag != 4].sum()) > 1e-7:
        return f"{words}: the other digits hold {leak:.2%} of the weight, more if there are more."
    return f"{words}: do a 4 and the anchor weigh the same, and are their values 1 apart?"
