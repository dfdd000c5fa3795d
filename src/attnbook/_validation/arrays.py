"""What the functions accept. Anything else is an error: the argument, what came, what was expected.

Values can be looked at only where they are known: under jax.jit, torch.compile and vmap the shapes
are checked and the values are not.
"""

import contextlib
import functools
import itertools
import math
import sys
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_jax_array,
    is_torch_array,
)

from attnbook._validation import options
from attnbook._validation.numbers import is_real
from attnbook._validation.types import Array

SHAPES = {
    "queries": "(..., m, d)",
    "q": "(..., m, d)",
    "keys": "(..., n, d)",
    "k": "(..., n, d)",
    "values": "(..., n, p)",
}


def common_namespace(**arrays: Any) -> Any:
    """Check that every argument is an array, and all of one library; return its namespace."""
    for name, array in arrays.items():
        if not is_array_api_obj(array) or isinstance(array, np.ma.MaskedArray):
            kind = type(array).__name__
            raise TypeError(f"{name}: got a {kind}, expected a NumPy, PyTorch or JAX array")
    try:
        return array_namespace(*arrays.values())
    except TypeError:
        modules = (type(a).__module__.split(".")[0] for a in arrays.values())
        kinds = ", ".join("jax" if module == "jaxlib" else module for module in modules)
        names = ", ".join(arrays)
        raise TypeError(f"{names}: got arrays of {kinds}, expected one library") from None


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


def check_qkv(**arrays: Array) -> Any:
    """Check queries, keys and values, as many of them as there are; return their namespace."""
    xp = check_floating(**arrays)
    for name, array in arrays.items():
        if array.ndim < 2:
            hint = f": write {name}[:, None] for a single column" if array.ndim == 1 else ""
            shape = tuple(array.shape)
            raise ValueError(f"{name}: got shape {shape}, expected {SHAPES[name]}{hint}")
    first, *others = (name for name in arrays if name != "values")
    keys = others[0] if others else first
    d, expected = arrays[keys].shape[-1], arrays[first].shape[-1]
    if d != expected:
        raise ValueError(f"{keys}: got {d} coordinates, expected {expected} as in {first}")
    if d == 0:
        raise ValueError(f"{keys}: got no coordinates, expected at least one")
    if "values" in arrays:
        _check_one_value_a_key(arrays[keys], arrays["values"])
    broadcast_leading_axes(**arrays)
    return xp


def _check_one_value_a_key(keys: Array, values: Array) -> None:
    rows, expected = values.shape[-2], keys.shape[-2]
    if rows != expected:
        raise ValueError(f"values: got {rows} rows, expected {expected}, one per key")


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
    if mask is not None or not one_width:
        lead = broadcast_leading_axes(queries=queries, keys=keys, values=values)
        check_mask(mask, (*lead, queries.shape[-2], keys.shape[-2]), queries=queries)
    return xp


def check_multi_head(
    layer: Any, queries: Array, keys: Array, values: Array, mask: Array | None
) -> None:
    """Check the tokens that a layer of several heads is given, and a mask that suits all heads."""
    check_widths(layer.embed_dim, queries=queries, keys=keys, values=values)
    if values is not keys:
        _check_one_value_a_key(keys, values)
    lead = broadcast_leading_axes(queries=queries, keys=keys, values=values)
    check_same_library(layer.query, queries=queries)
    check_layers_mask(mask, (*lead, queries.shape[-2], keys.shape[-2]), queries=queries)


def check_how(score: Any, causal: Any, return_weights: Any) -> None:
    """Check the score and the flags of attention."""
    if type(causal) is not bool or type(return_weights) is not bool:  # NumPy's bool will do too
        options.flags(causal=causal, return_weights=return_weights)
    if not callable(score):
        options.check_function("attnbook.scores.dot", score=score)


def check_causal(queries: Array, keys: Array) -> None:
    """Check that there are as many queries as keys, where the places of both are compared."""
    if queries.shape[-2] != keys.shape[-2]:
        m, n = queries.shape[-2], keys.shape[-2]
        raise ValueError(f"causal: got {m} queries and {n} keys, expected as many of both")


def promote_autocast(*arrays: Any) -> tuple[Any, ...]:
    """Arrays in the widest of their dtypes, where PyTorch's autocast has mixed them."""
    if not all(map(is_torch_array, arrays)) or len({a.dtype for a in arrays}) == 1:
        return arrays
    import torch

    if not torch.is_autocast_enabled(arrays[0].device.type):
        return arrays
    wide = functools.reduce(torch.promote_types, (a.dtype for a in arrays))
    return tuple(a.to(wide) for a in arrays)


def without_autocast(array: Array) -> contextlib.AbstractContextManager[Any]:
    """A block in which PyTorch's autocast rounds no product; for other arrays, a block."""
    if not is_torch_array(array):
        return contextlib.nullcontext()
    import torch

    kind = array.device.type
    if not torch.is_autocast_enabled(kind):
        return contextlib.nullcontext()
    return torch.autocast(kind, enabled=False)


def check_memory(x: Array, memory: Array, memory_mask: Array | None) -> None:
    """Check what a stream reads, under the names that a block has for it."""
    lead = broadcast_leading_axes(x=x, memory=memory)
    target = (*lead, x.shape[-2], memory.shape[-2])
    check_layers_mask(memory_mask, target, called="memory_mask", x=x)


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
    if broadcast_shapes(tuple(mask.shape), target) != target:
        raise ValueError(
            f"{called}: got shape {tuple(mask.shape)}, expected no more axes than the tokens have, "
            f"and no more sequences: {target}, or what broadcasts to it, the same for all heads"
        )


