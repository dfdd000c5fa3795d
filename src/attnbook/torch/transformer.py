"""The models: parameters and initialisation."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnbook._validation import positive_int, widen_tokens
from attnbook.attention import heads
from attnbook.models import kv_cache, transformer
from attnbook.models.config import BlockConfig
from attnbook.models.kv_cache import Cache
from attnbook.models.transformer import INIT_STD, Memory
from attnbook.torch.attention import MultiHeadAttention
from attnbook.torch.blocks import DecoderBlock, EncoderBlock, make_norm


class AttentionOnly(nn.Module):
    """A causal model of attention alone; its formula is attnbook.models.transformer.attention_only.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embed_dim: the width of a token.
        num_heads: in each layer, a divisor of embed_dim.
        num_layers: how often tokens look back.
        num_kv_heads: heads of keys and values, as in MultiHeadAttention.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide.
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        embed_dim: int = 64,
        num_heads: int = 4,
        num_layers: int = 2,
        num_kv_heads: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.max_length = positive_int(max_length=max_length)
        shape = heads.head_shape(embed_dim, num_heads, num_kv_heads)
        self.embed_dim, self.num_heads, self.num_kv_heads, _ = shape
        self.num_layers = positive_int(num_layers=num_layers)
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.position = nn.Parameter(torch.randn(max_length, embed_dim))
        self.layers = nn.ModuleList(
            MultiHeadAttention(embed_dim, num_heads, num_kv_heads=num_kv_heads)
            for _ in range(num_layers)
        )
        self.readout = nn.Linear(embed_dim, vocab_size)

    def forward(self, tokens: Int[Tensor, "... n"], return_weights: bool = False) -> Any:
        """Logits (..., n, vocab_size) of the tokens that follow; with each layer's weights."""
        return transformer.attention_only(self, tokens, return_weights)


