"""Drawings of sequences: an encoder and its decoder, a cache, a prompt of pairs and questions."""

from collections.abc import Mapping, Sequence

import numpy as np

from attnbook._validation import positive_int
from attnbook.attention import attend
from attnbook.datasets import regression_prompts
from attnbook_course.drawings.canvas import Canvas, Drawing

LOOKS = {0: (0.06, 0.9, 0.04), 6: (0.88, 0.09, 0.03)}


def encoder_decoder(weights: Mapping[int, Sequence[float]] = LOOKS) -> Drawing:
    """An encoder reads "twenty one thousand", a decoder writes it in German and looks back.

    Args:
        weights: of the three words, for the letters (counted from 0) whose look back is drawn.
    """
    canvas = Canvas(
        "encoder_decoder",
        392,
        "An encoder reads twenty one thousand in both directions; its states are keys and values. "
        "A decoder writes einundz, letter by letter. The state before a letter is the query: "
        "for the e it reads one, for the z twenty.",
    )
    words, letters = ("twenty", "one", "thousand"), "einundz"
    sources, states = (150, 280, 410), [50 + 57 * i for i in range(len(letters) + 1)]
    canvas.text(4, 296, "encoder", anchor="start", bold=True)
    canvas.text(4, 318, "keys", "keys", anchor="start")
    canvas.text(4, 338, "values", "values", anchor="start")
    canvas.text(4, 22, "decoder", anchor="start", bold=True)
    for i, look in weights.items():
        x = states[i + 1]
        for source, weight in zip(sources, look, strict=True):
            canvas.line((source, 290), (x, 174), role="weights", width=0.8 + 6 * weight)
            if weight == max(look):
                at = (source + 0.47 * (x - source), 212) if x > source else (x + 82, 254)
                canvas.text(at[0], at[1], f"{weight:.2f}", "weights")
    for j, (x, word) in enumerate(zip(sources, words, strict=True), start=1):
        canvas.text(x, 374, word)
        canvas.arrow((x, 358), (x, 332))
        canvas.box(x, 310, 74, 40, f"h_{j}", "values")
        if j > 1:
            canvas.arrow((x - 91, 302), (x - 39, 302))
            canvas.arrow((x - 39, 318), (x - 91, 318))
    for i, x in enumerate(states):
        looks = i - 1 in weights
        canvas.box(x, 84, 42, 40, f"s_{i}", "queries")
        if i:
            canvas.text(x, 22, letters[i - 1], "output", bold=True, size=20)
            canvas.arrow((x, 62), (x, 38), role="output" if looks else "line")
            canvas.arrow((x - 34, 84), (x - 23, 84))
        if looks:
            canvas.arrow((x - 57, 106), (x - 9, 156), role="queries", width=2)
            canvas.text(x - 64, 138, "query", "queries")
            canvas.arrow((x, 152), (x, 106), role="values", width=2)
            canvas.dot(x, 163, 10, "values")
            canvas.text(x + 19, 134, f"c_{i}", "values")
    return canvas.drawing()


