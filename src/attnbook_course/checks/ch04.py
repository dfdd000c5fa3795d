"""Checks for chapter 4. Each knows the usual wrong answers by what they give."""

from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.source import has_loop
from attnbook_course.checks.verdict import Function, Wrong, check, expect


@check
def gru_parameters(function: Function) -> str:
    """function(i, h): the number of parameters of a GRU cell with two vectors of bias."""
    for i, h in ((5, 13), (64, 128)):
        one = h * (i + h + 2)
        where = f"for an input of {i} and a state of {h}"
        mistakes = [
            (one, "That is one part: there are three, two gates and the candidate."),
            (2 * one, "Two parts are the gates: the candidate has weights and biases too."),
            (4 * one, "Four parts are an LSTM's: a GRU has two gates and a candidate."),
            (3 * h * (i + h + 1), "One vector of bias is missing: W x and U s have one each."),
            (3 * h * (i + h), "The biases are missing."),
        ]
        expect(call(function, i, h), 3 * one, where, mistakes, tolerance=1e-7, secret=True)
    return "three parts, each with W, U and two vectors of bias."


@check
def loss_before_training(function: Function) -> str:
    """function(vocab, length): the mean cross-entropy of equal probabilities."""
    for vocab, length in ((24, 40), (7, 3)):
        right = np.log(vocab)
        where = f"for {vocab} characters and an output of {length}"
        mistakes = [
            (length * right, "That is the sum over the output: the loss is the mean."),
            (right / length, "Each step has log V: its mean over the steps is log V, not less."),
            (-right, "The sign is turned: a loss is minus the logarithm of a probability."),
            (1 / vocab, "That is the probability of a character: take minus its logarithm."),
            (np.log2(vocab), "That is in bits: the loss takes the natural logarithm."),
            (np.log(length), "There are as many characters to choose from as the vocabulary has."),
        ]
        expect(call(function, vocab, length), right, where, mistakes, secret=True)
    return "a model that knows nothing has the loss log V, at any length."


PADDED = '''
def mean_loss(logits, labels, pad):
    """Mean cross-entropy over the labels (b, m) that are not pad; logits (b, m, vocab)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    loss = -np.take_along_axis(log_p, labels[..., None], axis=-1)[..., 0]
    real = labels != pad
    return np.where(real, loss, 0.0).mean()
'''


@check
def mean_loss(function: Function) -> str:
    """function(logits, labels, pad): the code of the exercise, which divides by all positions."""
    fault = "return np.where(real, loss, 0.0).mean()"
    return repaired(function, PADDED, fault=fault, test=_mean_loss)


def _mean_loss(function: Function) -> str:
    rng = np.random.default_rng(6)
    labels = np.asarray([[3, 1, 4, 0, 0], [2, 2, 1, 4, 3], [1, 0, 0, 0, 0]])
    logits = rng.normal(size=(3, 5, 6))
    shifted = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    loss, real = -np.take_along_axis(shifted, labels[..., None], axis=-1)[..., 0], labels != 0
    kept = np.where(real, loss, 0)
    where = "for nine real labels"
    mistakes = [
        (kept.mean(), "The sum is divided by all 15 positions."),
        (loss.mean(), "Now padding is counted as if it were text."),
        (kept.sum(), "That is the sum: the loss is a mean."),
        (np.mean(kept.sum(1) / real.sum(1)), "Each row counts alike: count characters, not rows."),
        (kept.sum() / 3, "The sum is divided by the number of rows."),
    ]
    expect(call(function, logits, labels, 0), kept.sum() / real.sum(), where, mistakes)
    return "padding changes neither the sum nor what it is divided by."


@check
def character_accuracy(function: Function) -> str:
    """function(exact, length): the probability c of a right character, where c**length is exact."""
    for exact, length in ((0.81, 2), (0.9, 30), (0.25, 50)):
        where, miss = f"for an exact match of {exact:g} at {length} characters", 1 - exact
        mistakes = [
            (exact, "An output has more characters than one, and all must be right."),
            (exact / length, "Independent probabilities multiply: which c has that power?"),
            (1 - miss / length, "Close where errors are few, but a line: take the power."),
            (1 - miss ** (1 / length), "That is for one right character at least: all must be."),
        ]
        got = call(function, exact, length)
        expect(got, exact ** (1 / length), where, mistakes, tolerance=1e-6, secret=True)
    return "one weak character is enough to spoil a long output."


