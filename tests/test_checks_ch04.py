"""Chapter 4's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from mending import mended

from attnbook.course.checks import ch04


def softmax(s, mask=True):
    s = np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def taken(tokens, index):
    return np.take_along_axis(tokens, index % tokens.shape[1], axis=1)


def reverse(tokens, lengths, behind=None, shift=0):
    """The right answer, and its neighbours: one too far, something else behind."""
    j, size = np.arange(tokens.shape[1]), lengths[:, None]
    behind = tokens if behind is None else behind
    return np.where(j < size, taken(tokens, size - 1 - j + shift), behind)


def from_the_end_of_the_row(tokens, lengths):
    return np.where(np.arange(tokens.shape[1]) < lengths[:, None], tokens[:, ::-1], tokens)


def rolled(tokens, lengths):
    n = tokens.shape[1]
    return np.stack([np.roll(row, n - length) for row, length in zip(tokens, lengths, strict=True)])


def one_length(tokens, length):
    return taken(tokens, np.tile(length - 1 - np.arange(tokens.shape[1]), (len(tokens), 1)))


def all_turned_by_index(tokens, lengths):
    return taken(tokens, lengths[:, None] - 1 - np.arange(tokens.shape[1]))


def local(s, centre, width, window=None, scale=1.0, power=2, first=softmax):
    """The right answer, and its neighbours: another window, exponent or softmax."""
    d = np.abs(np.arange(s.shape[1]) - centre[:, None])
    inside = d <= (width if window is None else window)
    return first(s, inside) * np.exp(-scale * d**power / (2 * (width / 2) ** 2))


def renormalised(s, centre, width):
    w = local(s, centre, width)
    return w / w.sum(-1, keepdims=True)


def inside_the_softmax(s, centre, width):
    d = np.arange(s.shape[1]) - centre[:, None]
    return softmax(s - d**2 / (2 * (width / 2) ** 2), np.abs(d) <= width)


def rounded_factor(s, centre, width):
    d = np.round(np.arange(s.shape[1]) - centre[:, None])
    return local(s, centre, width, scale=0) * np.exp(-(d**2) / (2 * (width / 2) ** 2))


def open_window(s, centre, width):
    return local(s, centre, width, window=width - 1e-9)


def zeros(s, inside):
    return softmax(np.where(inside, s, 0))


def best(score):
    return lambda s, n, a: np.argmax(score(s, n, a))


def penalty(n, a):
    return ((5 + n) / 6) ** a


FIRST = np.array([0.5, 0.4, 0.1])
SECOND = np.array([[0.4, 0.3, 0.3], [0.9, 0.1, 0.0], [0.2, 0.2, 0.6]])


def places(weights):
    return weights @ np.arange(weights.shape[1])


def descents(p, margin=0.5):
    return np.triu(p[:, None] - p > margin)


def climbs(w):
    return np.sum(np.triu(places(w) - places(w)[:, None] > 0.5))


def apart(w):
    return np.abs(places(w)[:, None] - places(w)) > 0.5


G, C, R, L = ch04.gru_parameters, ch04.character_accuracy, ch04.reverse_padded, ch04.local_weights
B, F, X = ch04.best_of_beam, ch04.greedy_fails, ch04.crossings
P, M = ch04.loss_before_training, ch04.mean_loss


def padded(old="np.where(real, loss, 0.0).mean()", new="np.where(real, loss, 0.0).mean()"):
    """The broken code of the exercise with one text replaced."""
    return mended(ch04.PADDED, "mean_loss", (old, new))


WRONG = [
    (P, lambda v, n: n * np.log(v), "That is the sum over the output"),
    (P, lambda v, n: np.log(v) / n, "its mean over the steps is log V"),
    (P, lambda v, n: -np.log(v), "The sign is turned: a loss is minus"),
    (P, lambda v, n: 1 / v, "the probability of a character: take minus"),
    (P, lambda v, n: v, "one over the probability of a character"),
    (P, lambda v, n: np.log2(v), "That is in bits"),
    (P, lambda v, n: np.log10(v), "not that of base 10"),
    (P, lambda v, n: np.log(n), "as many characters to choose from"),
    (P, lambda v, n: 1 - 1 / v, "the probability of a wrong character."),
    (P, lambda v, n: np.log(v) / v, "nothing divides by V"),
    (P, lambda v, n: np.log(v - 1), "all V share the probability"),
    (M, padded("real = labels != pad", "real = labels > 1"), "the fault is in another line than you changed"),
    (M, padded(new="loss.mean()"), "padding is counted as if it were text"),
    (M, padded(new="np.where(real, loss, 0.0).sum()"), "That is the sum: the loss is a mean"),
    (M, padded(new="(np.where(real, loss, 0).sum(1) / real.sum(1)).mean()"), "Each row counts alike"),
    (M, padded(new="np.where(real, loss, 0.0).sum() / len(labels)"), "by the number of rows"),
    (M, padded(new="np.where(real, loss, 0.0).sum(axis=1).mean()"), "by the number of rows"),
    (M, padded(new="np.where(real, loss, 0.0).sum(axis=0).mean()"), "by the length of the rows"),
    (M, padded(new="loss[~real].mean()"), "the loss of the padding alone"),
    (M, padded(new="np.where(real, loss, 0.0).sum() / (~real).sum()"), "the number of padded labels"),
    (M, padded("real = labels != pad", "real = labels != pad; loss = loss * real.size / real.sum()"), "the faulty line still stands"),
    (G, lambda i, h: h * (i + h + 2), "That is one part"),
    (G, lambda i, h: 2 * h * (i + h + 2), "Two parts are the gates"),
    (G, lambda i, h: 4 * h * (i + h + 2), "an LSTM's"),
    (G, lambda i, h: 6 * h * (i + h + 2), "in one direction"),
    (G, lambda i, h: 3 * h * (i + h + 1), "One vector of bias is missing"),
    (G, lambda i, h: 3 * h * (i + h), "The biases are missing"),
    (G, lambda i, h: 3 * h * (i + h) + 2 * h, "Each of the three parts"),
    (G, lambda i, h: 3 * (h * i + h * h + 2), "A bias is a vector"),
    (G, lambda i, h: 3 * h * (i + 2), "U is missing"),
    (G, lambda i, h: 3 * h * (h + 2), "W is missing"),
    (G, lambda i, h: 3 * h * (2 * i + 2), "as many as the state's"),
    (G, lambda i, h: 3 * i * (i + h + 2), "exchanged"),
    (G, lambda i, h: 780, "you give 780"),
    (C, lambda e, n: e**n, "the way back"),
    (C, lambda e, n: e, "more characters than one"),
    (C, lambda e, n: e / n, "probabilities multiply"),
    (C, lambda e, n: 1 - (1 - e) / n, "but a line"),
    (C, lambda e, n: 1 - e ** (1 / n), "of a wrong character"),
    (C, lambda e, n: 1 - (1 - e) ** (1 / n), "one right character at least"),
    (C, lambda e, n: np.log(e) / n, "That is log c"),
    (C, lambda e, n: 100 * e ** (1 / n), "in percent"),
    (C, lambda e, n: e ** (1 / (n + 1)), "One character too many"),
    (C, lambda e, n: e**0.5, "That is for two characters"),
    (R, lambda t, n: t, "Nothing is reversed"),
    (R, lambda t, n: t[:, ::-1], "The padding comes first"),
    (R, from_the_end_of_the_row, "from the end of the row"),
    (R, rolled, "The padding moves to the front"),
    (R, lambda t, n: t[::-1], "along the other axis"),
    (R, lambda t, n: reverse(t, n, shift=1), "One too far"),
    (R, lambda t, n: reverse(t, n, shift=-1), "One too early"),
    (R, lambda t, n: one_length(t, n.max()), "One length for all rows"),
    (R, lambda t, n: one_length(t, n[0]), "One length for all rows"),
    (R, lambda t, n: reverse(t, n, behind=0), "what is behind them has changed"),
    (R, all_turned_by_index, "what is behind them has changed"),
    (R, lambda t, n: reverse(t, n).astype(int), "lengths 5, 2, 1 and n = 5, in entry [0, 1]"),
    (R, lambda t, n: reverse(t, n)[:, :4], "give shape (3, 4)"),
    (L, renormalised, "Your rows sum to 1"),
    (L, inside_the_softmax, "Your rows sum to 1"),
    (L, lambda *a: local(*a, scale=0), "(2σ²)) is missing"),
    (L, lambda *a: local(*a, first=lambda s, m: m), "scores have no effect"),
    (L, lambda *a: local(*a, window=np.inf), "The window is missing"),
    (L, lambda *a: local(*a, first=lambda s, m: m * softmax(s)), "softmax is over all keys"),
    (L, lambda *a: local(*a, first=zeros), "A score of 0"),
    (L, lambda *a: local(*a, first=lambda s, m: m * zeros(s, m)), "A score of 0"),
    (L, lambda *a: local(*a, scale=1 / 4), "You take D for σ: "),
    (L, lambda s, c, w: local(s, c, w, scale=w / 4), "You take D for σ², or D/2"),
    (L, lambda s, c, w: local(s, c, w, scale=w / 2), "You take D for σ², or D/2"),
    (L, lambda *a: local(*a, scale=2), "The 2 of 2σ²"),
    (L, lambda *a: local(*a, power=1), "not squared"),
    (L, lambda *a: local(*a, scale=-1), "sign in the exponential"),
    (L, lambda s, c, w: local(s, c, w) / (w / 2 * np.sqrt(2 * np.pi)), "a density"),
    (L, lambda s, c, w: local(s, c, w, window=w / 2), "to each side"),
    (L, open_window, "A key at the distance D"),
    (L, lambda s, c, w: local(s, np.round(c), w), "Do not round"),
    (L, rounded_factor, "Do not round"),
    (L, lambda s, c, w: local(s, c - 1, w), "j starts there"),
    (L, lambda *a: local(*a).sum(-1), "give shape (3,)"),
    (B, best(lambda s, n, a: s), "has no effect"),
    (B, best(lambda s, n, a: s * penalty(n, a)), "You multiply by the penalty"),
    (B, lambda s, n, a: np.argmin(s / penalty(n, a)), "That is the smallest"),
    (B, best(lambda s, n, a: s / n), "whatever α"),
    (B, best(lambda s, n, a: s / n**a), "without the 5"),
    (B, best(lambda s, n, a: s / (5 + n)), "does not depend on α"),
    (B, best(lambda s, n, a: s - penalty(n, a)), "You subtract"),
    (B, best(lambda s, n, a: s + penalty(n, a)), "You add"),
    (B, best(lambda s, n, a: s / ((5 + n**a) / 6)), "the whole sum"),
    (B, best(lambda s, n, a: n), "the longest"),
    (B, lambda s, n, a: 0, "the first of the beam"),
    (B, lambda s, n, a: np.max(s / penalty(n, a)), "from 0, not the score"),
    (B, lambda s, n, a: 1 + np.argmax(s), "from 0, not the score"),
    (B, lambda s, n, a: s / penalty(n, a), "shape (6,): return one index"),
    (F, lambda: (FIRST, SECOND[:2]), "(3,) and (2, 3), expected"),
    (F, lambda: FIRST, "must return two arrays"),
    (F, lambda: (np.log(FIRST), np.log(SECOND + 0.1)), "Are these logarithms"),
    (F, lambda: (2 * FIRST, SECOND), "sum to 2, not 1"),
    (F, lambda: (FIRST, SECOND.T), "Your columns sum to 1"),
    (F, lambda: (FIRST, FIRST[:, None] * SECOND), "probabilities of pairs"),
    (F, lambda: (FIRST, np.full((3, 3), 0.5)), "row 0 of the second array does not sum to 1. A row"),
    (F, lambda: (FIRST, np.eye(3)), "no pair has more"),
    (F, lambda: (FIRST, SECOND[[1, 0, 2]]), "no pair has more"),
    (F, lambda: ([0.45, 0.45, 0.1], SECOND), "where greedy chooses"),
    (F, lambda: (FIRST, [[0.4, 0.4, 0.2], [0.9, 0.1, 0], [1, 0, 0]]), "where greedy chooses"),
    (F, lambda: ([0.36, 0.33, 0.31], [[0.4, 0.3, 0.3], [0.4, 0.3, 0.3], [1, 0, 0]]), "the third most"),
    (F, lambda: ([0.4, 0.3, 0.3], SECOND), "tie for the second place"),
    (X, climbs, "the pairs in order"),
    (X, lambda w: np.sum(np.triu(apart(w))), "the earlier step looks further"),
    (X, lambda w: np.sum(apart(w)), "You count every pair twice"),
    (X, lambda w: np.sum(descents(places(w), 0)), "less than half a position"),
    (X, lambda w: np.sum(descents(places(w), 1)), "you ask for one"),
    (X, lambda w: np.sum(np.diff(places(w)) < -0.5), "neighbouring steps"),
    (X, lambda w: np.sum(descents(places(w)).any(1)), "You count steps"),
    (X, lambda w: 2 * np.sum(descents(places(w))) / len(w) / (len(w) - 1), "That is their share"),
    (X, lambda w: np.sum(descents(w.argmax(1), 0)), "the largest weight"),
    (X, lambda w: np.sum(descents(places(w.T))), "average over j"),
    (X, lambda w: 0, "for 8 steps you give 0, expected 21"),
    (X, lambda w: descents(places(w)), "give shape (8, 8), expected one number"),
]  # fmt: skip


def turned(t, lengths, how=lambda row: row[::-1]):
    t = t.copy()
    for i, n in enumerate(lengths):
        t[i, :n] = how(t[i, :n])
    return t


def by_loop(tokens, lengths):
    answer = tokens.copy()
    for row, length in zip(answer, lengths, strict=True):
        row[:length] = row[:length][::-1]
    return answer


def by_comprehension(tokens, lengths):
    pairs = zip(tokens, lengths, strict=True)
    return np.stack([np.append(row[:n][::-1], row[n:]) for row, n in pairs])


def overwritten(t, lengths):
    """A loop that reads what it has written."""
    out = t.tolist()
    for row, n in zip(out, lengths, strict=True):
        for j in range(int(n)):
            row[j] = row[n - 1 - j]
    return out


def no_return(t, lengths):
    for i, n in enumerate(lengths):
        t[i, :n] = t[i, :n][::-1]


def windowed(s, c, w, inside=lambda d, w: np.abs(d) <= w, bell=None):
    d = np.arange(s.shape[1]) - c[:, None]
    bell = np.exp(-(d**2) / (2 * (w / 2) ** 2)) if bell is None else bell(d, w)
    return softmax(np.where(inside(d, w), s, -np.inf)) * bell


WRONG += [
    (ch04.gru_parameters, lambda i, h: 3 * (i + h) ** 2, "W has shape (h, i) and U (h, h)"),
    (ch04.gru_parameters, lambda i, h: 3 * (i * h + h * h + i + h), "A bias has the state's width, both times"),
    (ch04.character_accuracy, lambda e, n: 1 - e ** n, "That is one failure at least, if exact were c"),
    (ch04.character_accuracy, lambda e, n: np.log2(e) / n, "That is a logarithm: take the power"),
    (ch04.reverse_padded, lambda t, lengths: turned(t, lengths, np.sort), "That sorts"),
    (ch04.reverse_padded, lambda t, lengths: turned(t, lengths - 1), "The last of L entries stays"),
    (ch04.reverse_padded, lambda t, lengths: turned(t, lengths + 1), "One entry of the padding is in it"),
    (ch04.reverse_padded, lambda t, lengths: np.flip(t), "That turns both axes: the sequences keep their order"),
    (ch04.reverse_padded, lambda t, lengths: turned(t, lengths, lambda r: np.roll(r, 1)), "That is a shift by one, no reverse"),
    (ch04.reverse_padded, no_return, "your function returns nothing: does it end with return?"),
    (ch04.reverse_padded, by_loop, "the rows are right, but by a loop"),
    (ch04.reverse_padded, by_comprehension, "the rows are right, but by a loop"),
    (ch04.reverse_padded, overwritten, "The second half reads what the first has overwritten:"),
    (ch04.local_weights, lambda s, c, w: windowed(s, c, w, bell=lambda d, w: np.exp(-d ** 2 / (2 * (w // 2) ** 2))), "D/2 has a fraction: no //"),
    (ch04.local_weights, lambda s, c, w: windowed(s, c, w, inside=lambda d, w: (d >= 0) & (d <= w)), "The window has keys before the centre too"),
    (ch04.local_weights, lambda s, c, w: windowed(s, c, w, inside=lambda d, w: (d <= 0) & (d >= -w)), "The window has keys after the centre too"),
    (ch04.local_weights, lambda s, c, w: windowed(s, c, w, inside=lambda d, w: d <= w), "The distance is an absolute value: keys before"),
    (ch04.local_weights, lambda s, c, w: windowed(s, c, w, inside=lambda d, w: d ** 2 <= w), "Compare the distance with D, not its square"),
    (ch04.local_weights, lambda s, c, w: np.exp(s) * (np.abs(np.arange(11) - c[:, None]) <= w) * np.exp(-(np.arange(11) - c[:, None]) ** 2 / (2 * (w / 2) ** 2)), "The softmax is missing: divide by its sum, then factor"),
    (ch04.local_weights, lambda s, c, w: windowed(s, c, w, bell=lambda d, w: np.exp(-d ** 2 / 2 * (w / 2) ** 2)), "Brackets: divide by 2σ², not by 2"),
    (ch04.best_of_beam, lambda s, n, a: np.argmax(s / (5 + n / 6) ** a), "Brackets: 5 + |y| is divided by 6"),
    (ch04.best_of_beam, lambda s, n, a: np.argmax(s / ((5 + n) // 6) ** a), "The quotient has a fraction: / and not //"),
    (ch04.best_of_beam, lambda s, n, a: np.argmin(n), "That is the shortest"),
    (ch04.best_of_beam, lambda s, n, a: np.argmax(s / ((6 + n) / 6) ** a), "It is 5 + |y|, so that length 1 has penalty 1"),
    (ch04.greedy_fails, lambda: ([0.5, 0.4, 0.2], SECOND), "the three probabilities of the first symbol sum to 1.1,"),
    (ch04.greedy_fails, lambda: (100 * FIRST, 100 * SECOND), "the three probabilities of the first symbol sum to 100,"),
    (ch04.crossings, lambda w: np.triu(places(w)[:, None] - places(w) > 0.5).mean(), "That is a mean: return the number"),
    (ch04.crossings, lambda w: np.triu(places(w)[:, None] - places(w) > 0.5).any(0).sum(), "You count steps"),
    (ch04.crossings, lambda w: np.triu(np.maximum(places(w)[:, None] - places(w), 0)).sum(), "You add up how far: count the pairs"),
]  # fmt: skip


def torch_cell(input_dim, hidden_dim):
    import torch

    return sum(p.numel() for p in torch.nn.GRUCell(input_dim, hidden_dim).parameters())


def jax_cell(input_dim, hidden_dim):
    import jax

    from attnbook.jax import GRUCell

    cell = GRUCell(input_dim, hidden_dim, key=jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(cell))


def torch_accuracy(exact, length):
    import torch

    return torch.tensor(exact, dtype=torch.float64).log().div(length).exp()


def torch_reverse(tokens, lengths):
    import torch

    j = torch.arange(tokens.shape[1])
    size = lengths[:, None]
    return tokens.gather(1, torch.where(j < size, size - 1 - j, j))


def jax_reverse(tokens, lengths):
    import jax
    import jax.numpy as jnp

    j = jnp.arange(tokens.shape[1])
    return jax.vmap(lambda row, size: row[jnp.where(j < size, size - 1 - j, j)])(tokens, lengths)


def reverse_by_sorting(tokens, lengths):
    j = np.arange(tokens.shape[1])
    order = np.argsort(np.where(j < lengths[:, None], -j, j), axis=1)
    return np.take_along_axis(tokens, order, axis=1)


def torch_local(scores, centre, width):
    import torch

    d = torch.arange(scores.shape[1]) - centre[:, None]
    inside = scores.masked_fill(d.abs() > width, -torch.inf).softmax(-1)
    return inside * torch.exp(-2 * (d / width) ** 2)


def jax_local(scores, centre, width):
    import jax
    import jax.numpy as jnp

    d = jnp.arange(scores.shape[1], dtype=scores.dtype) - centre[:, None]
    window = jax.nn.softmax(scores, where=jnp.abs(d) <= width, axis=-1)
    return window * jnp.exp(-2 * (d / width) ** 2)


def loop_local(scores, centre, width):
    weights = np.zeros_like(scores)
    for row, c, w in zip(scores, centre, weights, strict=True):
        window = [j for j in range(len(row)) if abs(j - c) <= width]
        total = sum(np.exp(row[j]) for j in window)
        for j in window:
            w[j] = np.exp(row[j]) / total * np.exp(-((j - c) ** 2) / (2 * (width / 2) ** 2))
    return weights


def torch_best(log_probabilities, lengths, alpha):
    return (log_probabilities / (5 + lengths).pow(alpha)).argmax()


def jax_best(log_probabilities, lengths, alpha):
    import jax.numpy as jnp

    return jnp.argmax(log_probabilities / ((5 + lengths) / 6) ** alpha)


def loop_best(log_probabilities, lengths, alpha):
    return max(range(6), key=lambda i: log_probabilities[i] / ((5 + lengths[i]) / 6) ** alpha)


def torch_fails():
    import torch

    return torch.tensor([0.3, 0.5, 0.2]), torch.tensor([[0.0, 0, 1], [0.4, 0.3, 0.3], [1, 0, 0]])


def jax_fails():
    import jax.numpy as jnp

    return jnp.asarray(FIRST), jnp.asarray(SECOND)


def torch_crossings(weights):
    import torch

    p = weights @ torch.arange(weights.shape[1], dtype=weights.dtype)
    return torch.triu(p[:, None] - p > 0.5).sum()


def jax_crossings(weights):
    import jax.numpy as jnp

    p = weights @ jnp.arange(weights.shape[1], dtype=weights.dtype)
    return jnp.sum(jnp.triu(p[:, None] - p > 0.5))


def loop_crossings(weights):
    p = [sum(j * w for j, w in enumerate(row)) for row in weights]
    return sum(p[i] - later > 0.5 for i in range(len(p)) for later in p[i + 1 :])


RIGHT = [
    (P, lambda v, n: math.log(v)),
    (P, lambda v, n: -np.mean(np.log(np.full(n, 1 / v)))),
    (M, padded(new="np.where(real, loss, 0.0).sum() / real.sum()")),
    (M, padded(new="loss[real].mean()")),
    (M, padded(new="np.average(loss, weights=real)")),
    (G, torch_cell),
    (G, jax_cell),
    (G, lambda i, h: 3 * h * (i + h + 2)),
    (C, torch_accuracy),
    (C, lambda e, n: e ** (1 / n)),
    (C, lambda e, n: np.exp(np.log(e) / n)),
    (R, torch_reverse),
    (R, jax_reverse),
    (R, reverse),
    (R, reverse_by_sorting),
    (L, torch_local),
    (L, jax_local),
    (L, loop_local),
    (L, local),
    (L, lambda s, c, w: local(s.astype(np.float32), c.astype(np.float32), w)),
    (B, torch_best),
    (B, jax_best),
    (B, loop_best),
    (B, best(lambda s, n, a: s / penalty(n, a))),
    (F, torch_fails),
    (F, jax_fails),
    (F, lambda: (FIRST.astype(np.float32), SECOND.tolist())),
    (X, torch_crossings),
    (X, jax_crossings),
    (X, loop_crossings),
    (X, lambda w: np.sum(descents(places(w)))),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [G, P, C, R, L, B, F, X])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert repr(verdict).startswith(f"… {check.__name__}: not written yet")


def test_what_the_beam_exercise_praises():
    message = F(lambda: (FIRST, SECOND)).message
    assert "writes (0, 0), with probability 0.2, a beam of two finds 0.36" in message


def begins(text):
    """Where the words of a German or French numeral begin, as the last exercise finds it."""
    french = " " in text or "-" in text
    word = "[^ -]+" if french else "hundert|tausend|und|.+?(?=hundert|tausend|und|$)"
    return [m.start() for m in re.finditer(word, text) if m[0] not in ("und", "et")]


def test_the_words_that_the_crossings_exercise_finds():
    words = {
        "einundzwanzig": [0, 6],
        "dreihunderteinundzwanzig": [0, 4, 11, 17],
        "hunderttausend": [0, 7],
        "quatre-vingt-dix-huit": [0, 7, 13, 17],
        "soixante et onze": [0, 12],
    }
    for text, expected in words.items():
        assert begins(text) == expected


def test_how_many_german_numbers_cross():
    crosses = [n % 100 > 20 and n % 10 > 0 for n in range(1000)]
    below_a_million = 1 - (1 - sum(crosses) / 1000) ** 2
    assert below_a_million == pytest.approx(0.9216)
    ideal = np.eye(2)[[1] * 3 + [0] * 7]  # the letters of ein and zwanzig
    assert loop_crossings(ideal) == 21
    assert loop_crossings(ideal[[0, 3]]) == 1
