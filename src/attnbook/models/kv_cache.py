"""Writing token by token: a decoder keeps keys and values of what it has written, its KV cache."""

from typing import Any, NamedTuple

from array_api_compat import array_namespace, device
from jaxtyping import Float, Int

from attnbook._types import Array, Layer
from attnbook._validation import check_tokens, common_namespace, is_concretely_true
from attnbook.attention import attend
from attnbook.attention.heads import merge_heads, project
from attnbook.layers.linear import embed, linear
from attnbook.layers.norms import apply_norm
from attnbook.models.blocks import AttentionSublayer, decoder_block, encoder_block
from attnbook.models.transformer import Memory, check_given_by, read_out


class Cache(NamedTuple):
    """Keys and values of what a decoder has written: the KV cache.

    Args:
        keys: of shape (b, layers, kv_heads, max_length, d); what is not written yet is 0. Heads
            that share keys and values have them here once.
        values: of the same shape.
        length: t, how many tokens each row has, integers of shape (b,); keys and values beyond it
            are not looked at.
    """

    keys: Array
    values: Array
    length: Array


def init_cache(model: Any, batch: int, like: Array) -> Cache:
    """A cache with nothing written, for so many rows, of the kind and device of an array."""
    xp, shape = array_namespace(like), (batch, *cache_shape(model))
    keys = xp.zeros(shape, dtype=like.dtype, device=device(like))
    length = xp.zeros((batch,), dtype=xp.int32, device=device(like))
    return Cache(keys, keys, length)


def cache_shape(model: Any) -> tuple[int, int, int, int]:
    """Of a cache's row: layers, heads of keys and values, max_length, d."""
    first = model.decoder[0].attention
    if (kind := getattr(first, "attention_name", "softmax")) != "softmax":
        raise ValueError(
            f"model: got one with attention={kind!r}, expected 'softmax', whose keys and values a "
            "cache holds: call model(tokens) on all that is written, or hand the state of "
            "attnbook.linear_attention.recurrent from token to token"
        )
    head_dim = first.embed_dim // first.num_heads
    return len(model.decoder), first.num_kv_heads, model.max_length, head_dim


def decode_step(
    model: Any, cache: Cache, embedded: Float[Array, "b e"], memory: Memory | None = None
) -> tuple[Cache, Float[Array, "b e"], list[Array]]:
    """One more token: its keys and values join the cache, its query asks all of them.

    In every layer K_t = [K_{t−1}; W_k x_t] and V_t = [V_{t−1}; W_v x_t], of shape (kv_heads, t, d),
    and y_t = attend(W_q x_t, K_t, V_t): the rows of a full pass under a causal mask, row by row.

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
    x, keys, values = embedded[:, None, :], [], []
    kept: list[Array] = []
    for number, layer in enumerate(model.decoder):

        def attention(x: Array, number: int = number, layer: Any = layer.attention) -> Array:
            q, k, v = project(layer, x, x, x, cache.length[:, None], shared=True)
            keys.append(xp.where(here, k, cache.keys[:, number]))
            values.append(xp.where(here, v, cache.values[:, number]))
            found = attend(_share(q, k), keys[-1], values[-1], mask=so_far)
            return linear(layer.output, merge_heads(xp.reshape(found, q.shape)))

        if memory is None:
            x = encoder_block(layer, x, attention)
        else:
            cross = AttentionSublayer(
                layer.cross_attention, memory.values, memory.mask, return_weights=True
            )
            x = decoder_block(layer, x, attention, cross)
            kept.append(cross.weights)
    grown = Cache(xp.stack(keys, axis=1), xp.stack(values, axis=1), cache.length + 1)
    return grown, apply_norm(model.decoder_norm, x)[:, 0], kept


def _share(
    q: Float[Array, "b heads 1 d"], k: Float[Array, "b kv 1 d"]
) -> Float[Array, "b kv times d"]:
    """One token's query heads as rows of the key head that they share."""
    return array_namespace(q).reshape(q, (*k.shape[:2], -1, k.shape[-1]))


def lm_step(
    model: Layer, cache: Cache, token: Int[Array, " b"]
) -> tuple[Cache, Float[Any, "b vocab"]]:
    """One more token of a decoder without a memory: the cache with it, and logits of the next."""
    embedded = embed(model.embedding, token)
    if model.position is not None:
        embedded = embedded + model.position[cache.length]
    cache, x, _ = decode_step(model, cache, embedded)
    return cache, read_out(model, x)


def seq2seq_step(
    model: Layer, memory: Memory, cache: Cache, token: Int[Array, " b"]
) -> tuple[Cache, Float[Any, "b vocab"], Float[Any, "b n"]]:
    """One more token of a translation: the cache with it, logits of the next, weights.

    The weights are those of the last layer, the mean of its heads.
    """
    embedded = embed(model.target_embedding, token) + model.target_position[cache.length]
    cache, x, kept = decode_step(model, cache, embedded, memory)
    weights = array_namespace(x).mean(kept[-1], axis=1)[:, 0]
    return cache, linear(model.output, x), weights


def check_lm_step(model: Layer, cache: Cache, token: Array) -> None:
    """Check what a DecoderOnly's step is given."""
    check_given_by("empty", Cache, cache=cache)
    _check_token(model.vocab_size, model.max_length, token, cache.length)


def check_seq2seq_step(model: Layer, memory: Memory, cache: Cache, token: Array) -> None:
    """Check what a Transformer's step is given."""
    check_given_by("encode", Memory, memory=memory)
    check_given_by("encode", Cache, cache=cache)
    _check_token(model.target_vocab, model.max_length, token, cache.length)


def _check_token(vocab_size: int, longest: int, token: Array, length: Array) -> None:
    """Check one more token per row, after so many of them."""
    check_tokens(vocab_size, token=token)
    xp = common_namespace(token=token, length=length)
    if tuple(token.shape) != tuple(length.shape):
        got, expected = tuple(token.shape), tuple(length.shape)
        raise ValueError(f"token: got shape {got}, expected {expected}, one per row of the cache")
    if is_concretely_true(xp.any(length >= longest)):
        raise ValueError(f"cache: got {longest} tokens, expected fewer: it is full")
