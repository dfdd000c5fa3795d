"""Heads without the softmax: parameters and initialisation."""

from collections.abc import Callable
from typing import Any, ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnbook.attention import heads
from attnbook.linear_attention import linear_heads
from attnbook.models.config import NAMES_OF_GATES
from attnbook.torch.attention import refuse_torch_names


class _Projections(nn.Module):
    """The sizes and the four matrices that every layer of several heads has, and its call."""

    formula: ClassVar[Callable[..., Any]]

    def __init__(self, embed_dim: int, num_heads: int, bias: bool) -> None:
        super().__init__()
        shape = heads.head_shape(embed_dim, num_heads, None)
        self.embed_dim, self.num_heads, self.num_kv_heads, self.head_dim = shape
        self.bias = bias
        self.query = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.key = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.value = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.output = nn.Linear(embed_dim, embed_dim, bias=bias)

    def forward(
        self,
        queries: Float[Tensor, "... n e"],
        keys: Tensor | None = None,
        values: Tensor | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        return_weights: bool = False,
        *,
        causal: bool = False,
        **theirs: Any,
    ) -> Any:
        """Output (..., n, e), or the pair (output, weights (..., heads, n, n)).

        A GatedDelta is there for causal=True alone.
        """
        refuse_torch_names(theirs)
        return self.formula(
            self, queries, keys, values, mask=mask, return_weights=return_weights, causal=causal
        )


class LinearAttention(_Projections):
    """Heads with weights φ(q)ᵀφ(k), φ = elu + 1; see linear_attention.linear_heads.linear_heads.

    Args:
        embed_dim: the width of a token.
        num_heads: a divisor of embed_dim.
        bias: whether the four projections have one.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide.
    """

    attention_name: ClassVar[str] = "linear"  # of a block that has it
    formula = staticmethod(linear_heads.linear_heads)

    def __init__(self, embed_dim: int, num_heads: int, *, bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads, bias)


class GatedDelta(_Projections):
    """Heads with a state, decay and the delta rule; see linear_attention.linear_heads.delta_heads.

    Args:
        embed_dim: the width of a token.
        num_heads: a divisor of embed_dim.
        gate: whether the state decays, by a share that each token says.
        delta: whether a token writes what the state lacks, or its value itself.
        bias: whether the four projections have one; those of decay and β have one in any case.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide, a
            gate, a delta or a bias that is not True or False.
    """

    formula = staticmethod(linear_heads.delta_heads)

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        gate: bool = True,
        delta: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(embed_dim, num_heads, bias)
        self.gate, self.delta = gate, delta
        if self.gate:
            self.decay = nn.Linear(embed_dim, num_heads)
            nn.init.constant_(self.decay.bias, linear_heads.DECAY_START)
        if self.delta:
            self.beta = nn.Linear(embed_dim, num_heads)
        self.head_norm = nn.RMSNorm(self.head_dim, eps=1e-5)

    @property
    def attention_name(self) -> str:
        """The name that a block has for it."""
        return NAMES_OF_GATES.get((self.gate, self.delta), "sum")  # of no block
