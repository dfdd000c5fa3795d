"""An average by parts whose sums are kept to a few bits, the right way and the usual wrong ones."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attnbook.attention import softmax

Part = tuple[float, float, np.ndarray]  # the largest score, the total and the weighted sum
Rounding = Callable[[Part, int], Part]


def average_by_parts(
    scores: np.ndarray,
    values: np.ndarray,
    size: int,
    tree: bool,
    bits: int,
    part: Rounding | None = None,
    step: Rounding | None = None,
) -> np.ndarray:
    """The average (p,) of values (n, p), by parts that combine in a chain or as a tree.

    Args:
        scores: of shape (n,).
        values: of shape (n, p).
        size: keys in a part.
        tree: combine neighbours, then neighbours of those; if False, one part after another.
        bits: significant ones of totals and weighted sums.
        part: rounds a part; the sums to their bits by default.
        step: rounds what comes of two parts.
    """
    part, step = part or to_bits(), step or to_bits()

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


def to_bits(round_to: Any = np.round, top: bool = False, total: bool = True) -> Rounding:
    """Rounds the weighted sum, and if so wished the largest score and the total."""

    def kept(x: Any, bits: int) -> Any:
        fraction, power = np.frexp(x)
        return np.ldexp(round_to(fraction * 2**bits), power - bits)

    def rounded(part: Part, bits: int) -> Part:
        first = kept(part[0], bits) if top else part[0]
        return first, kept(part[1], bits) if total else part[1], kept(part[2], bits)

    return rounded


def to_places(part: Part, bits: int) -> Part:
    """Rounds to so many places behind the point, whatever the number's size."""
    return part[0], *(np.round(x * 2**bits) / 2**bits for x in part[1:])


def exact(part: Part, bits: int) -> Part:
    """Rounds nothing."""
    return part


def _without_partners(parts: int) -> int:
    """How many parts reach the end if one without a partner is dropped: the next power of 2."""
    return 1 << (parts.bit_length() - 1)


def wrongly_split(
    s: np.ndarray, v: np.ndarray, size: int, tree: bool, bits: int
) -> Iterator[tuple[np.ndarray, str]]:
    """Wrong answers for these scores and values, each with what leads to it."""

    def by(*roundings: Rounding) -> np.ndarray:
        return average_by_parts(s, v, size, tree, bits, *roundings)

    yield (
        average_by_parts(s, v, size, not tree, bits),
        f"That is {'a chain' if tree else 'a tree'}: tree is {tree}.",
    )
    yield softmax(s[None])[0] @ v, "Nothing is rounded."
    yield by(to_bits(top=True), to_bits(top=True)), "The largest score is kept as it is."
    yield by(exact), "Round each part too, before it combines."
    yield by(to_bits(), exact), "Round what comes of each combination."
    yield by(to_bits(total=False), to_bits(total=False)), "The total is kept to as many bits."
    down = to_bits(np.floor)
    yield by(down, down), "Round to the nearest: that rounds down."
    yield by(to_places, to_places), "Bits count from the first one that is not 0: see np.frexp."
    yield (
        average_by_parts(s, v, -(-len(s) // size), tree, bits),
        "size is how many keys a part has, not how many parts there are.",
    )
    if size > 1:
        yield average_by_parts(s, v, 1, tree, bits), "A part has size keys, not one."
    if len(s) % size:
        whole = len(s) // size * size
        yield (
            average_by_parts(s[:whole], v[:whole], size, tree, bits),
            "The last part is shorter, and takes part.",
        )
    if tree:
        odd = _without_partners(-(-len(s) // size)) * size
        yield (
            average_by_parts(s[:odd], v[:odd], size, tree, bits),
            "A part without a partner goes up unchanged: it is lost here.",
        )
    yield average_by_parts(s, v, size, tree, bits + 1), "That is one bit more."
    yield average_by_parts(s, v, size, tree, bits - 1), "That is one bit less."
    yield (
        average_by_parts(s[::-1], v[::-1], size, tree, bits),
        "The chain begins with the first part.",
    )
