"""One weighted average of numbers on a line."""

import math
from typing import Any

import numpy as np

from attnbook.kernel import kernels
from attnbook_course.drawings.canvas import Canvas, Drawing

KEYS = (0.3, 0.9, 1.6, 2.1, 2.9, 3.4)
VALUES = (1.0, 1.4, 2.0, 1.8, 1.1, 0.6)


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
        canvas.dots([(x, 268)], [weight], radius=23, full=0.4)
        canvas.text(x, 308, f"{weight:.2f}", "weights")
        canvas.text(x, 352, f"{value:.1f}", "values")
        canvas.line((x, 368), sum_at, role="weights", width=0.8 + 12 * weight)
    canvas.dot(*sum_at, 13, "output")
    canvas.text(sum_at[0], 510, f"{weights @ values:.2f}", "output", bold=True)
    return canvas.drawing()
