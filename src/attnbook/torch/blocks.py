"""The MLP and the two blocks: parameters and initialisation."""

from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnbook import arguments, blocks, sizes, starting
from attnbook.blocks import Reader
from attnbook.torch.attention import MultiHeadAttention, refuse_theirs
from attnbook.torch.dropout import dropping
from attnbook.torch.originals import copy_block


class MLP(nn.Module):
    """Two matrices with an activation between; its formula is attnbook.blocks.mlp.

    Args:
        embed_dim: the width of a token.
        mlp_dim: the width between.
        activation: "gelu", "relu", or "swiglu", which has a third matrix.
        dropout: the share of the hidden entries left out in training mode, from 0 to below 1.

    Raises:
        ValueError: a size that is not an integer of at least 1, another activation, a dropout
            outside [0, 1).
    """

    def __init__(
        self, embed_dim: int, mlp_dim: int, activation: str = "gelu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.embed_dim = sizes.size(embed_dim=embed_dim)
        self.mlp_dim = sizes.size(mlp_dim=mlp_dim)
        self.activation = starting.known_activation(activation)
        self.dropout = sizes.share(dropout=dropout)
        self.hidden = nn.Linear(embed_dim, mlp_dim)
        if activation == "swiglu":
            self.gate = nn.Linear(embed_dim, mlp_dim)
        self.output = nn.Linear(mlp_dim, embed_dim)

    def forward(self, x: Float[Tensor, "... n e"]) -> Tensor:
        """Of the shape of x."""
        arguments.widths(self.embed_dim, x=x)
        return blocks.mlp(self, x, dropping(self))


class EncoderBlock(nn.Module):
    """Attention and an MLP in a residual stream; its formula is attnbook.blocks.encoder_block.

    Args:
        embed_dim: the width of the stream.
        num_heads: of the attention, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attention and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "relu" or "swiglu".
        dropout: the share left out in training mode, from 0 to below 1: of attention weights, of
            hidden entries, and of what is added to the stream.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation, a dropout outside [0, 1).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)
        self.mlp = MLP(embed_dim, mlp_dim, activation, dropout)
        self.embed_dim, self.num_heads = self.attention.embed_dim, self.attention.num_heads
        self.mlp_dim = self.mlp.mlp_dim
        self.attention_norm = nn.LayerNorm(self.embed_dim)
        self.mlp_norm = nn.LayerNorm(self.embed_dim)
        self.norm = sizes.choice(("pre", "post"), norm=norm)
        self.activation, self.dropout = activation, self.mlp.dropout

    def forward(
        self,
        x: Float[Tensor, "... n e"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        return_weights: bool = False,
        causal: bool = False,
        **theirs: Any,
    ) -> Any:
        """The stream (..., n, e) after it, or the pair (stream, weights (..., heads, n, n))."""
        refuse_theirs(theirs)
        arguments.widths(self.embed_dim, x=x)
        attention = Reader(self.attention, mask=mask, keep=return_weights, causal=causal)
        x = blocks.encoder_block(self, x, attention, dropping(self))
        return (x, attention.weights) if return_weights else x

    @classmethod
    def from_pytorch(cls, original: nn.TransformerEncoderLayer) -> "EncoderBlock":
        """The block with the weights of a torch.nn.TransformerEncoderLayer, copied.

        It computes the same; masks mean the opposite, True = may attend, and batches come first.

        Args:
            original: with biases, eps 1e-5 and relu or gelu; ours takes batches first in any case.

        Raises:
            TypeError: something else.
            ValueError: no biases, another eps or activation.
        """
        names = {"attention": "self_attn", "attention_norm": "norm1", "mlp_norm": "norm2"}
        return copy_block(cls, nn.TransformerEncoderLayer, original, names)


class DecoderBlock(nn.Module):
    """A block that also reads a memory; its formula is attnbook.blocks.decoder_block.

    Args:
        embed_dim: the width of the stream and of the memory.
        num_heads: of both attentions, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attentions and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "relu" or "swiglu".
        dropout: the share left out in training mode, as in EncoderBlock.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation, a dropout outside [0, 1).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)
        self.cross_attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)
        self.mlp = MLP(embed_dim, mlp_dim, activation, dropout)
        self.embed_dim, self.num_heads = self.attention.embed_dim, self.attention.num_heads
        self.mlp_dim = self.mlp.mlp_dim
        self.attention_norm = nn.LayerNorm(self.embed_dim)
        self.cross_norm = nn.LayerNorm(self.embed_dim)
        self.mlp_norm = nn.LayerNorm(self.embed_dim)
        self.norm = sizes.choice(("pre", "post"), norm=norm)
        self.activation, self.dropout = activation, self.mlp.dropout

    def forward(
        self,
        x: Float[Tensor, "... m e"],
        memory: Float[Tensor, "... n e"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        return_weights: bool = False,
        causal: bool = False,
        **theirs: Any,
    ) -> Any:
        """The stream (..., m, e) after it, or the triple with both attentions' weights."""
        refuse_theirs(theirs)
        arguments.widths(self.embed_dim, x=x, memory=memory)
        arguments.memory(x, memory, memory_mask)
        own = Reader(self.attention, mask=mask, keep=return_weights, causal=causal)
        cross = Reader(self.cross_attention, memory, memory_mask, return_weights)
        x = blocks.decoder_block(self, x, own, cross, dropping(self))
        return (x, own.weights, cross.weights) if return_weights else x

    @classmethod
    def from_pytorch(cls, original: nn.TransformerDecoderLayer) -> "DecoderBlock":
        """The block with the weights of a torch.nn.TransformerDecoderLayer, copied.

        It computes the same; masks mean the opposite, True = may attend, and batches come first.

        Args:
            original: with biases, eps 1e-5 and relu or gelu; ours takes batches first in any case.

        Raises:
            TypeError: something else.
            ValueError: no biases, another eps or activation.
        """
        names = {
            "attention": "self_attn", "attention_norm": "norm1",
            "cross_attention": "multihead_attn", "cross_norm": "norm2", "mlp_norm": "norm3",
        }  # fmt: skip
        return copy_block(cls, nn.TransformerDecoderLayer, original, names)
