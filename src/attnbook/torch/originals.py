"""Weights of torch.nn's own transformer layers, copied into the book's."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from attnbook.torch.attention import MultiHeadAttention


def copy_block(kind: Any, original_kind: type[Any], original: Any, names: dict[str, str]) -> Any:
    """A block with the weights of torch's layer; names says which part of it is which.

    Raises:
        TypeError: not a layer of that kind.
        ValueError: a layer without biases, with another eps, with another activation.
    """
    if not isinstance(original, original_kind):
        expected = f"a torch.nn.{original_kind.__name__}"
        raise TypeError(f"original: got {type(original).__name__}, expected {expected}")
    norms = [original.get_submodule(theirs) for ours, theirs in names.items() if "norm" in ours]
    if original.linear1.bias is None or any(norm.eps != 1e-5 for norm in norms):
        raise ValueError(
            "original: got bias=False or another layer_norm_eps, expected biases and 1e-5"
        )
    attention = original.self_attn
    block = kind(
        attention.embed_dim,
        attention.num_heads,
        original.linear1.out_features,
        norm="pre" if original.norm_first else "post",
        activation=_activation(original.activation),
        dropout=original.dropout.p,
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
    exact = isinstance(function, nn.GELU) and function.approximate == "none"
    if function is functional.gelu or exact:
        return "gelu"
    raise ValueError(f"original: got activation {function}, expected relu or gelu")