class EncoderOnly(nn.Module):
    """Tokens that are vectors read each other; see attnbook.models.transformer.encoder_only.

    Args:
        input_dim: the width of a token as it comes.
        output_dim: the width of what is said of each token.
        max_length: of a sequence, for learned positions; None for a set, without positions.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        last_norm: whether a norm stands after the last block.
        options: of the blocks, as in EncoderBlock, without dropout and attention. Embedding and
            readout have a bias in any case; learned positions stay beside a rotary_base.

    Raises:
        ValueError: a size that is not an integer of at least 1, or as BlockConfig.
    """

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
        **options: Any,
    ) -> None:
        super().__init__()
        self.input_dim = positive_int(input_dim=input_dim)
        self.output_dim = positive_int(output_dim=output_dim)
        self.max_length = None if max_length is None else positive_int(max_length=max_length)
        self.num_layers = positive_int(num_layers=num_layers)
        config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.config = config.without("dropout", "attention")
        self.embed_dim, self.num_heads, self.last_norm = embed_dim, num_heads, last_norm
        self.embedding = nn.Linear(input_dim, embed_dim)
        self.register_parameter("position", None)
        if self.max_length is not None:
            self.position = nn.Parameter(INIT_STD * torch.randn(self.max_length, embed_dim))
        self.encoder = make_blocks(EncoderBlock, config, num_layers)
        self.encoder_norm = make_norm(config) if last_norm else None
        self.readout = nn.Linear(embed_dim, output_dim)

    def forward(
        self,
        x: Float[Tensor, "... n input"],
        mask: Bool[Tensor, "..."] | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Of shape (..., n, output_dim); with each layer's weights (..., heads, n, n) if asked.

        Learned positions are counted from the first place on, whatever the mask hides.
        """
        return transformer.encoder_only(self, x, mask, return_weights)


class DecoderOnly(nn.Module):
    """A language model: every token reads those up to it; see models.transformer.decoder_only.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        tied: whether the readout has the embedding's matrix, and no bias.
        options: of the blocks, as in EncoderBlock. A rotary_base stands in place of learned
            positions, the bias is of the readout, too, and dropout of the first stream.

    Raises:
        ValueError: a size that is not an integer of at least 1, or as BlockConfig.
    """

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
        **options: Any,
    ) -> None:
        super().__init__()
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.max_length = positive_int(max_length=max_length)
        self.num_layers = positive_int(num_layers=num_layers)
        self.config = config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout, self.tied = config.dropout, tied
        self.embedding = init_embedding(vocab_size, embed_dim)
        self.register_parameter("position", None)
        if config.rotary_base is None:
            self.position = nn.Parameter(INIT_STD * torch.randn(max_length, embed_dim))
        self.decoder = make_blocks(EncoderBlock, config, num_layers)
        self.decoder_norm = make_norm(config)
        self.readout = nn.Linear(embed_dim, vocab_size, bias=config.bias and not tied)
        if tied:
            self.readout.weight = self.embedding.weight

    def forward(
        self,
        tokens: Int[Tensor, "... n"],
        return_weights: bool = False,
        *,
        mask: Bool[Tensor, "... n"] | None = None,
    ) -> Any:
        """Logits (..., n, vocab_size) of the tokens that follow; with each layer's weights.

        The mask says True = a token, False = padding, which may stand before or behind: positions
        are counted from a row's first token on.
        """
        left_out = self.dropout if self.training else 0.0
        return transformer.decoder_only(self, tokens, return_weights, mask, left_out)

    def empty(self, batch: int) -> Cache:
        """A cache with nothing written, for so many rows."""
        return kv_cache.init_cache(self, positive_int(batch=batch), self.embedding.weight)

    def step(self, cache: Cache, token: Int[Tensor, " b"]) -> tuple[Cache, Tensor]:
        """After a token of every row: the longer cache, and logits (b, vocab_size)."""
        kv_cache.check_lm_step(self, cache, token)
        return kv_cache.lm_step(self, cache, widen_tokens(token))


class Transformer(nn.Module):
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

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation.
    """

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
    ) -> None:
        super().__init__()
        self.source_vocab = positive_int(source_vocab=source_vocab)
        self.target_vocab = positive_int(target_vocab=target_vocab)
        self.max_length = positive_int(max_length=max_length)
        self.num_layers = positive_int(num_layers=num_layers)
        config = BlockConfig(embed_dim, num_heads, mlp_dim, norm=norm, activation=activation)
        self.embed_dim, self.num_heads, self.mlp_dim = embed_dim, num_heads, mlp_dim
        self.norm, self.activation = norm, activation
        self.source_embedding = init_embedding(source_vocab, embed_dim)
        self.target_embedding = init_embedding(target_vocab, embed_dim)
        self.source_position = nn.Parameter(INIT_STD * torch.randn(max_length, embed_dim))
        self.target_position = nn.Parameter(INIT_STD * torch.randn(max_length, embed_dim))
        self.encoder = make_blocks(EncoderBlock, config, num_layers)
        self.decoder = make_blocks(DecoderBlock, config, num_layers)
        self.encoder_norm = make_norm(config)
        self.decoder_norm = make_norm(config)
        self.output = nn.Linear(embed_dim, target_vocab)

    def forward(
        self,
        source: Int[Tensor, "b n"],
        mask: Bool[Tensor, "b n"],
        target: Int[Tensor, "b m"],
        return_weights: bool = False,
    ) -> Any:
        """Logits (b, m, target_vocab) of what comes next; with weights (b, heads, m, n) a layer."""
        return transformer.encoder_decoder(self, source, mask, target, return_weights)

    def encode(self, source: Int[Tensor, "b n"], mask: Bool[Tensor, "b n"]) -> tuple[Memory, Cache]:
        """What the decoder may read, and the cache that it starts from."""
        memory = transformer.encode_source(self, source, mask)
        return memory, kv_cache.init_cache(self, source.shape[0], memory.values)

    def step(
        self, memory: Memory, cache: Cache, token: Int[Tensor, " b"]
    ) -> tuple[Cache, Tensor, Tensor]:
        """After a token: the cache, logits (b, target_vocab), the last layer's mean weights."""
        kv_cache.check_seq2seq_step(self, memory, cache, token)
        return kv_cache.seq2seq_step(self, memory, cache, widen_tokens(token))


def make_blocks(kind: type[nn.Module], config: BlockConfig, num_layers: int) -> nn.ModuleList:
    """So many blocks of one config."""
    return nn.ModuleList(kind(**vars(config)) for _ in range(num_layers))


def init_embedding(vocab_size: int, embed_dim: int) -> nn.Embedding:
    """An embedding of small numbers."""
    return nn.Embedding(
        vocab_size, embed_dim, _weight=INIT_STD * torch.randn(vocab_size, embed_dim)
    )
