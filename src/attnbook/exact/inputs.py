"""What exact attention is given: q, k and v; in a kernel's case in single or half precision."""

from typing import Any

from attnbook._types import Array
from attnbook._validation import broadcast_leading_axes, check_causal, check_qkv

MAX_WIDTH = 256  # a block of wider rows does not fit into a GPU's fast memory


def check_inputs(q: Array, k: Array, v: Array, causal: bool) -> Any:
    """Check queries, keys and values; return the namespace."""
    xp = check_qkv(q=q, k=k, v=v)
    if causal:
        check_causal(q, k)
    return xp


def check_kernel_inputs(q: Array, k: Array, v: Array, causal: bool) -> tuple[int, ...]:
    """Check what a kernel for a GPU or a TPU is given; return the axes before the last two.

    A kernel sums in float32, so that float64 would lose its digits.
    """
    xp = check_inputs(q, k, v, causal)
    if xp.finfo(q.dtype).bits not in (16, 32):
        raise ValueError(f"q: got dtype {q.dtype}, expected float32, float16 or bfloat16")
    for name, array in (("q", q), ("v", v)):
        if array.shape[-1] > MAX_WIDTH:
            raise ValueError(f"{name}: got width {array.shape[-1]}, expected at most {MAX_WIDTH}")
    return broadcast_leading_axes(q=q, k=k, v=v)


def block_length(width: int, itemsize: int) -> int:
    """How many rows of a width, a power of 2, make a block of 16 kilobytes: from 16 to 64."""
    return max(16, min(64, 2**14 // (width * itemsize)))


def power_of_two(number: int, least: int = 16) -> int:
    """The least power of 2 that is not below a number: what a tile's side must be."""
    return max(least, 1 << (number - 1).bit_length())
