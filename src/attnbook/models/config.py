"""One description of a transformer's block: its sizes and options, from which it is made."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from attnbook._validation import one_of, positive, positive_int, probability
from attnbook.attention.heads import head_shape, rotary_base_or_none
from attnbook.layers.activations import ACTIVATIONS

GATES = {  # gate and delta of a GatedDelta, by the name that a block has for its attention
    "delta": (False, True),
    "decay": (True, False),
    "gated_delta": (True, True),
}
ATTENTION = ("softmax", "linear", *GATES)


@dataclass(frozen=True)
class BlockConfig:
    """Sizes and options of a transformer's block, which a layer takes as ``**vars(config)``.

    Args:
        embed_dim: the width of the stream.
        num_heads: of the attention, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attention and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "gelu_tanh", "relu" or "swiglu".
        dropout: the share left out while a model learns, from 0 to below 1.
        num_kv_heads: heads of keys and values, a divisor of num_heads; as many without it.
        bias: whether projections, MLP and norms have one.
        rms_norm: norms by the root mean square, without a bias, in place of layer norms.
        eps: ε of the norms, above 0.
        rotary_base: of rotary positions within the attention; None for none.
        attention: "softmax", "linear", "delta", "decay" or "gated_delta". Only the softmax has
            shared heads and rotary positions.

    Raises:
        ValueError: an argument that is none of these.
    """

    embed_dim: int
    num_heads: int
    mlp_dim: int
    norm: str = "pre"
    activation: str = "gelu"
    dropout: float = 0.0
    num_kv_heads: int | None = None
    bias: bool = True
    rms_norm: bool = False
    eps: float = 1e-5
    rotary_base: float | None = None
    attention: str = "softmax"

    def __post_init__(self) -> None:
        """Check every entry."""
        *_, shared, head_dim = head_shape(self.embed_dim, self.num_heads, self.num_kv_heads)
        object.__setattr__(self, "num_kv_heads", shared)  # a frozen one takes no assignment
        positive_int(mlp_dim=self.mlp_dim)
        one_of(("pre", "post"), norm=self.norm)
        one_of(tuple(ACTIVATIONS), activation=self.activation)
        probability(dropout=self.dropout)
        positive(eps=self.eps)
        rotary_base_or_none(head_dim, self.rotary_base)
        if one_of(ATTENTION, attention=self.attention) == "softmax":
            return
        for name, expected in (("num_kv_heads", self.num_heads), ("rotary_base", None)):
            given = getattr(self, name)
            if given != expected:
                raise ValueError(
                    f"{name}: got {given!r} with attention={self.attention!r}, expected "
                    f"{expected}, or attention='softmax'"
                )

    def without(self, *names: str) -> "BlockConfig":
        """This config, where a layer has no use for some options: none of them may be given."""
        for field in fields(self):
            given = getattr(self, field.name)
            if field.name in names and given != field.default:
                expected = f"no {field.name}, which this layer does not have"
                raise ValueError(f"{field.name}: got {given!r}, expected {expected}")
        return self


def arguments(kind: Callable[..., Any], layer: Any) -> dict[str, Any]:
    """What a layer's constructor takes, but for a key, as a layer has been made with it."""
    names = list(inspect.signature(kind).parameters)
    config: dict[str, Any] = vars(layer.config) if "options" in names else {}
    own = (name for name in names if name not in {"key", "options"} | config.keys())
    return {name: getattr(layer, name) for name in own} | config
