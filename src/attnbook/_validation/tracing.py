"""Whether an array's numbers can be looked at: while a program is traced, they cannot."""

import sys
from typing import Any

from array_api_compat import is_jax_array, is_torch_array

from attnbook._validation.types import Array


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
