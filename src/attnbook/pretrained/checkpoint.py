"""A published model as its files have it: entries that say what it is, tensors by name.

Whatever does not fit is an error that names the file, the entry or tensor, what it is, and what was
expected. Nothing of a file is left unread in silence.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj

from attnbook._validation import divided, positive, positive_int

MISSING: Any = object()
ACTIVATIONS = {  # by the names that files have for them
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


class Config:
    """What a file says about its model, entry by entry.

    Args:
        entries: by name.
        file: their file, for errors.
    """

    def __init__(self, entries: Mapping[str, Any], file: str = "config") -> None:
        self.entries, self.file = dict(entries), file

    def get(self, name: str, default: Any = MISSING) -> Any:
        """An entry; one that is missing or null is its default, where it has one."""
        value = self.entries.get(name)
        if value is not None:
            return value
        if default is MISSING:
            raise ValueError(f"{self.file}: got no entry {name}, expected one")
        return default

    def names(self, name: str) -> list[str]:
        """A list of names, empty where there is none."""
        found = self.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.refused(name, "a list of names")
        return found

    def size(self, name: str, default: Any = MISSING) -> int:
        """An integer of 1 or more."""
        size: int = self._number(positive_int, name, self.get(name, default))
        return size

    def divisor(self, name: str, of: int, default: Any = MISSING) -> int:
        """A number of parts of equal width."""
        parts = self.size(name, default)
        self._number(partial(divided, of), name, parts)
        return parts

    def positive(self, name: str, default: Any = MISSING) -> float:
        """A number above 0."""
        number: float = self._number(positive, name, self.get(name, default))
        return number

    def _number(self, check: Callable[..., Any], name: str, value: Any) -> Any:
        """A number that a check lets in; its error names the file."""
        try:
            return check(**{name: value})
        except ValueError as error:
            raise ValueError(f"{self.file}: {error}") from None

    def supported(self, name: str, values: Iterable[Any], default: Any = MISSING) -> Any:
        """An entry that is one of the values that the book's blocks can compute."""
        value, values = self.get(name, default), list(values)
        if not any(value == k and isinstance(value, bool) == isinstance(k, bool) for k in values):
            raise self.refused(name, " or ".join(map(repr, values)))
        return value

    def activation(self, name: str, default: Any = MISSING) -> str:
        """The book's name for the activation of an MLP."""
        return ACTIVATIONS[self.supported(name, ACTIVATIONS, default)]

    def refused(self, name: str, expected: str) -> ValueError:
        """The error of an entry that is not supported."""
        got = self.entries.get(name)
        return ValueError(f"{self.file}: {name}: got {got!r}, expected {expected}")


class Tensors:
    """The tensors of a file, each taken once by its name; what is left over at the end is named.

    Args:
        arrays: by name.
        file: their file, for errors.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], file: str = "tensors") -> None:
        self.left, self.file = dict(arrays), file

    def take(self, name: str, *shape: int) -> np.ndarray:
        """A tensor of this shape, as finite numbers of float32."""
        if name not in self.left:
            raise ValueError(f"{self.file}: got no tensor {name}, expected one of shape {shape}")
        array = self.left.pop(name)
        if not is_array_api_obj(array):
            kind = type(array).__name__
            raise ValueError(f"{self.file}: {name}: got a {kind}, expected an array")
        if tuple(array.shape) != shape:
            got = tuple(array.shape)
            raise ValueError(f"{self.file}: {name}: got shape {got}, expected {shape}")
        with np.errstate(over="ignore"):
            found = np.asarray(array, dtype=np.float32)
        if not np.isfinite(found).all():
            wrong = f"{np.count_nonzero(~np.isfinite(found))} of {found.size} numbers"
            what = "NaN, infinite or too large for float32"
            raise ValueError(f"{self.file}: {name}: got {wrong} {what}, expected finite ones")
        return found

    def prefix(self, name: str) -> str:
        """What stands before every name where a model is part of a larger one: name, or nothing."""
        return name if any(key.startswith(name) for key in self.left) else ""

    def drop_copy(self, name: str, of: np.ndarray) -> None:
        """Leave out a tensor, if there is one, that must be the same as another."""
        array = self.left.pop(name, None)
        if array is not None and not np.array_equal(array, of):
            raise ValueError(
                f"{self.file}: {name}: got a tensor of its own, expected the one it is tied to"
            )

    def drop(self, *patterns: str) -> None:
        """Leave out what has no part in what the model computes here."""
        for name in [n for n in self.left if any(fnmatchcase(n, p) for p in patterns)]:
            del self.left[name]

    def check_empty(self) -> None:
        """Refuse tensors that nothing has taken."""
        if self.left:
            names = ", ".join(sorted(self.left)[:3])
            more = f" and {len(self.left) - 3} more" if len(self.left) > 3 else ""
            raise ValueError(f"{self.file}: got {names}{more}, expected no tensor of that name")


class Recipe(NamedTuple):
    """How a model of the book becomes a published one.

    Args:
        kind: the name of its class.
        options: what it is made with.
        parameters: arrays by the names of its parameters.
    """

    kind: str
    options: dict[str, Any]
    parameters: dict[str, np.ndarray]


def take_linear(
    tensors: Tensors, mine: str, theirs: str, shape: tuple[int, ...], bias: bool = True
) -> dict[str, np.ndarray]:
    """Weight and bias of one layer, under the book's name for it.

    Args:
        tensors: of the file.
        mine: the layer's name in the book.
        theirs: its name in the file.
        shape: of the weight; the bias has its first axis.
        bias: whether there is one.
    """
    found = {f"{mine}.weight": tensors.take(f"{theirs}.weight", *shape)}
    if bias:
        found[f"{mine}.bias"] = tensors.take(f"{theirs}.bias", shape[0])
    return found
