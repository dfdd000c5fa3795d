"""Answers to chapter 4's exercises, right and wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import mended, softmax

from attnbook_course.checks import ch04


def reverse(tokens, lengths, behind):
    """The right answer, with something else behind it."""
    j, size = np.arange(tokens.shape[1]), lengths[:, None]
    turned = np.take_along_axis(tokens, (size - 1 - j) % tokens.shape[1], axis=1)
    return np.where(j < size, turned, behind)


def local(s, centre, width, window=None, scale=1.0, power=2):
    """The right answer, and its neighbours: another window or exponent."""
    d = np.abs(np.arange(s.shape[1]) - centre[:, None])
    inside = d <= (width if window is None else window)
    return softmax(s, inside) * np.exp(-scale * d**power / (2 * (width / 2) ** 2))


def rounded_factor(s, centre, width):
    d = np.round(np.arange(s.shape[1]) - centre[:, None])
    return local(s, centre, width, scale=0) * np.exp(-(d**2) / (2 * (width / 2) ** 2))


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


def torch_cell(input_dim, hidden_dim):
    return sum(p.numel() for p in torch.nn.GRUCell(input_dim, hidden_dim).parameters())


def jax_cell(input_dim, hidden_dim):
    from attnbook.jax import GRUCell

    cell = GRUCell(input_dim, hidden_dim, key=jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(cell))


def torch_reverse(tokens, lengths):
    j = torch.arange(tokens.shape[1])
    size = lengths[:, None]
    return tokens.gather(1, torch.where(j < size, size - 1 - j, j))


def jax_reverse(tokens, lengths):
    j = jnp.arange(tokens.shape[1])
    return jax.vmap(lambda row, size: row[jnp.where(j < size, size - 1 - j, j)])(tokens, lengths)


def reverse_by_sorting(tokens, lengths):
    j = np.arange(tokens.shape[1])
    order = np.argsort(np.where(j < lengths[:, None], -j, j), axis=1)
    return np.take_along_axis(tokens, order, axis=1)


def torch_local(scores, centre, width):
    d = torch.arange(scores.shape[1]) - centre[:, None]
    inside = scores.masked_fill(d.abs() > width, -torch.inf).softmax(-1)
    return inside * torch.exp(-2 * (d / width) ** 2)


def jax_local(scores, centre, width):
    d = jnp.arange(scores.shape[1], dtype=scores.dtype) - centre[:, None]
    window = jax.nn.softmax(scores, where=jnp.abs(d) <= width, axis=-1)
    return window * jnp.exp(-2 * (d / width) ** 2)


def loop_best(s, n, a):
    return max(range(len(s)), key=lambda i: s[i] / ((5 + n[i]) / 6) ** a)


def torch_fails():
    return torch.tensor([0.3, 0.5, 0.2]), torch.tensor([[0.0, 0, 1], [0.4, 0.3, 0.3], [1, 0, 0]])


def torch_crossings(weights):
    p = weights @ torch.arange(weights.shape[1], dtype=weights.dtype)
    return torch.triu(p[:, None] - p > 0.5).sum()


def jax_crossings(weights):
    p = weights @ jnp.arange(weights.shape[1], dtype=weights.dtype)
    return jnp.sum(jnp.triu(p[:, None] - p > 0.5))


def loop_crossings(weights):
    p = [sum(j * w for j, w in enumerate(row)) for row in weights]
    return sum(p[i] - later > 0.5 for i in range(len(p)) for later in p[i + 1 :])


RIGHT = {
    "mean_loss": [padded(new="loss[real].mean()"), padded(new="np.average(loss, weights=real)")],
    "gru_parameters": [torch_cell, jax_cell],
    "character_accuracy": [lambda e, n: torch.tensor(e, dtype=torch.float64).log().div(n).exp()],
    "reverse_padded": [torch_reverse, jax_reverse, reverse_by_sorting],
    "local_weights": [
        torch_local,
        jax_local,
        lambda s, c, w: local(s.astype(np.float32), c.astype(np.float32), w),
    ],
    "best_of_beam": [
        lambda s, n, a: (s / (5 + n).pow(a)).argmax(),
        lambda s, n, a: jnp.argmax(s / ((5 + n) / 6) ** a),
        loop_best,
    ],
    "greedy_fails": [
        torch_fails,
        lambda: (jnp.asarray(FIRST), jnp.asarray(SECOND)),
        lambda: (FIRST.astype(np.float32), SECOND.tolist()),
    ],
    "crossings": [torch_crossings, jax_crossings, loop_crossings],
}

WRONG = {
    "loss_before_training": [
        (lambda v, n: n * np.log(v), "That is the sum over the output"),
        (lambda v, n: -np.log(v), "The sign is turned: a loss is minus"),
        (lambda v, n: 1 - 1 / v, "the probability of a wrong character"),
    ],
    "mean_loss": [
        (padded("!= pad", "> 1"), "the fault is in another line than you changed"),
        (padded(new="loss.mean()"), "padding is counted as if it were text"),
        (padded(new="np.mean(np.where(real, loss, 0).sum(1) / real.sum(1))"), "Each row counts"),
        (
            padded("!= pad", "!= pad; loss *= real.size / real.sum()"),
            "the faulty line still stands",
        ),
    ],
    "gru_parameters": [
        (lambda i, h: 2 * h * (i + h + 2), "Two parts are the gates"),
        (lambda i, h: torch_cell(i, h) - 3 * h, "One vector of bias is missing"),
        (lambda i, h: torch_cell(h, i), "Input and state are exchanged"),
        (lambda i, h: 780, "you give 780"),
    ],
    "character_accuracy": [
        (lambda e, n: e**n, "the way back"),
        (lambda e, n: 1 - (1 - e) / n, "Close where errors are few"),
        (lambda e, n: round(e ** (1 / n), 2), "Do not round"),
    ],
    "reverse_padded": [
        (
            lambda t, n: np.where(np.arange(5) < n[:, None], t[:, ::-1], t),
            "from the end of the row",
        ),
        (lambda t, n: reverse(t, n, behind=0), "what is behind them has changed"),
        (lambda t, n: reverse(t, n, t).astype(int), "lengths 5, 2, 1 and n = 5, in entry [0, 1]"),
        (by_loop, "the rows are right, but by a loop"),
    ],
    "local_weights": [
        (lambda s, c, w: local(s, c, w, power=1), "The distance is not squared"),
        (lambda s, c, w: local(s, c, w, window=w - 1e-9), "A key at the distance D"),
        (rounded_factor, "Do not round"),
    ],
    "best_of_beam": [
        (best(lambda s, n, a: s), "has no effect"),
        (best(lambda s, n, a: s * penalty(n, a)), "You multiply by the penalty"),
        (lambda s, n, a: np.argmin(s / penalty(n, a)), "That is the smallest"),
        (best(lambda s, n, a: s / n), "whatever α"),
        (best(lambda s, n, a: s / n**a), "without the 5"),
        (best(lambda s, n, a: s / (5 + n)), "does not depend on α"),
        (best(lambda s, n, a: s - penalty(n, a)), "You subtract"),
        (best(lambda s, n, a: s + penalty(n, a)), "You add"),
        (best(lambda s, n, a: s / ((5 + n**a) / 6)), "the whole sum"),
        (best(lambda s, n, a: n), "the longest"),
        (lambda s, n, a: 0, "the first of the beam"),
        (lambda s, n, a: np.max(s / penalty(n, a)), "from 0, not the score"),
        (lambda s, n, a: s / penalty(n, a), "shape (6,): return one index"),
        (best(lambda s, n, a: s / (5 + n / 6) ** a), "Brackets: 5 + |y| is divided by 6"),
        (best(lambda s, n, a: s / ((5 + n) // 6) ** a), "The quotient has a fraction"),
        (lambda s, n, a: np.argmin(n), "That is the shortest"),
        (best(lambda s, n, a: s / penalty(1 + n, a)), "so that length 1 has penalty 1"),
    ],
    "greedy_fails": [
        (lambda: (FIRST, SECOND[:2]), "(3,) and (2, 3), expected"),
        (lambda: (np.log(FIRST), np.log(SECOND + 0.1)), "Are these logarithms"),
        (lambda: (2 * FIRST, SECOND), "sum to 2, not 1"),
        (lambda: (FIRST, SECOND.T), "Your columns sum to 1"),
        (lambda: (FIRST, FIRST[:, None] * SECOND), "probabilities of pairs"),
        (lambda: (FIRST, np.full((3, 3), 0.5)), "row 0 of the second array does not sum to 1. A"),
        (lambda: (FIRST, np.eye(3)), "no pair has more"),
        (lambda: ([0.45, 0.45, 0.1], SECOND), "where greedy chooses"),
        (lambda: ([0.36, 0.33, 0.31], [SECOND[0], SECOND[0], [1, 0, 0]]), "the third most"),
        (lambda: ([0.4, 0.3, 0.3], SECOND), "tie for the second place"),
    ],
    "crossings": [
        (lambda w: climbs(places(w)), "the pairs in order"),
        (lambda w: climbs(places(w)) + loop_crossings(w), "the earlier step looks further"),
        (lambda w: loop_crossings(np.eye(w.shape[1])[w.argmax(1)]), "take the mean of j"),
        (lambda w: 0, "for 8 steps you give 0, expected 21"),
    ],
}
