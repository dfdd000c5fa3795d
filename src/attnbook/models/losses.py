"""What a model that predicts tokens is trained on."""

from array_api_compat import device, is_torch_array
from jaxtyping import Bool, Float, Int

from attnbook._types import Array
from attnbook._validation import (
    check_floating,
    check_mask_of_tokens,
    check_tokens,
    common_namespace,
    upcast_half,
)


def log_softmax(logits: Float[Array, "... vocab"]) -> Float[Array, "... vocab"]:
    """Log-probabilities, log softmax(s)_j = s_j − log Σ_l exp(s_l), over the last axis.

    The largest logit is subtracted first, so no exponential overflows.

    Args:
        logits: of shape (..., vocab).

    Returns:
        Of the shape of the logits, none above 0.

    Raises:
        ValueError: no axis, no logit or no floating ones.
        TypeError: what is no array.
    """
    xp = check_floating(logits=logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits: got shape {tuple(logits.shape)}, expected (..., vocab)")
    if is_torch_array(logits):  # one pass, and one back
        import torch

        return torch.log_softmax(logits, dim=-1)
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


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
    xp, dtype = check_floating(logits=logits), logits.dtype
    if logits.ndim < 2 or logits.shape[-1] == 0:
        raise ValueError(f"logits: got shape {tuple(logits.shape)}, expected (..., n, vocab)")
    common_namespace(logits=logits, labels=labels)
    if tuple(labels.shape) != tuple(logits.shape[:-1]):
        got, expected = tuple(labels.shape), tuple(logits.shape[:-1])
        raise ValueError(f"labels: got shape {got}, expected {expected}, one per row of logits")
    (logits,) = upcast_half(xp, logits)
    if mask is None:
        mask = xp.ones(labels.shape, dtype=xp.bool, device=device(logits))
    else:  # what is masked may be anything
        check_mask_of_tokens(labels, mask, "labels")
        logits = xp.where(mask[..., None], logits, xp.zeros_like(logits))
        labels = xp.where(mask, labels, xp.zeros_like(labels))
    check_tokens(logits.shape[-1], labels=labels)
    labels = xp.astype(labels, xp.arange(0, device=device(labels)).dtype)
    log_p = xp.take_along_axis(log_softmax(logits), labels[..., None], axis=-1)[..., 0]
    losses = -xp.where(mask, log_p, xp.zeros_like(log_p))
    count = xp.sum(xp.astype(mask, logits.dtype))
    return xp.astype(xp.sum(losses) / xp.where(count > 0, count, xp.ones_like(count)), dtype)
