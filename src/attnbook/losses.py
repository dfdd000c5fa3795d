"""What a model that foretells tokens is trained on."""

from typing import Any

from array_api_compat import device
from jaxtyping import Bool, Float, Int

from attnbook import arguments, tokens
from attnbook.arguments import widen

Array = Any  # a NumPy, PyTorch or JAX array


def cross_entropy(
    logits: Float[Array, "... n vocab"],
    labels: Int[Array, "... n"],
    mask: Bool[Array, "... n"] | None = None,
) -> Float[Array, ""]:
    """Mean cross-entropy −log p(label), in nats, with p the softmax of the logits.

    Args:
        logits: of shape (..., n, vocab).
        labels: integers from 0 to vocab − 1, of shape (..., n).
        mask: boolean, of the labels' shape, True = counts. What is masked has no share in the mean,
            nor any gradient, whatever stands there.

    Returns:
        A number of the logits' dtype, computed in float32 or wider. Without anything that counts it
        is 0.

    Raises:
        ValueError: shapes or dtypes that do not fit, a label outside the vocabulary.
        TypeError: arrays of different libraries.
    """
    xp, dtype = arguments.floating(logits=logits), logits.dtype
    tokens.labels(logits, labels, mask)
    (logits,) = widen(xp, logits)
    mask = xp.ones(labels.shape, dtype=xp.bool, device=device(logits)) if mask is None else mask
    logits = xp.where(mask[..., None], logits, xp.zeros_like(logits))
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    normaliser = xp.log(xp.sum(xp.exp(shifted), axis=-1))
    number = xp.arange(logits.shape[-1], device=device(labels))
    chosen = xp.where(
        number == xp.astype(labels, number.dtype)[..., None], shifted, xp.zeros_like(shifted)
    )
    losses = xp.where(mask, normaliser - xp.sum(chosen, axis=-1), xp.zeros_like(normaliser))
    count = xp.sum(xp.astype(mask, logits.dtype))
    return xp.astype(xp.sum(losses) / xp.where(count > 0, count, xp.ones_like(count)), dtype)
