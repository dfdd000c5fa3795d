"""Norms: every token alone is brought to one scale."""

from typing import Any

from array_api_compat import array_namespace, is_torch_array
from jaxtyping import Float

from attnbook._types import Array, Layer
from attnbook._validation import cast_parameter, check_floating, positive, upcast_half


def layer_norm(
    x: Float[Array, "... e"],
    weight: Float[Array, " e"] | None = None,
    bias: Float[Array, " e"] | None = None,
    *,
    eps: float = 1e-5,
) -> Float[Array, "... e"]:
    """Layer norm, g ⊙ (x − mean(x)) / √(var(x) + ε) + b, over the last axis of every token alone.

    Args:
        x: of shape (..., e).
        weight: g, of shape (e,); 1 without it.
        bias: b, of shape (e,); 0 without it.
        eps: ε, above 0: what keeps a token of equal entries from 0/0.

    Returns:
        Of the shape and dtype of x; half precision is computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, an eps that is not above 0.
        TypeError: arrays of different libraries.

    Source: Ba, Kiros and Hinton (2016), equation 4; the variance divides by e.
    """
    xp, wide = _to_norm(x, eps)
    centred = wide - xp.mean(wide, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return _scaled(x, centred / xp.sqrt(variance + eps), weight, bias)


def rms_norm(
    x: Float[Array, "... e"], weight: Float[Array, " e"] | None = None, *, eps: float = 1e-5
) -> Float[Array, "... e"]:
    """RMS norm, g ⊙ x / √(mean(x²) + ε), over the last axis: layer norm that leaves the mean in.

    Args:
        x: of shape (..., e).
        weight: g, of shape (e,); 1 without it.
        eps: ε, above 0.

    Returns:
        Of the shape and dtype of x; half precision is computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, an eps that is not above 0.
        TypeError: arrays of different libraries.

    Source: Zhang and Sennrich (2019), equation 4, with ε added.
    """
    xp, wide = _to_norm(x, eps)
    square = xp.mean(wide * wide, axis=-1, keepdims=True)
    return _scaled(x, wide / xp.sqrt(square + eps), weight, None)


def _to_norm(x: Array, eps: float) -> tuple[Any, Array]:
    xp = check_floating(x=x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x: got shape {tuple(x.shape)}, expected (..., e) with e of 1 or more")
    positive(eps=eps)
    return xp, upcast_half(xp, x)[0]


def _scaled(x: Array, normed: Array, weight: Array | None, bias: Array | None) -> Array:
    e = x.shape[-1]
    if weight is not None:
        normed = normed * cast_parameter(normed, (e,), of="x", weight=weight)
    if bias is not None:
        normed = normed + cast_parameter(normed, (e,), of="x", bias=bias)
    return array_namespace(x).astype(normed, x.dtype)


def apply_norm(norm: Layer, x: Float[Array, "... e"]) -> Float[Array, "... e"]:
    """Layer norm or RMS norm with the parameters of a library's layer, or x itself without one.

    A PyTorch module is called, but for an x of another dtype than its own. Equinox's norms both
    have a bias, which may be None.
    """
    if norm is None:
        return x
    alike = norm.weight is None or norm.weight.dtype == x.dtype
    if is_torch_array(x) and callable(norm) and alike:
        return norm(x)
    if "RMS" in type(norm).__name__ or not hasattr(norm, "bias"):
        return rms_norm(x, norm.weight, eps=norm.eps)
    return layer_norm(x, norm.weight, norm.bias, eps=norm.eps)
