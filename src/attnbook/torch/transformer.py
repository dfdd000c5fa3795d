"""The models: parameters and initialisation."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnbook._validation.numbers import positive_int
from attnbook._validation.options import flag
from attnbook._validation.tokens import widen_tokens
from attnbook.attention import heads
from attnbook.models import kv_cache, transformer
from attnbook.models.config import BlockConfig, Configured, entry
from attnbook.models.kv_cache import Cache
from attnbook.models.transformer import INIT_STD, Memory
from attnbook.torch.attention import MultiHeadAttention, make_dropout
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


class EncoderOnly(Configured, nn.Module):
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

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation, an eps or a rotary_base that is not above 0, a rotary_base
            for heads of an odd width.
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
        norm: str = "pre",
        activation: str = "gelu",
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
        rotary_base: float | None = None,
        last_norm: bool = True,
    ) -> None:
        super().__init__()
        self.input_dim = positive_int(input_dim=input_dim)
        self.output_dim = positive_int(output_dim=output_dim)
        self.max_length = None if max_length is None else positive_int(max_length=max_length)
        self.config = config = BlockConfig.of(locals())
        self.num_layers = positive_int(num_layers=num_layers)
        self.last_norm = flag(last_norm=last_norm)
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


class DecoderOnly(Configured, nn.Module):
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
        dropout: the share left out in training mode, of the first stream and, as in
            EncoderBlock, within the blocks.
        tied: whether the readout has the embedding's matrix, and no bias.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm, activation or attention, a dropout outside [0, 1), an eps or a rotary_base
            that is not above 0, a rotary_base for heads of an odd width, an option that only the
            softmax has.
    """

    attention = entry("attention")

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
    ) -> None:
        super().__init__()
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.max_length = positive_int(max_length=max_length)
        self.config = config = BlockConfig.of(locals())
        self.num_layers = positive_int(num_layers=num_layers)
        self.tied = flag(tied=tied)
        self.embedding = init_embedding(vocab_size, embed_dim)
        self.register_parameter("position", None)
        if self.rotary_base is None:
            self.position = nn.Parameter(INIT_STD * torch.randn(max_length, embed_dim))
        self.decoder = make_blocks(EncoderBlock, config, num_layers)
        self.decoder_norm = make_norm(config)
        self.readout = nn.Linear(embed_dim, vocab_size, bias=bias and not tied)
        if self.tied:
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
        drop = make_dropout(self)
        return transformer.decoder_only(self, tokens, return_weights, mask, drop)

    def empty(self, batch: int) -> Cache:
        """A cache with nothing written, for so many rows."""
        return kv_cache.init_cache(self, positive_int(batch=batch), self.embedding.weight)

    def step(self, cache: Cache, token: Int[Tensor, " b"]) -> tuple[Cache, Tensor]:
        """After a token of every row: the longer cache, and logits (b, vocab_size)."""
        kv_cache.check_lm_step(self, cache, token)
        return kv_cache.lm_step(self, cache, widen_tokens(token))


class Transformer(Configured, nn.Module):
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
        self.config = config = BlockConfig.of(locals())
        self.num_layers = positive_int(num_layers=num_layers)
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


def make_blocks(kind: Any, config: BlockConfig, num_layers: int) -> nn.ModuleList:
    """So many blocks of one config."""
    return nn.ModuleList(config.make(kind) for _ in range(num_layers))


def init_embedding(vocab_size: int, embed_dim: int) -> nn.Embedding:
    """An embedding of small numbers."""
    return nn.Embedding(
        vocab_size, embed_dim, _weight=INIT_STD * torch.randn(vocab_size, embed_dim)
    )
