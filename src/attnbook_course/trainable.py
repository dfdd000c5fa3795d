"""A reader's block, of NumPy's functions and for one row of tokens, as PyTorch can train it."""

from __future__ import annotations

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

    @sdpa_kernel(SDPBackend.MATH)  # vmap knows no other
    @torch.enable_grad()
    def found(width: int, weights: dict[str, Any], num_heads: int) -> tuple[Any, Any]:
        """What can be trained: the block or by_numpy, and how it takes rows."""
        rows = torch.linspace(-1, 1, 2 * 3 * width).reshape(2, 3, width)
        sample = {name: torch.ones(one.shape, requires_grad=True) for name, one in weights.items()}
        causal = torch.ones(3, 3, dtype=torch.bool).tril()
        for one in (block, by_numpy):
            function = partial(one, weights=sample, num_heads=num_heads, mask=causal)
            for over_rows in (torch.vmap, in_turn):  # vmap takes no writing into arrays
                try:
                    over_rows(function)(rows).sum().backward()
                except Exception as said:
                    error = said
                else:
                    return one, over_rows
        first = next(iter(str(error).splitlines()), "")
        raise TypeError(
            "block: got one through which PyTorch finds no slopes, expected NumPy's functions or "
            f"PyTorch's, and not JAX's. {type(error).__name__}: {first:.99}"
        ) from None

    ways: list[Any] = []

    @sdpa_kernel(SDPBackend.MATH)
    def trained(x: Any, weights: dict[str, Any], num_heads: int, mask: Any = None) -> Any:
        if not isinstance(x, torch.Tensor):
            return block(x, weights, num_heads, mask)
        ways[:] = ways or found(x.shape[-1], weights, num_heads)
        one, over_rows = ways
        function: Function = partial(one, weights=weights, num_heads=num_heads, mask=mask)
        for _ in x.shape[:-2]:
            function = over_rows(function)
        return function(x)

    return trained


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
