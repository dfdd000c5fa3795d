"""How a check calls a function written for any of the three libraries, and reads its answer."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from functools import partial, wraps
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from attnbook_course.checks.remote import asked_where_it_is
from attnbook_course.checks.verdict import Function, Wrong, not_written, show

TOO_MUCH = "on large arrays your function holds {:.0f} MB at once:"


@asked_where_it_is
def call(function: Function, *arguments: Any) -> np.ndarray:
    """The function's answer as a float64 NumPy array, whichever library it was written for.

    Each library's attempt gets its own copies: an answer may write into its arguments.
    """
    return _answer(function, arguments, _converters())


@asked_where_it_is
def call_by_torch(function: Function, *arguments: Any) -> np.ndarray:
    """As call, for a function that PyTorch finds slopes of: it gets that one's tensors alone."""
    return _answer(function, arguments, _torch_converters())


@asked_where_it_is
def call_training(function: Function, *arguments: Any) -> np.ndarray:
    """As call_by_torch; Wrong if no weight, in the dictionary that comes first, has moved."""

    @wraps(function)
    def watched(weights: dict[str, Any], *others: Any) -> Any:
        before = {name: deepcopy(one) for name, one in weights.items() if name != "blocks"}
        answer = function(weights, *others)
        if all(bool((before[name] == weights[name]).all()) for name in before):
            raise Wrong(
                "the weights stay as they were:", "let Adam step, and on these, not on copies"
            )
        return answer

    return call_by_torch(watched, *arguments)


def _answer(
    function: Function, arguments: tuple[Any, ...], converters: Iterator[Function]
) -> np.ndarray:
    errors = []
    for convert in converters:
        try:
            return to_numpy(function(*(convert(deepcopy(a)) for a in arguments)))
        except Wrong:
            raise
        except Exception as error:
            if not_written(error):
                raise
            errors.append(error)
            if isinstance(error, IndexError) and "out of" in str(error):
                break  # JAX would take the nearest entry, and say nothing
            if isinstance(error, NameError | OSError | ImportError | MemoryError | RecursionError):
                break  # no other library's arrays mend that
    own = [error for error in errors if not _of_another_library(error)]
    shown = own[0] if own else max(errors, key=_reached)
    with suppress(TypeError, ValueError):  # a function whose signature cannot be read
        names = signature(function).bind(*arguments).arguments
        shown.add_note(", ".join(_described(name, names[name]) for name in names))
    raise shown


def _of_another_library(error: Exception) -> bool:
    """Whether the arrays were perhaps another library's than the function's."""
    arrays = ("ndarray", "Tensor", "ArrayImpl", "same dtype")
    return isinstance(error, TypeError | AttributeError | RuntimeError) and any(
        name in str(error) for name in arrays
    )


def _reached(error: Exception) -> int:
    """How far the function came."""
    frame = error.__traceback__ and error.__traceback__.tb_next
    return frame.tb_lasti if frame else -1


def _described(name: str, value: Any) -> str:
    """An argument in a few words: "h = 0.7", or "keys of shape (24, 3)"."""
    if isinstance(value, str):
        return f"{name} = {value!r}"
    if isinstance(value, dict):
        return f"{name} with {', '.join(value)}"
    array = np.asarray(value)
    if array.ndim > 1 or array.size > 6:
        return f"{name} of shape {array.shape}"
    numbers = ", ".join(show(v) for v in array.ravel())
    return f"{name} = [{numbers}]" if array.ndim else f"{name} = {numbers}"


