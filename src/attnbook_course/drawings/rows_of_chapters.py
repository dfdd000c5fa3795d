"""What the weighted average of each chapter consists of: one description, from real numbers.

Queries, keys and values are small enough to read. All other numbers are computed from them by the
package's functions, or read from stored results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from attnbook import datasets
from attnbook.attention import attend, causal_mask, scores, softmax
from attnbook.attention.heads import split_heads
from attnbook.datasets import six_words
from attnbook.exact import online_softmax
from attnbook.kernel import kernels
from attnbook.kernel.regression import leave_one_out
from attnbook.layers.norms import rms_norm
from attnbook_course.drawings.averages import KEYS, VALUES
from attnbook_course.drawings.rows import (
    POINTS_TO,
    Average,
    Step,
    mixture,
    row_of,
    softmax_steps,
    two_matrices,
)
from attnbook_course.drawings.words_read import HIS

MATRICES = np.array(
    [
        [[2, 0, 0, 0], [0, 1, 0, 0], [2, -2, 0, 4], [0, 2, 0, 0]],
        [[2, -1, 0, 2], [0, 2, 1, 0], [0, 2, 1, 0], [0, 0, 0, 2]],
        [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, -1, 0], [0, 1, 0, -1]],
    ],
    dtype=float,
)  # W_q, W_k and W_v of chapters 5 and 6
FIVE_KEYS = (0.3, 0.9, 1.6, 2.2, 3.1)  # chapter 11's, of drawings.show("one_matrix"), too
FIVE_VALUES = (1.5, 2.0, 1.5, 0.6, 0.0)
Array = Any  # NumPy's; what the package's functions give names no library
QUERY, BANDWIDTH = 1.9, 0.6  # those of drawings.weighted_average
GIVEN = 2  # the given point that chapter 2 predicts from the others
ASKS = 4  # the word of the six that asks: the second "to"
WRITES = 19  # the letter of "achthundertsechsundvierzig" that asks: the "v"
SIX_POINTS: dict[str, Any] = {
    "labels": tuple(f"{one:.1f}" for one in KEYS),
    "values": (tuple(f"{one:.1f}" for one in VALUES),),
    "places": KEYS,
}


def _points(query: float) -> tuple[Array, Array, Array]:
    return np.array([[query]]), np.array(KEYS)[:, None], np.array(VALUES)[:, None]


def _on_a_line(table: Array, answer: float, **words: Any) -> dict[str, Any]:
    """What chapters 1, 2 and 9 have in common: six points, and numbers as values."""
    return {**SIX_POINTS, "steps": softmax_steps(table, [f"= {answer:.2f}"], **words)}


def kernel_regression() -> Average:
    """Chapter 1: a new input among six known ones."""
    q, k, v = _points(QUERY)
    score = partial(scores.gaussian_score, bandwidth=BANDWIDTH)
    answer: Any = attend(q, k, v, score=score)
    return Average(
        query=f"a new input, {QUERY}",
        keys="known inputs",
        at=QUERY,
        **_on_a_line(
            score(q, k),
            answer.item(),
            about=f"−(q − k)^2 / 2h^2, h = {BANDWIDTH}",
            of="the known outputs",
        ),
    )


def learned_bandwidth() -> float:
    """The bandwidth with the least leave-one-out error on the six points, to a hundredth."""
    _, k, v = _points(QUERY)
    grid = [h / 100 for h in range(10, 150)]
    return min(grid, key=lambda h: float(np.mean((leave_one_out(k, v, bandwidth=h) - v) ** 2)))


def learned_kernel() -> Average:
    """Chapter 2: a known point asks the others, with a bandwidth learned from all of them."""
    h, (q, k, v) = learned_bandwidth(), _points(KEYS[GIVEN])
    others = np.arange(len(KEYS)) != GIVEN
    score = partial(scores.gaussian_score, bandwidth=h)
    answer: Any = attend(q, k, v, score=score, mask=others[None])
    return Average(
        query=f"a known input, {KEYS[GIVEN]}, hidden from itself",
        keys="known inputs",
        at=KEYS[GIVEN],
        own=GIVEN,
        new=frozenset({"query"}),
        **_on_a_line(
            score(q, k),
            answer.item(),
            about=f"−(q − k)^2 / 2h^2, h = {h:.2f} learned",
            of="the other outputs",
            new=["scores"],
            mask=others[None],
        ),
    )


def learned_queries() -> Average:
    """Chapter 3: names in two circles; each asks for the one that it points to."""
    q, k = two_matrices()
    names = tuple(map(str, range(len(POINTS_TO))))
    given = [f"v_{name}" for name in names]
    table = scores.scaled_dot(q[:1], k)
    others = (np.arange(len(POINTS_TO)) > 0)[None]
    shares = softmax(table, others)[0]
    return Average(
        query=f"a row of W_q: name 0, which points to {POINTS_TO[0]}",
        keys="rows of W_k, one per name",
        labels=names,
        values=(tuple(given),),
        steps=softmax_steps(
            table,
            [mixture(shares, given)],
            about="q · k / √d, W_q and W_k learned",
            of="the names' numbers",
            new=["scores"],
            mask=others,
        ),
        own=0,
        new=frozenset({"query", "keys"}),
        numeric=False,
    )


def looking_back() -> Average:
    """Chapter 4: a decoder's state asks an encoder's states, in a translator that was trained."""
    found = datasets.results("translation")["looks"]["with"][0]
    words, shares = tuple(found["read"]), np.array(found["weights"][WRITES])
    states = [f"h_{j + 1}" for j in range(len(words))]
    steps = softmax_steps(
        np.log(shares)[None],
        [mixture(row_of(shares), states)],
        about="a · tanh(W_q s + W_k h) + constant",
        of="the same states",
        new=["scores", "weighted sum"],
        exponentials=False,
        weights_are="a softmax, as in chapter 3",
    )
    return Average(
        query="the decoder's state before the v of vierzig",
        keys="the encoder's states, one per word",
        labels=words,
        values=(tuple(states),),
        steps=steps,
        new=frozenset({"query", "keys"}),
        numeric=False,
    )


def _words(rows: Sequence[Array], **words: Any) -> dict[str, Any]:
    """What chapters 5 to 8 have in common: six words, W_q, W_k and W_v, and vectors as values."""
    names = six_words().words
    mask = words.get("mask")
    values = tuple(f"v_{k + 1}" for k in range(len(names)))
    outputs = [mixture(row_of(softmax(row, mask)), values) for row in rows]
    return {
        "labels": names,
        "values": (values,) * len(rows),
        "steps": softmax_steps(np.concatenate(rows), outputs, **words),
        "own": ASKS,
        "numeric": False,
    }


def _of_words(x: Array) -> tuple[Array, Array, Array]:
    w_q, w_k, w_v = MATRICES
    return x @ w_q.T, x @ w_k.T, x @ w_v.T


def self_attention() -> Average:
    """Chapter 5: a word asks all words of its sentence."""
    x = six_words().x
    q, k, _ = _of_words(x)
    rows = [scores.scaled_dot(q[ASKS : ASKS + 1], k)]
    return Average(
        query="W_q times a word: the second to",
        keys="W_k times each word of the same sentence",
        new=frozenset({"query", "keys"}),
        **_words(rows, about="q · k / √d", of="W_v times each word", new=["weighted sum"]),
    )


def two_heads() -> Average:
    """Chapter 6: two heads ask at once, each with its half of the columns."""
    x = six_words().x
    q, k = (split_heads(one, 2) for one in _of_words(x)[:2])
    rows = [scores.scaled_dot(q[h, ASKS : ASKS + 1], k[h]) for h in range(2)]
    return Average(
        query="the second to asks twice, once per head",
        keys="of the same words, two columns per head",
        new=frozenset({"query", "keys"}),
        **_words(
            rows,
            about="q · k / √d, a row per head",
            of="each head's values",
            new=["scores", "weighted sum"],
            exponentials=False,
            weights_are="a softmax per head",
        ),
    )


def block() -> Average:
    """Chapter 7: the words are normed before they ask, and the output is added to the stream."""
    x = six_words().x
    q, k, v = _of_words(rms_norm(x))
    output = attend(q[ASKS : ASKS + 1], k, v)[0]
    given = _words(
        [scores.scaled_dot(q[ASKS : ASKS + 1], k)],
        about="q · k / √d",
        of="values of the normed stream",
        exponentials=False,
        weights_are="softmax of the scores",
    )
    lines = []
    for name, vector in {"x": x[ASKS], "+ output": output, "= stream": x[ASKS] + output}.items():
        entries = ", ".join(f"{one:.2f}".replace("-", "−") for one in vector)
        lines.append(f"{name} ({entries})")
    about = "the output is added"
    added = Step("stream", about, "words", outputs=tuple(lines), role="output", new=True)
    return Average(
        query="of the normed stream: the second to",
        keys="of the normed stream",
        new=frozenset({"query", "keys"}),
        **{**given, "steps": (*given["steps"], added)},
    )


def causal() -> Average:
    """Chapter 8: the writer's mask hides what comes later."""
    x = six_words().x
    q, k, _ = _of_words(x)
    at = 3  # the fourth word: two come later
    mask = causal_mask(len(x), x)[at : at + 1]
    given = _words(
        [scores.scaled_dot(q[at : at + 1], k)],
        about="q · k / √d, later words hidden",
        mask=mask,
        of="values of what came before",
        new=["scores"],
    )
    return Average(
        query="the fourth word, not",
        keys="words up to the fourth",
        new=frozenset({"keys"}),
        **{**given, "own": at},
    )


