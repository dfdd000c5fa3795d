"""Transformers of three kinds from the same blocks: one forward for both back ends.

An encoder reads, every token sees every token. A decoder writes, every token sees those before it,
and a memory if there is one. A model of attnbook.torch or attnbook.jax holds the parameters.
"""

from typing import Any, NamedTuple

from array_api_compat import array_namespace, device
from jaxtyping import Bool, Float, Int

from attnbook import blocks, heads
from attnbook.attention import attend
from attnbook.blocks import Reader, normed
from attnbook.linear import embed, linear

Array = Any  # a PyTorch or JAX array


class Cache(NamedTuple):
    """Keys and values of what a decoder has written: the KV cache.

    Args:
        keys: of shape (b, layers, heads, max_length, d); what is not written yet is 0.
        values: of the same shape.
        length: t, how many tokens each row has, integers of shape (b,); keys and values beyond it
            are not looked at.
    """

    keys: Array
    values: Array
    length: Array


class Memory(NamedTuple):
    """What a decoder may read: the encoder's output (b, n, e) and a mask (b, 1, n)."""

    values: Array
    mask: Array | None


def encode(
    layers: Any,
    norm: Any,
    x: Array,
    mask: Bool[Array, "..."] | None,
    keep: bool = False,
    causal: bool = False,
) -> tuple[Float[Array, "... n e"], list[Array]]:
    """Encoder blocks one after the other, and a last norm.

    Args:
        layers: EncoderBlocks of either back end.
        norm: a layer norm of the same library.
        x: embedded tokens, of shape (..., n, e).
        mask: boolean, broadcastable to (..., n, n), True = may attend.
        keep: keep the weights of every layer.
        causal: whether a token may attend to no later one.

    Returns:
        The stream (..., n, e), and the weights, an empty list unless they are kept.
    """
    kept = []
    for layer in layers:
        x = layer(x, mask, return_weights=keep, causal=causal)
        if keep:
            x, weights = x
            kept.append(weights)
    return normed(norm, x), kept


def read(
    model: Any, x: Float[Array, "... n input"], mask: Bool[Array, "..."] | None, keep: bool
) -> tuple[Float[Array, "... n out"], list[Array]]:
    """What an encoder says of each of its tokens, W encode(A x + a + P) + b.

    Args:
        model: an EncoderOnly of either back end.
        x: tokens that are vectors, of shape (..., n, input_dim).
        mask: boolean, broadcastable to (..., n, n), True = may attend.
        keep: keep the weights of every layer.

    Returns:
        Of shape (..., n, output_dim), and the weights.
    """
    embedded = linear(model.embedding, x)
    if model.position is not None:
        position = model.position[: x.shape[-2]]
        embedded = embedded + array_namespace(x).astype(position, embedded.dtype)
    stream, weights = encode(model.encoder, model.encoder_norm, embedded, mask, keep)
    return linear(model.readout, stream), weights


def foretell(
    model: Any, tokens: Int[Array, "... n"], keep: bool
) -> tuple[Float[Array, "... n vocab"], list[Array]]:
    """Logits of the token after each, from those up to it: a decoder without a memory.

    Args:
        model: a DecoderOnly of either back end.
        tokens: integers of shape (..., n).
        keep: keep the weights of every layer.

    Returns:
        Of shape (..., n, vocab_size), and the weights.

    Source: Liu et al. (2018); Radford et al. (2018).
    """
    x = embed(model.embedding, tokens) + model.position[: tokens.shape[-1]]
    stream, weights = encode(model.decoder, model.decoder_norm, x, None, keep, causal=True)
    return linear(model.readout, stream), weights


def memorise(model: Any, source: Int[Array, "b n"], mask: Bool[Array, "b n"]) -> Memory:
    """The encoder's reading of a source.

    Args:
        model: a Transformer of either back end.
        source: token numbers, of shape (b, n).
        mask: True = a word.

    Returns:
        The memory, each word with all the others read.
    """
    embedded = embed(model.source_embedding, source) + model.source_position[: source.shape[-1]]
    mask = mask[..., None, :]
    return Memory(encode(model.encoder, model.encoder_norm, embedded, mask)[0], mask)