@asked_where_it_is
def call_pair(function: Function, *arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    """As call, for an answer that is a pair of arrays; their shapes may differ."""
    found: list[np.ndarray] = []

    @wraps(function)
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


@asked_where_it_is
def refuse_writing(function: Function, *arguments: Any) -> np.ndarray:
    """Wrong if the function changes an array that it is given, whatever it answers."""

    @wraps(function)
    def watched(*own: Any) -> int:
        before = deepcopy(own)
        function(*own)
        for name, was, now in zip(signature(function).parameters, before, own, strict=False):
            if not _same(was, now):
                raise Wrong(f"your function writes into its caller's {name}:", "make a new array")
        return 0

    return call(watched, *arguments)


def _same(was: Any, now: Any) -> bool:
    if isinstance(was, dict):
        return was.keys() == now.keys() and all(_same(was[name], now[name]) for name in was)
    return bool(np.array_equal(was, now))


@asked_where_it_is
def call_real(function: Function, *arguments: Any) -> np.ndarray:
    """As call; Wrong for complex numbers, also where their imaginary parts are 0."""

    @wraps(function)
    def real(*own: Any) -> Any:
        answer = function(*own)
        if "complex" in str(getattr(answer, "dtype", "")):
            raise Wrong("your numbers are complex:", "return two real columns for each of them.")
        return answer

    return call(real, *arguments)


@asked_where_it_is
def call_with_memory_limit(function: Function, *arguments: Any) -> np.ndarray:
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
        raise Wrong(TOO_MUCH.format(held), "does it build an array of all pairs?")
    return answer


def _converters() -> Iterator[Function]:
    """What turns a check's NumPy arrays into each library's; numbers stay numbers."""
    yield lambda a: a
    with suppress(ImportError):
        yield from _torch_converters()
    with suppress(ImportError):
        yield partial(_convert, import_module("jax.numpy").asarray)


def _torch_converters() -> Iterator[Function]:
    torch = import_module("torch")
    yield partial(_convert, torch.from_numpy)
    yield partial(_convert, lambda a: torch.from_numpy(_single(a)))  # torch's own default


def _convert(convert: Function, argument: Any) -> Any:
    if isinstance(argument, dict):
        return {name: _convert(convert, one) for name, one in argument.items()}
    if isinstance(argument, list):
        return [_convert(convert, one) for one in argument]
    return convert(argument) if isinstance(argument, np.ndarray) else argument


def _single(array: np.ndarray) -> np.ndarray:
    """In float32, where it is in float64."""
    return array.astype(np.float32) if array.dtype == np.float64 else array


def to_numpy(answer: Any) -> np.ndarray:
    """An answer as a float64 NumPy array; Wrong where it is nothing, or no numbers."""
    if answer is None:
        raise Wrong("your function returns nothing:", "does it end with return?")
    try:
        array = np.asarray(_without_history(answer))
    except (TypeError, ValueError) as error:
        if isinstance(answer, tuple):
            words = "your function returns several arrays:"
            raise Wrong(words, "return the one that is asked for") from None
        if "inhomogeneous" in str(error):
            raise Wrong("your function returns a list whose parts differ in length") from None
        raise _no_numbers(answer) from None
    if array.dtype.kind == "c":
        if np.any(np.abs(array.imag) > 1e-9 * np.abs(array.real).max(initial=1e-300)):
            raise Wrong("your numbers are complex:", "return real ones")
        array = array.real
    if array.dtype.kind == "O" and any(entry is None for entry in array.ravel()):
        raise Wrong("your function returns None in the place of a number")
    if array.dtype.kind in "US":
        raise _no_numbers(answer)
    try:
        return array.astype(float)
    except (TypeError, ValueError):
        raise _no_numbers(answer) from None


def _no_numbers(answer: Any) -> Wrong:
    call = ": are the parentheses of a call missing?" if callable(answer) else ", expected numbers"
    return Wrong(f"your function returns a {type(answer).__name__}{call}")


def _without_history(answer: Any) -> Any:
    """PyTorch's arrays, alone or in a list, so that NumPy can read them."""
    if isinstance(answer, list | tuple):
        return [_without_history(one) for one in answer]
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu()
        return answer.float() if "bfloat16" in str(answer.dtype) else answer
    return answer
