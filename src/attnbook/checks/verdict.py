"""What a check says, and how it calls a function written for any of the three libraries."""

import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from typing import Any, Literal

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: right, wrong with its likely cause, or not written yet."""

    status: Literal["right", "wrong", "not yet"]
    message: str

    def __repr__(self) -> str:
        return {"right": "✓ ", "wrong": "✗ ", "not yet": "… "}[self.status] + self.message


class Wrong(Exception):
    """Raised inside a check at the first thing that is wrong; its text is the likely cause."""


def check(test: Callable[[Function], str]) -> Callable[[Function], Verdict]:
    """Make a check of a test, which gives its praise or raises Wrong."""

    @wraps(test)
    def run(function: Function) -> Verdict:
        name = test.__name__
        try:
            return Verdict("right", f"{name}: {test(function)}")
        except Wrong as wrong:
            return Verdict("wrong", f"{name}: {wrong}")
        except NotImplementedError:
            return Verdict(
                "not yet", f"{name}: not written yet. Replace the raise line and run the cell."
            )
        except Exception as error:
            return Verdict(
                "wrong", f"{name}: your function stops with {type(error).__name__}: {error}"
            )

    return run


def call(function: Function, *arguments: Any) -> np.ndarray:
    """The function's answer as a float64 NumPy array, whichever library it was written for.

    Each library's attempt gets its own copies: an answer may write into its arguments.
    """
    errors = []
    for convert in _converters():
        try:
            return to_numpy(function(*(convert(deepcopy(a)) for a in arguments)))
        except (NotImplementedError, Wrong):
            raise
        except Exception as error:
            errors.append(error)
    # a TypeError mostly says that the arrays were another library's than the function's
    raise next((e for e in reversed(errors) if not isinstance(e, TypeError)), errors[0])


def call_pair(function: Function, *arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    """As call, for an answer that is a pair of arrays; their shapes may differ."""
    found: list[np.ndarray] = []

    def both(*own: Any) -> int:
        answer = function(*own)
        if answer is None:
            to_numpy(answer)  # says so
        try:
            first, second = answer
        except (TypeError, ValueError):
            raise Wrong("your function must return two arrays, with a comma between") from None
        found[:] = [to_numpy(first), to_numpy(second)]
        return 0

    call(both, *arguments)
    return found[0], found[1]


def call_lean(function: Function, *arguments: Any) -> np.ndarray:
    """As call; Wrong if Python and NumPy hold more than 20 MB for it at once.

    What other libraries hold is not seen. Imports are slow here: call it on small arrays before.
    """
    was_on = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        answer = call(function, *arguments)
        held = (tracemalloc.get_traced_memory()[1] - before) / 1e6
    finally:
        if not was_on:
            tracemalloc.stop()
    if held > 20:
        pairs = "does it build an array of all pairs?"
        raise Wrong(f"on large arrays your function holds {held:.0f} MB at once: {pairs}")
    return answer


def _converters() -> Iterator[Function]:
    """What turns a check's NumPy arrays into each library's; numbers stay numbers."""
    yield lambda a: a
    for library, make in (("torch", "from_numpy"), ("jax.numpy", "asarray")):
        try:
            convert = getattr(import_module(library), make)
        except ImportError:
            continue
        yield partial(_convert, convert)


def _convert(convert: Function, argument: Any) -> Any:
    return convert(argument) if isinstance(argument, np.ndarray) else argument


def to_numpy(answer: Any) -> np.ndarray:
    """An answer as a float64 NumPy array; Wrong where it is nothing, or no numbers."""
    if answer is None:
        raise Wrong("your function returns nothing: does it end with return?")
    if hasattr(answer, "detach"):
        answer = answer.detach()
    try:
        return np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise Wrong(f"your function returns a {type(answer).__name__}, expected numbers") from None


def expect(
    got: np.ndarray,
    expected: Any,
    where: str,
    causes: Iterable[tuple[Any, str]] = (),
    *,
    tolerance: float = 1e-5,
) -> None:
    """Wrong unless got equals expected; if it equals a known wrong answer, with that one's cause.

    Args:
        got: the reader's answer.
        expected: the right one; NaN equals NaN.
        where: the case, as in "at u = 0.5".
        causes: pairs of a wrong answer and what leads to it.
        tolerance: relative to the largest expected value; generous enough for float32.
    """
    expected = np.asarray(expected, dtype=float)
    if got.shape != expected.shape:
        raise Wrong(f"{where} you give shape {got.shape}, expected {expected.shape}.")
    scale = tolerance * max(1e-12, float(np.nanmax(np.abs(expected), initial=0)))

    def same(a: Any) -> bool:
        return bool(np.allclose(got, a, rtol=0, atol=scale, equal_nan=True))

    if same(expected):
        return
    for wrong, cause in causes:
        if same(wrong):
            raise Wrong(f"{where} you give {_show(got)}. {cause}")
    raise Wrong(f"{where} you give {_show(got)}, expected {_show(expected)}.")


def _show(array: np.ndarray) -> str:
    """The first few numbers, short."""
    numbers = ", ".join(f"{v:.4g}" for v in array.ravel()[:4])
    return numbers + (", …" if array.size > 4 else "")
