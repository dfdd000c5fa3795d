"""One average on many machines: a ring, keys that are divided, layers cut by their heads.

The parts of streams combine on any machine. Each rank has its block of an array, and what these
functions send can be counted.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import array_api_compat.torch as xp
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnbook._validation import (
    int_between,
    positive_int,
    upcast_half,
    without_autocast,
)
from attnbook.attention import scores
from attnbook.exact import flash, online_softmax
from attnbook.exact.inputs import check_inputs
from attnbook.torch.collectives import (
    Count,
    Group,
    add_scores,
    all_reduce,
    count,
    pass_on,
    rank_and_world,
    shared,
    summed,
)
from attnbook.torch.launch import run
from attnbook.torch.slices import slice_of, split_block

__all__ = [
    "Count",
    "count",
    "deal",
    "ring_attention",
    "run",
    "shared",
    "slice_of",
    "split_attention",
    "split_block",
    "summed",
]


class _How(NamedTuple):
    """What a ring is told: whether attention is causal, how tokens were dealt out, the ranks."""

    causal: bool
    zigzag: bool
    group: Group | None


def ring_attention(
    q: Float[Tensor, "... m d"],
    k: Float[Tensor, "... m d"],
    v: Float[Tensor, "... m p"],
    *,
    causal: bool = False,
    zigzag: bool = False,
    group: Group | None = None,
) -> Float[Tensor, "... m p"]:
    """Attention of a sequence whose tokens lie on W ranks: keys and values travel once round.

    Every rank has n / W tokens and gets their outputs. In W rounds it computes the part that a
    block of keys and values adds, and sends that block to the next rank meanwhile: W − 1 times two
    blocks. Backward, keys and values go round again, and their gradients with them until they are
    back home: 4 (W − 1) + 2 blocks.

    Args:
        q: this rank's queries, of shape (..., n / W, d); the same shape on all ranks.
        k: its keys, of shape (..., n / W, d).
        v: its values, of shape (..., n / W, p).
        causal: query i may attend to the keys j ≤ i alone. What a rank need not compute, it does
            not, and waits: with blocks of neighbours the last rank computes W blocks, the mean is
            (W + 1) / 2.
        zigzag: of 2W pieces of the sequence rank r holds the pieces r and 2W − 1 − r, one after
            the other, in place of a block of neighbours; then all compute equally much. deal gives
            them.
        group: the ranks of the ring; all without it.

    Returns:
        This rank's block of the output, of shape (..., n / W, p). It can be differentiated once;
        all ranks have to do that together.

    Raises:
        ValueError: shapes or dtypes that do not fit, leading axes that differ, other numbers of
            keys than of queries, an odd number of them with zigzag.
        RuntimeError: no process group.

    Source: Liu, Zaharia and Abbeel (2023), section 3; zigzag: Grattafiori et al. (2024), section
        3.3.2; stripes, which balance nearly as well: Brandon et al. (2023).
    """
    check_inputs(q, k, v, causal)
    m, lead = q.shape[-2], q.shape[:-2]
    for name, array in (("k", k), ("v", v)):
        if array.shape[:-1] != (*lead, m):
            shape, expected = tuple(array.shape), ", ".join(map(str, (*lead, m)))
            raise ValueError(f"{name}: got shape {shape}, expected ({expected}, ...) as in q")
    if zigzag and m % 2:
        raise ValueError(f"zigzag: got {m} tokens on a rank, expected an even number, two pieces")
    how = _How(causal, zigzag, group)
    return _Ring.apply(q, k, v, how)  # type: ignore[no-untyped-call]


def deal(
    x: Float[Tensor, "... n d"], rank: int, world: int, *, zigzag: bool = False
) -> Float[Tensor, "... m d"]:
    """The tokens of a sequence that one of W ranks holds: block r of W, or two pieces of 2W.

    Args:
        x: the whole sequence, of shape (..., n, d).
        rank: r, 0 to W − 1.
        world: W, how many ranks there are; a divisor of n.
        zigzag: the pieces r and 2W − 1 − r of 2W, one after the other, for a causal ring in which
            all compute equally much; 2W divides n.

    Returns:
        Of shape (..., n / W, d).

    Raises:
        ValueError: an n that cannot be dealt out, a rank that is not 0 to W − 1.
    """
    world = positive_int(world=world)
    rank = int_between(0, world - 1, rank=rank)
    pieces = 2 * world if zigzag else world
    if x.shape[-2] % pieces:
        raise ValueError(
            f"x: got {x.shape[-2]} tokens, expected a multiple of {pieces}, the pieces"
        )
    parts = x.tensor_split(pieces, -2)
    return torch.cat([parts[piece] for piece in _pieces(rank, world, zigzag)], -2)


def _pieces(rank: int, world: int, zigzag: bool) -> tuple[int, ...]:
    """Which pieces of the sequence a rank holds, of W or, with zigzag, of 2W."""
    return (rank, 2 * world - 1 - rank) if zigzag else (rank,)


def _seen(
    how: _How, ranks: tuple[int, int], world: int, like: Tensor
) -> Iterator[tuple[int, slice, slice, Tensor | None]]:
    """What one rank's queries see of another's keys: pieces of both, and a mask on the diagonal."""
    mine, theirs = (_pieces(rank, world, how.zigzag) for rank in ranks)
    length = like.shape[-2] // len(mine)
    cuts = [slice(start, start + length) for start in range(0, length * len(mine), length or 1)]
    for i, piece in enumerate(mine):
        for j, other in enumerate(theirs):
            if how.causal and other > piece:
                continue
            mask = None
            if how.causal and other == piece:
                mask = torch.ones(length, length, dtype=torch.bool, device=like.device).tril()
            add_scores(math.prod(like.shape[:-2]) * length * length)
            yield i, cuts[i], cuts[j], mask


def _travel(group: Group | None, *blocks: Tensor) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """Whose blocks are here, and they; while they are used the next are on their way."""
    rank, world = rank_and_world(group)
    for step in range(world):
        arrived = pass_on(blocks, group) if step + 1 < world else None
        yield (rank - step) % world, blocks
        blocks = arrived() if arrived else blocks


class _Ring(torch.autograd.Function):
    """The ring and its gradient; the formulas are those of exact.online_softmax and exact.flash."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, how: _How) -> Tensor:
        rank, world = rank_and_world(how.group)
        with without_autocast(q):
            (wide,) = upcast_half(xp, q)
            length = q.shape[-2] // len(_pieces(rank, world, how.zigzag))
            of_piece = wide[..., :length, :]
            parts = [online_softmax.empty(length, v.shape[-1], of_piece)] * (1 + how.zigzag)
            for owner, blocks in _travel(how.group, k, v):
                keys, values = upcast_half(xp, *blocks)
                for i, rows, columns, mask in _seen(how, (rank, owner), world, wide):
                    found = scores.unchecked_scaled_dot(wide[..., rows, :], keys[..., columns, :])
                    part = online_softmax.unchecked_partial(found, values[..., columns, :], mask)
                    parts[i] = online_softmax.unchecked_combine(parts[i], part)
            outputs, logs = zip(*map(online_softmax.unchecked_finish, parts), strict=True)
            output, log_sum_exp = torch.cat(outputs, -2).to(v.dtype), torch.cat(logs, -1)
        ctx.save_for_backward(q, k, v, output, log_sum_exp)
        ctx.how = how
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        how: _How = ctx.how
        q, k, v, output, log_sum_exp = ctx.saved_tensors
        rank, world = rank_and_world(how.group)
        with without_autocast(q):
            wide_q, g, output = upcast_half(xp, q, gradients[0], output)
            logs, delta = log_sum_exp[..., None], (g * output).sum(-1, keepdim=True)
            of_rows = (g, wide_q, logs, delta)
            dq, dk, dv = (torch.zeros_like(*upcast_half(xp, a)) for a in (q, k, v))
            for owner, blocks in _travel(how.group, k, v):
                keys, values = upcast_half(xp, *blocks)
                for _, rows, columns, mask in _seen(how, (rank, owner), world, wide_q):
                    of_keys = keys[..., columns, :], values[..., columns, :]
                    of_queries = (a[..., rows, :] for a in of_rows)
                    found: Any = flash.unchecked_gradients(mask, *of_keys, *of_queries)
                    for total, cut, part in zip(
                        (dq, dk, dv), (rows, columns, columns), found, strict=True
                    ):
                        total[..., cut, :] += part
                if world > 1:  # after the last round the gradients come home
                    dk, dv = pass_on((dk, dv), how.group)()
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), None


