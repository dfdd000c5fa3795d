"""Which device each back end computes on, and what the machine is.

JAX would take most of a GPU's memory at its first use; so that PyTorch can share the GPU, import
this module (or attnbook.jax) before JAX computes anything.
"""

import os
import platform
from typing import Any

from attnbook._validation import options

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def torch_device(*, double: bool = False) -> Any:
    """The torch.device to use: CUDA where there is one, else Apple's MPS, else the CPU.

    Args:
        double: the work is in float64, which MPS does not have.
    """
    import torch

    options.flag(double=double)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available() and not double:
        return torch.device("mps")
    return torch.device("cpu")


def jax_device() -> Any:
    """The jax.Device to use: the first of JAX's default platform (a GPU where JAX sees one)."""
    import jax

    return jax.devices()[0]


def full_precision() -> None:
    """Float32 products in float32: no TF32, in each back end that is installed.

    Comparisons between back ends need it.
    """
    try:
        import torch

        torch.set_float32_matmul_precision("highest")
    except ImportError:
        pass
    try:
        import jax

        jax.config.update("jax_default_matmul_precision", "highest")
    except ImportError:
        pass


def describe() -> str:
    """What the machine is, in one line: system, Python, each back end's version and device."""
    parts = [
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} logical cores",
        f"Python {platform.python_version()}",
    ]
    try:
        import torch

        device = torch_device()
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type.upper()
        parts.append(f"PyTorch {torch.__version__} on {name}")
    except ImportError:
        parts.append("no PyTorch")
    try:
        import jax

        parts.append(f"JAX {jax.__version__} on {jax_device().device_kind.upper()}")
    except ImportError:
        parts.append("no JAX")
    return "; ".join(parts)
