"""Mistakes in what is divided over many devices: slices of layers, the pieces of a ring."""

from faults.fault import faults

FAULTS = faults(r"""
torch/slices | torch | models/test_slices.py
    the output's rows in place of its columns | dim=⟦1 if out else →⟧0
    every rank has the output's bias | elif rank ⟦>→<⟧ 0:
    no rank has the output's bias | elif ⟦rank > 0→out⟧:
    the last rank's slice on every rank | dim=1 if out else 0)[⟦rank→-1⟧]
    the first part of a bias on every rank | bias.chunk(world)[⟦rank→0⟧]
    heads of the whole layer | setattr(found, name, share⟦→ * world⟧)
    a slice that shares memory | part.detach()⟦.clone()→⟧
    what was frozen learns | requires_grad=⟦part.requires_grad→True⟧
    numbers are drawn for what is overwritten | with torch.device("⟦meta→cpu⟧"):
    a matrix in training mode | found⟦.train(matrix.training)→⟧
distributed/shares | torch | models/test_slices.py
    the heads of keys and values are not checked | "heads",\n⟦    "num_kv_heads": "heads of keys and values",\n→⟧
    any number of ranks | if count ⟦%→<⟧ world:
torch/distributed | torch | models/test_torch_launch.py::test_every_pair_is_computed_once
    pieces counted from the wrong end | 2 * world - ⟦1→2⟧ - rank
    the future is seen | how.causal and other > piece⟦→ + 1⟧
    its own piece is not seen | how.causal and other >⟦→=⟧ piece
    the diagonal without a mask | how.causal and other == ⟦piece→-1⟧
    the mask the wrong way round | .⟦tril→triu⟧()
    zigzag deals out neighbours |
        in ⟦_pieces(rank, world, zigzag)→range((1 + zigzag) * rank, (1 + zigzag) * (rank + 1))⟧
""")
