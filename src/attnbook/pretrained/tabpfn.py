"""TabPFN's first version in chapter 9's encoder: a token is a row of a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.pretrained.checkpoint import Config, Tensors

PARTS = {  # of a block by the book's names
    "attention.query": "query",
    "attention.key": "key",
    "attention.value": "value",
    "attention.output": "self_attn.out_proj",
    "attention_norm": "norm1",
    "mlp.hidden": "linear1",
    "mlp.output": "linear2",
    "mlp_norm": "norm2",
}


def tabpfn(config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    """Version 1 of TabPFN: an EncoderOnly without positions, and a hidden layer in its readout.

    Its blocks are the book's "post" blocks with gelu, and no norm stands after the last. A row
    whose class y is known is the token (x, y, 0), an open one (x, 0, 1), with zeros after the
    columns of x up to num_features. Every row attends to the known ones, and to no other; an open
    row attends to itself too where the entry efficient_eval_masking is False.

    Args:
        config: the entries of a checkpoint of version 1.
        tensors: of PyTorch's CPU or NumPy, by the names of the checkpoint.

    Returns:
        An EncoderOnly of attnbook.torch, from (..., n, num_features + 2) to (..., n, classes).

    Raises:
        ValueError: an entry that the blocks cannot compute; a tensor that is missing, of another
            shape, or unknown.

    Source: Hollmann et al. (2023), built on Müller et al. (2022).
    """
    entries = Config(config)
    copied = {
        name.removeprefix("module."): np.asarray(array).copy() for name, array in tensors.items()
    }
    left = Tensors(copied)
    entries.supported("canonical_y_encoder", [False], False)
    for reason in ("no", "a", "unknown"):  # a network for tables with gaps has other inputs
        entries.supported(f"nan_prob_{reason}_reason", [0, 0.0], 0)
    e, columns = entries.size("emsize"), entries.size("num_features")
    model = entries.empty(
        _network,
        columns=columns,
        classes=entries.size("max_num_classes"),
        e=e,
        heads=entries.size("nhead"),
        mlp_dim=e * entries.size("nhid_factor"),
        layers=entries.size("nlayers"),
    )
    left.drop("criterion.weight")  # of the loss
    layers = {"readout.0": "decoder.0", "readout.2": "decoder.2"}
    for i in range(model.num_layers):
        there = f"transformer_encoder.layers.{i}."
        for last, shape in (("weight", (3 * e, e)), ("bias", (3 * e,))):
            parts = [f"{there}{part}.{last}" for part in ("query", "key", "value")]
            left.split(f"{there}self_attn.in_proj_{last}", shape, parts)
        layers |= {f"encoder.{i}.{part}": there + name for part, name in PARTS.items()}
    # one matrix for (x, y, is y open?), from A x + a for all rows and B y + b for known ones
    a, b = left.take("encoder.bias", e), left.take("y_encoder.bias", e)
    both = left.take("encoder.weight", e, columns), left.take("y_encoder.weight", e, 1)
    weight = np.concatenate([*both, -b[:, None]], axis=1)
    return left.fill(model, layers, {"embedding.weight": weight, "embedding.bias": a + b})


def _network(columns: int, classes: int, e: int, heads: int, mlp_dim: int, layers: int) -> Any:
    from torch import nn

    from attnbook.torch import EncoderOnly

    sizes = (columns + 2, classes, None, e, heads, mlp_dim, layers)
    model: Any = EncoderOnly(*sizes, norm="post", last_norm=False)
    last = nn.Linear(e, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, classes)
    model.readout = nn.Sequential(*last)
    return model
