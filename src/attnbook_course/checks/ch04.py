"""Checks for chapter 4. Each knows the usual wrong answers by what they give."""

from functools import wraps
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_pair, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.source import has_loop
from attnbook_course.checks.verdict import Function, Wrong, check, expect, shape_of, show


@build
def read(function: Function) -> str:
    """function(state, memory, lengths, w_q, w_k, a): the context (b, h) and the weights (b, n).

    The build: additive attention of a decoder's states (b, s) to memories (b, n, h), of which the
    first lengths[l] words of row l are real; w_q is of shape (r, s), w_k (r, h), and a (r,).
    """
    rng = np.random.default_rng(12)
    lengths = np.asarray([3, 5, 1])
    for s, h, r in ((4, 4, 4), (4, 6, 7)):  # of one width first, where wrong sides have a result
        state, memory = rng.normal(size=(3, s)), rng.normal(size=(3, 5, h))
        w_q, w_k, a = rng.normal(size=(r, s)), rng.normal(size=(r, h)), rng.normal(size=r)
        given = state, memory, lengths, w_q, w_k, a
        where = f"for b, n, s, h, r = 3, 5, {s}, {h}, {r} and lengths 3, 5, 1"
        _read(function, where, given)
    refuse_writing(function, *given)
    weights = call_pair(function, *given)[1]
    padding = np.arange(5) >= lengths[:, None]
    if np.any(weights[padding] != 0):
        least = np.max(np.abs(weights[padding]))
        raise Wrong(f"padding has a weight of {show(least)}:", "a score of −∞ gives exactly 0.")
    _read_large(function, *given)
    return "each row is read up to its own length, and padding weighs exactly 0."


def _read(function: Function, where: str, given: tuple[np.ndarray, ...]) -> None:
    """Wrong unless weights and context are right."""
    state, memory, lengths, w_q, w_k, a = given
    real = np.arange(5) < lengths[:, None]
    asked, keys = (state @ w_q.T)[:, None], memory @ w_k.T
    s = np.tanh(asked + keys) @ a
    hidden = np.where(real, s, -np.inf)
    kernels = np.exp(hidden), np.exp(hidden - hidden.max(axis=1, keepdims=True))
    over = "That softmax runs over the batch: the weights of each row sum to 1, axis=1."
    inverted = np.where(lengths[:, None] == 5, np.nan, np.asarray(softmax(s, ~real)))
    causes: list[tuple[Any, str]] = [
        (softmax(s), "Padding is read too: hide it before the softmax."),
        (softmax(s) * real, "Masked after the softmax, rows no longer sum to 1."),
        (softmax(np.where(real, s, 0.0)), "Padding has the score 0, and e⁰ = 1: hide it by −∞."),
        (inverted, "The mask is inverted: the first lengths[l] words of a row are real."),
        (softmax(s, np.arange(5) <= lengths[:, None]), "One too far: words count from 0."),
        *((one / one.sum(axis=0), over) for one in kernels),
        (softmax((asked + keys) @ a, real), "The tanh is missing: without it the query cancels."),
        (softmax(np.tanh(keys) @ a, real), "The query cancels: add it inside the tanh."),
        (hidden, "These are scores: the softmax is missing."),
        *((one, "These are no shares: divide each row by its own sum.") for one in kernels),
    ]
    if w_q.shape == w_k.shape:
        swapped = np.tanh((state @ w_k.T)[:, None] + memory @ w_q.T) @ a
        turned = np.tanh((state @ w_q)[:, None] + memory @ w_k) @ a
        causes += [
            (softmax(swapped, real), "The memory asks: W_q is for the state, W_k for the words."),
            (softmax(turned, real), "A matrix is turned: rows of vectors times W.T."),
        ]
    context, weights = call_pair(function, *given)
    if context.shape == (3, 5) and weights.shape == (3, memory.shape[2]):
        raise Wrong(f"{where} you give the weights first:", "context, then weights.")
    right = builds.read(*given)
    expect(weights, right[1], f"{where}, in the weights", causes)
    averaged = [(right[1] @ memory.mean(axis=0), "Each row averages its own memory, not all.")]
    if keys.shape == memory.shape:
        of_keys = (right[1][:, None] @ keys)[:, 0]
        averaged += [(of_keys, "That is the average of W_k h: the values are the h themselves.")]
    expect(context, right[0], f"{where}, in the context", averaged)


def _read_large(
    function: Function,
    state: np.ndarray,
    memory: np.ndarray,
    lengths: np.ndarray,
    w_q: np.ndarray,
    w_k: np.ndarray,
    a: np.ndarray,
) -> None:
    """Wrong unless scores of 10⁴ are no trouble, nor real ones that are far below the padding's."""
    lost = "Exponentials overflow or vanish: subtract the largest score of the row's real words."
    given = memory, lengths, w_q, w_k, 1e4 * np.abs(a)
    right = builds.read(state, *given)[1]
    got = call_pair(function, state, *given)[1]
    mistakes = [(np.where(np.isnan(got), np.nan, right), lost)]
    expect(got, right, "for scores of 10⁴, in the weights", mistakes, tolerance=1e-3)
    real = np.arange(5) < lengths[:, None]
    keys = np.ones_like(memory) * np.where(real, -1e4, 1e4)[:, :, None]
    even, a = real / lengths[:, None], 1e17 * np.ones_like(a)  # real words' scores are all −10¹⁷ r
    leaks = np.where(lengths[:, None] < 5, ~real / np.maximum(5 - lengths, 1)[:, None], even)
    mistakes = [(leaks, "A finite number in place of −∞ leaks when scores are low: hide with −∞.")]
    got = call_pair(function, state, keys, lengths, np.abs(w_q), np.abs(w_k), a)[1]
    expect(got, even, "where all real words have very low scores, in the weights", mistakes)


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
        raise Wrong(
            "the rows are right, but by a loop:", "all positions fit into one (b, n) array."
        )
    return "a second encoder reads from the last token, and the padding stays behind."


