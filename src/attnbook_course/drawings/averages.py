"""Drawings of one weighted average: of numbers on a line, and of names by their colours."""

import math
from typing import Any

import numpy as np

from attnbook.attention import attend, scores
from attnbook.kernel import kernels
from attnbook_course.drawings.canvas import Canvas, Drawing, colour

KEYS = (0.3, 0.9, 1.6, 2.1, 2.9, 3.4)
VALUES = (1.0, 1.4, 2.0, 1.8, 1.1, 0.6)
RAINBOW = {
    "red": (1.0, 0.0, 0.0),
    "orange": (1.0, 0.65, 0.0),
    "yellow": (1.0, 1.0, 0.0),
    "green": (0.0, 0.5, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "purple": (0.5, 0.0, 0.5),
}  # the six keys of chapter 3
TOMATO = (1.0, 0.39, 0.28)


def weighted_average(query: float = 1.9, bandwidth: float = 0.6) -> Drawing:
    """Kernel regression at one query, downwards: distances, kernel, weights, sum.

    Args:
        query: where an answer is wanted, between 0.2 and 3.5.
        bandwidth: of the Gaussian kernel.
    """
    keys, values = np.array(KEYS), np.array(VALUES)
    distances = np.abs(query - keys)
    heights: Any = kernels.gaussian(distances / bandwidth)
    weights = heights / heights.sum()
    canvas = Canvas(
        "weighted_average",
        532,
        "A query among six keys on a line. Below each key its distance, its height under the "
        "kernel, its weight and its value; the weighted values add up to the output.",
    )
    floor, high, sum_at = 226, 92, (140 + 96 * query, 476)

    def at(x: float) -> float:
        return 118 + 96 * x

    for y, label, role in (
        *((48, "keys", "keys"), (86, "distances", "ink"), (180, "kernel", "weights")),
        *((282, "weights", "weights"), (352, "× values", "values")),
        (sum_at[1], "= output", "output"),
    ):
        canvas.text(6, y, label, role, anchor="start", bold=True)
    canvas.line((118, 48), (474, 48))
    canvas.line((118, floor), (474, floor))
    curve = [
        (at(x), floor - high * math.exp(-(((x - query) / bandwidth) ** 2) / 2))
        for x in np.linspace(0, 3.7, 75)
    ]
    canvas.path("M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in curve), "weights", 2)
    canvas.line((at(query), 48), (at(query), floor - high - 4), role="queries", dashed=True)
    canvas.dot(at(query), 48, 8, "queries")
    canvas.text(at(query), 20, "query", "queries", bold=True)
    for key, far, height, weight, value in zip(
        keys, distances, heights, weights, values, strict=True
    ):
        x = at(key)
        canvas.dot(x, 48, 6, "keys")
        canvas.text(x, 86, f"{far:.1f}")
        canvas.line((x, floor), (x, floor - high * height), role="weights", width=4)
        canvas.dots([(x, 268)], [weight], full=0.4, radius=23)
        canvas.text(x, 308, f"{weight:.2f}", "weights")
        canvas.text(x, 352, f"{value:.1f}", "values")
        canvas.line((x, 368), sum_at, role="weights", width=0.8 + 12 * weight)
    canvas.dot(*sum_at, 13, "output")
    canvas.text(sum_at[0], 510, f"{weights @ values:.2f}", "output", bold=True)
    return canvas.drawing()


def soft_lookup(bandwidth: float = 0.25) -> Drawing:
    """A soft lookup: tomato asks six colours, and their names answer by weight.

    Args:
        bandwidth: of the Gaussian score.
    """
    names, keys = list(RAINBOW), np.array(list(RAINBOW.values()))
    queries = np.array([TOMATO])

    def score(q: Any, k: Any) -> Any:
        return scores.gaussian_score(q, k, bandwidth=bandwidth)

    found = score(queries, keys)[0]
    weights = attend(queries, keys, np.eye(len(names)), score=score)[0]
    canvas = Canvas(
        "soft_lookup",
        452,
        "The colour tomato is compared with six colours. The scores become weights, and the "
        "answer is mostly orange and red.",
    )
    _swatch(canvas, 54, 30, TOMATO, "queries")
    canvas.text(82, 30, "tomato, the query", "queries", anchor="start", bold=True)
    canvas.arrow((54, 50), (54, 78), role="queries")
    for x, label, role in (
        *((54, "keys", "keys"), (164, "scores", "ink")),
        *((294, "weights", "weights"), (416, "values", "values")),
    ):
        canvas.text(x, 96, label, role, bold=True)
    for k, name in enumerate(names):
        y = 134 + 42 * k
        _swatch(canvas, 54, y, RAINBOW[name], "keys")
        canvas.text(164, y, f"{found[k]:.1f}".replace("-", "−"))
        canvas.dots([(262, y)], [weights[k]], full=1, radius=22)
        canvas.text(318, y, f"{weights[k]:.2f}", "weights")
        canvas.text(416, y, name, "values")
    first, second = np.argsort(weights)[::-1][:2]
    canvas.bracket(238, 462, 372)
    canvas.arrow((350, 372), (350, 402))
    answer = f"{weights[first]:.2f} {names[first]} + {weights[second]:.2f} {names[second]} + …"
    canvas.text(462, 426, answer, "output", bold=True, anchor="end")
    canvas.text(20, 426, "output", "output", anchor="start", bold=True)
    return canvas.drawing()


def _swatch(canvas: Canvas, x: float, y: float, rgb: tuple[float, ...], role: str) -> None:
    """A spot of a colour itself."""
    spot = "#" + "".join(f"{math.floor(255 * part + 0.5):02x}" for part in rgb)
    canvas.add("circle", cx=x, cy=y, r=14, fill=spot, stroke=colour(role), stroke_width=1.5)
