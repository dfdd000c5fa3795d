"""What the package accepts. An error names the argument, what came and what was expected.

Values can be looked at only where they are known: under jax.jit, torch.compile and vmap the shapes
are checked and the values are not. A function with **argument takes one, by its own name.
"""

import contextlib
import functools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_jax_array, is_torch_array

from attnbook._types import Array


def is_such(number: Any, condition: Callable[[float], bool]) -> bool:
    """Whether it is a real number, and no truth value, of which a condition holds."""
    if isinstance(number, str | bool | np.bool_) or np.ndim(number) > 0:
        return False
    try:
        return condition(float(number))
    except (TypeError, ValueError):
        return False


def _number(expected: str, condition: Callable[[float], bool], argument: dict[str, Any]) -> float:
    ((name, number),) = argument.items()
    if not is_such(number, condition):
        raise ValueError(f"{name}: got {number!r}, expected {expected}")
    return float(number)  # Python's own: NumPy's would make float32 wider


def positive(**argument: Any) -> float:
    """A finite number above 0."""
    return _number("a number above 0", lambda x: 0 < x < math.inf, argument)


def positive_or_none(**argument: Any) -> float | None:
    """A finite number above 0, or None for no limit."""
    if None in argument.values():
        return None
    return _number("a number above 0, or None", lambda x: 0 < x < math.inf, argument)


def nonnegative(**argument: Any) -> float:
    """A finite number of 0 or more."""
    return _number("0 or more", lambda x: 0 <= x < math.inf, argument)


def probability(**argument: Any) -> float:
    """A share of at least 0 and below 1."""
    return _number("a share from 0 to below 1", lambda x: 0 <= x < 1, argument)


def fraction(**argument: Any) -> float:
    """A share of which neither it nor the rest is nothing."""
    return _number("a share above 0 and below 1", lambda x: 0 < x < 1, argument)


def nonnegative_int(*, least: int = 0, most: float = math.inf, **argument: Any) -> int:
    """A number of things, as a Python integer between two bounds."""
    ((name, number),) = argument.items()
    try:
        whole = operator.index(number)
    except TypeError:
        whole = least - 1
    if isinstance(number, bool) or not least <= whole <= most:
        expected = f"an integer, {least} or more" if most == math.inf else f"{least} to {most}"
        raise ValueError(f"{name}: got {number!r}, expected {expected}")
    return whole


def positive_int(**argument: Any) -> int:
    """A width or a number of things, as a Python integer of at least 1."""
    return nonnegative_int(least=1, **argument)


def int_between(least: int, most: int, **argument: Any) -> int:
    """A number of things, as a Python integer between two bounds."""
    return nonnegative_int(least=least, most=most, **argument)


def even(**argument: Any) -> int:
    """A width of pairs or of two halves, as an even Python integer of at least 2."""
    ((name, number),) = argument.items()
    if positive_int(**argument) % 2:
        raise ValueError(f"{name}: got a width of {number}, expected an even one, 2 or more")
    return int(number)


def divided(width: int, **argument: Any) -> int:
    """The width of one of so many parts of a width."""
    ((name, number),) = argument.items()
    if width % positive_int(**argument):
        raise ValueError(f"{name}: got {number}, expected a divisor of {width}, the width")
    return width // int(number)


def finite(**argument: Any) -> np.ndarray:
    """Finite real numbers, in lists or an array, as a NumPy array of floats."""
    ((name, given),) = argument.items()
    array = np.asarray(given)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: got {given!r}, expected finite real numbers")
    return array.astype(float)


def all_positive(shapes: str, axes: tuple[int, ...], **argument: Any) -> np.ndarray:
    """Finite numbers above 0, as a NumPy array of floats with so many axes."""
    ((name, given),) = argument.items()
    array = np.asarray(given)
    right = array.dtype.kind in "iuf" and array.ndim in axes and array.size > 0
    if not right or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name}: got {given!r}, expected numbers above 0, of shape {shapes}")
    return array.astype(float)


