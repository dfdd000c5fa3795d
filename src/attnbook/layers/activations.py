"""Activations: what stands between two matrices."""

import math
from collections.abc import Callable

import numpy as np
from array_api_compat import device, is_jax_array, is_torch_array
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import check_floating


def relu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Rectified linear unit, max(0, x); its slope at 0 is 0, as in PyTorch and JAX.

    Source: Nair and Hinton (2010).
    """
    xp = check_floating(x=x)
    return xp.where(x <= 0, xp.zeros_like(x), x)


def gelu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Gaussian error linear unit, x Φ(x), with Φ the standard normal distribution function.

    Source: Hendrycks and Gimpel (2016); exact, as torch.nn.GELU(). jax.nn.gelu takes an
        approximation by default.
    """
    xp = check_floating(x=x)
    if is_torch_array(x):
        import torch

        return torch.nn.functional.gelu(x)
    if is_jax_array(x):
        import jax

        return jax.nn.gelu(x, approximate=False)
    erf = np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x) / math.sqrt(2))
    return x * xp.asarray(0.5 + 0.5 * erf, dtype=x.dtype, device=device(x))


def gelu_tanh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """GELU by a hyperbolic tangent, x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), as in GPT-2.

    Source: Hendrycks and Gimpel (2016), section 2; within 5e-4 of gelu. As torch.nn.GELU("tanh"),
        and as jax.nn.gelu by default.
    """
    xp = check_floating(x=x)
    if is_torch_array(x):
        import torch

        return torch.nn.functional.gelu(x, approximate="tanh")
    if is_jax_array(x):
        import jax

        return jax.nn.gelu(x, approximate=True)
    near = xp.clip(x, -20, 20)  # beyond, the share is 0 or 1 in any case, and cubes overflow
    inner = math.sqrt(2 / math.pi) * (near + 0.044715 * near * near * near)
    return x * (0.5 + 0.5 * xp.tanh(inner))


def sigmoid(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Logistic sigmoid, σ(x) = 1 / (1 + exp(−x)), as ½ + ½ tanh(x/2), which does not overflow."""
    xp = check_floating(x=x)
    return 0.5 + 0.5 * xp.tanh(0.5 * x)


def silu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Sigmoid linear unit, x σ(x) = x / (1 + exp(−x)); also called swish.

    Source: Hendrycks and Gimpel (2016), section 2; Elfwing, Uchibe and Doya (2018).
    """
    return x * sigmoid(x)


# by the names that an MLP has for them; a "swiglu" is gated besides
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "swiglu": silu,
}
