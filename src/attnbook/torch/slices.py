"""Layers cut by their heads: what one of several ranks holds, and computes of the sum."""

import copy
from typing import Any, TypeVar, cast

from torch import Tensor, nn

from attnbook._validation import int_between, positive_int
from attnbook.distributed.shares import sizes_per_device
from attnbook.torch.attention import MultiHeadAttention
from attnbook.torch.blocks import MLP, DecoderBlock, EncoderBlock
from attnbook.torch.collectives import Group, rank_and_world, shared, summed

Layer = TypeVar("Layer", MultiHeadAttention, MLP)
Block = TypeVar("Block", EncoderBlock, DecoderBlock)


def slice_of(layer: Layer, rank: int, world: int) -> Layer:
    """What a rank holds of a layer: 1 / W of its heads, or of its hidden units.

    The layer is a sum over heads, Σ_h W_o,h head_h + b_o, or over hidden units. So the sum over
    ranks of slice_of(layer, r, W)(x) is layer(x). The output's bias lies on rank 0.

    Args:
        layer: a MultiHeadAttention or an MLP.
        rank: which slice, 0 to W − 1.
        world: W, how many slices; a divisor of the heads, also of those of keys and values, or of
            the hidden units.

    Returns:
        A layer of the same class with copies of its share of the weights. It maps tokens of the
        same width.

    Raises:
        ValueError: a world that does not divide, a rank that is not 0 to W − 1.
        TypeError: another layer.

    Source: Shoeybi et al. (2019), section 3.
    """
    world = positive_int(world=world)
    rank = int_between(0, world - 1, rank=rank)
    if not isinstance(layer, MultiHeadAttention | MLP):
        got = type(layer).__name__
        raise TypeError(f"layer: got a {got}, expected a MultiHeadAttention or an MLP")
    shares = sizes_per_device(layer, world)
    # a copy in which slices stand for the matrices: none is ever copied as a whole
    matrices = {id(part): _cut(name, part, rank, world) for name, part in layer.named_children()}
    found = copy.deepcopy(layer, cast("dict[int, Any]", matrices))
    for name, share in shares.items():
        setattr(found, name, share)
    return found


def _cut(name: str, matrix: Any, rank: int, world: int) -> nn.Linear:
    """Rows of a matrix that leads into heads, columns of the one that leads out of them."""
    out = name == "output"
    weight = matrix.weight.chunk(world, dim=1 if out else 0)[rank]
    bias: Tensor | None = matrix.bias
    if bias is not None and not out:
        bias = bias.chunk(world)[rank]
    elif rank > 0:
        bias = None
    # on no device it draws no numbers
    found = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, "meta")
    found.weight = nn.Parameter(weight.detach().clone())
    if bias is not None:
        found.bias = nn.Parameter(bias.detach().clone())
    return found.train(matrix.training).requires_grad_(weight.requires_grad)


def split_block(block: Block, *, group: Group | None = None) -> Block:
    """Give each rank a slice of a block's attention and MLP, with a sum over ranks behind each.

    Forward, what the slices say is summed over ranks, two all-reduces in a block; backward, the
    gradients with respect to what they read are. The stream, the norms and their gradients are the
    same on all ranks, so an optimiser keeps them so.

    Args:
        block: an EncoderBlock or a DecoderBlock, with the same weights on all ranks. It is changed.
        group: the ranks; all without it.

    Returns:
        The block. Its weights of attention, if they are asked for, are those of this rank's heads.

    Raises:
        ValueError: heads or hidden units that the ranks do not divide; a dropout, for which ranks
            would draw different numbers.
        TypeError: another layer.
        RuntimeError: no process group.

    Source: Shoeybi et al. (2019), section 3.
    """
    if not isinstance(block, EncoderBlock | DecoderBlock):
        got = type(block).__name__
        raise TypeError(f"block: got a {got}, expected an EncoderBlock or a DecoderBlock")
    if block.dropout:
        raise ValueError(f"block: got a dropout of {block.dropout}, expected 0")
    rank, world = rank_and_world(group)
    names = [name for name in ("attention", "cross_attention", "mlp") if hasattr(block, name)]
    slices = {name: slice_of(getattr(block, name), rank, world) for name in names}

    def before(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(shared(x, group) if isinstance(x, Tensor) else x for x in given)

    def after(_: nn.Module, __: tuple[Any, ...], found: Any) -> Any:
        if isinstance(found, tuple):  # with this rank's weights
            return (summed(found[0], group), *found[1:])
        return summed(found, group)

    for name, part in slices.items():
        part.register_forward_pre_hook(before)
        part.register_forward_hook(after)
        setattr(block, name, part)
    return block
