"""Answers to chapter 4's exercises, right and wrong."""

from __future__ import annotations

import numpy as np
import torch
from mending import mended

from attnbook_course.checks import ch04


def reverse(tokens, lengths, behind):
    """The right answer, with something else behind it."""
    j, size = np.arange(tokens.shape[1]), lengths[:, None]
    turned = np.take_along_axis(tokens, (size - 1 - j) % tokens.shape[1], axis=1)
    return np.where(j < size, turned, behind)


def best(score):
    return lambda s, n, a: np.argmax(score(s, n, a))


def penalty(n, a):
    return ((5 + n) / 6) ** a


FIRST = np.array([0.5, 0.4, 0.1])
SECOND = np.array([[0.4, 0.3, 0.3], [0.9, 0.1, 0.0], [0.2, 0.2, 0.6]])


def places(weights):
    return weights @ np.arange(weights.shape[1])


def climbs(p):
    return np.sum(np.triu(p - p[:, None] > 0.5))


def padded(old="np.where(real, loss, 0.0).mean()", new=""):
    """The broken code of the exercise with one text replaced."""
    return mended(ch04.PADDED, "mean_loss", (old, new))


def by_loop(tokens, lengths):
    answer = tokens.copy()
    for row, length in zip(answer, lengths, strict=True):
        row[:length] = row[:length][::-1]
    return answer


def torch_local(scores, centre, width):
    d = torch.arange(scores.shape[1]) - centre[:, None]
    inside = scores.masked_fill(d.abs() > width, -torch.inf).softmax(-1)
    return inside * torch.exp(-2 * (d / width) ** 2)


def torch_fails():
    return torch.tensor([0.3, 0.5, 0.2]), torch.tensor([[0.0, 0, 1], [0.4, 0.3, 0.3], [1, 0, 0]])


RIGHT = {
    "character_accuracy": [lambda e, n: torch.tensor(e, dtype=torch.float64).log().div(n).exp()],
    "local_weights": [torch_local],
    "best_of_beam": [lambda s, n, a: (s / (5 + n).pow(a)).argmax()],
    "greedy_fails": [torch_fails],
}

WRONG = {
    "loss_before_training": [(lambda v, n: n * np.log(v), "That is the sum over the output")],
    "mean_loss": [
        (padded("!= pad", "!= pad; loss *= real.size / real.sum()"), "the faulty line still stands")
    ],
    "gru_parameters": [(lambda i, h: 2 * h * (i + h + 2), "Two parts are the gates")],
    "reverse_padded": [
        (lambda t, n: reverse(t, n, behind=0), "what is behind them has changed"),
        (by_loop, "the rows are right, but by a loop"),
    ],
    "best_of_beam": [
        (best(lambda s, n, a: s), "has no effect"),
        (best(lambda s, n, a: s * penalty(n, a)), "You multiply by the penalty"),
        (lambda s, n, a: np.argmin(s / penalty(n, a)), "That is the smallest"),
        (best(lambda s, n, a: s / n**a), "without the 5"),
        (lambda s, n, a: np.max(s / penalty(n, a)), "from 0, not the score"),
        (lambda s, n, a: s / penalty(n, a), "shape (6,): return one index"),
    ],
    "greedy_fails": [
        (lambda: (FIRST, SECOND[:2]), "(3,) and (2, 3), expected"),
        (lambda: (np.log(FIRST), np.log(SECOND + 0.1)), "Are these logarithms"),
        (lambda: (2 * FIRST, SECOND), "sum to 2, not 1"),
        (lambda: (FIRST, FIRST[:, None] * SECOND), "probabilities of pairs"),
        (lambda: (FIRST, np.full((3, 3), 0.5)), "row 0 of the second array does not sum to 1. A"),
        (lambda: (FIRST, np.eye(3)), "no pair has more"),
        (lambda: ([0.45, 0.45, 0.1], SECOND), "where greedy chooses"),
        (lambda: ([0.36, 0.33, 0.31], [SECOND[0], SECOND[0], [1, 0, 0]]), "the third most"),
        (lambda: ([0.4, 0.3, 0.3], SECOND), "tie for the second place"),
    ],
    "crossings": [(lambda w: climbs(places(w)), "the pairs in order")],
}