def one_of(names: tuple[str, ...], **argument: str) -> str:
    """One of some names."""
    ((argument_name, name),) = argument.items()
    if not isinstance(name, str) or name not in names:
        expected = " or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])
        raise ValueError(f"{argument_name}: got {name!r}, expected {expected}")
    return name


def check_function(example: str, **argument: Any) -> None:
    """Refuse what cannot be called, and name a function that can."""
    ((name, value),) = argument.items()
    if not callable(value):
        raise ValueError(f"{name}: got {value!r}, expected a function such as {example}")


# Arrays: their library and dtype


def common_namespace(**arrays: Any) -> Any:
    """Check that every argument is an array, and all of one library; return its namespace."""
    for name, array in arrays.items():
        if not is_array_api_obj(array):
            kind = type(array).__name__
            raise TypeError(f"{name}: got a {kind}, expected a NumPy, PyTorch or JAX array")
    try:
        return array_namespace(*arrays.values())
    except TypeError:
        modules = (type(a).__module__.split(".")[0] for a in arrays.values())
        kinds = ", ".join("jax" if module == "jaxlib" else module for module in modules)
        names = ", ".join(arrays)
        raise TypeError(f"{names}: got arrays of {kinds}, expected one library") from None


def check_numpy(**arrays: Any) -> None:
    """Check that every argument is a NumPy array, where no other will do."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name}: got a {type(array).__name__}, expected a NumPy array")


def check_floating(**arrays: Array) -> Any:
    """Check that the arrays are of one library and one floating dtype; return the namespace."""
    xp = common_namespace(**arrays)
    first = next(iter(arrays))
    for name, array in arrays.items():
        if not xp.isdtype(array.dtype, "real floating"):
            raise ValueError(f"{name}: got dtype {array.dtype}, expected a floating one")
        expected = arrays[first].dtype
        if array.dtype != expected:
            raise ValueError(f"{name}: got dtype {array.dtype}, expected {expected} as in {first}")
    return xp


def check_same_library(layer: Any, **array: Array) -> None:
    """Check that an array is of the library of a layer's weight, if the layer has one."""
    weight = getattr(layer, "weight", None)
    if is_array_api_obj(weight):
        common_namespace(**array, weight=weight)


def cast_parameter(
    like: Array, expected: tuple[int | str, ...], *, of: str = "q", **argument: Array
) -> Array:
    """A parameter in the dtype of an array, called ``of``; a letter in expected is any length."""
    ((name, array),) = argument.items()
    xp = common_namespace(**{of: like}, **argument)
    shape = tuple(array.shape)
    if len(shape) != len(expected) or any(
        isinstance(wanted, int) and got != wanted
        for got, wanted in zip(shape, expected, strict=True)
    ):
        wanted = ", ".join(map(str, expected)) + ("," if len(expected) == 1 else "")
        raise ValueError(f"{name}: got shape {shape}, expected ({wanted})")
    if not xp.isdtype(array.dtype, "real floating"):
        raise ValueError(f"{name}: got dtype {array.dtype}, expected a floating one")
    return xp.astype(array, like.dtype)


def upcast_half(xp: Any, *arrays: Array) -> tuple[Any, ...]:
    """Half precision in float32, where its sums neither overflow nor lose their digits."""
    return tuple(xp.astype(a, xp.float32) if xp.finfo(a.dtype).bits < 32 else a for a in arrays)


def promote_autocast(*arrays: Any) -> tuple[Any, ...]:
    """Arrays in the widest of their dtypes, where PyTorch's autocast has mixed them."""
    if not all(map(is_torch_array, arrays)) or len({a.dtype for a in arrays}) == 1:
        return arrays
    import torch

    if not torch.is_autocast_enabled(arrays[0].device.type):
        return arrays
    wide = functools.reduce(torch.promote_types, (a.dtype for a in arrays))
    return tuple(a.to(wide) for a in arrays)


def without_autocast(array: Any) -> contextlib.AbstractContextManager[Any]:
    """A block in which PyTorch's autocast rounds no product; for other arrays, a block."""
    if not is_torch_array(array):
        return contextlib.nullcontext()
    return sys.modules["torch"].autocast(array.device.type, enabled=False)


