"""The last checks of chapter 4: where greedy decoding fails, and crossings."""

import numpy as np

from attnbook.checks._numbers import softmax
from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check, expect


@check
def greedy_fails(function: Function) -> str:
    """function(): p(y_1) (3,), p(y_2 | y_1) (3, 3), where a beam of two beats greedy decoding."""
    first, second = call_pair(function)
    if (first.shape, second.shape) != ((3,), (3, 3)):
        raise Wrong(f"you give shapes {first.shape} and {second.shape}, expected (3,) and (3, 3).")
    if not (first.min() >= 0 and second.min() >= 0):
        raise Wrong("a probability is negative or NaN. Are these logarithms?")
    if abs(first.sum() - 1) > 1e-4:
        raise Wrong(f"the three probabilities of the first symbol sum to {first.sum():.4g}, not 1.")
    if np.abs(rows := second.sum(1) - 1).max() > 1e-4:
        cause = "A row is the second symbol's distribution after one first symbol."
        if abs(second.sum() - 1) < 1e-4:
            cause = "These are probabilities of pairs: divide each row by its sum."
        elif np.abs(second.sum(0) - 1).max() < 1e-4:
            cause = "Your columns sum to 1: rows belong to the first symbol, transpose."
        raise Wrong(f"row {np.abs(rows).argmax()} of the second array does not sum to 1. {cause}")
    pairs = first[:, None] * second
    a, c = int(first.argmax()), int(pairs.max(1).argmax())
    b = int(second[a].argmax())
    greedy, best = pairs[a, b], pairs.max()
    ordered, after = np.sort(first), np.sort(second[a])
    found = f"greedy decoding writes ({a}, {b}), with probability {greedy:.3g}"
    if ordered[-1] - ordered[-2] < 1e-4 or after[-1] - after[-2] < 1e-4:
        raise Wrong("two symbols are equally likely where greedy chooses: let one be ahead.")
    if best - greedy < 1e-4:
        raise Wrong(f"{found}, and no pair has more. What follows its first symbol must be unsure.")
    if ordered[1] - first[c] > 1e-4:
        better = f"the best pair begins with {c}, the third most probable symbol"
        raise Wrong(f"{found}, and {better}: a beam of two has dropped it.")
    if ordered[1] - ordered[0] < 1e-4:
        raise Wrong("two first symbols tie for the second place in the beam: let one be ahead.")
    return f"{found}, a beam of two finds {best:.3g}."


@check
def crossings(function: Function) -> str:
    """function(weights): pairs of steps whose expected positions descend by more than 0.5."""
    order = [1, 0, 3, 5, 4, 2]
    soft = softmax(np.random.default_rng(285).normal(size=(8, 11)) * 2.5)
    half = np.asarray([[0, 0.5, 0.5, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    for weights, case in (
        (soft, "8 steps"),
        (np.eye(6)[order], f"steps that look at {order}"),
        (half, "steps that look at 1.5, 1 and 0"),
    ):
        (m, n), where = weights.shape, f"for {case}"
        p = weights @ np.arange(n)
        later = np.triu(np.ones((m, m), dtype=bool), 1)
        down = p[:, None] - p
        up_down, q, other = np.abs(down) > 0.5, weights.argmax(1), weights.T @ np.arange(m)
        right = np.sum(later & (down > 0.5))
        expect(call(function, weights), right, where, [
            (np.sum(later & (down < -0.5)), "Those are the pairs in order: count the others."),
            (np.sum(later & up_down), "You count in either order: the earlier step looks further."),
            (np.sum(up_down), "You count every pair twice, once in either order."),
            (np.sum(later & (down > 0)), "A descent of less than half a position does not count."),
            (np.sum(later & (down > 1)), "More than half a position is enough: you ask for one."),
            (np.sum(np.diff(p) < -0.5), "Those are neighbouring steps: every pair counts."),
            (np.sum((later & (down > 0.5)).any(1)), "You count steps: count pairs."),
            (right / (m * (m - 1) / 2), "That is their share: return the number."),
            (np.sum(later & (q[:, None] > q)), "You take the largest weight: take the mean of j."),
            (np.sum(np.triu(other[:, None] - other > 0.5)), "A row is a step's: average over j."),
            (np.sum(later & (down >= 0.5)), "Exactly half a position is too little."),
            (np.sum(np.diff(p) > 0.5), "Those are neighbouring steps, and the ones in order."),
            (np.sum(up_down) // 2, "You count in either order: the earlier step looks further."),
            (np.sum(np.triu(np.maximum(down, 0))), "You add up how far: count the pairs."),
            (np.sum(later & (down > 0.5)) / m**2, "That is a mean: return the number."),
            (np.sum((later & (down > 0.5)).any(0)), "You count steps: count pairs."),
            (np.sum(later & (down / n > 0.5)), "Positions are not divided by n."),
        ])  # fmt: skip
    return "0 where the output follows the source, and every pair where it turns it over."
