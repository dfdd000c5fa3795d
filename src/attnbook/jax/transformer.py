"""The models: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from attnbook._validation import positive_int, widen_tokens
from attnbook.attention import heads
from attnbook.jax.attention import MultiHeadAttention
from attnbook.jax.blocks import DecoderBlock, EncoderBlock, Norm, make_norm
from attnbook.jax.dropout import check_key, split_or_none
from attnbook.models import kv_cache, transformer
from attnbook.models.config import BlockConfig
from attnbook.models.kv_cache import Cache
from attnbook.models.transformer import INIT_STD, Memory

_lm_step = eqx.filter_jit(kv_cache.lm_step)
_seq2seq_step = eqx.filter_jit(kv_cache.seq2seq_step)


class AttentionOnly(eqx.Module):
    """The JAX twin of attnbook.torch.AttentionOnly; the key draws the parameters."""

    embedding: eqx.nn.Embedding
    position: Array
    layers: tuple[MultiHeadAttention, ...]
    readout: eqx.nn.Linear
    vocab_size: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    num_kv_heads: int = eqx.field(static=True)

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        embed_dim: int = 64,
        num_heads: int = 4,
        num_layers: int = 2,
        num_kv_heads: int | None = None,
        *,
        key: PRNGKeyArray,
    ) -> None:
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.max_length = positive_int(max_length=max_length)
        shape = heads.head_shape(embed_dim, num_heads, num_kv_heads)
        self.embed_dim, self.num_heads, self.num_kv_heads, _ = shape
        self.num_layers = positive_int(num_layers=num_layers)
        keys = jax.random.split(check_key(key), 3 + num_layers)
        self.embedding = eqx.nn.Embedding(self.vocab_size, self.embed_dim, key=keys[0])
        self.position = jax.random.normal(keys[1], (self.max_length, self.embed_dim))
        self.readout = eqx.nn.Linear(self.embed_dim, self.vocab_size, key=keys[2])
        self.layers = tuple(
            MultiHeadAttention(
                self.embed_dim, self.num_heads, num_kv_heads=self.num_kv_heads, key=one
            )
            for one in keys[3:]
        )

    def __call__(self, tokens: Int[Array, "... n"], return_weights: bool = False) -> Any:
        """Logits (..., n, vocab_size) of the tokens that follow; with each layer's weights."""
        return transformer.attention_only(self, tokens, return_weights)