def in_context() -> Average:
    """Chapter 9: pairs are tokens; one head, its weights set by hand, is chapter 1 again."""
    q, k, v = _points(QUERY)
    of_query, of_keys = (np.concatenate([np.ones_like(x), x, x**2], axis=-1) for x in (q, k))
    h = BANDWIDTH
    w_q = np.array([[1, 0, 0], [0, 1, 0]])
    w_k = np.array([[0, 0, -1 / (2 * h**2)], [0, 1 / h**2, 0]])
    q, k = of_query @ w_q.T, of_keys @ w_k.T
    answer: Any = attend(q, k, v, score=scores.dot)
    return Average(
        query=f"a token without its y, x = {QUERY}",
        keys="tokens (x, y); the keys see x alone",
        at=QUERY,
        new=frozenset({"query", "keys"}),
        **_on_a_line(
            scores.dot(q, k),
            answer.item(),
            about="q · k, from 1, x and x^2",
            of="the pairs' y",
            new=["scores"],
            weights_are="softmax: those of chapter 1",
        ),
    )


def real_model() -> Average:
    """Chapter 10: " his" asks the words before it, in one head of a published model."""
    head = datasets.one_head()
    names = head.tokens[: HIS + 1]
    table = head.queries[HIS] @ head.keys[: HIS + 1].T / head.keys.shape[1] ** 0.5
    steps = softmax_steps(
        table[None],
        [mixture(row_of(softmax(table)), names)],
        about="q · k / √64",
        new=["weights"],
        of="a vector from each token",
        exponentials=False,
        weights_are="layer 14, head 9 of SmolLM2-135M",
    )
    return Average(
        query="the token his, in a model trained by others",
        keys="the tokens up to it; <s> begins the text",
        labels=names,
        values=(names,),
        steps=steps,
        own=HIS,
        new=frozenset({"query"}),
        numeric=False,
    )


