"""A reader's block, of NumPy's functions and for one row of tokens, as PyTorch can train it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

Function = Callable[..., Any]
# What torch.compiler.wrap_numpy compiles to; by itself it takes any number of lengths of rows, and
# the book's functions among the reader's.
numpys: Any = import_module("torch._numpy")


def for_tensors(block: Function) -> Function:
    """A block for one row of tokens, perhaps NumPy's, as one that PyTorch can train on many."""
    of_numpy = by_torch(block)

    def by_numpy(x: Any, weights: dict[str, Any], num_heads: int, mask: Any) -> torch.Tensor:
        arrays = {name: numpys.asarray(weight) for name, weight in weights.items()}
        mask = None if mask is None else numpys.asarray(mask)
        found: torch.Tensor = of_numpy(numpys.asarray(x), arrays, num_heads, mask).tensor
        return found.to(x.dtype)  # np.zeros are of float64

    def in_turn(function: Function) -> Function:
        return lambda rows: torch.stack([function(row) for row in rows])

    ways = ((one, over_rows) for one in (block, by_numpy) for over_rows in (torch.vmap, in_turn))
    errors = []  # raised where tensors come, as the block may serve others
    for one, over_rows in ways:  # vmap takes no writing into arrays
        try:
            _assert_slopes(one, over_rows)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}")
        else:
            break
    failed = len(errors) == 4

    @sdpa_kernel(SDPBackend.MATH)  # vmap knows no other
    def trained(x: Any, weights: dict[str, Any], num_heads: int, mask: Any = None) -> Any:
        if not isinstance(x, torch.Tensor):
            return block(x, weights, num_heads, mask)
        if failed:
            raise TypeError(
                "block: got one through which PyTorch finds no slopes, expected NumPy's functions "
                f"or PyTorch's, and not JAX's. {errors[-1]:.120}"
            )
        function: Function = partial(one, weights=weights, num_heads=num_heads, mask=mask)
        for _ in x.shape[:-2]:
            function = over_rows(function)
        return function(x)

    return trained


@sdpa_kernel(SDPBackend.MATH)
def _assert_slopes(block: Function, over_rows: Function) -> None:
    """Raises where the block cannot take rows so, or its slopes are not those of its values."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (4, 4))
    shapes |= {"w_1": (8, 4), "w_2": (4, 8), "norm_1": (4,), "norm_2": (4,), "rows": (2, 3, 4)}
    sample = {
        name: torch.arange(1.0, 1 + math.prod(shape)).double().sin().reshape(shape)
        for name, shape in shapes.items()
    }
    causal = torch.ones(3, 3, dtype=torch.bool).tril()

    def total(scale: Any) -> Any:
        given = {name: scale * array for name, array in sample.items()}
        rows = given.pop("rows")
        return over_rows(partial(block, weights=given, num_heads=2, mask=causal))(rows).sum()

    with torch.enable_grad(), warnings.catch_warnings(action="ignore"):  # of what may fail
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        total(scale).backward()
        slope = (total(1 + 1e-5) - total(1 - 1e-5)) / 2e-5
    torch.testing.assert_close(scale.grad, slope, rtol=1e-3, atol=1e-3)


def by_torch(function: Function) -> Function:
    """The function, and those of its module, with PyTorch's own NumPy, through which slopes go."""

    def of_library(own: Function) -> Function:
        def adapted(*arguments: Any, **named: Any) -> Any:
            answer = own(
                *(getattr(one, "tensor", one) for one in arguments),
                **{name: getattr(one, "tensor", one) for name, one in named.items()},
            )
            parts = answer if isinstance(answer, tuple) else (answer,)
            arrays = tuple(numpys.asarray(one) for one in parts)
            return arrays if isinstance(answer, tuple) else arrays[0]

        return adapted

    known = {**function.__globals__}
    for name, value in known.items():
        own = getattr(value, "__name__", "")
        if value is numpy:
            known[name] = numpys
        elif getattr(numpy, own, None) is value:
            known[name] = getattr(numpys, own, value)
        elif getattr(value, "__globals__", None) is function.__globals__:
            known[name] = _among(known, value)
        elif isinstance(value, FunctionType) and value.__module__.startswith("attnbook"):
            known[name] = of_library(value)
    return _among(known, function)


def _among(known: dict[str, Any], function: Any) -> FunctionType:
    """The function with other names around it."""
    code, name = function.__code__, function.__name__
    made = FunctionType(code, known, name, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made