class EncoderOnly(eqx.Module):
    """The JAX twin of attnbook.torch.EncoderOnly; the key draws the parameters."""

    embedding: eqx.nn.Linear
    position: Array | None
    encoder: tuple[EncoderBlock, ...]
    encoder_norm: Norm | None
    readout: eqx.nn.Linear
    config: BlockConfig = eqx.field(static=True)
    input_dim: int = eqx.field(static=True)
    output_dim: int = eqx.field(static=True)
    max_length: int | None = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    last_norm: bool = eqx.field(static=True)

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
        last_norm: bool = True,
        key: PRNGKeyArray,
        **options: Any,
    ) -> None:
        self.input_dim = positive_int(input_dim=input_dim)
        self.output_dim = positive_int(output_dim=output_dim)
        self.max_length = None if max_length is None else positive_int(max_length=max_length)
        self.num_layers = positive_int(num_layers=num_layers)
        config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.config = config.without("dropout", "attention")
        self.embed_dim, self.num_heads, self.last_norm = embed_dim, num_heads, last_norm
        keys = jax.random.split(check_key(key), 4)
        self.embedding = eqx.nn.Linear(self.input_dim, self.embed_dim, key=keys[0])
        self.position = None
        if self.max_length is not None:
            self.position = init_normal(keys[1], self.max_length, self.embed_dim)
        self.encoder = make_blocks(EncoderBlock, config, num_layers, keys[2])
        self.encoder_norm = make_norm(config) if last_norm else None
        self.readout = eqx.nn.Linear(self.embed_dim, self.output_dim, key=keys[3])

    def __call__(
        self,
        x: Float[Array, "... n input"],
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Of shape (..., n, output_dim); with each layer's weights (..., heads, n, n) if asked.

        Learned positions are counted from the first place on, whatever the mask hides.
        """
        return transformer.encoder_only(self, x, mask, return_weights)


class DecoderOnly(eqx.Module):
    """The JAX twin of attnbook.torch.DecoderOnly; the key draws the parameters."""

    embedding: eqx.nn.Embedding
    position: Array | None
    decoder: tuple[EncoderBlock, ...]
    decoder_norm: Norm
    readout: eqx.nn.Linear | None
    vocab_size: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    config: BlockConfig = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    tied: bool = eqx.field(static=True)

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        embed_dim: int = 128,
        num_heads: int = 4,
        mlp_dim: int = 512,
        num_layers: int = 2,
        *,
        tied: bool = False,
        key: PRNGKeyArray,
        **options: Any,
    ) -> None:
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.max_length = positive_int(max_length=max_length)
        self.num_layers = positive_int(num_layers=num_layers)
        self.config = config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout, self.tied = config.dropout, tied
        keys = jax.random.split(check_key(key), 4)
        self.embedding = eqx.nn.Embedding(
            weight=init_normal(keys[0], self.vocab_size, self.embed_dim)
        )
        self.position = None
        if config.rotary_base is None:
            self.position = init_normal(keys[1], self.max_length, self.embed_dim)
        self.decoder = make_blocks(EncoderBlock, config, num_layers, keys[2])
        self.decoder_norm = make_norm(config)
        self.readout = None  # the embedding's matrix reads out, and is one leaf of the tree
        if not tied:
            self.readout = eqx.nn.Linear(
                self.embed_dim, self.vocab_size, use_bias=config.bias, key=keys[3]
            )

    def __call__(
        self,
        tokens: Int[Array, "... n"],
        return_weights: bool = False,
        *,
        mask: Bool[Array, "... n"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> Any:
        """Logits (..., n, vocab_size) of the tokens that follow; with each layer's weights.

        The mask says True = a token, False = padding, which may stand before or behind: positions
        are counted from a row's first token on. With a random key the dropout acts.
        """
        keys = split_or_none(self, key, 1 + self.num_layers)
        left_out = 0.0 if key is None else self.dropout
        return transformer.decoder_only(self, tokens, return_weights, mask, left_out, keys)

    def empty(self, batch: int) -> Cache:
        """A cache with nothing written, for so many rows."""
        return kv_cache.init_cache(self, positive_int(batch=batch), self.embedding.weight)

    def step(self, cache: Cache, token: Int[Array, " b"]) -> tuple[Cache, Array]:
        """After a token of every row: the longer cache, and logits (b, vocab_size)."""
        kv_cache.check_lm_step(self, cache, token)
        return _lm_step(self, cache, widen_tokens(token))


class Transformer(eqx.Module):
    """The JAX twin of attnbook.torch.Transformer; the key draws the parameters."""

    source_embedding: eqx.nn.Embedding
    target_embedding: eqx.nn.Embedding
    source_position: Array
    target_position: Array
    encoder: tuple[EncoderBlock, ...]
    decoder: tuple[DecoderBlock, ...]
    encoder_norm: Norm
    decoder_norm: Norm
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
        self.source_vocab = positive_int(source_vocab=source_vocab)
        self.target_vocab = positive_int(target_vocab=target_vocab)
        self.max_length = positive_int(max_length=max_length)
        self.num_layers = positive_int(num_layers=num_layers)
        config = BlockConfig(embed_dim, num_heads, mlp_dim, norm=norm, activation=activation)
        self.embed_dim, self.num_heads, self.mlp_dim = embed_dim, num_heads, mlp_dim
        self.norm, self.activation = norm, activation
        keys = jax.random.split(check_key(key), 7)
        e = self.embed_dim
        self.source_embedding = eqx.nn.Embedding(weight=init_normal(keys[0], self.source_vocab, e))
        self.target_embedding = eqx.nn.Embedding(weight=init_normal(keys[1], self.target_vocab, e))
        self.source_position = init_normal(keys[2], self.max_length, e)
        self.target_position = init_normal(keys[3], self.max_length, e)
        self.encoder = make_blocks(EncoderBlock, config, num_layers, keys[4])
        self.decoder = make_blocks(DecoderBlock, config, num_layers, keys[5])
        self.encoder_norm = make_norm(config)
        self.decoder_norm = make_norm(config)
        self.output = eqx.nn.Linear(self.embed_dim, self.target_vocab, key=keys[6])

    def __call__(
        self,
        source: Int[Array, "b n"],
        mask: Bool[Array, "b n"],
        target: Int[Array, "b m"],
        return_weights: bool = False,
    ) -> Any:
        """Logits (b, m, target_vocab) of what comes next; with weights (b, heads, m, n) a layer."""
        return transformer.encoder_decoder(self, source, mask, target, return_weights)

    def encode(self, source: Int[Array, "b n"], mask: Bool[Array, "b n"]) -> tuple[Memory, Cache]:
        """What the decoder may read, and the cache that it starts from."""
        memory = transformer.encode_source(self, source, mask)
        return memory, kv_cache.init_cache(self, source.shape[0], memory.values)

    def step(
        self, memory: Memory, cache: Cache, token: Int[Array, " b"]
    ) -> tuple[Cache, Array, Array]:
        """After a token: the cache, logits (b, target_vocab), the last layer's mean weights."""
        kv_cache.check_seq2seq_step(self, memory, cache, token)
        return _seq2seq_step(self, memory, cache, widen_tokens(token))


def make_blocks(
    kind: Any, config: BlockConfig, num_layers: int, key: PRNGKeyArray
) -> tuple[Any, ...]:
    """So many blocks of one config."""
    return tuple(kind(**vars(config), key=one) for one in jax.random.split(key, num_layers))


def init_normal(key: PRNGKeyArray, *shape: int) -> Array:
    """Small numbers to start from."""
    return INIT_STD * jax.random.normal(key, shape)
