"""Chapter 9's check of a layer that is one step of gradient descent."""

import numpy as np

from attnbook.course.checks.call import call
from attnbook.course.checks.verdict import Function, Wrong, check, expect, show


@check
def gradient_layer(function: Function) -> str:
    """function(p, n, rate): W_q, W_k, W_v, each (p + 1, p + 1): a layer that is one step."""
    rng = np.random.default_rng(7)
    for p, n, rate in ((2, 5, 0.3), (3, 7, 0.7)):
        got = call(function, p, n, rate)
        where = f"for p = {p}, n = {n}, rate = {rate}"
        if got.shape != (3, p + 1, p + 1):
            form = f"expected three matrices of shape ({p + 1}, {p + 1})"
            raise Wrong(f"{where} you give shape {got.shape}, {form}.")
        x, y = rng.normal(size=(n + 4, p)), np.append(rng.normal(size=n), np.zeros(4))
        tokens = np.column_stack([x, y])
        q, k, v = (tokens @ w.T for w in got)
        added = q @ k[:n].T @ v[:n]
        if not np.allclose(added[:, :p], 0, atol=1e-5):
            raise Wrong(f"{where} the layer changes x: values may have a last entry alone.")
        step = rate * x @ (x[:n].T @ y[:n]) / n  # x · β after one step from 0
        expect(added[n:, p], -step[n:], f"{where}, in the last entry of the queries,", [
            (step[n:], "The sign: it should hold minus the prediction."),
            (-step[n:] * n, "The loss is a mean: divide by n."),
            (-step[n:] / 2, "The ½ goes: a square has the derivative 2(…)."),
            (-step[n:] * n * n, "The loss is a mean: divide by n, once."),
            (-step[n:] * n / p, "The mean is over the n pairs, not over the p inputs."),
            (-step[n:] * n / (n + 1), "There are n pairs: divide by n."),
            (-step[n:] * 2, "The loss has a ½: its gradient has no 2."),
            (-step[n:] / rate, "The learning rate is missing."),
            (-step[n:] * rate, "The learning rate is in it twice."),
            (-step[n:] * (p + 1) ** 0.5, "This layer does not divide scores by √d: undo nothing."),
            (0 * step[n:], "Nothing is added: do keys and values read the right entries?"),
            (added[n:, p], _of_step(added[n:, p], -step[n:])),
        ])  # fmt: skip
        expect(added[:n, p], -step[:n], f"{where}, in the last entry of the pairs,", [
            (-step[:n] - rate * y[:n] * (y[:n] @ y[:n]) / n, "Scores of pairs may not contain y."),
            (added[:n, p], "The queries are right: y may enter no score of a pair."),
        ])  # fmt: skip
    return "what is left of y goes through the layers: as many steps as layers."


def _of_step(added: np.ndarray, right: np.ndarray) -> str:
    """What is wrong with a step of no known cause."""
    times = float(added @ right / (right @ right))
    if np.allclose(added, times * right, rtol=0, atol=1e-5 * np.abs(right).max()):
        return f"That is {show(times)} times one step: the factor should be −rate/n, once."
    return "That is no multiple of a step: scores are x · x_j, and values the last entry alone."
