"""The transformer, encoder and decoder: parameters and initialisation."""

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnbook import arguments, sizes, starting, transformer
from attnbook import tokens as check
from attnbook.starting import SCALE
from attnbook.torch.blocks import DecoderBlock, EncoderBlock
from attnbook.transformer import Cache, Memory


class Transformer(nn.Module):
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
        self.source_vocab = sizes.size(source_vocab=source_vocab)
        self.target_vocab = sizes.size(target_vocab=target_vocab)
        self.max_length = sizes.size(max_length=max_length)
        starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)
        self.source_embedding = small_embedding(source_vocab, embed_dim)
        self.target_embedding = small_embedding(target_vocab, embed_dim)
        self.source_position = nn.Parameter(SCALE * torch.randn(max_length, embed_dim))
        self.target_position = nn.Parameter(SCALE * torch.randn(max_length, embed_dim))
        self.encoder = made_blocks(self, EncoderBlock)
        self.decoder = made_blocks(self, DecoderBlock)
        self.encoder_norm = nn.LayerNorm(self.embed_dim)
        self.decoder_norm = nn.LayerNorm(self.embed_dim)
        self.output = nn.Linear(embed_dim, target_vocab)

    def forward(
        self,
        source: Int[Tensor, "b n"],
        mask: Bool[Tensor, "b n"],
        written: Int[Tensor, "b m"],
        return_weights: bool = False,
    ) -> Any:
        """Logits (b, m, target_vocab) of what comes next; with weights (b, heads, m, n) a layer."""
        sizes.flag(return_weights=return_weights)
        arguments.same_library(self.output, source=source)
        arguments.same_library(self.output, written=written)
        check.sentences(source, mask, written, self.source_vocab, self.target_vocab)
        check.at_most(self.max_length, source=source[..., None], written=written[..., None])
        logits, weights = transformer.translate(
            self, source.long(), mask, written.long(), return_weights
        )
        return (logits, weights) if return_weights else logits

    def encode(self, source: Int[Tensor, "b n"], mask: Bool[Tensor, "b n"]) -> tuple[Memory, Cache]:
        """What the decoder may read, and the cache that it starts from."""
        arguments.same_library(self.output, source=source)
        check.batch(source=source)
        check.sentences(source, mask, source, self.source_vocab, self.source_vocab)
        check.at_most(self.max_length, source=source[..., None])
        memory = transformer.memorise(self, source.long(), mask)
        return memory, transformer.empty(self, source.shape[0], memory.values)

    def step(
        self, memory: Memory, cache: Cache, token: Int[Tensor, " b"]
    ) -> tuple[Cache, Tensor, Tensor]:
        """After a token: the cache, logits (b, target_vocab), the last layer's mean weights."""
        check.given_by("encode", Memory, memory=memory)
        check.fitting(self, cache, memory)
        check.next_token(self.target_vocab, self.max_length, token, cache.length)
        return transformer.next_in_translation(self, memory, cache, token.long())


def made_blocks(model: Any, kind: Any) -> nn.ModuleList:
    """As many blocks as the model has layers."""
    return nn.ModuleList(
        kind(
            model.embed_dim, model.num_heads, model.mlp_dim,
            norm=model.norm, activation=model.activation,
        )
        for _ in range(model.num_layers)
    )  # fmt: skip


def small_embedding(vocab_size: int, embed_dim: int) -> nn.Embedding:
    """An embedding of small numbers."""
    return nn.Embedding(vocab_size, embed_dim, _weight=SCALE * torch.randn(vocab_size, embed_dim))
