"""What a reader builds, chapter by chapter, as the book has it.

mine.use gives these until the reader has built the same; the checks of the builds ask them too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook import attention as attending
from attnbook.kernel import regression


def nadaraya_watson(queries: Any, keys: Any, values: Any, bandwidth: Any) -> Any:
    """Gaussian kernel regression, (m, p), at queries (m, d) from keys (n, d) and values (n, p)."""
    return regression.nadaraya_watson(queries, keys, values, bandwidth=bandwidth)


def descend(keys: Any, values: Any, start: float, rate: float, steps: int) -> Any:
    """The path of h, (steps + 1,): gradient descent on log h of the leave-one-out error."""
    keys, values = np.asarray(keys), np.asarray(values)
    squares = ((keys[:, None] - keys) ** 2).sum(axis=-1)
    others = ~np.eye(len(keys), dtype=bool)
    theta, path = math.log(start), [start]
    for _ in range(steps):
        in_bandwidths = squares / math.exp(2 * theta)
        weights: Any = attending.softmax(-in_bandwidths / 2, others)
        left_out = weights @ values
        moved = weights * in_bandwidths  # ∂w/∂θ is this, less its row's sum times w
        change = moved @ values - moved.sum(axis=1, keepdims=True) * left_out
        theta -= rate * np.mean(-2 * (values - left_out) * change)
        path.append(math.exp(theta))
    return np.array(path)


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """A pair: softmax(q kᵀ / √d) v, (..., m, p), and its weights, (..., m, n)."""
    return attending.attend(q, k, v, mask=mask, return_weights=True)


@dataclass(frozen=True)
class Build:
    """One build: the chapter that asks for it, the book's function, whether that gives a pair."""

    chapter: int
    function: Callable[..., Any]
    is_pair: bool = False

    @property
    def check_line(self) -> str:
        """The line that checks a function of this name."""
        name = self.function.__name__
        return f"checks.ch{self.chapter:02}.{name}({name})"


BUILDS = {
    build.function.__name__: build
    for build in (
        Build(1, nadaraya_watson),
        Build(2, descend),
        Build(3, attention, is_pair=True),
    )
}