def translate(
    model: Any,
    source: Int[Array, "b n"],
    mask: Bool[Array, "b n"],
    written: Int[Array, "b m"],
    keep: bool,
) -> tuple[Float[Array, "b m vocab"], list[Array]]:
    """Logits of every next token, given the true ones before: teacher forcing, all at once.

    Args:
        model: a Transformer of either back end.
        source: token numbers, of shape (b, n).
        mask: True = a word.
        written: token numbers of what stands before, of shape (b, m).
        keep: keep the weights of every layer to the source.

    Returns:
        Logits of shape (b, m, target_vocab), and the weights to the source.

    Source: Vaswani et al. (2017), section 3.1.
    """
    memory = memorise(model, source, mask)
    x = embed(model.target_embedding, written) + model.target_position[: written.shape[-1]]
    kept = []
    for layer in model.decoder:
        x = layer(x, memory.values, None, memory.mask, return_weights=keep, causal=True)
        if keep:
            x, _, weights = x
            kept.append(weights)
    return linear(model.output, normed(model.decoder_norm, x)), kept


def empty(model: Any, batch: int, like: Array) -> Cache:
    """A cache with nothing written, for so many rows, of the kind and device of an array."""
    xp, shape = array_namespace(like), (batch, *room(model))
    keys = xp.zeros(shape, dtype=like.dtype, device=device(like))
    length = xp.zeros((batch,), dtype=xp.int32, device=device(like))
    return Cache(keys, keys, length)


def room(model: Any) -> tuple[int, int, int, int]:
    """Of a cache's row: layers, heads, max_length, d."""
    first = model.decoder[0].attention
    head_dim = first.embed_dim // first.num_heads
    return len(model.decoder), first.num_heads, model.max_length, head_dim


def next_in_text(
    model: Any, cache: Cache, token: Int[Array, " b"]
) -> tuple[Cache, Float[Array, "b vocab"]]:
    """One more token of a decoder without a memory: the cache with it, and logits of the next."""
    embedded = embed(model.embedding, token) + model.position[cache.length]
    cache, x, _ = write(model, cache, embedded)
    return cache, linear(model.readout, x)


def next_in_translation(
    model: Any, memory: Memory, cache: Cache, token: Int[Array, " b"]
) -> tuple[Cache, Float[Array, "b vocab"], Float[Array, "b n"]]:
    """One more token of a translation: the cache with it, logits of the next, weights.

    The weights are those of the last layer, the mean of its heads.
    """
    embedded = embed(model.target_embedding, token) + model.target_position[cache.length]
    cache, x, kept = write(model, cache, embedded, memory)
    weights = array_namespace(x).mean(kept[-1], axis=1)[:, 0]
    return cache, linear(model.output, x), weights


def write(
    model: Any, cache: Cache, embedded: Float[Array, "b e"], memory: Memory | None = None
) -> tuple[Cache, Float[Array, "b e"], list[Array]]:
    """One more token: its keys and values join the cache, its query asks all of them.

    In every layer K_t = [K_{t−1}; W_k x_t] and V_t = [V_{t−1}; W_v x_t], of shape (heads, t, d),
    and y_t = attend(W_q x_t, K_t, V_t): the rows of a full pass under a causal mask, a row a step.

    Args:
        model: with decoder, a list of blocks, and decoder_norm.
        cache: of the tokens before.
        embedded: the token with its position, of shape (b, e).
        memory: for a decoder that reads one.

    Returns:
        The cache with this token, the stream at it, and each layer's weights to the memory.

    Source: Shazeer (2019), section 2.4, incremental multi-head attention.
    """
    xp = array_namespace(embedded)
    slots = xp.arange(cache.keys.shape[-2], dtype=cache.length.dtype, device=device(embedded))
    here = (slots == cache.length[:, None])[:, None, :, None]  # (b, 1, max_length, 1)
    so_far = (slots <= cache.length[:, None])[:, None, None, :]  # (b, 1, 1, max_length)
    x, keys, values, kept = embedded[:, None, :], [], [], []
    for number, layer in enumerate(model.decoder):

        def attention(x: Array, number: int = number, layer: Any = layer.attention) -> Array:
            q, k, v = heads.project(layer, x, x, x)
            keys.append(xp.where(here, k, cache.keys[:, number]))
            values.append(xp.where(here, v, cache.values[:, number]))
            found = attend(q, keys[-1], values[-1], mask=so_far)
            return linear(layer.output, heads.merge_heads(found))

        if memory is None:
            x = blocks.encoder_block(layer, x, attention)
        else:
            cross = Reader(layer.cross_attention, memory.values, memory.mask, keep=True)
            x = blocks.decoder_block(layer, x, attention, cross)
            kept.append(cross.weights)
    grown = Cache(xp.stack(keys, axis=1), xp.stack(values, axis=1), cache.length + 1)
    return grown, normed(model.decoder_norm, x)[:, 0], kept
