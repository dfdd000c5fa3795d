"""Drawings of what heads of a published language model do: they copy, and they average numbers."""

from collections.abc import Sequence

import numpy as np

from attnbook._validation import int_between, positive
from attnbook_course.drawings.canvas import Canvas, Drawing

WORDS = ("river", "lamp", "coat", "bread", "river")
READERS = ("18.4", "18.5", "18.6", "19.7")
PAIRS = ((31, 52), (7, 80), (29, 47), (38, 61))


def induction_in_depth(
    num_layers: int = 30, writer: str = "17.1", readers: Sequence[str] = READERS
) -> Drawing:
    """The induction circuit of a deep model: one head writes notes, others read them as keys.

    Args:
        num_layers: of the model.
        writer: the head that notes the word before, as "layer.head", both counted from 1.
        readers: the heads that find the notes, in one or two later layers.

    Raises:
        ValueError: readers in other layers.
    """
    noting, reading = _layer(writer), sorted({_layer(one) for one in readers})
    if not (len(reading) in (1, 2) and noting < reading[0] and reading[-1] <= num_layers):
        raise ValueError(
            f"readers: got layers {reading}, expected one or two from {noting + 1} to {num_layers}"
        )
    found = WORDS.index(WORDS[-1]) + 1  # behind the first one that is the last word
    canvas = Canvas(
        "induction_in_depth",
        562,
        f"A model of {num_layers} layers. Head {writer} notes at each word the word before it. For "
        f"the last word, {WORDS[-1]}, the heads {', '.join(readers)} find the note {WORDS[-1]} in "
        f"the keys, and copy what stands there. Later layers say it: {WORDS[found]}.",
    )
    places = [150 + 73 * j for j in range(len(WORDS))]
    rows = {noting: 392.0, **dict(zip(reading, (202.0, 152.0), strict=False))}
    _depth(canvas, num_layers, rows)
    for y, label, role in (
        (542, "tokens", "ink"),
        (416, "notes", "values"),
        (284, "weights", "weights"),
    ):
        canvas.text(36, y, label, role, anchor="start")
    canvas.text(36, 392, writer, "values", anchor="start", bold=True)
    for j, (x, word) in enumerate(zip(places, WORDS, strict=True)):
        canvas.box(x, 542, 64, 34, word, "queries" if word is WORDS[-1] and j > found else "line")
        canvas.arrow((x, 523), (x, 411))
        canvas.box(x, 392, 64, 34, WORDS[j - 1] if j else "–", "values", fill=0.1)
        if j:
            canvas.arrow((places[j - 1] + 14, 523), (x - 14, 411), role="values")
    for x in places[:-1]:
        at = x == places[found]
        canvas.arrow((x, 373), (x, 306), role="weights" if at else "keys", width=3 if at else 1.5)
    canvas.box(places[found], 392, 64, 34, role="values", fill=0.25)
    _read(canvas, places, found, rows, readers)
    return canvas.drawing()


def _layer(head: str) -> int:
    return int(head.split(".")[0])


def _depth(canvas: Canvas, num_layers: int, rows: dict[int, float]) -> None:
    """A scale of layers on the left, drawn out where something happens."""
    first, last = min(rows), max(rows)
    heights = dict(rows)
    for start, end, low, high in (
        (1, first - 1, 510.0, rows[first] + 40),
        (last + 1, num_layers, rows[last] - 22, 30.0),
    ):
        layers = range(start, end + 1)
        heights |= dict(zip(layers, np.linspace(low, high, len(layers)), strict=True))
    canvas.line((18, 518), (18, 22), width=2)
    for layer, y in sorted(heights.items()):
        here = layer in rows
        canvas.line((11, y), (25, y), role="weights" if here else "line", width=5 if here else 1.5)
        if layer in (1, num_layers, *rows) and layer != first:
            canvas.text(36, y, str(layer), anchor="start", bold=here)