def to_numpy(array: Any) -> np.ndarray:
    """An array of any library as NumPy's; bfloat16, which NumPy does not have, as float32."""
    common_namespace(array=array)
    if is_torch_array(array):
        tensor: Any = array.detach().cpu()
        found: np.ndarray = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
        return found
    found = np.asarray(array)
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found


def is_concretely_true(condition: Any) -> bool:
    """Whether a condition holds; False where it has no value yet: in jax.jit, vmap, on meta."""
    if is_torch_array(condition) and sys.modules["torch"].compiler.is_compiling():
        return False
    try:
        return bool(condition)
    except (RuntimeError, TypeError):  # JAX's tracers, PyTorch's batched, meta and fake tensors
        if is_jax_array(condition) or is_torch_array(condition):
            return False
        raise


def check_finite(xp: Any, **arrays: Array) -> None:
    """Refuse data with NaN or infinity in them, and keys without a row."""
    if "keys" in arrays and arrays["keys"].shape[-2:-1] == (0,):
        raise ValueError("keys: got no rows, expected at least one")
    for name, array in arrays.items():
        bad = ~xp.isfinite(array)
        if is_concretely_true(xp.any(bad)):
            count = int(xp.sum(xp.astype(bad, xp.int64)))
            raise ValueError(
                f"{name}: got {count} entries of {math.prod(bad.shape)} that are NaN or infinite, "
                "expected finite numbers"
            )


# Arrays: their shapes


def is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts against target, its last two axes to target's."""
    try:
        return np.broadcast_shapes(shape, target)[-2:] == target[-2:]
    except ValueError:
        return False


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts to target."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def broadcast_leading_axes(**arrays: Array) -> tuple[int, ...]:
    """The common shape of all axes but the last two."""
    shapes = [tuple(a.shape[:-2]) for a in arrays.values()]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        got = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items())
        raise ValueError(
            f"{', '.join(arrays)}: got shapes {got}, expected leading axes that broadcast"
        ) from None


def check_rows(**argument: Array) -> Any:
    """Check one floating array of rows; return its namespace."""
    ((name, array),) = argument.items()
    xp = check_floating(**argument)
    if array.ndim < 2:
        raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected (..., n, width)")
    return xp


def check_widths(expected: int, **arrays: Array) -> Any:
    """Check floating arrays of one dtype, rows as wide as a layer; return their namespace."""
    xp = check_floating(**arrays)
    for name, array in arrays.items():
        if array.ndim < 2 or array.shape[-1] != expected:
            width = "width" if array.ndim < 2 else expected
            got = tuple(array.shape)
            raise ValueError(f"{name}: got shape {got}, expected (..., n, {width})")
    return xp


SHAPES = {"queries": "(..., m, d)", "q": "(..., m, d)", "values": "(..., n, p)", "v": "(..., n, p)"}


def check_qkv(**arrays: Array) -> Any:
    """Check queries, keys and values, as many of them as there are; return their namespace."""
    xp = check_floating(**arrays)
    for name, array in arrays.items():
        if array.ndim < 2:
            hint = f": write {name}[:, None] for a single column" if array.ndim == 1 else ""
            shape, expected = tuple(array.shape), SHAPES.get(name, "(..., n, d)")
            raise ValueError(f"{name}: got shape {shape}, expected {expected}{hint}")
    first, *others = (name for name in arrays if name not in ("values", "v"))
    keys = others[0] if others else first
    d, as_wide = arrays[keys].shape[-1], arrays[first].shape[-1]
    if d != as_wide:
        raise ValueError(f"{keys}: got {d} coordinates, expected {as_wide} as in {first}")
    if d == 0:
        raise ValueError(f"{keys}: got no coordinates, expected at least one")
    for name in arrays.keys() & {"values", "v"}:
        rows, n = arrays[name].shape[-2], arrays[keys].shape[-2]
        if rows != n:
            raise ValueError(f"{name}: got {rows} rows, expected {n}, one per key")
    broadcast_leading_axes(**arrays)
    return xp


