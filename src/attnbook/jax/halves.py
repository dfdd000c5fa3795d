"""Half a transformer, an encoder or a decoder alone: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from attnbook import arguments, sizes, starting, transformer
from attnbook import tokens as check
from attnbook.jax.blocks import EncoderBlock
from attnbook.jax.dropout import one_key
from attnbook.jax.transformer import made_blocks, small
from attnbook.transformer import Cache


class EncoderOnly(eqx.Module):
    """Tokens that are vectors read each other; see attnbook.transformer.read.

    Args:
        input_dim: the width of a token as it comes.
        output_dim: the width of what is said of each token.
        max_length: of a sequence, for learned positions; None for a set, without positions.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        norm: "pre" or "post", as in EncoderBlock.
        activation: of the MLPs, as in EncoderBlock.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation.
    """

    embedding: eqx.nn.Linear
    position: Array | None
    encoder: tuple[EncoderBlock, ...]
    encoder_norm: eqx.nn.LayerNorm
    readout: eqx.nn.Linear
    input_dim: int = eqx.field(static=True)
    output_dim: int = eqx.field(static=True)
    max_length: int | None = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    mlp_dim: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    norm: str = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        max_length: int | None = None,
        embed_dim: int = 64,
        num_heads: int = 4,
        mlp_dim: int = 128,
        num_layers: int = 3,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        key: PRNGKeyArray,
    ) -> None:
        self.input_dim = sizes.size(input_dim=input_dim)
        self.output_dim = sizes.size(output_dim=output_dim)
        self.max_length = None if max_length is None else sizes.size(max_length=max_length)
        starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)
        keys = jax.random.split(one_key(key), 4)
        self.embedding = eqx.nn.Linear(self.input_dim, self.embed_dim, key=keys[0])
        self.position = None
        if self.max_length is not None:
            self.position = small(keys[1], self.max_length, self.embed_dim)
        self.encoder = made_blocks(self, EncoderBlock, keys[2])
        self.encoder_norm = eqx.nn.LayerNorm(self.embed_dim)
        self.readout = eqx.nn.Linear(self.embed_dim, self.output_dim, key=keys[3])

    def __call__(
        self,
        x: Float[Array, "... n input"],
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Of shape (..., n, output_dim); with each layer's weights (..., heads, n, n) if asked."""
        sizes.flag(return_weights=return_weights)
        arguments.widths(self.input_dim, x=x)
        check.at_most(self.max_length, x=x)
        said, weights = transformer.read(self, x, mask, return_weights)
        return (said, weights) if return_weights else said


class DecoderOnly(eqx.Module):
    """A language model: every token reads those up to it; see attnbook.transformer.foretell.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        norm: "pre" or "post", as in EncoderBlock.
        activation: of the MLPs, as in EncoderBlock.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation.
    """

    embedding: eqx.nn.Embedding
    position: Array
    decoder: tuple[EncoderBlock, ...]
    decoder_norm: eqx.nn.LayerNorm
    readout: eqx.nn.Linear
    vocab_size: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    mlp_dim: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    norm: str = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        embed_dim: int = 128,
        num_heads: int = 4,
        mlp_dim: int = 512,
        num_layers: int = 2,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        key: PRNGKeyArray,
    ) -> None:
        self.vocab_size = sizes.size(vocab_size=vocab_size)
        self.max_length = sizes.size(max_length=max_length)
        starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)
        keys = jax.random.split(one_key(key), 4)
        self.embedding = eqx.nn.Embedding(weight=small(keys[0], self.vocab_size, self.embed_dim))
        self.position = small(keys[1], self.max_length, self.embed_dim)
        self.decoder = made_blocks(self, EncoderBlock, keys[2])
        self.decoder_norm = eqx.nn.LayerNorm(self.embed_dim)
        self.readout = eqx.nn.Linear(self.embed_dim, self.vocab_size, key=keys[3])

    def __call__(self, tokens: Int[Array, "... n"], return_weights: bool = False) -> Any:
        """Logits (..., n, vocab_size) of the tokens that follow; with each layer's weights."""
        sizes.flag(return_weights=return_weights)
        arguments.same_library(self.embedding, tokens=tokens)
        check.numbers(self.vocab_size, self.max_length, tokens=tokens)
        logits, weights = transformer.foretell(self, check.widened(tokens), return_weights)
        return (logits, weights) if return_weights else logits

    def empty(self, batch: int) -> Cache:
        """A cache with nothing written, for so many rows."""
        return transformer.empty(self, sizes.size(batch=batch), self.position)

    def step(self, cache: Cache, token: Int[Array, " b"]) -> tuple[Cache, Array]:
        """After a token of every row: the longer cache, and logits (b, vocab_size)."""
        check.fitting(self, cache)
        check.next_token(self.vocab_size, self.max_length, token, cache.length)
        return _next(self, cache, check.widened(token))


_next = eqx.filter_jit(transformer.next_in_text)
