"""A published model as its files have it: entries that say what it is, tensors by name.

Whatever does not fit is an error that names the file, the entry or tensor, what it is, and what was
expected. Nothing of a file is left unread in silence.
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from attnbook._validation import positive, positive_int

MISSING: Any = object()
ACTIVATIONS = {  # the book's, by the names that files have for them
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

    def size(self, name: str, default: Any = MISSING) -> int:
        """An integer of 1 or more."""
        return int(self._checked(positive_int, name, default))

    def positive(self, name: str, default: Any = MISSING) -> float:
        """A number above 0."""
        return float(self._checked(positive, name, default))

    def supported(self, name: str, values: Iterable[Any], default: Any = MISSING) -> Any:
        """An entry that is one of the values that the book's blocks can compute."""
        value, values = self.get(name, default), list(values)
        if value not in values:
            expected = " or ".join(map(repr, values))
            raise ValueError(f"{self.file}: {name}: got {value!r}, expected {expected}")
        return value

    def activation(self, name: str, default: str) -> str:
        """The book's name for the activation of an MLP."""
        return ACTIVATIONS[self.supported(name, ACTIVATIONS, default)]

    def empty(self, kind: Callable[..., Any], **options: Any) -> Any:
        """A model of PyTorch with shapes alone: its first parameters would be drawn in vain."""
        import torch

        with torch.device("meta"):
            return self._named(kind, options)

    def _checked(self, check: Callable[..., Any], name: str, default: Any) -> Any:
        return self._named(check, {name: self.get(name, default)})

    def _named(self, make: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """What a function gives; its error names the file."""
        try:
            return make(**arguments)
        except ValueError as error:
            raise ValueError(f"{self.file}: {error}") from None


class Tensors:
    """The tensors of a file, each taken once by its name; what is left over at the end is named.

    Args:
        arrays: by name.
        file: their file, for errors.
    """

    def __init__(self, arrays: Mapping[str, Any], file: str = "tensors") -> None:
        self.left, self.file = dict(arrays), file

    def take(self, name: str, *shape: int) -> np.ndarray:
        """A tensor of this shape, as finite numbers of float32."""
        if name not in self.left:
            raise ValueError(f"{self.file}: got no tensor {name}, expected one of shape {shape}")
        with np.errstate(over="ignore"):
            array = np.require(self.left.pop(name), np.float32, ["C", "W"])
        if array.shape != shape:
            raise ValueError(f"{self.file}: {name}: got shape {array.shape}, expected {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{self.file}: {name}: got NaN or infinity, expected finite numbers")
        return array

    def split(self, name: str, shape: tuple[int, ...], parts: Iterable[str]) -> None:
        """Put the equal parts of a tensor, cut along its first axis, in its place."""
        parts = list(parts)
        self.left |= zip(parts, np.split(self.take(name, *shape), len(parts)), strict=True)

    def prefix(self, name: str) -> str:
        """What stands before every name where a model is part of a larger one: name, or nothing."""
        return name if any(key.startswith(name) for key in self.left) else ""

    def drop(self, *patterns: str) -> None:
        """Leave out what has no part in what the model computes here."""
        for name in [n for n in self.left if any(fnmatchcase(n, p) for p in patterns)]:
            del self.left[name]

    def drop_copy(self, name: str, of: np.ndarray) -> None:
        """Leave out a tensor, if there is one, that must be the same as another."""
        array = self.left.pop(name, None)
        if array is not None and not np.array_equal(array, of):
            raise ValueError(
                f"{self.file}: {name}: got a tensor of its own, expected the one it is tied to"
            )

    def fill(
        self, model: Any, layers: Mapping[str, str], found: Mapping[str, np.ndarray] | None = None
    ) -> Any:
        """A model with the numbers of a file, in evaluation mode; all tensors must be used.

        Args:
            model: without numbers, as Config.empty makes it.
            layers: the file's names of its layers, by the book's names.
            found: parameters that are more than a tensor of the file, by the book's names.
        """
        import torch

        found = dict(found or {})
        tied = getattr(model, "tied", False)
        for name, parameter in model.state_dict().items():
            layer, _, last = name.rpartition(".")
            if name not in found and not (tied and layer == "readout"):
                found[name] = self.take(f"{layers[layer]}.{last}", *parameter.shape)
        if tied:
            found["readout.weight"] = found["embedding.weight"]
            self.drop_copy(f"{layers['readout']}.weight", found["embedding.weight"])
        if self.left:
            names = ", ".join(sorted(self.left)[:3])
            more = f" and {len(self.left) - 3} more" if len(self.left) > 3 else ""
            raise ValueError(f"{self.file}: got {names}{more}, expected no tensor of that name")
        model.load_state_dict({n: torch.from_numpy(a) for n, a in found.items()}, assign=True)
        if tied:  # the same matrix again, which was put there twice
            model.readout.weight = model.embedding.weight
        return model.eval()
