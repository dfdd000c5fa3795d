"""Drawings of one weighted average: of numbers on a line, and of names by their colours."""

import math

import numpy as np

from attnbook import kernels, scores
from attnbook.attention import attend
from attnbook.drawings.canvas import Canvas, Drawing
from attnbook.regression import nadaraya_watson

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
    """Kernel regression at one query, from the top: distances, kernel, weights, sum."""
    keys, values = np.array(KEYS), np.array(VALUES)
    heights = kernels.gaussian(np.abs(query - keys) / bandwidth)
    weights = heights / heights.sum()
    answer = nadaraya_watson(
        np.array([[query]]), keys[:, None], values[:, None], bandwidth=bandwidth
    ).item()
    canvas = Canvas(
        "weighted_average",
        500,
        "A query on a line of keys; the distances give heights under a kernel, the heights "
        "weights, and the weighted values add up to the answer.",
    )

    def at(x: float) -> float:
        return 120 + 98 * x

    curve = np.linspace(-0.1, 3.6, 75)
    bell = 190 - 88 * kernels.gaussian((curve - query) / bandwidth)
    for row, (name, role) in zip(
        (50, 145, 262, 345),
        (("keys", "keys"), ("kernel", "weights"), ("weights", "weights"), ("values", "values")),
        strict=True,
    ):
        canvas.text(8, row, name, role, anchor="start", bold=True)
    canvas.line((110, 50), (472, 50))
    canvas.line((110, 190), (472, 190))
    canvas.path(
        "M" + " L".join(f"{at(x):.1f},{y:.1f}" for x, y in zip(curve, bell, strict=True)),
        "weights",
        2.2,
    )
    for key, height, weight, value in zip(keys, heights, weights, values, strict=True):
        x = at(key)
        canvas.line((x, 58), (x, 190 - 88 * height), dashed=True, width=1)
        canvas.line((x, 190), (x, 190 - 88 * height), role="weights", width=3)
        canvas.add("circle", cx=x, cy=50, r=6, fill="var(--drawing-keys, #7f7f7f)")
        canvas.dots([(x, 252)], [weight], full=0.36, radius=22)
        canvas.text(x, 288, f"{weight:.2f}", "weights")
        canvas.text(x, 345, f"{value:.1f}", "values")
    canvas.line((at(query), 60), (at(query), 98), role="queries", dashed=True)
    canvas.add("circle", cx=at(query), cy=50, r=8, fill="var(--drawing-queries, #b8639b)")
    canvas.text(at(query), 24, "query", "queries", bold=True)
    canvas.text(8, 318, "×", anchor="start")
    canvas.bracket(110, 472, 376)
    canvas.arrow((291, 376), (291, 416))
    canvas.text(304, 396, "sum", anchor="start")
    canvas.add("circle", cx=291, cy=434, r=10, fill="var(--drawing-output, #1f7fc4)")
    canvas.text(291, 464, f"{answer:.2f}", "output", bold=True)
    canvas.text(8, 434, "output", "output", anchor="start", bold=True)
    return canvas.drawing()


def soft_lookup(bandwidth: float = 0.25) -> Drawing:
    """A soft lookup: tomato asks six colours, and their names answer by weight."""
    names, keys = list(RAINBOW), np.array(list(RAINBOW.values()))
    queries = np.array([TOMATO])
    found = scores.gaussian_score(queries, keys, bandwidth=bandwidth)[0]

    def score(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return scores.gaussian_score(q, k, bandwidth=bandwidth)

    weights = attend(queries, keys, np.eye(len(names)), score=score)[0]
    canvas = Canvas(
        "soft_lookup",
        440,
        "The colour tomato is compared with six colours; the scores become weights, and the "
        "answer is mostly orange and red.",
    )
    columns = (120, 230, 330, 430)
    _swatch(canvas, 120, 34, TOMATO, "queries")
    canvas.text(150, 34, "tomato", "queries", anchor="start", bold=True)
    canvas.text(8, 34, "query", "queries", anchor="start", bold=True)
    for x, name, role in zip(
        columns,
        ("key", "score", "weight", "value"),
        ("keys", "ink", "weights", "values"),
        strict=True,
    ):
        canvas.text(x, 92, name, role, bold=True)
    canvas.arrow((120, 52), (120, 78), role="queries")
    for k, name in enumerate(names):
        y = 128 + 42 * k
        _swatch(canvas, 120, y, RAINBOW[name], "keys")
        canvas.text(230, y, f"{found[k]:.1f}".replace("-", "−"))
        canvas.dots([(308, y)], [weights[k]], full=1, radius=19)
        canvas.text(352, y, f"{weights[k]:.2f}", "weights")
        canvas.text(430, y, name, "values")
    first, second = np.argsort(weights)[::-1][:2]
    canvas.bracket(285, 472, 372)
    canvas.arrow((378, 372), (378, 398))
    answer = f"{weights[first]:.2f} {names[first]} + {weights[second]:.2f} {names[second]} + …"
    canvas.text(472, 416, answer, "output", bold=True, anchor="end")
    canvas.text(8, 416, "output", "output", anchor="start", bold=True)
    return canvas.drawing()


def _swatch(canvas: Canvas, x: float, y: float, rgb: tuple[float, ...], role: str) -> None:
    """A spot of a colour itself."""
    spot = "#" + "".join(f"{math.floor(255 * part + 0.5):02x}" for part in rgb)
    ring = canvas_colour(role)
    canvas.add("circle", cx=x, cy=y, r=14, fill=spot, stroke=ring, stroke_width=1.5)


def canvas_colour(role: str) -> str:
    """The paint of a role."""
    from attnbook.drawings.canvas import colour

    return colour(role)
