"""One description of a transformer's block, its sizes and options, from which all layers are made.

A constructor's arguments become a BlockConfig, which checks them; the parts of a block take from it
what their own constructors ask for, by name.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from attnbook._validation.numbers import positive, positive_int, probability
from attnbook._validation.options import flag, one_of
from attnbook.attention.heads import head_shape, rotary_base_or_none
from attnbook.layers.activations import ACTIVATIONS

Layer = TypeVar("Layer")

GATES = {  # gate and delta of a GatedDelta, by the name that a block has for its attention
    "delta": (False, True),
    "decay": (True, False),
    "gated_delta": (True, True),
}
NAMES_OF_GATES = {gates: name for name, gates in GATES.items()}
ATTENTION = ("softmax", "linear", *GATES)


@dataclass(frozen=True)
class BlockConfig:
    """The sizes and options of a transformer's block, as Python's own numbers.

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
        if one_of(ATTENTION, attention=self.attention) != "softmax":
            self._check_plain(num_kv_heads=self.num_heads, rotary_base=None)
        shape = head_shape(self.embed_dim, self.num_heads, self.num_kv_heads)
        checked = {
            "embed_dim": shape[0],
            "num_heads": shape[1],
            "mlp_dim": positive_int(mlp_dim=self.mlp_dim),
            "norm": one_of(("pre", "post"), norm=self.norm),
            "activation": one_of(tuple(ACTIVATIONS), activation=self.activation),
            "dropout": probability(dropout=self.dropout),
            "num_kv_heads": shape[2],
            "bias": flag(bias=self.bias),
            "rms_norm": flag(rms_norm=self.rms_norm),
            "eps": positive(eps=self.eps),
            "rotary_base": rotary_base_or_none(shape[3], self.rotary_base),
        }
        vars(self).update(checked)  # a frozen one takes no assignment

    def _check_plain(self, **plain: Any) -> None:
        """Check that options that only the softmax has are not given, or are as without them."""
        for name, expected in plain.items():
            given = getattr(self, name)
            if given is not None and given != expected:
                raise ValueError(
                    f"{name}: got {given!r} with attention={self.attention!r}, expected "
                    f"{expected}, or attention='softmax'"
                )

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "BlockConfig":
        """The config of the arguments of a constructor, its locals(); it may take others too."""
        names = cls.__dataclass_fields__
        return cls(**{name: given for name, given in arguments.items() if name in names})

    def make(self, kind: Callable[..., Layer], **key: Any) -> Layer:
        """A block, or a part of one; the key is JAX's."""
        return kind(**arguments(kind, self), **key)

    @property
    def gate(self) -> bool:
        """Whether the state of a GatedDelta decays."""
        return GATES[self.attention][0]

    @property
    def delta(self) -> bool:
        """Whether a token of a GatedDelta writes what the state lacks."""
        return GATES[self.attention][1]

    def shape(self, part: str) -> tuple[int, ...]:
        """Of the weight of a part of a block, such as "attention.key" or "mlp_norm"."""
        e, _, kv_heads, head_dim = head_shape(self.embed_dim, self.num_heads, self.num_kv_heads)
        if part.endswith("norm"):
            return (e,)
        return {
            "attention.key": (kv_heads * head_dim, e),
            "attention.value": (kv_heads * head_dim, e),
            "mlp.gate": (self.mlp_dim, e),
            "mlp.hidden": (self.mlp_dim, e),
            "mlp.output": (e, self.mlp_dim),
        }.get(part, (e, e))


def arguments(kind: Callable[..., Any], source: Any) -> dict[str, Any]:
    """What a layer's constructor takes, but for a key, from the attributes of a config or a layer.

    What a layer was made with it has as attributes.
    """
    names = [name for name in inspect.signature(kind).parameters if name != "key"]
    return {name: getattr(source, name) for name in names}


def entry(name: str) -> Any:
    """An entry of a layer's config as an attribute of the layer; one that is set is checked."""

    def read(layer: Any) -> Any:
        return getattr(layer.config, name)

    def write(layer: Any, value: Any) -> None:
        layer.config = replace(layer.config, **{name: value})

    return property(read, write)


class Configured:
    """A block, or a model of blocks, that was made from a config and has its entries."""

    config: BlockConfig
    embed_dim = entry("embed_dim")
    num_heads = entry("num_heads")
    mlp_dim = entry("mlp_dim")
    norm = entry("norm")
    activation = entry("activation")
    dropout = entry("dropout")
    num_kv_heads = entry("num_kv_heads")
    bias = entry("bias")
    rms_norm = entry("rms_norm")
    eps = entry("eps")
    rotary_base = entry("rotary_base")