def split_attention(
    q: Float[Tensor, "... m d"],
    k: Float[Tensor, "... n d"],
    v: Float[Tensor, "... n p"],
    *,
    group: Group | None = None,
) -> Float[Tensor, "... m p"]:
    """Attention of queries that all ranks have to keys and values of which each has a share.

    Each rank computes the part of its keys, and two all-reduces combine the parts: one of the
    largest scores, m numbers, and one of both sums, m (p + 1) numbers.

    Args:
        q: the queries, the same on all ranks, of shape (..., m, d).
        k: this rank's keys, of shape (..., n, d); ranks may have different numbers of them.
        v: their values, of shape (..., n, p).
        group: the ranks; all without it.

    Returns:
        Of shape (..., m, p), the same on all ranks. Gradients of what all compute alike from it
        are whole on every rank for q, and for its own share of k and v.

    Raises:
        ValueError: shapes or dtypes that do not fit.
        RuntimeError: no process group.

    Source: Milakov and Gimelshein (2018), equation 4, over ranks; for one query and many keys it
        is what Flash-Decoding does with the blocks of one machine (Dao et al., 2023).
    """
    check_inputs(q, k, v, False)
    with without_autocast(q):
        wide_q, wide_k, wide_v = upcast_half(xp, shared(q, group), k, v)
        found = scores.unchecked_scaled_dot(wide_q, wide_k)
        part: Any = online_softmax.unchecked_partial(found, wide_v, None)
        top = all_reduce(part.top, group, largest=True)
        top = top.clamp(min=torch.finfo(top.dtype).min)  # from −∞ nothing can be subtracted
        factor = torch.exp(part.top - top)  # brings the part under the largest of all scores
        own = torch.cat((part.weighted, part.total[..., None]), -1)
        sums = summed(factor[..., None] * own, group)
        whole = online_softmax.Partial(top, sums[..., -1], sums[..., :-1])
        return online_softmax.unchecked_finish(whole)[0].to(v.dtype)