def _read(
    canvas: Canvas,
    places: Sequence[float],
    found: int,
    rows: dict[int, float],
    readers: Sequence[str],
) -> None:
    """The last word's query against the keys, and what its readers copy."""
    x, last = places[found], places[-1]
    weights = [0.88 if j == found else 0.03 for j in range(len(places))]
    canvas.dots([(place, 284) for place in places], weights, radius=16, full=1)
    canvas.text(last, 340, f"query\n{WORDS[-1]}", "queries")
    canvas.text(x - 10, 340, f"key\n{WORDS[-1]}", "keys", anchor="end")
    canvas.line((last, 373), (last, 364), role="queries")
    canvas.arrow((last, 318), (last, 298), role="queries")
    canvas.text(x + 92, 238, f"find {WORDS[found]}", "output", bold=True)
    for layer in sorted({_layer(one) for one in readers}):
        y, here = rows[layer], [one for one in readers if _layer(one) == layer]
        start = x + 34
        canvas.arrow((x, 264), (x, y), (start, y), role="weights", width=3)
        for k, one in enumerate(here):
            canvas.box(start + 26 + 54 * k, y, 48, 34, one, "weights", bold=True)
        canvas.arrow((start + 54 * len(here) - 2, y), (last - 2, y), role="output", width=2)
    canvas.arrow((last, 268), (last, 52), role="output", width=3)
    canvas.text(last, 32, WORDS[found], "output", bold=True, size=18)
    canvas.text(last - 44, 32, "predicts", anchor="end")
    canvas.text(last - 12, 92, f"later layers\nsay {WORDS[found]}", "output", anchor="end")


def prompt_of_pairs(
    question: int = 30,
    pairs: Sequence[tuple[int, int]] = PAIRS,
    *,
    same: float = 0.18,
    other: float = 0.08,
) -> Drawing:
    """Pairs of numbers as text, a token a digit, and how much a question's answer takes of each.

    Args:
        question: x of the question, from 0 to 99.
        pairs: x and y of those before, from 0 to 99.
        same: share of a pair whose x has the question's tens digit, before all are divided by
            their sum.
        other: share of any other pair.

    Raises:
        ValueError: no pair or more than four, numbers that have not one or two digits, a share
            that is not above 0.
    """
    if not 0 < len(pairs) <= 4:
        raise ValueError(f"pairs: got {len(pairs)}, expected one to four")
    for pair in pairs:
        for number in pair:
            int_between(0, 99, pairs=number)
    int_between(0, 99, question=question)
    same, other = positive(same=same), positive(other=other)
    shares = np.array([same if x // 10 == question // 10 else other for x, _ in pairs])
    weights = shares / shares.sum()
    answer = float(weights @ [y for _, y in pairs])
    canvas = Canvas(
        "prompt_of_pairs",
        50 * len(pairs) + 158,
        f"Lines of text such as x = {pairs[0][0]:02d}, y = {pairs[0][1]:02d}, a token a digit. The "
        f"question x = {question:02d}, y = takes a weighted average of the answers before it, with "
        f"more weight where x has the tens digit {question // 10}.",
    )
    canvas.text(64 + 31 * 4, 14, "keys", "keys", bold=True)
    canvas.text(64 + 31 * 10, 14, "values", "values", bold=True)
    canvas.text(4, 14, "weights", "weights", anchor="start", bold=True)
    asked = 46 + 50 * len(pairs)
    for k, ((x, y), weight) in enumerate(zip(pairs, weights, strict=True)):
        height = 46 + 50 * k
        _line(canvas, height, x, f"{y:02d}⏎", x // 10 == question // 10)
        canvas.text(4, height, f"{weight:.2f}", "weights", anchor="start")
        canvas.dots([(52, height)], [weight], radius=15, full=1)
        side = 446 + 28 * (len(pairs) - k) / len(pairs)
        way = ((382, asked), (side, asked), (side, height), (440, height))
        canvas.arrow(*way, role="weights", width=1 + 5 * weight)
    _line(canvas, asked, question, "", True, "queries")
    canvas.box(
        64 + 31 * 9 + 15.5, asked, 28, 32, str(int(answer / 10)), "output", radius=4, bold=True
    )
    canvas.text(64 + 31 * 4, asked + 34, "query", "queries", bold=True)
    canvas.text(64 + 31 * 9.5, asked + 34, "output", "output", bold=True)
    terms = " + ".join(f"{w:.2f} · {y:02d}" for (_, y), w in zip(pairs, weights, strict=True))
    canvas.text(240, asked + 68, f"{terms} ≈ {answer:.0f}")
    canvas.text(240, asked + 92, "the kernel sees digits", "weights", bold=True)
    return canvas.drawing()


def _line(canvas: Canvas, y: float, x: int, answer: str, alike: bool, role: str = "keys") -> None:
    """One line of the prompt, a box for each token; ``alike``: its tens digit is the question's."""
    for j, token in enumerate(f"x=␣{x:02d},y=␣{answer}"):
        kind = role if j in (3, 4) else "values" if j in (9, 10) else "line"
        fill = 0.4 if j == 3 and alike else 0.1
        canvas.box(64 + 31 * j + 15.5, y, 28, 32, token, kind, radius=4, fill=fill, edge=1)