def check_attention(
    queries: Array, keys: Array, values: Array, mask: Array | None, *, one_width: bool = True
) -> Any:
    """Check the four arrays that every weighted average takes; return their namespace.

    Without one_width the widths of queries and keys may differ.
    """
    if one_width:
        xp = check_qkv(queries=queries, keys=keys, values=values)
    else:
        xp = check_floating(queries=queries, keys=keys, values=values)
        check_qkv(queries=queries)
        check_qkv(keys=keys, values=values)
    lead = broadcast_leading_axes(queries=queries, keys=keys, values=values)
    check_mask(mask, (*lead, queries.shape[-2], keys.shape[-2]), queries=queries)
    return xp


def check_multi_head(
    layer: Any, queries: Array, keys: Array, values: Array, mask: Array | None
) -> None:
    """Check the tokens that a layer of several heads is given, and a mask that suits all heads."""
    check_widths(layer.embed_dim, queries=queries, keys=keys, values=values)
    rows, n = values.shape[-2], keys.shape[-2]
    if rows != n:
        raise ValueError(f"values: got {rows} rows, expected {n}, one per key")
    if mask is not None or keys is not queries or values is not keys:
        lead = broadcast_leading_axes(queries=queries, keys=keys, values=values)
        check_layers_mask(mask, (*lead, queries.shape[-2], n), queries=queries)


def check_causal(queries: Array, keys: Array) -> None:
    """Check that there are as many queries as keys, where the places of both are compared."""
    if queries.shape[-2] != keys.shape[-2]:
        m, n = queries.shape[-2], keys.shape[-2]
        raise ValueError(f"causal: got {m} queries and {n} keys, expected as many of both")


def check_mask(
    mask: Array | None, target: tuple[int, ...], *, called: str = "mask", **like: Array
) -> None:
    """Check that a mask is boolean, of the arrays' library, and fits the target's shape."""
    if mask is None:
        return
    xp = common_namespace(**like, **{called: mask})
    if not xp.isdtype(mask.dtype, "bool"):
        raise ValueError(f"{called}: got dtype {mask.dtype}, expected bool, True = may attend")
    if mask.ndim == 0 or not is_broadcastable(tuple(mask.shape), target):
        raise ValueError(
            f"{called}: got shape {tuple(mask.shape)}, expected one that fits {target}"
        )


def check_layers_mask(
    mask: Array | None, target: tuple[int, ...], *, called: str = "mask", **like: Array
) -> None:
    """Check a mask that a layer is given: it must not make more of the tokens than there are.

    PyTorch's layer takes one of shape (b · heads, m, n), which would make b · heads texts of one.
    """
    if mask is None:
        return
    check_mask(mask, target, called=called, **like)
    if not fits(tuple(mask.shape), target):
        raise ValueError(
            f"{called}: got shape {tuple(mask.shape)}, expected no more axes than the tokens have, "
            f"and no more sequences: {target}, or what broadcasts to it, the same for all heads"
        )


def check_bandwidth(xp: Any, h: Any, like: Array) -> Any:
    """The bandwidth as a Python number or an array of shape () or (d,) of the data's kind."""
    d = like.shape[-1]
    expected = f"expected a number above 0, or {d} of them, one per coordinate"
    if is_array_api_obj(h) and not isinstance(h, np.generic):
        common_namespace(data=like, bandwidth=h)
        if tuple(h.shape) not in ((), (d,)):
            raise ValueError(f"bandwidth: got shape {tuple(h.shape)}, {expected}")
        if not xp.isdtype(h.dtype, ("integral", "real floating")):
            raise ValueError(f"bandwidth: got dtype {h.dtype}, {expected}")
        if is_concretely_true(~xp.all((h > 0) & xp.isfinite(h))):
            raise ValueError(f"bandwidth: got {h}, {expected}")
        return xp.astype(h, like.dtype)
    numbers = h if isinstance(h, list | tuple) else [h]
    if not numbers or not all(is_such(number, lambda x: 0 < x < math.inf) for number in numbers):
        raise ValueError(f"bandwidth: got {h!r}, {expected}")
    if numbers is not h:
        return float(h)
    if len(h) != d:
        raise ValueError(f"bandwidth: got shape {(len(h),)}, {expected}")
    return xp.asarray([float(number) for number in h], dtype=like.dtype, device=device(like))


