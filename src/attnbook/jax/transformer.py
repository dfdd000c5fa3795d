"""The transformer, encoder and decoder: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Int, PRNGKeyArray

from attnbook import arguments, sizes, starting, transformer
from attnbook import tokens as check
from attnbook.jax.blocks import DecoderBlock, EncoderBlock
from attnbook.jax.dropout import one_key
from attnbook.starting import SCALE
from attnbook.transformer import Cache, Memory


class Transformer(eqx.Module):
    """An encoder reads, a decoder writes and looks back; see attnbook.transformer.translate.

    Args:
        source_vocab: how many different tokens are read.
        target_vocab: how many different tokens are written.
        max_length: of a source and of a target.
        embed_dim: the width of the stream.
        num_heads: in each attention, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks in the encoder, and in the decoder.
        norm: "pre" or "post", as in EncoderBlock.
        activation: of the MLPs, as in EncoderBlock.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation.
    """

    source_embedding: eqx.nn.Embedding
    target_embedding: eqx.nn.Embedding
    source_position: Array
    target_position: Array
    encoder: tuple[EncoderBlock, ...]
    decoder: tuple[DecoderBlock, ...]
    encoder_norm: eqx.nn.LayerNorm
    decoder_norm: eqx.nn.LayerNorm
    output: eqx.nn.Linear
    source_vocab: int = eqx.field(static=True)
    target_vocab: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    mlp_dim: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    norm: str = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        max_length: int,
        embed_dim: int = 64,
        num_heads: int = 4,
        mlp_dim: int = 256,
        num_layers: int = 2,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        key: PRNGKeyArray,
    ) -> None:
        self.source_vocab = sizes.size(source_vocab=source_vocab)
        self.target_vocab = sizes.size(target_vocab=target_vocab)
        self.max_length = sizes.size(max_length=max_length)
        starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)
        keys = jax.random.split(one_key(key), 7)
        e = self.embed_dim
        self.source_embedding = eqx.nn.Embedding(weight=small(keys[0], self.source_vocab, e))
        self.target_embedding = eqx.nn.Embedding(weight=small(keys[1], self.target_vocab, e))
        self.source_position = small(keys[2], self.max_length, e)
        self.target_position = small(keys[3], self.max_length, e)
        self.encoder = made_blocks(self, EncoderBlock, keys[4])
        self.decoder = made_blocks(self, DecoderBlock, keys[5])
        self.encoder_norm = eqx.nn.LayerNorm(self.embed_dim)
        self.decoder_norm = eqx.nn.LayerNorm(self.embed_dim)
        self.output = eqx.nn.Linear(self.embed_dim, self.target_vocab, key=keys[6])

    def __call__(
        self,
        source: Int[Array, "b n"],
        mask: Bool[Array, "b n"],
        written: Int[Array, "b m"],
        return_weights: bool = False,
    ) -> Any:
        """Logits (b, m, target_vocab) of what comes next; with weights (b, heads, m, n) a layer."""
        sizes.flag(return_weights=return_weights)
        arguments.same_library(self.output, source=source)
        arguments.same_library(self.output, written=written)
        check.sentences(source, mask, written, self.source_vocab, self.target_vocab)
        check.at_most(self.max_length, source=source[..., None], written=written[..., None])
        logits, weights = transformer.translate(
            self, check.widened(source), mask, check.widened(written), return_weights
        )
        return (logits, weights) if return_weights else logits

    def encode(self, source: Int[Array, "b n"], mask: Bool[Array, "b n"]) -> tuple[Memory, Cache]:
        """What the decoder may read, and the cache that it starts from."""
        arguments.same_library(self.output, source=source)
        check.batch(source=source)
        check.sentences(source, mask, source, self.source_vocab, self.source_vocab)
        check.at_most(self.max_length, source=source[..., None])
        memory = transformer.memorise(self, check.widened(source), mask)
        return memory, transformer.empty(self, source.shape[0], memory.values)

    def step(
        self, memory: Memory, cache: Cache, token: Int[Array, " b"]
    ) -> tuple[Cache, Array, Array]:
        """After a token: the cache, logits (b, target_vocab), the last layer's mean weights."""
        check.given_by("encode", Memory, memory=memory)
        check.fitting(self, cache, memory)
        check.next_token(self.target_vocab, self.max_length, token, cache.length)
        return _next(self, memory, cache, check.widened(token))


_next = eqx.filter_jit(transformer.next_in_translation)


def made_blocks(model: Any, kind: Any, key: PRNGKeyArray) -> tuple[Any, ...]:
    """As many blocks as the model has layers."""
    return tuple(
        kind(
            model.embed_dim, model.num_heads, model.mlp_dim,
            norm=model.norm, activation=model.activation, key=one,
        )
        for one in jax.random.split(key, model.num_layers)
    )  # fmt: skip


def small(key: PRNGKeyArray, *shape: int) -> Array:
    """Small numbers to start from."""
    return SCALE * jax.random.normal(key, shape)
