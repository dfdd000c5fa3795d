"""Self-attention and multi-head attention: parameters and initialisation."""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnbook._types import Score
from attnbook._validation import positive_int, probability
from attnbook.attention import heads, scores

INSTEAD = {  # of what torch.nn's layers are called with
    **dict.fromkeys(
        ("attn_mask", "src_mask", "tgt_mask"), "mask, whose True = may attend: theirs inverted"
    ),
    **dict.fromkeys(
        ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask"),
        "mask=~padding[:, None, :]: True = a token, theirs inverted",
    ),
    "memory_key_padding_mask": "memory_mask=~padding[:, None, :]: True = a token, theirs inverted",
    **dict.fromkeys(("is_causal", "tgt_is_causal"), "causal"),
    **dict.fromkeys(("need_weights", "average_attn_weights"), "return_weights, for every head"),
}


def refuse_torch_names(theirs: dict[str, Any]) -> None:
    """Name our argument for one that torch.nn's layer has and ours has not."""
    for name in theirs:
        expected = INSTEAD.get(name, "another argument: see the docstring")
        raise TypeError(f"{name}: got an argument of torch.nn's layer, expected {expected}")


class SelfAttention(nn.Module):
    """One head of self-attention; its formula is attnbook.attention.heads.self_attention.

    Args:
        embed_dim: the width of a token.
        head_dim: the width of queries, keys, values and output; embed_dim if it is not given.

    Raises:
        ValueError: a size that is not an integer of at least 1.
    """

    def __init__(self, embed_dim: int, head_dim: int | None = None) -> None:
        super().__init__()
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.head_dim = positive_int(head_dim=embed_dim if head_dim is None else head_dim)
        self.query = nn.Linear(self.embed_dim, self.head_dim, bias=False)
        self.key = nn.Linear(self.embed_dim, self.head_dim, bias=False)
        self.value = nn.Linear(self.embed_dim, self.head_dim, bias=False)

    def forward(
        self,
        x: Float[Tensor, "... n e"],
        mask: Bool[Tensor, "..."] | None = None,
        return_weights: bool = False,
        *,
        score: Score = scores.scaled_dot,
        causal: bool = False,
    ) -> Any:
        """Output (..., n, head_dim), or the pair (output, weights (..., n, n))."""
        return heads.single_head(
            self, x, score=score, mask=mask, causal=causal, return_weights=return_weights
        )


class MultiHeadAttention(nn.Module):
    """Several heads side by side; its formula is attnbook.attention.heads.multi_head_attention.

    Args:
        embed_dim: the width of a token.
        num_heads: of queries, a divisor of embed_dim.
        num_kv_heads: of keys and values, a divisor of num_heads; as many as num_heads if it is not
            given. One is multi-query attention, a number between is grouped-query attention.
        bias: whether the four projections have one.
        dropout: the share of the weights that is left out in training mode, from 0 to below 1; the
            others grow by 1 / (1 − dropout).
        rotary_base: turns queries and keys by their positions, as attention.positions.rotary with
            that base; None leaves them as they are.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide, a
            dropout outside [0, 1), a rotary_base that is not above 0 or heads of an odd width.
    """

    attention_name: ClassVar[str] = "softmax"  # of a block that has it

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary_base: float | None = None,
    ) -> None:
        super().__init__()
        shape = heads.head_shape(embed_dim, num_heads, num_kv_heads)
        self.embed_dim, self.num_heads, self.num_kv_heads, head_dim = shape
        self.bias = bias
        self.dropout = probability(dropout=dropout)
        self.rotary_base = heads.rotary_base_or_none(head_dim, rotary_base)
        kv_dim = self.num_kv_heads * head_dim
        self.query = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.key = nn.Linear(embed_dim, kv_dim, bias=bias)
        self.value = nn.Linear(embed_dim, kv_dim, bias=bias)
        self.output = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(
        self,
        queries: Float[Tensor, "... m e"],
        keys: Float[Tensor, "... n e"] | None = None,
        values: Float[Tensor, "... n e"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        return_weights: bool = False,
        *,
        score: Score = scores.scaled_dot,
        causal: bool = False,
        **theirs: Any,
    ) -> Any:
        """Output (..., m, e), or the pair (output, weights (..., heads, m, n))."""
        if theirs:
            refuse_torch_names(theirs)
        return heads.multi_head_attention(
            self,
            queries,
            keys,
            values,
            mask=mask,
            return_weights=return_weights,
            score=score,
            causal=causal,
            dropout=self.dropout if self.training else 0.0,
        )

    @classmethod
    def from_pytorch(cls, original: nn.MultiheadAttention) -> "MultiHeadAttention":
        """The layer with the weights of a torch.nn.MultiheadAttention, copied.

        It computes the same and is called in another way: batches come first, weights come for
        every head and only if asked for, and a mask means the opposite, True = may attend.

        Args:
            original: with keys and values as wide as the queries, and nothing added to them.

        Raises:
            TypeError: something else.
            ValueError: kdim or vdim of their own, add_bias_kv, add_zero_attn.
        """
        if not isinstance(original, nn.MultiheadAttention):
            got = type(original).__name__
            raise TypeError(f"original: got {got}, expected a torch.nn.MultiheadAttention")
        plain = original.in_proj_weight is not None and original.bias_k is None
        if not plain or original.add_zero_attn:
            raise ValueError(
                "original: got kdim, vdim, add_bias_kv or add_zero_attn, expected keys and values "
                "of embed_dim and none added"
            )
        bias = original.in_proj_bias is not None
        layer = cls(original.embed_dim, original.num_heads, bias=bias, dropout=original.dropout).to(
            original.in_proj_weight
        )
        parts = [layer.query, layer.key, layer.value]
        with torch.no_grad():
            for part, weight in zip(parts, original.in_proj_weight.chunk(3), strict=True):
                part.weight.copy_(weight)
            layer.output.weight.copy_(original.out_proj.weight)
            if bias:
                for part, b in zip(parts, original.in_proj_bias.chunk(3), strict=True):
                    part.bias.copy_(b)
                layer.output.bias.copy_(original.out_proj.bias)
        return layer.train(original.training)
