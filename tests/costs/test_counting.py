"""Collectives of imagined ranks against the sizes of the parameters that they are for."""

import pytest

torch = pytest.importorskip("torch")

from torch import distributed  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import DTensor, Shard  # noqa: E402

import attnbook.torch as layers  # noqa: E402
from attnbook.distributed import traffic  # noqa: E402
from attnbook.models import losses  # noqa: E402
from attnbook.torch import counting  # noqa: E402

TOKENS = torch.arange(9)
SIZES = {"embed_dim": 16, "num_heads": 2, "mlp_dim": 40, "num_layers": 3}


def step(world, *, per_block, shapes_only=False):
    """A model, what was counted of one step of it, and bytes of the root's parameters and blocks'."""
    torch.manual_seed(0)
    model = layers.DecoderOnly(11, 8, **SIZES)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters()}
    of_root, of_blocks = 0, [0] * 3
    for name, shape in shapes.items():
        size = 4 * traffic.padded(shape, world)
        if per_block and name.startswith("decoder."):
            of_blocks[int(name.split(".")[1])] += size
        else:
            of_root += size
    with counting.imagined_ranks(world) as mesh:
        for part in (*model.decoder, model) if per_block else (model,):
            fully_shard(part, mesh=mesh)
        with counting.Collectives(shapes_only=shapes_only) as seen:
            losses.cross_entropy(model(TOKENS[:-1]), TOKENS[1:]).backward()
    return model, seen, of_root, of_blocks


@pytest.mark.parametrize("shapes_only", [False, True])
@pytest.mark.parametrize("world", [4, 1024])
def test_fsdp_per_block(world, shapes_only):
    """Forward the root and then its blocks; backward the blocks once more; gradients of each."""
    model, seen, of_root, of_blocks = step(world, per_block=True, shapes_only=shapes_only)
    first, second, third = of_blocks
    gathered = [size for name, size in seen.calls if name == "all-gather"]
    scattered = [size for name, size in seen.calls if name == "reduce-scatter"]
    assert gathered == [of_root, first, second, third, third, second, first]
    assert scattered == [third, second, first, of_root]
    assert len(seen.calls) == 11
    expected = traffic.zero_traffic(sum(of_blocks), world, 3)
    expected += traffic.zero_traffic(of_root, world, 2)
    assert seen.sent(world) == pytest.approx(expected, rel=1e-14)
    local = sum(p.to_local().numel() for p in model.parameters())
    assert local <= (of_root + sum(of_blocks)) / 4 / world
    assert not distributed.is_initialized()


def test_fsdp_of_the_root_alone():
    """The whole model is gathered once and stays: the traffic of an all-reduce."""
    _, seen, of_root, _ = step(4, per_block=False)
    assert seen.calls == [("all-gather", of_root), ("reduce-scatter", of_root)]
    assert seen.sent(4) == traffic.all_reduce(of_root, 4)


def test_collectives_by_hand_and_of_dtensors():
    """Each kind with the bytes of the whole; a norm of DTensors is an all-reduce of one number."""
    with counting.imagined_ranks(4) as mesh, counting.Collectives() as seen:
        mine, parts = torch.zeros(2, 3), [torch.zeros(2, 3) for _ in range(4)]
        distributed.all_reduce(mine)
        distributed.all_gather(parts, mine)
        distributed.reduce_scatter(mine, parts)
        distributed.broadcast(mine, 0)
        norm = torch.linalg.vector_norm(DTensor.from_local(mine, mesh, [Shard(0)]))
        _ = norm + 1
    kinds = ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-reduce"]
    assert seen.calls == list(zip(kinds, (24, 96, 96, 24, 4), strict=True))
