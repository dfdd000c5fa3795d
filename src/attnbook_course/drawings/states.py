"""Drawings of weights without a softmax: one matrix between, a state of fixed size, T, chunks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnbook import datasets
from attnbook._validation import fraction, int_between, positive_int
from attnbook.linear_attention import online_regression
from attnbook_course.drawings.canvas import Canvas, Drawing, Point

KEYS = (0.3, 0.9, 1.6, 2.2, 3.1)
VALUES = (1.5, 2.0, 1.5, 0.6, 0.0)
LENGTH_SCALE = 0.6
DECAY = 0.8


def matrices(gram: Any, noise: float) -> dict[str, Any]:
    """What stands between the kernel and the values, for three estimators.

    The sum has M = I, the delta rule M = (I + L)⁻¹ with L what the Gram matrix has below its
    diagonal, and the posterior mean M = (K + σ²I)⁻¹.

    Args:
        gram: kernel of all pairs of keys, (n, n).
        noise: σ, the standard deviation of the noise on the values.

    Returns:
        The three matrices (n, n), by name.
    """
    eye = np.eye(len(gram))
    return {
        "sum": eye,
        "delta": online_regression.one_pass(gram, eye),
        "posterior": np.linalg.inv(gram + noise**2 * eye),
    }


def one_matrix(query: float = 0.7, noise: float = 0.2) -> Drawing:
    """Kernel weights, one matrix and the values: three estimators that differ in the matrix.

    Args:
        query: where an answer is wanted, between 0 and 3.4.
        noise: σ of the posterior.
    """
    keys, values = np.array(KEYS), np.array(VALUES)
    gram = np.exp(-((keys[:, None] - keys) ** 2) / (2 * LENGTH_SCALE**2))
    kernel = np.exp(-((query - keys) ** 2) / (2 * LENGTH_SCALE**2))
    between = matrices(gram, noise)
    canvas = Canvas(
        "one_matrix",
        540,
        "A query gives five keys their kernel weights. A matrix M stands between them and the "
        "values: the identity for a sum, a lower triangle for the delta rule, a full matrix for "
        "the posterior. New weights, some below zero, add the values up to three predictions.",
    )
    _keys_and_query(canvas, keys, query, kernel)
    for y, label, role in (
        *((265, "M", "ink"), (357, "weights", "weights"), (406, "× y", "values")),
        (466, "= output", "output"),
    ):
        canvas.text(4, y, label, role, anchor="start", bold=True)
    formulas = ("I", "(I + L)^{−1}", "(K + σ^2I)^{−1}")
    largest = max(np.abs(kernel @ m).max() for m in between.values())
    for left, (name, m), formula in zip((96, 232, 368), between.items(), formulas, strict=True):
        middle = left + 50
        canvas.text(middle, 152, name, bold=True, size=18)
        canvas.text(middle, 180, formula)
        canvas.dots(
            [(left - 15, 225 + 20 * i) for i in range(5)], kernel.tolist(), radius=8, full=1
        )
        canvas.box(middle, 265, 100, 100, fill=0.05, radius=2)
        for i, row in enumerate(m):
            places = [(left + 10 + 20 * j, 225 + 20 * i) for j in range(5)]
            canvas.signed(places, row.tolist(), radius=9, full=float(np.abs(m).max()))
        places = [(left + 10 + 20 * j, 357) for j in range(5)]
        canvas.arrow((middle, 319), (middle, 339), role="weights")
        canvas.signed(places, (kernel @ m).tolist(), radius=10, full=float(largest))
        for (x, _), value in zip(places, values, strict=True):
            canvas.line((x, 426), (x, 426 - 20 * value), role="values", width=9)
        canvas.line((left, 428), (left + 100, 428))
        canvas.arrow((middle, 432), (middle, 450), role="output")
        canvas.text(middle, 466, f"{kernel @ m @ values:.2f}", "output", bold=True, size=18)
    canvas.dots([(122, 512)], [0.5], full=1)
    canvas.text(140, 512, "above zero", "weights", anchor="start")
    canvas.signed([(290, 512)], [-0.5], radius=14, full=1)
    canvas.text(308, 512, "below zero", "weights", anchor="start")
    return canvas.drawing()


def _keys_and_query(canvas: Canvas, keys: np.ndarray, query: float, kernel: np.ndarray) -> None:
    """Keys on a line, a query among them, and below each key the kernel of the two."""
    canvas.text(4, 46, "keys", "keys", anchor="start", bold=True)
    canvas.text(4, 90, "k(q, x_j)", "weights", anchor="start", bold=True)
    canvas.line((96, 46), (474, 46))
    canvas.dot(100 + 108 * query, 46, 8, "queries")
    canvas.text(100 + 108 * query, 18, "query", "queries", bold=True)
    for x, weight in zip(100 + 108 * keys, kernel, strict=True):
        canvas.dot(x, 46, 6, "keys")
        canvas.dots([(x, 90)], [weight], radius=17, full=1)
    for middle in (146, 282, 418):
        canvas.arrow((middle, 114), (middle, 134), role="weights")


def fixed_state(key_dim: int = 4, value_dim: int = 3, times: Sequence[int] = (2, 5, 8)) -> Drawing:
    """A state of one size: a token decays it and is written into it, a query reads it.

    Args:
        key_dim: d, of queries and keys, at most 4.
        value_dim: p, of values, at most 4.
        times: three numbers of tokens, each at most 8, at which the state stands beside a cache.

    Raises:
        ValueError: a size that has no room.
    """
    d = int_between(1, 4, key_dim=key_dim)
    p = int_between(1, 4, value_dim=value_dim)
    if len(times) != 3 or not all(0 < t <= 8 for t in times):
        raise ValueError(f"times: got {list(times)}, expected three numbers from 1 to 8")
    rng = np.random.default_rng(4)
    q, k, u = rng.uniform(0.1, 1, d), rng.uniform(0.1, 1, d), rng.uniform(0.1, 1, p)
    before = rng.uniform(0.1, 0.7, (d, p))
    after = DECAY * before + np.outer(k, u)
    canvas = Canvas(
        "fixed_state",
        556,
        f"A state of {d} × {p} numbers decays, a token adds the product of its key and what it "
        "writes, a query reads. For the delta rule, what the state already answers for the key "
        "is subtracted first. The state keeps its size, while a cache beside it grows.",
    )
    _step(canvas, (q, k, u), before, after)
    canvas.line((8, 346), (472, 346), dashed=True)
    for x, t in zip((60, 218, 376), times, strict=True):
        canvas.text(x + 20, 368, f"t = {t}", bold=True)
        canvas.text(x - 26, 394, "S", "output", bold=True)
        canvas.text(x + 50, 394, "K, V", "keys", bold=True)
        canvas.matrix(x - 26, 410, (after / after.max()).tolist(), "output", 12)
        canvas.matrix(x + 50 - 6 * p, 410, [[0.3] * d] * t, "keys", 12)
        canvas.matrix(x + 50 + 6 * d, 410, [[0.3] * p] * t, "values", 12)
        canvas.text(x - 26, 525, str(d * p), "output", bold=True)
        canvas.text(x + 50, 525, str(t * (d + p)), "keys", bold=True)
    canvas.text(240, 544, "numbers kept")
    return canvas.drawing()


def _step(
    canvas: Canvas,
    token: tuple[np.ndarray, np.ndarray, np.ndarray],
    before: np.ndarray,
    after: np.ndarray,
) -> None:
    """One step: the state decays, is added to, and is read."""
    q, k, u = token
    (d, p), cell, y = before.shape, 20, 62
    middle = y + cell * d / 2
    for x, name, table in ((72, "S_{t−1}", before), (360, "S_t", after)):
        canvas.text(x, 20, name, "output", bold=True)
        canvas.text(x, 42, f"{d} × {p}", "output")
        canvas.matrix(x, y, (table / after.max()).tolist(), "output", cell)
    edge = 72 + cell * p / 2
    canvas.arrow((edge + 4, middle), (207, middle), role="output", width=2)
    canvas.text((edge + 207) / 2, middle - 20, "× a_t", bold=True)
    canvas.plus(220, middle, "output", 12)
    reading = 360 - cell * p / 2 - 16
    canvas.arrow((234, middle), (reading - 16, middle), role="output", width=2)
    canvas.dots(
        [(reading, y + (i + 0.5) * cell) for i in range(d)], q.tolist(), "queries", radius=9, full=1
    )
    canvas.text(reading, 42, "q_t", "queries", bold=True)
    low = y + cell * d
    canvas.arrow((360, low + 6), (360, low + 30), role="output", width=2)
    answer = q @ after
    canvas.matrix(360, low + 36, [(answer / answer.max()).tolist()], "output", cell)
    canvas.text(360 + cell * p / 2 + 8, low + 46, "S_t^{T}q_t", "output", anchor="start", bold=True)
    top = low + 66
    canvas.arrow((220, top - 16), (220, middle + 14), role="keys", width=2)
    canvas.matrix(220, top, np.outer(k, u).tolist(), "keys", cell)
    side = 220 - cell * p / 2 - 16
    canvas.dots(
        [(side, top + (i + 0.5) * cell) for i in range(d)], k.tolist(), "keys", radius=9, full=1
    )
    canvas.text(side - 16, top + cell * d / 2, "k_t", "keys", anchor="end", bold=True)
    below = [(220 + (j + 0.5 - p / 2) * cell, top + cell * d + 14) for j in range(p)]
    canvas.dots(below, u.tolist(), "values", radius=9, full=1)
    right = 220 + cell * p / 2 + 12
    canvas.text(right, below[0][1], "u_t", "values", anchor="start", bold=True)
    canvas.text(right + 8, top + 14, "u_t = v_t, or delta:", "values", anchor="start")
    canvas.text(right + 8, top + 42, "β_t(v_t − a_tS_{t−1}^{T}k_t)", "values", anchor="start")
    canvas.arrow(
        *((72, low + 6), (72, below[0][1]), (220 - cell * p / 2 - 4, below[0][1])),
        role="values",
        dashed=True,
    )
    canvas.text(34, top + 30, "what S\nanswers", "values")


def chunks(tokens: int = 12, chunk: int = 4) -> Drawing:
    """A sequence in chunks: weights inside each, a state from each to the next.

    Args:
        tokens: n, a multiple of the chunk, at most 16.
        chunk: c, the tokens of a chunk.

    Raises:
        ValueError: chunks that do not cover the tokens.
    """
    n, c = int_between(1, 16, tokens=tokens), positive_int(chunk=chunk)
    if n % c or not 2 <= n // c <= 4:
        raise ValueError(f"chunk: got {c} for {n} tokens, expected two to four chunks of one size")
    rng = np.random.default_rng(1)
    q, k = rng.uniform(0.2, 1, (2, n, 2))
    weights = q @ k.T
    cell, left, top = 264 / n, 30.0, 64.0
    wide = cell * c
    canvas = Canvas(
        "chunks",
        456,
        f"{n} tokens in chunks of {c}. Inside a chunk each token has weights for itself and the "
        "tokens before it, a triangle. What earlier chunks hold comes through a state that one "
        "chunk hands to the next.",
    )
    canvas.text(left + 132, 12, "keys, values", "keys", bold=True)
    canvas.text(410, 12, "state", "output", bold=True)
    for g in range(n // c):
        start, y = left + g * wide, top + g * wide
        canvas.text(start + wide / 2, 36, f"chunk {g + 1}" if n // c < 4 else str(g + 1), "keys")
        canvas.bracket(start + 3, start + wide - 3, 50, -6)
        if g:
            canvas.box(left + g * wide / 2, y + wide / 2, g * wide - 4, wide - 4, role="output")
            canvas.text(left + g * wide / 2, y + wide / 2, f"from S_{{{g * c}}}", "output")
        _triangle(canvas, (start, y), weights[g * c : g * c + c, g * c : g * c + c], cell)
        _hand_on(canvas, (y, wide), g, n // c, c)
    canvas.box(left + 132, top + 132, 264, 264, fill=0, radius=1)
    canvas.text(12, 356, f"inside: {c} × {c} weights, masked", "weights", anchor="start")
    canvas.text(12, 384, "before: one state S of d × p", "output", anchor="start")
    canvas.text(12, 428, "sum: output = (QK^{T} ∘ mask)V + QS", anchor="start", bold=True)
    return canvas.drawing()


def delta_triangle(decay: float = 0.9, beta: float = 0.8) -> Drawing:
    """T of the delta rule for "to be or not to be", beside what it inverts.

    L = β tril(KKᵀ ∘ D, −1) says how much of what an earlier token wrote a key meets again, and
    T = β (I + L)⁻¹ what each token writes, U = T V. The keys are chapter 11's.

    Args:
        decay: a of every token, above 0 and below 1.
        beta: β of every token, above 0 and below 1.
    """
    decay = fraction(decay=decay)
    beta = fraction(beta=beta)
    six = datasets.six_words()
    met, written = triangle_and_inverse(decay, beta)
    canvas = Canvas(
        "delta_triangle",
        330,
        "Two lower triangles for the six words to be or not to be. In the left one the largest "
        "entries stand where a word meets itself again. Its inverse T, on the right, has the step "
        "on its diagonal and a large negative entry at the same places: the second to writes its "
        "own value less what the first to has left.",
    )
    for left, table, title in (
        (40, met, "L = β tril(KK^{T}∘D, −1)"),
        (300, written, "T = β(I + L)^{−1}"),
    ):
        canvas.text(left + 84, 14, title, bold=True)
        for i, row in enumerate(table):
            places = [(left + 14 + 28 * j, 82 + 28 * i) for j in range(i + 1)]
            for place in places:
                canvas.box(*place, 28, 28, role="weights", fill=0.1, radius=0, edge=0.5)
            full = max(float(np.abs(table).max()), 1e-9)
            canvas.signed(places, row[: i + 1].tolist(), radius=12.5, full=full)
            canvas.text(left + 14 + 28 * i, 48, six.words[i], "keys")
            canvas.text(left - 6, 82 + 28 * i, six.words[i], "keys", anchor="end")
        canvas.box(left + 84, 82 + 28 * 4, 168, 28, role="values", fill=0, radius=2, edge=2)
    canvas.arrow((216, 110), (258, 110), role="output", width=2)
    shares = [f"{share:.2f} v_{j + 1}" for j, share in enumerate(written[4, :5])]
    line = "u_5 = " + " + ".join(reversed(shares)).replace("+ -", "− ")
    canvas.text(240, 266, line, "values", bold=True)
    canvas.dots([(122, 306)], [0.5], full=1)
    canvas.text(140, 306, "above zero", "weights", anchor="start")
    canvas.signed([(290, 306)], [-0.5], radius=14, full=1)
    canvas.text(308, 306, "below zero", "weights", anchor="start")
    return canvas.drawing()


def triangle_and_inverse(decay: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """L = β tril(KKᵀ ∘ D, −1) and T = β (I + L)⁻¹, (6, 6), of the running sentence's keys."""
    keys = np.random.default_rng(4).normal(size=(4, 8))[datasets.six_words().tokens]
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    apart = np.arange(6)[:, None] - np.arange(6)
    met = beta * np.tril(keys @ keys.T * decay ** np.maximum(apart, 0), -1)
    return met, beta * np.linalg.inv(np.eye(6) + met)


