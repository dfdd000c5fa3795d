"""Chapter 13 on GPUs: one process each, with NCCL; the ring, split keys and shares of a block."""

import tempfile

import numpy as np
import pytest

pytestmark = pytest.mark.gpu
TOLERANCE = 1e-12  # float64; the outputs are averages of numbers near 1, over at most 48 keys


def worker(rank, world, meeting, results):
    """This rank's largest errors, in a file of its own."""
    import torch
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    from attnbook.torch import EncoderBlock
    from attnbook.torch.distributed import deal, ring_attention, split_attention

    torch.cuda.set_device(rank)
    how = {"init_method": f"file://{meeting}", "device_id": torch.device("cuda", rank)}
    distributed.init_process_group("nccl", rank=rank, world_size=world, **how)
    torch.manual_seed(7)  # on the CPU: all ranks draw the same
    n = 48 * world
    q, k, v, g = (torch.randn(2, 3, n, 8, dtype=torch.float64).cuda() for _ in range(4))
    fused = torch.nn.functional.scaled_dot_product_attention
    errors = {}
    for zigzag in (False, True):
        given = [a.clone().requires_grad_() for a in (q, k, v)]
        expected = fused(*given, is_causal=True)
        expected.backward(g)
        mine = [deal(a, rank, world, zigzag=zigzag).requires_grad_() for a in (q, k, v)]
        out = ring_attention(*mine, causal=True, zigzag=zigzag)
        out.backward(deal(g, rank, world, zigzag=zigzag))
        found = {"o": out} | {name: a.grad for name, a in zip("qkv", mine, strict=True)}
        whole = {"o": expected} | {name: a.grad for name, a in zip("qkv", given, strict=True)}
        for name, ours in found.items():
            right = deal(whole[name], rank, world, zigzag=zigzag)
            errors[f"ring {name} {zigzag}"] = float((ours - right).abs().max())
    shares = (deal(a, rank, world) for a in (k, v))
    errors["split"] = float((split_attention(q, *shares) - fused(q, k, v)).abs().max())

    block = EncoderBlock(24, 3, 48).double().cuda()
    x = torch.randn(2 * world, 10, 24, dtype=torch.float64).cuda()
    expected = block(x).detach()
    loss = (block(x) ** 2).mean()
    loss.backward()
    wanted = {name: p.grad.clone() for name, p in block.named_parameters()}
    block.zero_grad()
    fully_shard(block)
    out = block(x[2 * rank : 2 * rank + 2])
    (out**2).mean().backward()  # the mean over ranks is the mean over the batch
    errors["FSDP output"] = float((out - expected[2 * rank : 2 * rank + 2]).abs().max())
    errors["FSDP gradient"] = max(
        float((p.grad.full_tensor() - wanted[name]).abs().max())
        for name, p in block.named_parameters()
    )
    np.savez(f"{results}/{rank}.npz", **errors)
    distributed.destroy_process_group()


def test_ring_split_keys_and_shares_on_all_gpus():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    world = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(worker, (world, f"{folder}/meeting", folder), world)
        for rank in range(world):
            with np.load(f"{folder}/{rank}.npz") as errors:
                assert len(errors) == 11
                assert {name: float(e) for name, e in errors.items() if e > TOLERANCE} == {}
