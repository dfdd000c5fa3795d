"""The MLP and the two blocks: parameters and initialisation."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from attnbook._validation.numbers import positive_int, probability
from attnbook._validation.options import flag, one_of
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.mlp import call_mlp
from attnbook.models import blocks
from attnbook.models.config import GATES, BlockConfig, Configured
from attnbook.torch.attention import MultiHeadAttention, make_dropout, refuse_torch_names
from attnbook.torch.linear_attention import GatedDelta, LinearAttention

ATTENTION_LAYERS: dict[str, Any] = {
    "softmax": MultiHeadAttention,
    "linear": LinearAttention,
    **dict.fromkeys(GATES, GatedDelta),
}


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
            outside [0, 1), a bias that is not True or False.
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
        self.bias = flag(bias=bias)
        self.hidden = nn.Linear(embed_dim, mlp_dim, bias=bias)
        if activation == "swiglu":
            self.gate = nn.Linear(embed_dim, mlp_dim, bias=bias)
        self.output = nn.Linear(mlp_dim, embed_dim, bias=bias)

    def forward(self, x: Float[Tensor, "... n e"]) -> Tensor:
        """Of the shape of x."""
        return call_mlp(self, x, make_dropout(self))


class EncoderBlock(Configured, nn.Module):
    """Attention and an MLP in a residual stream; its formula is models.blocks.encoder_block.

    Args:
        embed_dim: the width of the stream.
        num_heads: of the attention, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attention and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "gelu_tanh", "relu" or "swiglu".
        dropout: the share left out in training mode, from 0 to below 1: of attention weights, of
            hidden entries, and of what is added to the stream.
        num_kv_heads: heads of keys and values, as in MultiHeadAttention.
        bias: whether projections, MLP and norms have one.
        rms_norm: norms by the root mean square, without a bias, in place of layer norms.
        eps: ε of the norms, above 0.
        rotary_base: of rotary positions within the attention, as in MultiHeadAttention.
        attention: "softmax", a MultiHeadAttention; "linear", a LinearAttention; "delta", "decay" or
            "gated_delta", a GatedDelta with the one, the other or both, for causal blocks. Only the
            softmax has weights to drop, shared heads and rotary positions.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm, activation or attention, a dropout outside [0, 1), an eps or a rotary_base
            that is not above 0, a rotary_base for heads of an odd width, an option that only the
            softmax has with another attention.
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
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
        rotary_base: float | None = None,
        attention: str = "softmax",
    ) -> None:
        super().__init__()
        self.config = config = BlockConfig.of(locals())
        self.attention = config.make(ATTENTION_LAYERS[config.attention])
        self.mlp = config.make(MLP)
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
        drop = make_dropout(self)
        return blocks.call_encoder_block(
            self, x, mask=mask, return_weights=return_weights, causal=causal, drop=drop
        )

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


class DecoderBlock(Configured, nn.Module):
    """A block that also reads a memory; its formula is attnbook.models.blocks.decoder_block.

    Args:
        embed_dim: the width of the stream and of the memory.
        num_heads: of both attentions, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attentions and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "gelu_tanh", "relu" or "swiglu".
        dropout: the share left out in training mode, as in EncoderBlock.
        num_kv_heads: heads of keys and values, as in MultiHeadAttention.
        bias: whether projections, MLP and norms have one.
        rms_norm: norms by the root mean square, without a bias, in place of layer norms.
        eps: ε of the norms, above 0.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation, a dropout outside [0, 1), an eps that is not above 0.
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
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.config = config = BlockConfig.of(locals())
        self.attention = config.make(MultiHeadAttention)
        self.cross_attention = config.make(MultiHeadAttention)
        self.mlp = config.make(MLP)
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
        drop = make_dropout(self)
        return blocks.call_decoder_block(
            self,
            x,
            memory,
            mask=mask,
            memory_mask=memory_mask,
            return_weights=return_weights,
            causal=causal,
            drop=drop,
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
