"""The MLP and the two blocks: parameters and initialisation."""

from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from attnbook._types import Drop
from attnbook._validation import one_of, positive_int, probability
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.mlp import call_mlp
from attnbook.models import blocks
from attnbook.models.config import GATES, BlockConfig
from attnbook.torch.attention import MultiHeadAttention, refuse_torch_names
from attnbook.torch.linear_attention import GatedDelta, LinearAttention


def make_attention(config: BlockConfig) -> MultiHeadAttention | LinearAttention | GatedDelta:
    """A block's attention, by its name."""
    e, heads, bias = config.embed_dim, config.num_heads, config.bias
    if config.attention == "linear":
        return LinearAttention(e, heads, bias=bias)
    if config.attention in GATES:
        gate, delta = GATES[config.attention]
        return GatedDelta(e, heads, gate=gate, delta=delta, bias=bias)
    return MultiHeadAttention(
        e,
        heads,
        num_kv_heads=config.num_kv_heads,
        bias=bias,
        dropout=config.dropout,
        rotary_base=config.rotary_base,
    )


def make_mlp(config: BlockConfig) -> "MLP":
    """A block's MLP."""
    sizes = config.embed_dim, config.mlp_dim
    return MLP(*sizes, config.activation, config.dropout, config.bias)


def make_norm(config: BlockConfig) -> nn.LayerNorm | nn.RMSNorm:
    """A block's layer norm or RMS norm."""
    if config.rms_norm:
        return nn.RMSNorm(config.embed_dim, eps=config.eps)
    return nn.LayerNorm(config.embed_dim, eps=config.eps, bias=config.bias)