def broadcast_leading_axes(**arrays: Array) -> tuple[int, ...]:
    """The common shape of all axes but the last two."""
    shapes = [tuple(a.shape[:-2]) for a in arrays.values()]
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        got = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items())
        raise ValueError(
            f"{', '.join(arrays)}: got shapes {got}, expected leading axes that broadcast"
        ) from None


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """numpy.broadcast_shapes, also of sizes that stay open while a layer is exported."""
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    if all(isinstance(size, int) for shape in shapes for size in shape):
        return np.broadcast_shapes(*shapes)
    columns = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(_one_size(sizes) for sizes in columns)[::-1]


def _one_size(sizes: tuple[int, ...]) -> int:
    first, *others = [size for size in sizes if size != 1] or [1]
    if any(size != first for size in others):
        raise ValueError(f"sizes {sizes} do not broadcast")
    return first


def is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts against target, leading axes included."""
    try:
        return broadcast_shapes(shape, target)[-2:] == target[-2:]
    except ValueError:
        return False


def has_one_per_row(shape: tuple[int, ...], rows: tuple[int, ...]) -> bool:
    """Whether an array of this shape has an entry for each of (..., n) rows, or for each of n."""
    try:
        return shape[-1:] == rows[-1:] and broadcast_shapes(shape, rows) == rows
    except ValueError:
        return False


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


def check_bandwidth(xp: Any, h: Any, like: Array) -> Any:
    """The bandwidth as a Python number or an array of shape () or (d,) of the data's kind."""
    d = like.shape[-1]
    expected = f"expected a number above 0, or {d} of them, one per coordinate"
    if is_real(h):  # NumPy's scalars too: they would promote float32 arrays
        h = float(h)
        if not 0 < h < math.inf:
            raise ValueError(f"bandwidth: got {h}, {expected}")
        return h
    if isinstance(h, list | tuple) and all(map(is_real, h)):
        h = xp.asarray([float(number) for number in h], dtype=like.dtype, device=device(like))
    if not is_array_api_obj(h):
        raise ValueError(f"bandwidth: got {h!r}, {expected}")
    common_namespace(data=like, bandwidth=h)
    if tuple(h.shape) not in ((), (d,)):
        raise ValueError(f"bandwidth: got shape {tuple(h.shape)}, {expected}")
    if not xp.isdtype(h.dtype, ("integral", "real floating")):
        raise ValueError(f"bandwidth: got dtype {h.dtype}, {expected}")
    if is_concretely_true(~xp.all((h > 0) & xp.isfinite(h))):
        raise ValueError(f"bandwidth: got {h}, {expected}")
    return xp.astype(h, like.dtype)


def check_heads(like: Array, bandwidths: Array, combination: Array) -> tuple[Array, Array]:
    """A bandwidth, or one per coordinate, and a coefficient for each head."""
    combination = cast_parameter(like, ("heads",), of="queries", combination=combination)
    count, d = combination.shape[0], like.shape[-1]
    common_namespace(queries=like, bandwidths=bandwidths)
    if tuple(bandwidths.shape) not in ((count,), (count, d)) or count == 0:
        raise ValueError(
            f"bandwidths: got shape {tuple(bandwidths.shape)}, expected ({count},) or ({count}, "
            f"{d}), one per head and at least one, as in combination"
        )
    check_finite(array_namespace(like), combination=combination)
    return bandwidths, combination


def check_widths(expected: int, **arrays: Array) -> Any:
    """Check floating arrays of one dtype, rows as wide as a layer; return their namespace."""
    xp = check_floating(**arrays)
    for name, array in arrays.items():
        if array.ndim < 2 or array.shape[-1] != expected:
            width = "width" if array.ndim < 2 else expected
            got = tuple(array.shape)
            raise ValueError(f"{name}: got shape {got}, expected (..., n, {width})")
    return xp


def check_rows(**argument: Array) -> Any:
    """Check one floating array of rows; return its namespace."""
    ((name, array),) = argument.items()
    xp = check_floating(**argument)
    if array.ndim < 2:
        raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected (..., n, width)")
    return xp


def check_numpy(**arrays: Any) -> None:
    """Check that every argument is a NumPy array, where no other will do."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
            got = type(array).__name__
            raise TypeError(f"{name}: got a {got}, expected a NumPy array")


def upcast_half(xp: Any, *arrays: Array) -> tuple[Any, ...]:
    """Half precision in float32, where its sums neither overflow nor lose their digits."""
    return tuple(xp.astype(a, xp.float32) if xp.finfo(a.dtype).bits < 32 else a for a in arrays)


def is_transforming() -> bool:
    """Whether torch.compile or torch.func is at work: tensors' values are hidden then."""
    import torch

    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def is_concretely_true(condition: Array) -> bool:
    """Whether a condition holds; False where it has no value yet.

    So it is with meta and fake tensors, under transformations, and while a CUDA graph is captured.
    """
    if is_jax_array(condition):
        return not isinstance(condition, sys.modules["jax"].core.Tracer) and bool(condition)
    if is_torch_array(condition) and is_hidden(condition):
        return False
    return bool(condition)


def is_hidden(tensor: Any) -> bool:
    """Whether a PyTorch tensor's numbers cannot be looked at here."""
    return tensor.is_meta or _is_fake(tensor) or is_transforming() or _is_capturing(tensor)


def _is_capturing(tensor: Any) -> bool:
    """Whether the tensor's device only notes what is asked of it, as a CUDA graph."""
    return bool(tensor.is_cuda and sys.modules["torch"].cuda.is_current_stream_capturing())


def _is_fake(tensor: Array) -> bool:
    """Whether a PyTorch tensor has a shape and no numbers, whatever its device."""
    return isinstance(tensor, sys.modules["torch"]._subclasses.FakeTensor)
