"""Half a transformer, an encoder or a decoder alone: parameters and initialisation."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnbook import arguments, sizes, starting, transformer
from attnbook import tokens as check
from attnbook.starting import SCALE
from attnbook.torch.blocks import EncoderBlock
from attnbook.torch.transformer import made_blocks, small_embedding
from attnbook.transformer import Cache


class EncoderOnly(nn.Module):
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

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation.
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
    ) -> None:
        super().__init__()
        self.input_dim = sizes.size(input_dim=input_dim)
        self.output_dim = sizes.size(output_dim=output_dim)
        self.max_length = None if max_length is None else sizes.size(max_length=max_length)
        starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)
        self.embedding = nn.Linear(input_dim, embed_dim)
        self.register_parameter("position", None)
        if self.max_length is not None:
            self.position = nn.Parameter(SCALE * torch.randn(self.max_length, embed_dim))
        self.encoder = made_blocks(self, EncoderBlock)
        self.encoder_norm = nn.LayerNorm(self.embed_dim)
        self.readout = nn.Linear(embed_dim, output_dim)

    def forward(
        self,
        x: Float[Tensor, "... n input"],
        mask: Bool[Tensor, "..."] | None = None,
        return_weights: bool = False,
    ) -> Any:
        """Of shape (..., n, output_dim); with each layer's weights (..., heads, n, n) if asked."""
        sizes.flag(return_weights=return_weights)
        arguments.widths(self.input_dim, x=x)
        check.at_most(self.max_length, x=x)
        said, weights = transformer.read(self, x, mask, return_weights)
        return (said, weights) if return_weights else said


class DecoderOnly(nn.Module):
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

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation.
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
        norm: str = "pre",
        activation: str = "gelu",
    ) -> None:
        super().__init__()
        self.vocab_size = sizes.size(vocab_size=vocab_size)
        self.max_length = sizes.size(max_length=max_length)
        starting.keep_sizes(self, embed_dim, num_heads, mlp_dim, num_layers, norm, activation)
        self.embedding = small_embedding(vocab_size, embed_dim)
        self.position = nn.Parameter(SCALE * torch.randn(max_length, embed_dim))
        self.decoder = made_blocks(self, EncoderBlock)
        self.decoder_norm = nn.LayerNorm(self.embed_dim)
        self.readout = nn.Linear(embed_dim, vocab_size)

    def forward(self, tokens: Int[Tensor, "... n"], return_weights: bool = False) -> Any:
        """Logits (..., n, vocab_size) of the tokens that follow; with each layer's weights."""
        sizes.flag(return_weights=return_weights)
        arguments.same_library(self.embedding, tokens=tokens)
        check.numbers(self.vocab_size, self.max_length, tokens=tokens)
        logits, weights = transformer.foretell(self, tokens.long(), return_weights)
        return (logits, weights) if return_weights else logits

    def empty(self, batch: int) -> Cache:
        """A cache with nothing written, for so many rows."""
        return transformer.empty(self, sizes.size(batch=batch), self.position)

    def step(self, cache: Cache, token: Int[Tensor, " b"]) -> tuple[Cache, Tensor]:
        """After a token of every row: the longer cache, and logits (b, vocab_size)."""
        check.fitting(self, cache)
        check.next_token(self.vocab_size, self.max_length, token, cache.length)
        return transformer.next_in_text(self, cache, token.long())
