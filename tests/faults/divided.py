"""Mistakes in what is divided over many devices: slices of layers, the pieces of a ring."""

from __future__ import annotations

from faults.fault import faults

SLICES = "models/test_torch_slices.py"
PAIRS = "models/test_torch_launch.py::test_every_pair_is_computed_once"
FAULTS = [
    *faults("torch/slices", "torch", SLICES,
        ("the output's rows in place of its columns", "dim=1 if out else 0", "dim=0"),
        ("every rank has the output's bias", "elif rank > 0:", "elif rank < 0:"),
        ("no rank has the output's bias", "elif rank > 0:", "elif out:"),
        ("the last rank's slice on every rank", "dim=1 if out else 0)[rank]", "dim=1 if out else 0)[-1]"),
        ("the first part of a bias on every rank", "bias.chunk(world)[rank]", "bias.chunk(world)[0]"),
        ("heads of the whole layer", "setattr(found, name, share)", "setattr(found, name, share * world)"),
        ("the heads of keys and values are not checked", '{"num_heads": "heads", "num_kv_heads": "heads of keys and values"}', '{"num_heads": "heads"}'),
        ("any number of ranks", "if size % world:", "if size < world:"),
        ("a slice that shares memory", "part.detach().clone()", "part.detach()"),
        ("what was frozen learns", "requires_grad=part.requires_grad", "requires_grad=True"),
        ("numbers are drawn for what is overwritten", 'with torch.device("meta"):', 'with torch.device("cpu"):'),
        ("a matrix in training mode", "found.train(matrix.training)", "found"),
    ),
    *faults("torch/distributed", "torch", PAIRS,
        ("pieces counted from the wrong end", "2 * world - 1 - rank", "2 * world - 2 - rank"),
        ("the future is seen", "how.causal and other > piece", "how.causal and other > piece + 1"),
        ("its own piece is not seen", "how.causal and other > piece", "how.causal and other >= piece"),
        ("the diagonal without a mask", "how.causal and other == piece", "how.causal and other == -1"),
        ("the mask the wrong way round", ".tril()", ".triu()"),
        ("zigzag deals out neighbours", "for piece in _pieces(rank, world, zigzag)]", "for piece in range((1 + zigzag) * rank, (1 + zigzag) * (rank + 1))]"),
    ),
]  # fmt: skip