class MLP(nn.Module):
    """Two matrices with an activation between; its formula is attnbook.models.blocks.mlp.

    Args:
        embed_dim: the width of a token.
        mlp_dim: the width between.
        activation: "gelu", "gelu_tanh", "relu", or "swiglu", which has a third matrix.
        dropout: the share of the hidden entries left out in training mode, from 0 to below 1.
        bias: whether the matrices have one.

    Raises:
        ValueError: a size that is not an integer of at least 1, another activation, a dropout
            outside [0, 1).
    """

    def __init__(
        self,
        embed_dim: int,
        mlp_dim: int,
        activation: str = "gelu",
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.mlp_dim = positive_int(mlp_dim=mlp_dim)
        self.activation = one_of(tuple(ACTIVATIONS), activation=activation)
        self.dropout = probability(dropout=dropout)
        self.bias = bias
        self.hidden = nn.Linear(embed_dim, mlp_dim, bias=bias)
        if activation == "swiglu":
            self.gate = nn.Linear(embed_dim, mlp_dim, bias=bias)
        self.output = nn.Linear(mlp_dim, embed_dim, bias=bias)

    def forward(self, x: Float[Tensor, "... n e"]) -> Tensor:
        """Of the shape of x."""
        return call_mlp(self, x, self.dropout if self.training else 0.0)


class EncoderBlock(nn.Module):
    """Attention and an MLP in a residual stream; its formula is models.blocks.encoder_block.

    Args:
        embed_dim: the width of the stream.
        num_heads: of the attention, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        options: norm, activation, dropout, num_kv_heads, bias, rms_norm, eps, rotary_base and
            attention, as models.config.BlockConfig has them. In training mode the share dropout is
            left out of attention weights, of hidden entries, and of what is added to the stream.

    Raises:
        ValueError: as BlockConfig.
    """

    def __init__(self, embed_dim: int, num_heads: int, mlp_dim: int, **options: Any) -> None:
        super().__init__()
        self.config = config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.norm, self.dropout = config.norm, config.dropout
        self.attention = make_attention(config)
        self.mlp = make_mlp(config)
        self.attention_norm = make_norm(config)
        self.mlp_norm = make_norm(config)

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
        refuse_torch_names(theirs)
        drop = make_drop(self)
        return blocks.call_encoder_block(self, x, mask, return_weights, causal, drop)

    @classmethod
    def from_pytorch(cls, original: nn.TransformerEncoderLayer) -> "EncoderBlock":
        """The block with the weights of a torch.nn.TransformerEncoderLayer, copied.

        It computes the same; masks mean the opposite, True = may attend, and batches come first.

        Args:
            original: with biases everywhere or nowhere, one eps, and relu or gelu; ours takes
                batches first in any case.

        Raises:
            TypeError: something else.
            ValueError: biases in a part of it, norms of different eps, another activation.
        """
        names = {"attention": "self_attn", "attention_norm": "norm1", "mlp_norm": "norm2"}
        return load_block(cls, nn.TransformerEncoderLayer, original, names)


class DecoderBlock(nn.Module):
    """A block that also reads a memory; its formula is attnbook.models.blocks.decoder_block.

    Args:
        embed_dim: the width of the stream and of the memory.
        num_heads: of both attentions, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        options: as in EncoderBlock, without rotary_base and attention.

    Raises:
        ValueError: as BlockConfig.
    """

    def __init__(self, embed_dim: int, num_heads: int, mlp_dim: int, **options: Any) -> None:
        super().__init__()
        config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.config = config.without("rotary_base", "attention")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.norm, self.dropout = config.norm, config.dropout
        self.attention = make_attention(config)
        self.cross_attention = make_attention(config)
        self.mlp = make_mlp(config)
        self.attention_norm = make_norm(config)
        self.cross_norm = make_norm(config)
        self.mlp_norm = make_norm(config)

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
        refuse_torch_names(theirs)
        drop = make_drop(self)
        return blocks.call_decoder_block(
            self, x, memory, mask, memory_mask, return_weights, causal, drop
        )

    @classmethod
    def from_pytorch(cls, original: nn.TransformerDecoderLayer) -> "DecoderBlock":
        """The block with the weights of a torch.nn.TransformerDecoderLayer, copied.

        It computes the same; masks mean the opposite, True = may attend, and batches come first.

        Args:
            original: with biases everywhere or nowhere, one eps, and relu or gelu; ours takes
                batches first in any case.

        Raises:
            TypeError: something else.
            ValueError: biases in a part of it, norms of different eps, another activation.
        """
        names = {
            "attention": "self_attn",
            "attention_norm": "norm1",
            "cross_attention": "multihead_attn",
            "cross_norm": "norm2",
            "mlp_norm": "norm3",
        }
        return load_block(cls, nn.TransformerDecoderLayer, original, names)


def make_drop(layer: Any) -> Drop | None:
    """What leaves entries of the stream out, in training mode."""
    if not layer.training or layer.dropout == 0:
        return None
    return partial(functional.dropout, p=layer.dropout)


def load_block(kind: Any, original_kind: type[Any], original: Any, names: dict[str, str]) -> Any:
    """A block with the weights of torch's layer; names says which part of it is which.

    Raises:
        TypeError: not a layer of that kind.
        ValueError: biases in a part of it, norms of different eps, another activation.
    """
    if not isinstance(original, original_kind):
        expected = f"a torch.nn.{original_kind.__name__}"
        raise TypeError(f"original: got {type(original).__name__}, expected {expected}")
    parts = [original.get_submodule(theirs) for theirs in names.values()]
    eps = {part.eps for part in parts if isinstance(part, nn.LayerNorm)}
    if len(eps) > 1:
        got = " and ".join(map(str, sorted(eps)))
        raise ValueError(f"original: got norms of eps {got}, expected the same in all")
    parts = [getattr(part, "out_proj", part) for part in parts]  # an attention's last matrix
    biased = {part.bias is not None for part in (original.linear1, original.linear2, *parts)}
    if len(biased) > 1:
        raise ValueError("original: got biases in a part of it, expected them in all or in none")
    attention = original.self_attn
    block = kind(
        attention.embed_dim,
        attention.num_heads,
        original.linear1.out_features,
        norm="pre" if original.norm_first else "post",
        activation=_activation(original.activation),
        dropout=original.dropout.p,
        bias=biased.pop(),
        eps=eps.pop(),
    ).to(original.linear1.weight)
    for ours, theirs in names.items():
        part = original.get_submodule(theirs)
        if "norm" in ours:
            block.get_submodule(ours).load_state_dict(part.state_dict())
        else:
            setattr(block, ours, MultiHeadAttention.from_pytorch(part))
    block.mlp.hidden.load_state_dict(original.linear1.state_dict())
    block.mlp.output.load_state_dict(original.linear2.state_dict())
    return block.train(original.training)


def _activation(function: Any) -> str:
    if function in (functional.relu, torch.relu) or isinstance(function, nn.ReLU):
        return "relu"
    if function is functional.gelu:
        return "gelu"
    if isinstance(function, nn.GELU):
        return "gelu" if function.approximate == "none" else "gelu_tanh"
    raise ValueError(f"original: got activation {function}, expected relu or gelu")
