"""Which device each back end computes on, and what the machine is.

JAX would take most of a GPU's memory at its first use; so that PyTorch can share the GPU, import
this module (or attnbook.jax) before JAX computes anything.
"""

import os
import platform
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def torch_device(*, double: bool = False) -> Any:
    """The torch.device to use: CUDA (also AMD's ROCm), else Apple's MPS, else the CPU.

    MPS is left out, with a warning, where it computes otherwise than the CPU (wrong_on).

    Args:
        double: the work is in float64, which MPS does not have.
    """
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available() and not double:
        if not (wrong := wrong_on("mps")):
            return torch.device("mps")
        warnings.warn(
            f"PyTorch {torch.__version__} on this Mac's GPU computes otherwise than on the CPU: "
            f"{', '.join(wrong)}. The CPU computes instead.",
            stacklevel=2,
        )
    return torch.device("cpu")


@cache
def wrong_on(kind: str) -> tuple[str, ...]:
    """What a kind of device computes otherwise than the CPU, among what the book uses in float32.

    Releases of PyTorch were silently wrong here on Apple's GPUs: pytorch/pytorch issues 188438 and
    192934 (a bias that is lost), 180201, 163597, 184180 and 118115 (sums in place into a transposed
    array). The last digits may differ: 1e-3 of the largest number.

    Args:
        kind: a name that torch.device takes, such as "mps".
    """
    import torch
    from torch.nn import functional

    here: dict[str, Any] = {"device": "cpu", "dtype": torch.float32}  # whatever the defaults are
    source = torch.Generator(device="cpu").manual_seed(0)

    def normal(*shape: int) -> Any:
        return torch.randn(shape, generator=source, **here)

    def slope(x: Any, w: Any) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(functional.linear(x, w).sum(), x)[0]

    def heads(x: Any) -> Any:
        q = x.permute(0, 2, 1, 3)
        return functional.scaled_dot_product_attention(q, q, q)

    def masked(q: Any, bias: Any) -> Any:
        return functional.scaled_dot_product_attention(q, q, q, attn_mask=bias)

    def in_place(a: Any, b: Any) -> Any:
        return torch.zeros_like(a).t().addcmul_(a.t(), b.t())

    hidden = torch.zeros(2, 1, 8, 8, **here)
    hidden[0, 0, 4:, :4] = -torch.inf
    linear, one = functional.linear, (normal(80, 1, 2), normal(192, 2), normal(192))
    many = normal(2, 64, 128), normal(384, 128), normal(384)
    cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "a linear layer on rows of one token": (linear, one),
        "a linear layer on rows of 64 tokens": (linear, many),
        "the gradient of a sum": (slope, (normal(3840, 33), normal(1, 33))),
        "attention of permuted heads": (heads, (normal(84, 3, 3, 64),)),
        "attention with a mask": (masked, (normal(2, 4, 8, 64), hidden)),
        "a sum in place": (in_place, (normal(2, 3), normal(2, 3))),
    }
    wrong = []
    for name, (function, arrays) in cases.items():
        right = function(*arrays)
        try:
            found = function(*(a.to(kind) for a in arrays)).cpu()
        except (RuntimeError, TypeError, AssertionError):
            wrong.append(name)  # it does not compute it at all
            continue
        if not torch.allclose(found, right, rtol=0, atol=1e-3 * float(right.abs().max())):
            wrong.append(name)
    return tuple(wrong)


def jax_device() -> Any:
    """The jax.Device on which JAX computes where it is told nothing else."""
    import jax

    return jax.devices()[0]


def full_precision() -> None:
    """Float32 products in float32: no TF32, in each back end that is installed.

    Comparisons between back ends need it.
    """
    with suppress(ImportError):
        import torch

        torch.set_float32_matmul_precision("highest")
    with suppress(ImportError):
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")


def describe() -> str:
    """What the machine is, in one line: system, Python, each back end's version and device."""
    parts = [
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} logical cores",
        f"Python {platform.python_version()}",
    ]
    with suppress(ImportError):
        import torch

        device = torch_device()
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type.upper()
        parts.append(f"PyTorch {torch.__version__} on {name}")
    with suppress(ImportError):
        import jax

        parts.append(f"JAX {jax.__version__} on {jax_device().device_kind.upper()}")
    return "; ".join(parts)
