"""The encoders of published models in PyTorch: parameters and initialisation."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnbook.models.config import BlockConfig
from attnbook.pretrained import encoders
from attnbook.torch import EncoderBlock
from attnbook.torch.transformer import make_blocks


class MaskedHead(nn.Module):
    """What turns a stream into logits of masked tokens; the embedding's matrix comes after it."""

    def __init__(self, vocab_size: int, embedding_dim: int, embed_dim: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(embed_dim, embedding_dim)
        self.norm = nn.LayerNorm(embedding_dim, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))


class TextEncoder(nn.Module):
    """BERT or ALBERT; its formula is attnbook.pretrained.encoders.text_encoder.

    Args:
        vocab_size: how many different tokens there are.
        max_length: of a sequence.
        embedding_dim: the width of the embedding; where it is not embed_dim, a matrix widens it.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: how often a block acts.
        shared: whether one block acts as often as there are layers.
        widened: whether a matrix stands between embedding and stream.
        masked_head: whether logits of masked tokens come out.
        activation: of the MLPs, as in EncoderBlock.
        eps: of the norms.
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        embedding_dim: int,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        num_layers: int,
        *,
        shared: bool,
        widened: bool,
        masked_head: bool,
        activation: str,
        eps: float,
    ) -> None:
        super().__init__()
        self.vocab_size, self.max_length, self.num_layers = vocab_size, max_length, num_layers
        self.activation = activation
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.position = nn.Parameter(torch.zeros(max_length, embedding_dim))
        self.embedding_norm = nn.LayerNorm(embedding_dim, eps=eps)
        self.widen = nn.Linear(embedding_dim, embed_dim) if widened else None
        config = BlockConfig(
            embed_dim, num_heads, mlp_dim, norm="post", activation=activation, eps=eps
        )
        self.encoder = make_blocks(EncoderBlock, config, 1 if shared else num_layers)
        self.head = MaskedHead(vocab_size, embedding_dim, embed_dim, eps) if masked_head else None

    def forward(
        self,
        tokens: Int[Tensor, "... n"],
        return_weights: bool = False,
        *,
        mask: Bool[Tensor, "... n"] | None = None,
    ) -> Any:
        """Logits (..., n, vocab_size), or the stream (..., n, embed_dim) without a head."""
        return encoders.text_encoder(self, tokens, mask, return_weights)


class ImageEncoder(nn.Module):
    """A vision transformer; its formula is attnbook.pretrained.encoders.image_encoder.

    Args:
        image_size: the side of an image.
        patch_size: the side of a patch, a divisor of image_size.
        num_channels: of an image.
        num_classes: of the classifier; None without one.
        embed_dim: the width of the stream.
        num_heads: in each block, a divisor of embed_dim.
        mlp_dim: the width inside each MLP.
        num_layers: the number of blocks.
        activation: of the MLPs, as in EncoderBlock.
        eps: of the norms.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_channels: int,
        num_classes: int | None,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        num_layers: int,
        *,
        activation: str,
        eps: float,
    ) -> None:
        super().__init__()
        self.image_size, self.patch_size, self.num_channels = image_size, patch_size, num_channels
        patches = (image_size // patch_size) ** 2
        self.embedding = nn.Linear(num_channels * patch_size**2, embed_dim)
        self.class_token = nn.Parameter(torch.zeros(embed_dim))
        self.position = nn.Parameter(torch.zeros(1 + patches, embed_dim))
        config = BlockConfig(embed_dim, num_heads, mlp_dim, activation=activation, eps=eps)
        self.encoder = make_blocks(EncoderBlock, config, num_layers)
        self.encoder_norm = nn.LayerNorm(embed_dim, eps=eps)
        self.readout = None if num_classes is None else nn.Linear(embed_dim, num_classes)

    def forward(
        self, images: Float[Tensor, "... channels height width"], return_weights: bool = False
    ) -> Any:
        """Logits (..., num_classes), or the stream (..., 1 + patches, embed_dim)."""
        return encoders.image_encoder(self, images, return_weights)