@check
def greedy(function: Function) -> str:
    """function(step, state, bos, eos, longest): the tokens that greedy decoding writes before eos.

    step(state, token) gives the next state and the logits of the next token.
    """
    table = np.random.default_rng(5).normal(size=(9, 7, 7))  # by step and last token
    table[:, :, 2], table[5:, :, 2] = -9, 9  # the end comes sixth, whatever was written
    ended = np.where(np.arange(7) == 2, 9.0, table)
    for logits, longest, case in (
        (table, 8, "where the end comes after five tokens and longest = 8"),
        (table, 3, "where the end comes after five tokens and longest = 3"),
        (ended, 8, "where the end comes at once"),
    ):
        got = _asked(function, logits, longest)
        right = _written(logits, longest)
        if np.array_equal(got, right):
            continue
        mistakes = [
            (_written(logits, longest, own=False), "bos is fed at each step: feed what it wrote."),
            (_written(logits, longest, moves=False), "The state stays the first: hand on the new."),
            ([*right, 2], "The end is no token of the text: leave eos out."),
            ([1, *right], "bos is no token of the text: leave it out."),
            (_written(logits, longest, eos=None), "It writes on after eos."),
            (_written(logits, longest + 1), "One token too many: longest is what there may be."),
        ]
        cause = next((words for one, words in mistakes if np.array_equal(got, one)), "")
        numbers, expected = (", ".join(f"{one:g}" for one in a) or "nothing" for a in (got, right))
        raise Wrong(f"{case} you write {numbers}, expected {expected}.", cause)
    return "it reads what it wrote, and stops at the end, or where you stop it."


def _written(
    logits: np.ndarray,
    longest: int,
    *,
    own: bool = True,
    moves: bool = True,
    eos: int | None = 2,
) -> list[int]:
    """What the table of logits (steps, last, next) writes greedily, from bos = 1."""
    written: list[int] = []
    while len(written) < longest:
        last = written[-1] if written and own else 1
        token = int(logits[len(written) if moves else 0, last].argmax())
        if token == eos:
            break
        written.append(token)
    return written


def _asked(function: Function, logits: np.ndarray, longest: int) -> np.ndarray:
    """What the reader's function writes, with a step that reads the table."""

    @wraps(function)
    def writing(logits: Any, state: Any) -> Any:
        steps = 0

        def step(state: Any, token: Any) -> tuple[Any, Any]:
            nonlocal steps
            steps += 1
            if steps > longest + 1:
                raise Wrong(f"with longest = {longest} it asks for more tokens:", "stop there.")
            return state + 1, logits[int(state[0]), int(token)]

        return function(step, state, 1, 2, longest)

    got = call(writing, logits, np.zeros(1, dtype=int))
    if got.ndim != 1:
        raise Wrong(f"you give {shape_of(got)}, expected a list of tokens.")
    return got


@check
def greedy_fails(function: Function) -> str:
    """function(): p(y_1) (3,), p(y_2 | y_1) (3, 3), where a beam of two beats greedy decoding."""
    first, second = call_pair(function)
    if (first.shape, second.shape) != ((3,), (3, 3)):
        raise Wrong(f"you give shapes {first.shape} and {second.shape}, expected (3,) and (3, 3).")
    if not (first.min() >= 0 and second.min() >= 0):
        raise Wrong("a probability is negative or NaN.", "Are these logarithms?")
    if abs(first.sum() - 1) > 1e-4:
        raise Wrong(f"the three probabilities of the first symbol sum to {first.sum():.4g}, not 1.")
    if np.abs(rows := second.sum(1) - 1).max() > 1e-4:
        cause = "A row is the second symbol's distribution after one first symbol."
        if abs(second.sum() - 1) < 1e-4:
            cause = "These are probabilities of pairs: divide each row by its sum."
        raise Wrong(f"row {np.abs(rows).argmax()} of the second array does not sum to 1.", cause)
    pairs = first[:, None] * second
    a, c = int(first.argmax()), int(pairs.max(1).argmax())
    b = int(second[a].argmax())
    greedy, best = pairs[a, b], pairs.max()
    ordered, after = np.sort(first), np.sort(second[a])
    found = f"greedy decoding writes ({a}, {b}), with probability {greedy:.3g}"
    if ordered[-1] - ordered[-2] < 1e-4 or after[-1] - after[-2] < 1e-4:
        raise Wrong("two symbols are equally likely where greedy chooses:", "let one be ahead.")
    if best - greedy < 1e-4:
        raise Wrong(
            f"{found}, and no pair has more.", "What follows its first symbol must be unsure."
        )
    if ordered[1] - first[c] > 1e-4:
        better = f"the best pair begins with {c}, the third most probable symbol"
        raise Wrong(f"{found}, and {better}:", "a beam of two has dropped it.")
    if ordered[1] - ordered[0] < 1e-4:
        raise Wrong("two first symbols tie for the second place in the beam:", "let one be ahead.")
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
