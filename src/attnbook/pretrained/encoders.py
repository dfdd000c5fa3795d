"""Encoders of published models, from the book's blocks: one full pass each, for both back ends."""

from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Bool, Float, Int

from attnbook._types import Array
from attnbook._validation import (
    check_floating,
    check_mask_of_tokens,
    check_same_library,
    check_tokens,
    widen_tokens,
)
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.linear import embed, linear
from attnbook.layers.norms import apply_norm
from attnbook.models.transformer import run_blocks, unchecked_positions


def text_encoder(
    model: Any,
    tokens: Int[Array, "... n"],
    mask: Bool[Array, "... n"] | None = None,
    return_weights: bool = False,
) -> Any:
    """What BERT or ALBERT says of each token: blocks over norm(E[token] + P[position]).

    ALBERT's embedding is narrower than its stream: a matrix A widens it. With a head of masked
    tokens the result is logits, E norm(φ(W x + b)) + c with the embedding's own matrix E; without
    it the stream.

    Args:
        model: a TextEncoder of either back end.
        tokens: integers of shape (..., n).
        mask: boolean, of shape (..., n), True = a token. Positions are counted from the first on.
        return_weights: give the weights of every layer too.

    Returns:
        Logits (..., n, vocab_size) or the stream (..., n, embed_dim); or the pair of it and the
        weights, (..., heads, n, n) of every layer.

    Source: Devlin et al. (2019), section 3; Lan et al. (2020), section 3.1.
    """
    check_same_library(model.embedding, tokens=tokens)
    check_tokens(model.vocab_size, model.max_length, tokens=tokens)
    if mask is not None:
        check_mask_of_tokens(tokens, mask, "tokens")
    tokens = widen_tokens(tokens)
    x = embed(model.embedding, tokens) + unchecked_positions(model.position, tokens, mask)
    x = apply_norm(model.embedding_norm, x)
    if model.widen is not None:
        x = linear(model.widen, x)
    layers = list(model.encoder) * (model.num_layers // len(model.encoder))
    keys = None if mask is None else mask[..., None, :]
    stream, weights = run_blocks(layers, None, x, keys, return_weights)
    said = stream if model.head is None else _masked_head(model, stream)
    return (said, weights) if return_weights else said


def _masked_head(model: Any, stream: Array) -> Array:
    head = model.head
    x = ACTIVATIONS[model.activation](linear(head.dense, stream))
    return apply_norm(head.norm, x) @ model.embedding.weight.mT + head.bias


def image_encoder(
    model: Any, images: Float[Array, "... channels height width"], return_weights: bool = False
) -> Any:
    """What a vision transformer says of an image: blocks over its patches, a class token before.

    Args:
        model: an ImageEncoder of either back end.
        images: of shape (..., channels, image_size, image_size).
        return_weights: give the weights of every layer too.

    Returns:
        Logits (..., num_classes), read off the class token; without a classifier the stream
        (..., 1 + patches, embed_dim). Or the pair of it and the weights of every layer.

    Source: Dosovitskiy et al. (2021), equations 1 to 4.
    """
    xp = check_floating(images=images)
    check_same_library(model.embedding, images=images)
    expected = (model.num_channels, model.image_size, model.image_size)
    if images.ndim < 3 or tuple(images.shape[-3:]) != expected:
        got, wanted = tuple(images.shape), ", ".join(map(str, expected))
        raise ValueError(f"images: got shape {got}, expected (..., {wanted})")
    x = linear(model.embedding, cut_patches(images, model.patch_size))
    first = xp.broadcast_to(model.class_token, (*x.shape[:-2], 1, x.shape[-1]))
    x = xp.concat([first, x], axis=-2) + model.position
    stream, weights = run_blocks(model.encoder, model.encoder_norm, x, None, return_weights)
    said = stream if model.readout is None else linear(model.readout, stream[..., 0, :])
    return (said, weights) if return_weights else said


def cut_patches(
    images: Float[Array, "... channels height width"], size: int
) -> Float[Array, "... patches pixels"]:
    """Squares that do not overlap as rows, from the top left, channel by channel within a row.

    Args:
        images: of shape (..., channels, height, width).
        size: of a square's side, a divisor of height and width.

    Returns:
        Of shape (..., patches, channels · size²).
    """
    xp = array_namespace(images)
    *lead, channels, height, width = images.shape
    rows, columns = height // size, width // size
    x = xp.reshape(images, (*lead, channels, rows, size, columns, size))
    x = xp.moveaxis(x, (-4, -2), (-5, -4))  # (..., rows, columns, channels, size, size)
    return xp.reshape(x, (*lead, rows * columns, channels * size * size))
