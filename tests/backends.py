"""The libraries that every test runs on: NumPy arrays in, NumPy arrays out, the library in between.

Nothing is imported before it is asked for: a run on NumPy alone imports neither torch nor jax.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

NAMES = ("numpy", "strict", "torch", "jax", "jax-jit")


def chosen() -> list[str]:
    """The back ends of this run: all, or those in ATTNBOOK_BACKENDS, separated by commas."""
    wanted = os.environ.get("ATTNBOOK_BACKENDS", ",".join(NAMES)).split(",")
    unknown = set(wanted) - set(NAMES)
    if unknown:
        raise ValueError(f"ATTNBOOK_BACKENDS: got {unknown}, expected some of {NAMES}")
    return wanted


class Backend:
    """NumPy itself, and the mould of the others. Its arrays cannot be written to."""

    name = "numpy"
    half: tuple[str, ...] = ("float16",)
    xp: Any  # torch, jax.numpy or array_api_strict
    jax: Any  # where that is the library

    def array(self, a: np.ndarray) -> Any:
        frozen = np.array(a)
        frozen.flags.writeable = False
        return frozen

    def numpy(self, a: Any) -> np.ndarray:
        assert type(a) in (np.ndarray, np.bool_), f"expected a NumPy array, got {type(a)}"
        return np.asarray(a)

    def cast(self, a: Any, dtype: str) -> Any:
        """The library's array in a dtype that NumPy may not have."""
        return a.astype(dtype)

    def dtype(self, a: Any) -> str:
        return str(a.dtype).rsplit(".", 1)[-1]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """function(*args, **kwargs), its NumPy arrays turned into the library's and back.

        Arrays that go in are compared afterwards: nothing may be changed in place.
        """
        slots = list(args) + list(kwargs.values())
        moving = [i for i, slot in enumerate(slots) if isinstance(slot, np.ndarray)]
        arrays = [self.array(slots[i]) for i in moving]

        def run(*library_arrays: Any) -> Any:
            filled = list(slots)
            for i, a in zip(moving, library_arrays, strict=True):
                filled[i] = a
            return function(
                *filled[: len(args)], **dict(zip(kwargs, filled[len(args) :], strict=True))
            )

        static = [(type(slot), slot) for i, slot in enumerate(slots) if i not in moving]
        out = self.compiled(run, (function, len(args), *kwargs, *moving, *static))(*arrays)
        for i, a in zip(moving, arrays, strict=True):
            np.testing.assert_array_equal(self.numpy(a), slots[i], err_msg="an input was changed")
        return tuple(map(self.numpy, out)) if isinstance(out, tuple) else self.numpy(out)

    def compiled(self, function: Callable[..., Any], key: tuple[Any, ...]) -> Callable[..., Any]:
        return function

    def gradient(self, loss: Callable[..., Any], *args: np.ndarray) -> tuple[np.ndarray, ...]:
        """The gradient of a scalar loss in every argument."""
        raise NotImplementedError


class Strict(Backend):
    """The referee: the array API standard of 2024 and nothing beyond it."""

    name = "strict"
    half = ()

    def __init__(self) -> None:
        import array_api_strict

        array_api_strict.set_array_api_strict_flags(api_version="2024.12")
        self.xp = array_api_strict

    def array(self, a: np.ndarray) -> Any:
        return self.xp.asarray(np.array(a))

    def numpy(self, a: Any) -> np.ndarray:
        assert type(a).__module__.startswith("array_api_strict"), f"got {type(a)}"
        return np.asarray(a)

    def cast(self, a: Any, dtype: str) -> Any:
        return self.xp.astype(a, getattr(self.xp, dtype))


class Torch(Backend):
    name = "torch"
    half = ("float16", "bfloat16")

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)  # the arrays are tiny, and the tests run side by side
        self.xp = torch

    def array(self, a: np.ndarray) -> Any:
        return self.xp.from_numpy(np.array(a))

    def numpy(self, a: Any) -> np.ndarray:
        assert isinstance(a, self.xp.Tensor), f"expected a torch.Tensor, got {type(a)}"
        return a.detach().numpy()

    def cast(self, a: Any, dtype: str) -> Any:
        return a.to(getattr(self.xp, dtype))

    def gradient(self, loss: Callable[..., Any], *args: np.ndarray) -> tuple[np.ndarray, ...]:
        leaves = [self.array(a).requires_grad_() for a in args]
        out = loss(*leaves)
        if not out.requires_grad:  # a constant, such as the boxcar: JAX says 0, torch has no graph
            return tuple(np.zeros_like(a) for a in args)
        grads = self.xp.autograd.grad(out, leaves, allow_unused=True, materialize_grads=True)
        return tuple(map(self.numpy, grads))


class Jax(Backend):
    name = "jax"
    half = ("float16", "bfloat16")

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_numpy_dtype_promotion", "strict")
        jax.config.update("jax_disable_most_optimizations", True)
        self.jax, self.xp = jax, jax.numpy

    def array(self, a: np.ndarray) -> Any:
        return self.xp.array(a)

    def numpy(self, a: Any) -> np.ndarray:
        assert isinstance(a, self.jax.Array), f"expected a jax.Array, got {type(a)}"
        return np.asarray(a)

    def cast(self, a: Any, dtype: str) -> Any:
        return a.astype(dtype)

    def gradient(self, loss: Callable[..., Any], *args: np.ndarray) -> tuple[np.ndarray, ...]:
        grad = self.compiled(self.jax.grad(loss, argnums=tuple(range(len(args)))), (loss,))
        return tuple(map(self.numpy, grad(*map(self.array, args))))


class JaxJit(Jax):
    """JAX again, every call compiled: shapes are known and values are not."""

    name = "jax-jit"

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def compiled(self, function: Callable[..., Any], key: tuple[Any, ...]) -> Callable[..., Any]:
        """function compiled, or what was compiled for the same key: every compilation takes long."""
        from attnbook.kernel import chunked

        key = (*key, chunked.CHUNK_BYTES, chunked.JAX_CHUNKS)
        try:
            return self.known.setdefault(key, self.jax.jit(function))
        except TypeError:  # a key with a list in it
            return self.jax.jit(function)


def load(name: str) -> Backend:
    """The back end of that name; its library is imported here."""
    classes = (Backend, Strict, Torch, Jax, JaxJit)
    return next(c for c in classes if c.name == name)()


def load_or_skip(name: str) -> Backend:
    """The back end of that name; without it the test, or its file, is skipped."""
    if name not in chosen():
        pytest.skip(f"{name} is not among the back ends of this run", allow_module_level=True)
    try:
        return load(name)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{missing.name} is not installed", allow_module_level=True)


def skip_op_by_op(backend: Backend) -> None:
    """Of JAX, the compiled calls alone: one at a time, each operation is compiled for itself."""
    if backend.name == "jax":
        pytest.skip("jax-jit runs the same, and compiles it once")