def cache(tokens: int = 4, head_dim: int = 4) -> Drawing:
    """Keys and values are kept: at step t + 1 one row of each is new.

    Args:
        tokens: t, what was written before the second step.
        head_dim: of a query, a key and a value.
    """
    q, k, v = np.random.default_rng(5).normal(size=(3, tokens + 1, head_dim))
    cell, y = 15, 84.0
    canvas = Canvas(
        "cache",
        (2 * tokens + 1) * cell + 208,
        "Two steps of writing. Keys and values of the tokens before are kept; each step adds one "
        "row to both, and its query asks all keys.",
    )
    for t in (tokens, tokens + 1):
        now, tall = q[t - 1 : t], t * cell
        answer, weights = attend(now, k[:t], v[:t], return_weights=True)
        rows = [[0.15] * head_dim] * (t - 1) + [[0.9] * head_dim]
        canvas.text(4, y - 68, f"step {t}", anchor="start", bold=True)
        for x, name, role, table in (
            *((44, "q", "queries", now), (150, "K", "keys", k[:t])),
            *((282, "V", "values", v[:t]), (440, "y", "output", answer)),
        ):
            middle = y if len(table) > 1 else y + (tall - cell) / 2
            canvas.text(x, y - 38, name, role, bold=True)
            canvas.text(x, y - 17, f"{len(table)} × {table.shape[1]}", role)
            canvas.matrix(x, middle, rows[-len(table) :], role, cell)
        canvas.dots([(216, y + (j + 0.5) * cell) for j in range(t)], weights[0], radius=7.2)
        canvas.text(216, y - 38, "w", "weights", bold=True)
        canvas.arrow((78, y + tall / 2), (114, y + tall / 2), role="queries")
        canvas.arrow((380, y + tall / 2), (404, y + tall / 2), role="output")
        canvas.line(
            (320, y + 2), (325, y + 2), (325, y + tall - cell - 3), (320, y + tall - cell - 3)
        )
        canvas.text(332, y + (tall - cell) / 2, "kept", anchor="start")
        canvas.text(332, y + tall - cell / 2 + 3, "new", anchor="start", bold=True)
        y += tall + 116
    return canvas.drawing()


def prompt(pairs: int = 4, queries: int = 3) -> Drawing:
    """A prompt's tokens, pairs and then questions, and who may attend to whom.

    Args:
        pairs: n, the known ones.
        queries: m, at most n: each asks for the point after the pairs that it sees, the last
            of them after all.

    Raises:
        ValueError: more queries than pairs, or more than seven pairs.
    """
    if not 0 < positive_int(queries=queries) <= positive_int(pairs=pairs) <= 7:
        raise ValueError(
            f"queries: got {queries} for {pairs} pairs, expected at most {min(pairs, 7)}"
        )
    x = np.array([0.3, -0.5, 0.9, -0.8, 0.1, 0.6, -0.2, 0.4])
    table = regression_prompts.prompt(
        x[:pairs], np.sin(3 * x[:pairs]).round(1), x[pairs - queries + 1 : pairs + 1]
    )
    allowed = regression_prompts.mask(pairs, np.arange(pairs - queries, pairs) + 1)
    count = pairs + queries
    wide, tall, left = 364 / count, 30, 112
    canvas = Canvas(
        "prompt",
        222 + tall * count,
        f"A prompt of {pairs} pairs (x, y, 0) and {queries} queries (x, 0, 1). A pair attends to "
        "itself and the pairs before it, a query to some pairs and itself.",
    )
    for start, end, label, role in (
        (0, pairs, "pairs", "keys"),
        (pairs, count, "queries", "queries"),
    ):
        middle = left + wide * (start + end) / 2
        canvas.text(middle, 14, label, role, bold=True)
        canvas.bracket(left + wide * start + 4, left + wide * end - 4, 30, -6)
        canvas.text(92, 194 + tall * (start + end) / 2, label, role, bold=True, anchor="end")
        canvas.line(
            *((106, 197 + tall * start), (100, 197 + tall * start)),
            *((100, 191 + tall * end), (106, 191 + tall * end)),
        )
    for j, label in enumerate(("x", "y", "query?")):
        canvas.text(92, 58 + 32 * j, label, anchor="end")
        for i, token in enumerate(table):
            role = "queries" if i >= pairs else "keys"
            middle = left + wide * (i + 0.5)
            entry = f"{token[j]:.1f}" if j < 2 and not (j and i >= pairs) else f"{token[j]:.0f}"
            canvas.box(middle, 58 + 32 * j, wide - 6, 28, entry.replace("-", "−"), role, radius=4)
    canvas.text(left + 182, 166, "who may attend to whom", "weights", bold=True)
    for i in range(count):
        for j in range(count):
            canvas.box(
                left + wide * (j + 0.5),
                194 + tall * (i + 0.5),
                wide - 4,
                tall - 4,
                role="weights" if allowed[i, j] else "line",
                fill=0.75 if allowed[i, j] else 0.06,
                radius=3,
                edge=0,
            )
    return canvas.drawing()
