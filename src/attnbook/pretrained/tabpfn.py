"""TabPFN's first version in chapter 9's encoder: a token is a row of a table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.pretrained.checkpoint import Config, Tensors, take_linear


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
    import torch

    from attnbook.torch import EncoderOnly

    entries = Config(config)
    left = Tensors({name.removeprefix("module."): array for name, array in tensors.items()})
    entries.supported("canonical_y_encoder", [False], False)
    for reason in ("no", "a", "unknown"):  # a network for tables with gaps has other inputs
        entries.supported(f"nan_prob_{reason}_reason", [0, 0.0], 0)
    e, heads, layers = (entries.size(name) for name in ("emsize", "nhead", "nlayers"))
    columns, classes = entries.size("num_features"), entries.size("max_num_classes")
    mlp_dim = e * entries.size("nhid_factor")
    left.drop("criterion.weight")  # of the loss
    found = _embedding(left, columns, e)
    for i in range(layers):
        found |= _block(left, f"encoder.{i}.", f"transformer_encoder.layers.{i}.", e, mlp_dim)
    found |= take_linear(left, "readout.0", "decoder.0", (mlp_dim, e))
    found |= take_linear(left, "readout.2", "decoder.2", (classes, mlp_dim))
    left.check_empty()
    sizes = (columns + 2, classes, None, e, heads, mlp_dim, layers)
    model: Any = EncoderOnly(*sizes, norm="post", last_norm=False)
    last = torch.nn.Linear(e, mlp_dim), torch.nn.GELU(), torch.nn.Linear(mlp_dim, classes)
    model.readout = torch.nn.Sequential(*last)
    model.load_state_dict({name: torch.tensor(array) for name, array in found.items()})
    return model.eval()


def _embedding(tensors: Tensors, columns: int, e: int) -> dict[str, np.ndarray]:
    """One matrix for (x, y, is y open?), from A x + a for all rows and B y + b for known ones."""
    x = take_linear(tensors, "x", "encoder", (e, columns))
    y = take_linear(tensors, "y", "y_encoder", (e, 1))
    weight = np.concatenate([x["x.weight"], y["y.weight"], -y["y.bias"][:, None]], axis=1)
    return {"embedding.weight": weight, "embedding.bias": x["x.bias"] + y["y.bias"]}


def _block(tensors: Tensors, mine: str, theirs: str, e: int, mlp_dim: int) -> dict[str, np.ndarray]:
    """The parameters of one block; queries, keys and values are one matrix there."""
    weights = np.split(tensors.take(f"{theirs}self_attn.in_proj_weight", 3 * e, e), 3)
    biases = np.split(tensors.take(f"{theirs}self_attn.in_proj_bias", 3 * e), 3)
    found: dict[str, np.ndarray] = {}
    for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        found |= {f"{mine}attention.{part}.weight": weight, f"{mine}attention.{part}.bias": bias}
    shapes = {
        "attention.output": ("self_attn.out_proj", (e, e)),
        "attention_norm": ("norm1", (e,)),
        "mlp.hidden": ("linear1", (mlp_dim, e)),
        "mlp.output": ("linear2", (e, mlp_dim)),
        "mlp_norm": ("norm2", (e,)),
    }
    for part, (their, shape) in shapes.items():
        found |= take_linear(tensors, mine + part, theirs + their, shape)
    return found
