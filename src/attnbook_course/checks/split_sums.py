"""An average by parts whose sums are kept to a few bits, the right way and the usual wrong ones."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attnbook.attention import softmax

Part = tuple[float, float, np.ndarray]  # the largest score, the total and the weighted sum
Rounding = Callable[[Part, int], Part]


def rounded(part: Part, bits: int) -> Part:
    """The total and the weighted sum to so many significant bits."""

    def kept(x: Any) -> Any:
        fraction, power = np.frexp(x)
        return np.ldexp(np.round(fraction * 2**bits), power - bits)

    return part[0], kept(part[1]), kept(part[2])


def exact(part: Part, bits: int) -> Part:
    """Rounds nothing."""
    return part


def average_by_parts(
    scores: np.ndarray,
    values: np.ndarray,
    size: int,
    tree: bool,
    bits: int,
    part: Rounding = rounded,
    step: Rounding = rounded,
) -> np.ndarray:
    """The average (p,) of values (n, p), by parts that combine in a chain or as a tree.

    Args:
        scores: of shape (n,).
        values: of shape (n, p).
        size: keys in a part.
        tree: combine neighbours, then neighbours of those; if False, one part after another.
        bits: significant ones of totals and weighted sums.
        part: rounds a part.
        step: rounds what comes of two parts.
    """

    def both(a: Part, b: Part) -> Part:
        top = max(a[0], b[0])
        e, f = np.exp(a[0] - top), np.exp(b[0] - top)
        return step((top, e * a[1] + f * b[1], e * a[2] + f * b[2]), bits)

    parts = []
    for i in range(0, len(scores), size):
        top = scores[i : i + size].max()
        kernel = np.exp(scores[i : i + size] - top)
        parts.append(part((top, kernel.sum(), kernel @ values[i : i + size]), bits))
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts) if tree else 2, 2)]
        done = [both(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
        parts = done if tree else done + parts[2:]
    average: np.ndarray = parts[0][2] / parts[0][1]
    return average


def wrongly_split(
    s: np.ndarray, v: np.ndarray, size: int, tree: bool, bits: int
) -> Iterator[tuple[np.ndarray, str]]:
    """Wrong answers for these scores and values, each with what leads to it."""
    yield (
        average_by_parts(s, v, size, not tree, bits),
        f"That is {'a chain' if tree else 'a tree'}: tree is {tree}.",
    )
    yield softmax(s[None])[0] @ v, "Nothing is rounded."
    only_steps = average_by_parts(s, v, size, tree, bits, part=exact)
    yield only_steps, "Round each part too, before it combines."
    only_parts = average_by_parts(s, v, size, tree, bits, step=exact)
    yield only_parts, "Round what comes of each combination."
    yield (
        average_by_parts(s, v, -(-len(s) // size), tree, bits),
        "size is how many keys a part has, not how many parts there are.",
    )
    if tree:
        parts = -(-len(s) // size)
        whole = (1 << (parts.bit_length() - 1)) * size  # what reaches the end without the others
        yield (
            average_by_parts(s[:whole], v[:whole], size, tree, bits),
            "A part without a partner goes up unchanged: it is lost here.",
        )