def without_softmax() -> Average:
    """Chapter 11: a matrix stands in the softmax's place, and weights may be below zero."""
    keys, values, query = np.array(FIVE_KEYS), np.array(FIVE_VALUES), 0.7
    gram = kernels.gaussian(np.abs(keys[:, None] - keys) / BANDWIDTH)
    kernel = kernels.gaussian(np.abs(query - keys) / BANDWIDTH)
    weights = kernel @ np.linalg.inv(gram + 0.2**2 * np.eye(len(keys)))
    full, shares = float(np.abs(weights).max()), (row_of(weights),)
    times, outputs = "times M = (G + σ^2I)^{−1}; rings: below 0", (f"= {weights @ values:.2f}",)
    return Average(
        query=f"an input, {query}",
        keys="inputs",
        labels=tuple(f"{one:.1f}" for one in keys),
        values=(tuple(f"{one:.1f}" for one in values),),
        places=FIVE_KEYS,
        at=query,
        steps=(
            Step("kernel", "k(q, k_j), no softmax", "bars", (row_of(kernel),), new=True),
            Step("weights", times, "dots", shares, new=True, full=full),
            Step("weighted sum", "weights need not add up to 1", "sum", shares, outputs=outputs),
        ),
    )


def in_parts(devices: bool = False) -> Average:
    """Chapters 12 and 13: two groups of keys, summed up apart, on one machine or on two."""
    (q, k, v), halves = _points(QUERY), (slice(3), slice(3, 6))
    table = scores.gaussian_score(q, k, bandwidth=BANDWIDTH)
    parts: list[Any] = [online_softmax.partial(table[:, half], v[half]) for half in halves]
    finish: Callable[[Any], Any] = online_softmax.finish
    whole = finish(online_softmax.combine(*parts))[0].item()
    averages = [finish(part)[0].item() for part in parts]
    tops = np.array([part[0].item() for part in parts])
    totals = np.array([part[1].item() for part in parts])
    shares = softmax(tops + np.log(totals))
    inside = np.concatenate([softmax(table[0, half]) for half in halves])
    powers = np.exp(table[0] - np.repeat(tops, 3))
    new, where = not devices, ("here", "arrived") if devices else ("part 1", "part 2")
    distance = "−(q − k)^2 / 2h^2, as in chapter 1"
    summed = "part by part, as keys arrive" if devices else "an average of two averages"
    outputs = (
        *(f"{name}: {one:.2f}" for name, one in zip(where, averages, strict=True)),
        f"{shares[0]:.2f} × {averages[0]:.2f} + {shares[1]:.2f} × {averages[1]:.2f} = {whole:.2f}",
    )
    return Average(
        query=f"{'stays on its device' if devices else 'one, for both parts'}: {QUERY}",
        keys="half are here, half from another device" if devices else "in two parts",
        **SIX_POINTS,
        at=QUERY,
        in_parts=True,
        new=frozenset({"keys"}),
        steps=(
            Step("scores", distance, "bars", (row_of(table),), "ink", 1),
            Step("exponentials", "e^{score − top of the part}", "bars", (row_of(powers),), new=new),
            Step(
                "weights", "each part's add up to 1", "dots", (row_of(inside),), full=0.8, new=new
            ),
            Step("weighted sum", summed, "sum", (row_of(inside),), outputs=outputs, new=True),
        ),
    )


CHAPTERS: dict[int, Callable[[], Average]] = {
    1: kernel_regression,
    2: learned_kernel,
    3: learned_queries,
    4: looking_back,
    5: self_attention,
    6: two_heads,
    7: block,
    8: causal,
    9: in_context,
    10: real_model,
    11: without_softmax,
    12: in_parts,
    13: lambda: in_parts(devices=True),
}
