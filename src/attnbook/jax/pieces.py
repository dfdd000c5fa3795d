"""Arrays of many devices in files: each process writes what it holds and reads what it needs.

A folder has two files of every process: `process-0.bin`, the numbers of its pieces one after
another, and `process-0.json`, which says what array each piece is a part of, and of which part. No
process gathers an array that the devices have split, and what one number of devices has written
another number reads.
"""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

Place = tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """A rectangular part of an array, in a file.

    Args:
        file: where its numbers stand, in C order.
        offset: bytes before the first of them.
        start: its place in the array, an index per axis.
        shape: its size per axis.
    """

    file: Path
    offset: int
    start: Place
    shape: Place


@dataclass(frozen=True)
class Whole:
    """An array that the files hold.

    Args:
        shape: of all its pieces together.
        dtype: its name.
        pieces: which cover it once.
    """

    shape: Place
    dtype: str
    pieces: list[Piece]


def save(folder: str | Path, tree: Any) -> None:
    """Write this process's pieces of a tree of arrays; every process calls it.

    Of copies on several devices one is written. Both files are on the disc when the call returns;
    what has become of the other processes' it does not know.

    Args:
        folder: that exists, and that all processes see.
        tree: of arrays, on one device or on many.

    Raises:
        OSError: no room, no permission.
    """
    index: dict[str, Any] = {}
    path = Path(folder) / f"process-{jax.process_index()}.bin"
    with path.open("wb") as file:
        for name, array in _by_name(tree).items():
            pieces = []
            for shard in array.addressable_shards:
                if shard.replica_id == 0:
                    start = [part.start or 0 for part in shard.index]
                    pieces.append([file.tell(), start, list(shard.data.shape)])
                    file.write(np.asarray(shard.data).tobytes())
            index[name] = [list(array.shape), array.dtype.name, pieces]
        _flush(file)
    with path.with_suffix(".json").open("w", encoding="utf-8") as file:
        json.dump(index, file)
        _flush(file)


def load(folder: str | Path, like: Any) -> Any:
    """The arrays that save has written, placed as those of another tree are, and of their dtypes.

    Each device's part is put together from the pieces that overlap it, and no other is read.

    Args:
        folder: in which every process has saved.
        like: a tree of arrays of the same names and shapes, on whatever devices.

    Raises:
        ValueError: arrays of another name or shape.
        OSError: a file that cannot be read.
    """
    found, wanted = _read_index(Path(folder)), _by_name(like)
    for name in [*wanted, *(found.keys() - wanted.keys())]:
        got = found[name].shape if name in found else "none"
        expected = tuple(wanted[name].shape) if name in wanted else "none"
        if got != expected:
            raise ValueError(f"got {name} of shape {got} in {folder}, expected {expected}")
    arrays = [_assemble(found[name], leaf) for name, leaf in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(like), arrays)


def _by_name(tree: Any) -> dict[str, Any]:
    """The arrays of a tree by names such as learned.decoder.0.mlp.hidden.weight."""
    found = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): a for path, a in found}


def _read_index(folder: Path) -> dict[str, Whole]:
    """Every array by its name, with the pieces of all processes."""
    arrays: dict[str, Whole] = {}
    for index in sorted(folder.glob("process-*.json")):
        content = json.loads(index.read_text(encoding="utf-8"))
        for name, (shape, dtype, pieces) in content.items():
            whole = arrays.setdefault(name, Whole(tuple(shape), dtype, []))
            for offset, start, size in pieces:
                piece = Piece(index.with_suffix(".bin"), offset, tuple(start), tuple(size))
                whole.pieces.append(piece)
    return arrays


def _assemble(whole: Whole, like: Any) -> Array:
    """An array on the devices of another."""
    dtype = np.dtype(whole.dtype)  # bfloat16 too: JAX has made it known to NumPy

    def part(index: tuple[slice, ...] | None) -> np.ndarray:
        bounds = [axis.indices(n)[:2] for axis, n in zip(index or (), whole.shape, strict=True)]
        start = tuple(low for low, _ in bounds)
        out = np.empty([high - low for low, high in bounds], like.dtype)
        for piece in whole.pieces:
            here, there = overlap(start, out.shape, piece.start, piece.shape)
            if here is not None:
                out[here] = _numbers(piece, dtype)[there]
        return out

    return jax.make_array_from_callback(whole.shape, like.sharding, part, dtype=like.dtype)


def overlap(start: Place, shape: Place, other: Place, size: Place) -> Any:
    """What two rectangles of one array have in common, as slices of each; (None, None) if nothing.

    Args:
        start: where the first begins, an index per axis.
        shape: its size per axis.
        other: where the second begins.
        size: its size per axis.
    """
    low = [max(a, b) for a, b in zip(start, other, strict=True)]
    ends = zip(start, shape, other, size, strict=True)
    high = [min(a + n, b + m) for a, n, b, m in ends]
    if any(a >= b for a, b in zip(low, high, strict=True)):
        return None, None

    def within(origin: Place) -> tuple[slice, ...]:
        return tuple(slice(a - o, b - o) for a, b, o in zip(low, high, origin, strict=True))

    return within(start), within(other)


def _numbers(piece: Piece, dtype: np.dtype) -> np.ndarray:
    """A piece as an array that reads from the file what is looked at."""
    size = math.prod(piece.shape) * dtype.itemsize
    raw = np.memmap(piece.file, np.uint8, "r", piece.offset, (size,))
    return raw.view(dtype).reshape(piece.shape)


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