# Tokens


def check_tokens(vocab_size: int, longest: int | None = None, **argument: Array) -> None:
    """Check token numbers: PyTorch would stop with an index error, JAX would clip them."""
    ((name, tokens),) = argument.items()
    xp = common_namespace(**argument)
    if not xp.isdtype(tokens.dtype, "integral") or tokens.ndim == 0:
        got = f"dtype {tokens.dtype}, shape {tuple(tokens.shape)}"
        raise ValueError(f"{name}: got {got}, expected integers of shape (..., n)")
    if longest is not None and tokens.shape[-1] > longest:
        raise ValueError(f"{name}: got {tokens.shape[-1]} of them, expected at most {longest}")
    # no larger than the dtype holds: compared with uint8, 256 would become 0
    largest = min(vocab_size - 1, int(xp.iinfo(tokens.dtype).max))
    if is_concretely_true(xp.any((tokens < 0) | (tokens > largest))):
        got = f"{int(xp.min(tokens))} to {int(xp.max(tokens))}"
        raise ValueError(f"{name}: got {got}, expected 0 to {vocab_size - 1}")


def token_list(vocab_size: int | None = None, **argument: Any) -> list[int]:
    """Token numbers of one text, an array of any library or a list, as Python's integers."""
    ((name, tokens),) = argument.items()
    given = np.asarray(tokens.tolist() if is_array_api_obj(tokens) else tokens)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        got = f"dtype {given.dtype}, shape {given.shape}"
        raise ValueError(f"{name}: got {got}, expected integers of shape (n,), one text")
    if vocab_size is not None and given.size:
        check_tokens(vocab_size, None, **{name: given})
    return [int(token) for token in given]


def widen_tokens(tokens: Array) -> Array:
    """Token numbers as integers of 32 bits or more: smaller ones wrap where they index a table."""
    xp = array_namespace(tokens)
    return xp.astype(tokens, xp.int32) if xp.iinfo(tokens.dtype).bits < 32 else tokens


def check_length(longest: int | None, **arrays: Array) -> None:
    """Check the length of sequences (..., n, width)."""
    for name, array in arrays.items():
        n = array.shape[-2]
        if longest is not None and n > longest:
            raise ValueError(f"{name}: got {n} tokens, expected at most {longest}")


def check_mask_of_tokens(tokens: Array, mask: Array, name: str) -> None:
    """Check that a mask says of every token, called by a name, whether it is one."""
    xp = common_namespace(**{name: tokens}, mask=mask)
    if not xp.isdtype(mask.dtype, "bool") or tuple(mask.shape) != tuple(tokens.shape):
        got = f"dtype {mask.dtype}, shape {tuple(mask.shape)}"
        raise ValueError(f"mask: got {got}, expected bool of shape {tuple(tokens.shape)}")


def check_sentences(
    source: Array, mask: Array, target: Array, source_vocab: int, vocab: int
) -> None:
    """Check what an encoder–decoder reads and what it is to write."""
    check_tokens(source_vocab, source=source)
    check_tokens(vocab, target=target)
    check_mask_of_tokens(source, mask, "source")
    if target.shape[-1] == 0:
        raise ValueError("target: got no token, expected at least one, START")
    if tuple(target.shape[:-1]) != tuple(source.shape[:-1]):
        got, expected = tuple(target.shape[:-1]), tuple(source.shape[:-1])
        raise ValueError(f"target: got leading axes {got}, expected {expected} as in source")
    xp = common_namespace(mask=mask)
    if source.shape[-1] == 0 or is_concretely_true(~xp.all(xp.any(mask, axis=-1))):
        raise ValueError("mask: got a sentence without a word, expected at least one in each")
