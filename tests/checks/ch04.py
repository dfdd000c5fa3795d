"""Answers to chapter 4's exercises, right and wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, softmax, solutions

from attnbook_course.checks import ch04

SOLVED = solutions(4)
HIDDEN = "np.where(real, s, -np.inf)"


def read_by_loop(state, memory, lengths, w_q, w_k, a):
    contexts, weights = [], np.zeros(memory.shape[:2])
    for row, asks, words, length in zip(weights, state, memory, lengths, strict=True):
        row[:length] = softmax(
            np.array([a @ np.tanh(w_q @ asks + w_k @ h) for h in words[:length]])
        )
        contexts.append(sum(w * h for w, h in zip(row, words, strict=True)))
    return contexts, weights


def read_by_torch(state, memory, lengths, w_q, w_k, a):
    s = torch.tanh((state @ w_q.T)[:, None] + memory @ w_k.T) @ a
    padding = torch.arange(memory.shape[1]) >= lengths[:, None]
    weights = s.masked_fill(padding, -torch.inf).softmax(-1)
    return torch.bmm(weights[:, None], memory)[:, 0], weights


def read_by_jax(state, memory, lengths, w_q, w_k, a):
    def one(asks, words, length):
        s = jnp.tanh(w_q @ asks + words @ w_k.T) @ a
        weights = jax.nn.softmax(jnp.where(jnp.arange(len(words)) < length, s, -jnp.inf))
        return weights @ words, weights

    return jax.vmap(one)(state, memory, lengths)


def greedy_by_torch(step, state, bos, eos, longest):
    written = [torch.tensor(bos)]
    while len(written) <= longest:
        state, logits = step(state, written[-1])
        written.append(torch.argmax(logits))
        if written[-1] == eos:
            return written[1:-1]
    return written[1:]


def reverse(tokens, lengths, behind):
    """The right answer, with something else behind it."""
    j, size = np.arange(tokens.shape[1]), lengths[:, None]
    turned = np.take_along_axis(tokens, (size - 1 - j) % tokens.shape[1], axis=1)
    return np.where(j < size, turned, behind)


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


def torch_fails():
    return torch.tensor([0.3, 0.5, 0.2]), torch.tensor([[0.0, 0, 1], [0.4, 0.3, 0.3], [1, 0, 0]])


RIGHT = {
    "read": [read_by_loop, read_by_torch, read_by_jax],
    "greedy": [greedy_by_torch],
    "character_accuracy": [lambda e, n: torch.tensor(e, dtype=torch.float64).log().div(n).exp()],
    "greedy_fails": [torch_fails],
}

WRONG = {
    "read": [
        (altered(SOLVED.read, HIDDEN, "s"), "Padding is read too"),
        (
            altered(SOLVED.read, HIDDEN, "s", "return (w", "weights *= real; return (w"),
            "Masked after",
        ),
        (altered(SOLVED.read, "-np.inf", "-1e9"), "in place of −∞ leaks"),
        (altered(SOLVED.read, "-np.inf", "-30.0"), "padding has a weight of"),
        (altered(SOLVED.read, "weights.sum(axis=1", "weights.sum(axis=0"), "over the batch"),
        (altered(SOLVED.read, "e @ w_q", "e @ w_k", "y @ w_k", "y @ w_q"), "The memory asks"),
        (altered(SOLVED.read, "s - s.max(axis=1, keepdims=True)", "s"), "Exponentials overflow"),
        (altered(SOLVED.read, "] @ memory", "] @ (memory @ w_k.T)"), "the average of W_k h"),
        (lambda *given: SOLVED.read(*given)[::-1], "you give the weights first"),
        (lambda *given: SOLVED.read(*given)[0], "must return two arrays"),
    ],
    "greedy": [
        (altered(SOLVED.greedy, "step(state, token)", "step(state, bos)"), "bos is fed"),
        (altered(SOLVED.greedy, "state, logits", "_, logits"), "The state stays the first"),
        (altered(SOLVED.greedy, "break", "return [*written, eos]"), "leave eos out"),
        (altered(SOLVED.greedy, "[], bos", "[bos], bos"), "bos is no token of the text"),
        (altered(SOLVED.greedy, "== eos", "is None"), "writes on after eos"),
        (altered(SOLVED.greedy, "len(written) < longest", "True"), "with longest = 3 it asks"),
        (altered(SOLVED.greedy, "written) <", "written) <="), "One token too many"),
    ],
    "loss_before_training": [(lambda v, n: n * np.log(v), "That is the sum over the output")],
    "mean_loss": [
        (padded("!= pad", "!= pad; loss *= real.size / real.sum()"), "the faulty line still stands")
    ],
    "reverse_padded": [
        (lambda t, n: reverse(t, n, behind=0), "what is behind them has changed"),
        (by_loop, "the rows are right, but by a loop"),
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