def _triangle(canvas: Canvas, corner: Point, weights: np.ndarray, cell: float) -> None:
    """The weights of one chunk as dots, on a triangle of squares."""
    x, y = corner
    for i, row in enumerate(weights):
        places = [(x + (j + 0.5) * cell, y + (i + 0.5) * cell) for j in range(i + 1)]
        for place in places:
            canvas.box(*place, cell, cell, role="weights", fill=0.1, radius=0, edge=0.5)
        canvas.dots(places, row[: i + 1], radius=0.48 * cell, full=1.5)


def _hand_on(canvas: Canvas, rows: tuple[float, float], g: int, count: int, c: int) -> None:
    """What chunk g reads of the state before it, and what it adds for the next."""
    y, wide = rows
    if g:
        canvas.arrow(
            (386, y + 4),
            (356, y + wide / 2 - 12),
            (300, y + wide / 2 - 12),
            role="queries",
            width=2,
        )
        canvas.text(330, y + wide / 2 - 30, "read", "queries")
    if g + 1 < count:
        low = y + wide
        canvas.line((300, y + wide / 2 + 12), (410, y + wide / 2 + 12), role="keys", width=2)
        canvas.text(336, y + wide / 2 + 28, "write", "keys")
        canvas.arrow(
            (410, y + 22 if g else y + wide / 2 + 12), (410, low - 24), role="output", width=2
        )
        canvas.box(410, low, 44, 40, f"S_{{{g * c + c}}}", "output", fill=0.2, bold=True)
