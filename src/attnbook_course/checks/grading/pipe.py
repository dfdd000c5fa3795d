"""What goes through the pipe between grader and student: words as JSON, arrays as plain numbers.

What the student's side wrote may be anything. It is read without pickle and within bounds.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST_BYTES = 4 << 20  # of one message, arrays included; no exercise asks for a quarter of it
MOST_WORDS = 1 << 20
MOST_ARRAYS = 2
MOST_DIMENSIONS = 32

Words = dict[str, Any]
Message = tuple[Words, list[np.ndarray]]


class Garbled(Exception):
    """A message that no honest worker sends."""


def packed(words: Words, arrays: Sequence[np.ndarray] = ()) -> bytes:
    """A message: the length of its words, its words, and the arrays' numbers as float64."""
    shapes = [list(array.shape) for array in arrays]
    text = json.dumps({**words, "shapes": shapes}).encode()
    numbers = [np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays]
    return b"".join([struct.pack(">I", len(text)), text, *numbers])


def received(read: Callable[[int], bytes]) -> Message:
    """The next message, read by a function that gives exactly as many bytes as it is asked for.

    Raises:
        Garbled: it is none, or too long.
    """
    (length,) = struct.unpack(">I", read(4))
    if length > MOST_WORDS:
        raise Garbled(f"expected at most {MOST_WORDS} bytes of words, got {length}")
    try:
        words = json.loads(read(length))
    except (ValueError, RecursionError) as error:
        raise Garbled(f"expected JSON: {error}") from None
    shapes = words.pop("shapes", None) if isinstance(words, dict) else None
    if not isinstance(shapes, list) or len(shapes) > MOST_ARRAYS:
        raise Garbled("expected words and the shapes of at most two arrays")
    sizes = [8 * math.prod(_shape(shape)) for shape in shapes]
    if sum(sizes) > MOST_BYTES:
        raise Garbled(f"expected at most {MOST_BYTES >> 20} MB of numbers")
    arrays = [
        np.frombuffer(read(size), dtype="<f8").reshape(shape).astype(float)
        for size, shape in zip(sizes, shapes, strict=True)
    ]
    return words, arrays


def _shape(shape: Any) -> list[int]:
    whole = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    if not whole or any(type(size) is not int or not 0 <= size < 1 << 40 for size in shape):
        raise Garbled(f"expected the shape of an array, got {str(shape)[:40]}")
    return list(shape)


def printable(text: Any) -> str:
    """A student's text without what a terminal or a file cannot take."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(text))


def in_one_line(text: Any, most: int = 300) -> str:
    """A student's text as part of a line: printable, without line breaks, and not too long."""
    line = " ".join(printable(str(text)[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 2]} …"
