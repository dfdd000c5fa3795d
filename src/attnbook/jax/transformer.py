"""The models: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from attnbook._validation.numbers import positive_int
from attnbook._validation.options import flag
from attnbook._validation.tokens import widen_tokens
from attnbook._validation.types import Drop
from attnbook.attention import heads
from attnbook.jax.attention import MultiHeadAttention
from attnbook.jax.blocks import ConfiguredModule, DecoderBlock, EncoderBlock, make_norm
from attnbook.jax.dropout import check_key, check_key_or_none, make_dropout
from attnbook.models import kv_cache, transformer
from attnbook.models.config import BlockConfig, entry
from attnbook.models.kv_cache import Cache
from attnbook.models.transformer import INIT_STD, Memory

_lm_step = eqx.filter_jit(kv_cache.lm_step)
_seq2seq_step = eqx.filter_jit(kv_cache.seq2seq_step)


class AttentionOnly(eqx.Module):
    """A causal model of attention alone; its formula is attnbook.models.transformer.attention_only.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embed_dim: the width of a token.
        num_heads: in each layer, a divisor of embed_dim.
        num_layers: how often tokens look back.
        num_kv_heads: heads of keys and values, as in MultiHeadAttention.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide.
    """

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


class EncoderOnly(ConfiguredModule):
    """Tokens that are vectors read each other; see attnbook.models.transformer.encoder_only.

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
        num_kv_heads: as in EncoderBlock.
        bias: of blocks and norms, as in EncoderBlock; embedding and readout have one in any case.
        rms_norm: as in EncoderBlock.
        eps: as in EncoderBlock.
        rotary_base: as in EncoderBlock; learned positions stay, where there is a max_length.
        last_norm: whether a norm stands after the last block.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation, an eps or a rotary_base that is not above 0, a rotary_base
            for heads of an odd width.
    """

    embedding: eqx.nn.Linear
    position: Array | None
    encoder: tuple[EncoderBlock, ...]
    encoder_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm | None
    readout: eqx.nn.Linear
    input_dim: int = eqx.field(static=True)
    output_dim: int = eqx.field(static=True)
    max_length: int | None = eqx.field(static=True)
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
        norm: str = "pre",
        activation: str = "gelu",
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
        rotary_base: float | None = None,
        last_norm: bool = True,
        key: PRNGKeyArray,
    ) -> None:
        self.input_dim = positive_int(input_dim=input_dim)
        self.output_dim = positive_int(output_dim=output_dim)
        self.max_length = None if max_length is None else positive_int(max_length=max_length)
        self.config = config = BlockConfig.of(locals())
        self.num_layers = positive_int(num_layers=num_layers)
        self.last_norm = flag(last_norm=last_norm)
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


class DecoderOnly(ConfiguredModule):
    """A language model: every token reads those up to it; see models.transformer.decoder_only.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        norm: "pre" or "post", as in EncoderBlock.
        activation: of the MLPs, as in EncoderBlock.
        num_kv_heads: as in EncoderBlock.
        bias: of blocks, norms and readout, as in EncoderBlock.
        rms_norm: as in EncoderBlock.
        eps: as in EncoderBlock.
        rotary_base: as in EncoderBlock; then there are no learned positions.
        attention: as in EncoderBlock.
        dropout: the share left out when it is called with a random key, of the first stream and,
            as in EncoderBlock, within the blocks.
        tied: whether the readout has the embedding's matrix, and no bias.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm, activation or attention, a dropout outside [0, 1), an eps or a rotary_base
            that is not above 0, a rotary_base for heads of an odd width, an option that only the
            softmax has.
    """

    attention = entry("attention")
    embedding: eqx.nn.Embedding
    position: Array | None
    decoder: tuple[EncoderBlock, ...]
    decoder_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm
    readout: eqx.nn.Linear | None
    vocab_size: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)
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
        norm: str = "pre",
        activation: str = "gelu",
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
        rotary_base: float | None = None,
        attention: str = "softmax",
        dropout: float = 0.0,
        tied: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.max_length = positive_int(max_length=max_length)
        self.config = config = BlockConfig.of(locals())
        self.num_layers = positive_int(num_layers=num_layers)
        self.tied = flag(tied=tied)
        keys = jax.random.split(check_key(key), 4)
        self.embedding = eqx.nn.Embedding(
            weight=init_normal(keys[0], self.vocab_size, self.embed_dim)
        )
        self.position = None
        if self.rotary_base is None:
            self.position = init_normal(keys[1], self.max_length, self.embed_dim)
        self.decoder = make_blocks(EncoderBlock, config, num_layers, keys[2])
        self.decoder_norm = make_norm(config)
        self.readout = None  # the embedding's matrix reads out, and is one leaf of the tree
        if not self.tied:
            self.readout = eqx.nn.Linear(
                self.embed_dim, self.vocab_size, use_bias=self.bias, key=keys[3]
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
        check_key_or_none(key)
        drop: Drop | None = None
        keys: tuple[Array, ...] | None = None
        if key is not None:
            first, rest = jax.random.split(key)
            drop, keys = make_dropout(self, first), tuple(jax.random.split(rest, self.num_layers))
        return transformer.decoder_only(self, tokens, return_weights, mask, drop, keys)

    def empty(self, batch: int) -> Cache:
        """A cache with nothing written, for so many rows."""
        return kv_cache.init_cache(self, positive_int(batch=batch), self.embedding.weight)

    def step(self, cache: Cache, token: Int[Array, " b"]) -> tuple[Cache, Array]:
        """After a token of every row: the longer cache, and logits (b, vocab_size)."""
        kv_cache.check_lm_step(self, cache, token)
        return _lm_step(self, cache, widen_tokens(token))


class Transformer(ConfiguredModule):
    """An encoder reads, a decoder writes and looks back; see models.transformer.encoder_decoder.

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
    encoder_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm
    decoder_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm
    output: eqx.nn.Linear
    source_vocab: int = eqx.field(static=True)
    target_vocab: int = eqx.field(static=True)
    max_length: int = eqx.field(static=True)
    num_layers: int = eqx.field(static=True)

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
        self.config = config = BlockConfig.of(locals())
        self.num_layers = positive_int(num_layers=num_layers)
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
    return tuple(config.make(kind, key=one) for one in jax.random.split(key, num_layers))


def init_normal(key: PRNGKeyArray, *shape: int) -> Array:
    """Small numbers to start from."""
    return INIT_STD * jax.random.normal(key, shape)