@check
def reverse_padded(function: Function) -> str:
    """function(tokens, lengths): (b, n), the first lengths[b] entries of each row in reverse."""
    j = np.arange(5)
    numbers = np.random.default_rng(3).permutation(15).reshape(3, 5) + 11
    for given, unit in (((3, 2, 4), 1), ((5, 2, 1), 0.25)):
        lengths, size = np.asarray(given), np.asarray(given)[:, None]
        real = j < size
        tokens = np.where(real, numbers, -1 - j) * unit

        def row(index: np.ndarray, tokens: np.ndarray = tokens) -> np.ndarray:
            return np.take_along_axis(tokens, np.broadcast_to(index % 5, (3, 5)), axis=1)

        where = f"for lengths {', '.join(map(str, given))} and n = 5"
        right = np.where(real, row(size - 1 - j), tokens)
        got = call(function, tokens, lengths)
        causes = [
            (row(4 - j), "The padding comes first: a row turned as a whole begins with it."),
            (np.where(real, row(size - j), tokens), "One too far: the last of L entries is L − 1."),
            (row(max(given) - 1 - j), "One length for all rows: each has its own."),
        ]
        if got.shape == right.shape and np.allclose(got[real], right[real]):
            behind = "The first L entries are right, but what is behind them has changed."
            causes.append((got, behind))
        expect(got, right, where, causes)
    if has_loop(function):
        raise Wrong("the rows are right, but by a loop: all positions fit into one (b, n) array.")
    return "a second encoder reads from the last token, and the padding stays behind."


@check
def local_weights(function: Function) -> str:
    """function(scores, centre, width): Luong's weights (m, n) around each query's centre."""
    s = np.random.default_rng(4).normal(size=(3, 11))
    for centre, width in ((np.asarray([4.3, 1.0, 9.6]), 3), (np.asarray([5.0, 0.2, 7.4]), 2)):
        d = np.arange(11) - centre[:, None]
        inside, sigma = np.abs(d) <= width, width / 2
        bell, window = np.exp(-(d**2) / (2 * sigma**2)), softmax(s, inside)
        zeros = softmax(np.where(inside, s, 0.0))
        right = window * bell
        where = f"for centres {', '.join(f'{c:g}' for c in centre)} and D = {width}"
        mistakes = [
            (right / right.sum(-1, keepdims=True), "Your rows sum to 1: the factor comes last."),
            (window, "The factor exp(−(j − c)²/(2σ²)) is missing."),
            (softmax(s) * bell, "The window is missing: keys beyond D have weight."),
            (zeros * bell, "A score of 0 is no mask: outside the window it must be −∞."),
            (window * bell**0.25, "You take D for σ: it is D/2."),
        ]
        expect(call(function, s, centre, width), right, where, mistakes)
    return "a key pays for its distance: a little inside the window, all of it beyond."


@check
def best_of_beam(function: Function) -> str:
    """function(log_probabilities, lengths, alpha): index of the best after the length penalty."""
    rng = np.random.default_rng(6)
    formulas: list[tuple[Function, str]] = [
        (lambda s, n, a: s, "The penalty has no effect: that is the largest log-probability."),
        (lambda s, n, a: s * ((5 + n) / 6) ** a, "You multiply by the penalty: divide by it."),
        (lambda s, n, a: -s / ((5 + n) / 6) ** a, "That is the smallest: log p is negative."),
        (lambda s, n, a: s / n**a, "That is length^α, without the 5: an earlier one of theirs."),
    ]
    beams, got, right, words = [], [], [], []
    for alpha in (0.2, 0.6, 1.0) * 12:
        n = rng.choice(np.arange(2, 50), 6, replace=False)
        s = -rng.uniform(0.8, 1.2, 6) * (n + rng.uniform(0, 8)) ** rng.uniform(0.2, 1)
        s = s * rng.choice([0.1, 1.0])
        answer = call(function, s, n, alpha)
        numbers = ", ".join(f"−{-v:.3g}" for v in s)
        where = f"for log-probabilities {numbers}, lengths {', '.join(map(str, n))}"
        where += f" and α = {alpha:g} you give"
        if answer.size != 1:
            raise Wrong(f"{where} shape {answer.shape}: return one index.")
        if answer.item() not in range(6):
            raise Wrong(f"{where} {answer.item():.4g}: return the index, from 0, not the score.")
        beams.append((s, n, alpha))
        got.append(answer.item())
        right.append(np.argmax(s / ((5 + n) / 6) ** alpha))
        words.append(f"{where} {answer.item():g}")
    for at in np.flatnonzero(np.asarray(got) != right)[:1]:
        for f, cause in formulas:
            if got == [np.argmax(f(*beam)) for beam in beams]:
                raise Wrong(f"{words[at]}. {cause}")
        raise Wrong(f"{words[at]}, expected {right[at]}.")
    return "long outputs pay for more symbols, and get some of it back."


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
    soft: Any = softmax(np.random.default_rng(285).normal(size=(8, 11)) * 2.5)
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
        q = weights.argmax(1)
        right = np.sum(later & (down > 0.5))
        mistakes = [
            (np.sum(later & (down < -0.5)), "Those are the pairs in order: count the others."),
            (np.sum(later & (down > 0)), "A descent of less than half a position does not count."),
            (np.sum(np.diff(p) < -0.5), "Those are neighbouring steps: every pair counts."),
            (np.sum((later & (down > 0.5)).any(1)), "You count steps: count pairs."),
            (np.sum(later & (q[:, None] > q)), "You take the largest weight: take the mean of j."),
        ]
        expect(call(function, weights), right, where, mistakes)
    return "0 where the output follows the source, and every pair where it turns it over."
