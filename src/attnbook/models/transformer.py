"""Transformers from the same blocks: one full pass of each model, for both back ends.

An encoder reads, every token sees every token. A decoder writes, every token sees those before it,
and a memory if there is one. A model of attnbook.torch or attnbook.jax holds the parameters.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from array_api_compat import array_namespace
from jaxtyping import Bool, Float, Int

from attnbook._types import Array, Layer
from attnbook._validation import (
    check_length,
    check_mask_of_tokens,
    check_same_library,
    check_sentences,
    check_tokens,
    check_widths,
    widen_tokens,
)
from attnbook.layers.dropout import dropout as leave_out
from attnbook.layers.linear import embed, linear
from attnbook.layers.norms import apply_norm

INIT_STD = 0.3  # of first embeddings and positions; 0.02, as in GPT-2, learns more slowly here


class Memory(NamedTuple):
    """What a decoder may read: the encoder's output (b, n, e) and a mask (b, 1, n)."""

    values: Array
    mask: Array | None


def run_blocks(
    layers: Any,
    norm: Layer | None,
    x: Array,
    mask: Bool[Array, "..."] | None,
    return_weights: bool = False,
    causal: bool = False,
    keys: Sequence[Any] | None = None,
) -> tuple[Float[Array, "... n e"], list[Array]]:
    """Encoder blocks one after the other, and a last norm if there is one.

    Args:
        layers: EncoderBlocks of either back end.
        norm: a layer norm or an RMS norm of the same library, or None.
        x: embedded tokens, of shape (..., n, e).
        mask: boolean, broadcastable to (..., n, n), True = may attend.
        return_weights: give the weights of every layer too.
        causal: whether a token may attend to no later one.
        keys: a random key for each layer of JAX's, for its dropout, or None.

    Returns:
        The stream (..., n, e), and the weights, an empty list if nobody asks for them.
    """
    kept = []
    for i, layer in enumerate(layers):
        random = {} if keys is None or keys[i] is None else {"key": keys[i]}
        x = layer(x, mask, return_weights=return_weights, causal=causal, **random)
        if return_weights:
            x, weights = x
            kept.append(weights)
    return apply_norm(norm, x), kept


def encoder_only(
    model: Layer,
    x: Float[Array, "... n input"],
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
) -> Any:
    """What an encoder says of each of its tokens, W run_blocks(A x + a + P) + b.

    Args:
        model: an EncoderOnly of either back end.
        x: tokens that are vectors, of shape (..., n, input_dim).
        mask: boolean, broadcastable to (..., n, n), True = may attend. It does not say which are
            tokens: learned positions are counted from the first place on, so padding goes behind.
        return_weights: give the weights of every layer too.

    Returns:
        Of shape (..., n, output_dim), or the pair (said, weights).
    """
    check_widths(model.input_dim, x=x)
    check_length(model.max_length, x=x)
    embedded = linear(model.embedding, x)
    if model.position is not None:
        position = model.position[: x.shape[-2]]
        embedded = embedded + array_namespace(x).astype(position, embedded.dtype)
    stream, weights = run_blocks(model.encoder, model.encoder_norm, embedded, mask, return_weights)
    said = linear(model.readout, stream)
    return (said, weights) if return_weights else said


def decoder_only(
    model: Layer,
    tokens: Int[Array, "... n"],
    return_weights: bool = False,
    mask: Bool[Array, "... n"] | None = None,
    dropout: float = 0.0,
    keys: Sequence[Any] | None = None,
) -> Any:
    """Logits of the token after each, from those up to it: a decoder without a memory.

    Args:
        model: a DecoderOnly of either back end.
        tokens: integers of shape (..., n).
        return_weights: give the weights of every layer too.
        mask: boolean, of shape (..., n), True = a token, False = padding, to which none attends.
            Learned positions are counted from a row's first token on, so that padding before it
            changes no logit of a token; rotary ones turn by their differences, which it leaves.
        dropout: the share of entries of the first stream left out, while the model learns.
        keys: of JAX's: one for that dropout, and one for each layer's.

    Returns:
        Of shape (..., n, vocab_size), or the pair (logits, weights).

    Source: Liu et al. (2018); Radford et al. (2018).
    """
    tokens = _checked(model, tokens)
    if mask is not None:
        check_mask_of_tokens(tokens, mask, "tokens")
    x = embed(model.embedding, tokens)
    if model.position is not None:
        x = x + unchecked_positions(model.position, tokens, mask)
    x = leave_out(x, dropout, None if keys is None else keys[0])
    if mask is not None:
        mask = mask[..., None, :]  # for every query
    rest = None if keys is None else keys[1:]
    stream, weights = run_blocks(
        model.decoder, model.decoder_norm, x, mask, return_weights, causal=True, keys=rest
    )
    logits = read_out(model, stream)
    return (logits, weights) if return_weights else logits


def unchecked_positions(position: Array, tokens: Array, mask: Array | None) -> Array:
    """P[j] of each token, j the number of tokens before it in its row: padding takes no place."""
    if mask is None:
        return position[: tokens.shape[-1]]
    xp = array_namespace(mask)
    one = xp.astype(mask, xp.int32)
    return position[xp.cumulative_sum(one, axis=-1, dtype=xp.int32) - one]


def read_out(model: Layer, x: Float[Array, "... e"]) -> Float[Array, "... vocab"]:
    """Logits W x + b of a DecoderOnly's stream; W is the embedding's matrix where they are tied.

    The tied readout of PyTorch holds that matrix itself, JAX's is None.

    Source: Press and Wolf (2017).
    """
    return x @ model.embedding.weight.mT if model.readout is None else linear(model.readout, x)


def attention_only(model: Layer, tokens: Int[Array, "... n"], return_weights: bool = False) -> Any:
    """Logits U x_i of the token after i, with x ← x + attention(x), layer by layer.

    The first x is E[token] + P[position], with learned E and P. All attention is causal. The
    smallest transformer that learns to copy.

    Args:
        model: an AttentionOnly of either back end.
        tokens: integers of shape (..., n).
        return_weights: give the weights of every layer too.

    Returns:
        Of shape (..., n, vocab_size), or the pair (logits, weights).

    Source: Elhage et al. (2021), "attention-only transformers".
    """
    tokens = _checked(model, tokens)
    x = embed(model.embedding, tokens) + model.position[: tokens.shape[-1]]
    kept = []
    for layer in model.layers:
        change = layer(x, causal=True, return_weights=return_weights)
        if return_weights:
            change, weights = change
            kept.append(weights)
        x = x + change
    logits = linear(model.readout, x)
    return (logits, kept) if return_weights else logits


def _checked(model: Layer, tokens: Array) -> Array:
    """Check what a model of one sequence of tokens is given."""
    check_same_library(model.embedding, tokens=tokens)
    check_tokens(model.vocab_size, model.max_length, tokens=tokens)
    return widen_tokens(tokens)


def encoder_decoder(
    model: Layer,
    source: Int[Array, "b n"],
    mask: Bool[Array, "b n"],
    target: Int[Array, "b m"],
    return_weights: bool = False,
) -> Any:
    """Logits of every next token, given the true ones before: teacher forcing, all at once.

    Args:
        model: a Transformer of either back end.
        source: token numbers, of shape (b, n).
        mask: True = a word. Positions are counted from a row's first word on.
        target: token numbers of what stands before, of shape (b, m).
        return_weights: give the weights of every layer to the source too.

    Returns:
        Logits of shape (b, m, target_vocab), or the pair (logits, weights).

    Source: Vaswani et al. (2017), section 3.1.
    """
    check_same_library(model.output, source=source)
    check_same_library(model.output, target=target)
    check_sentences(source, mask, target, model.source_vocab, model.target_vocab)
    check_length(model.max_length, source=source[..., None], target=target[..., None])
    source, target = widen_tokens(source), widen_tokens(target)
    memory = _encode_source(model, source, mask)
    x = embed(model.target_embedding, target) + model.target_position[: target.shape[-1]]
    kept = []
    for layer in model.decoder:
        x = layer(x, memory.values, None, memory.mask, return_weights=return_weights, causal=True)
        if return_weights:
            x, _, weights = x
            kept.append(weights)
    logits = linear(model.output, apply_norm(model.decoder_norm, x))
    return (logits, kept) if return_weights else logits


def encode_source(model: Layer, source: Int[Array, "b n"], mask: Bool[Array, "b n"]) -> Memory:
    """What the encoder of a Transformer has read: each word with all the others.

    Args:
        model: a Transformer of either back end.
        source: token numbers, of shape (b, n).
        mask: True = a word. Positions are counted from a row's first word on.

    Returns:
        What the decoder may read.
    """
    check_same_library(model.output, source=source)
    if source.ndim != 2 or source.shape[0] == 0:
        shape = tuple(source.shape)
        raise ValueError(f"source: got shape {shape}, expected (b, n), one row or more")
    check_sentences(source, mask, source, model.source_vocab, model.source_vocab)
    check_length(model.max_length, source=source[..., None])
    return _encode_source(model, widen_tokens(source), mask)


def _encode_source(model: Layer, source: Array, mask: Array) -> Memory:
    position = unchecked_positions(model.source_position, source, mask)
    embedded = embed(model.source_embedding, source) + position
    mask = mask[..., None, :]
    return Memory(run_blocks(model.encoder, model.encoder_norm, embedded, mask)[0], mask)


def check_given_by(method: str, kind: type, **argument: Any) -> None:
    """Check that an argument is what a method of the model gives."""
    ((name, value),) = argument.items()
    if not isinstance(value, kind):
        got = type(value).__name__
        raise TypeError(f"{name}: got a {got}, expected what {method} of the model gives")
