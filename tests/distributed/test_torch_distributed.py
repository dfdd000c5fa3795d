"""PyTorch on several processes: one launch of eight, in groups of two, four and eight; two that fail."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest

torch = pytest.importorskip("torch")

from attnbook.torch.distributed import run  # noqa: E402

WORLDS = (2, 8)


def worker(rank, world, worlds):
    import torch
    from torch import distributed

    from attnbook.torch import DecoderBlock, DecoderOnly, EncoderBlock
    from attnbook.torch.distributed import (
        count,
        deal,
        ring_attention,
        split_attention,
        split_block,
    )

    sdpa = torch.nn.functional.scaled_dot_product_attention

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    def worst(pairs):
        return max(float((a - b).detach().abs().max()) for a, b in pairs)

    def ring(size, group, causal, zigzag):
        """This rank's errors, and its counts in blocks of (..., n / W, d)."""
        whole = [draw(2, 3, 64, 8) for _ in range(3)] + [draw(2, 3, 64, 6)]
        q, k, g, v = whole[0], whole[1], whole[3], draw(2, 3, 64, 6)
        me = distributed.get_rank(group)
        mine = [deal(a, me, size, zigzag=zigzag).requires_grad_() for a in (q, k, v)]
        with count() as counted:
            out = ring_attention(*mine, causal=causal, zigzag=zigzag, group=group)
            forward, computed = counted.message_bytes, counted.scores
            out.backward(deal(g, me, size, zigzag=zigzag))
        given = [a.clone().requires_grad_() for a in (q, k, v)]
        expected = sdpa(*given, is_causal=causal)
        expected.backward(g)
        theirs = [deal(a, me, size, zigzag=zigzag) for a in (expected, *(a.grad for a in given))]
        pairs = list(zip((out, *(a.grad for a in mine)), theirs, strict=True))
        both = (mine[1].numel() + mine[2].numel()) * 8
        return {
            "error": worst(pairs[:1]),
            "gradients": worst(pairs[1:]),
            "forward": forward / both,  # in blocks of keys and values together
            "backward": (counted.message_bytes - forward) / both,
            "messages": counted.messages,
            "scores": computed / (2 * 3 * 64 * 64 / size**2),  # in contiguous blocks of scores
        }

    def split(size, group):
        whole = draw(2, 5, 8), draw(2, 3 * size + 1, 8), draw(2, 3 * size + 1, 6)
        me, g = distributed.get_rank(group), draw(2, 5, 6)
        shares = [a.tensor_split(size, -2)[me].clone() for a in whole[1:]]  # of unequal lengths
        mine = [a.requires_grad_() for a in (whole[0].clone(), *shares)]
        with count() as counted:
            out = split_attention(*mine, group=group)
            numbers = counted.all_reduce_bytes / 8
            out.backward(g)
        given = [a.clone().requires_grad_() for a in whole]
        expected = sdpa(*given)
        expected.backward(g)
        theirs = [given[0].grad, *(a.grad.tensor_split(size, -2)[me] for a in given[1:])]
        pairs = [(a.grad, b) for a, b in zip(mine, theirs, strict=True)]
        nothing = split_attention(whole[0], *(a[..., :0, :] for a in whole[1:]), group=group)
        return {
            "without keys": float(nothing.abs().max()),
            "error": worst([(out, expected)]),
            "gradients": worst(pairs),
            "calls": counted.all_reduces,
            "numbers": numbers,
        }

    def sliced(size, group, whole, divided, call, *given):
        """A module against itself with its blocks divided: outputs, and gradients of all parts."""
        here = [a.clone().requires_grad_(a.is_floating_point()) for a in given]
        there = [a.clone().requires_grad_(a.is_floating_point()) for a in given]
        expected = call(whole, *there)
        g = draw(*expected.shape)
        expected.backward(g)
        with count() as counted:
            found = call(divided, *here)
            forward = counted.all_reduces, counted.all_reduce_bytes
            found.backward(g)
        me = distributed.get_rank(group)
        pairs = [(a.grad, b.grad) for a, b in zip(here, there, strict=True) if b.grad is not None]
        of_whole = dict(whole.named_parameters())
        for name, part in divided.named_parameters():
            gradient = of_whole[name].grad
            if part.shape != gradient.shape:
                axis = 1 if ".output." in name else 0
                gradient = gradient.chunk(size, axis)[me]
            pairs.append((part.grad, gradient))
        backward = counted.all_reduces - forward[0], counted.all_reduce_bytes - forward[1]
        errors = {"error": worst([(found, expected)]), "gradients": worst(pairs)}
        return errors | {"forward": forward, "backward": backward}

    def twice(make, *options, **named):
        state = torch.get_rng_state()
        first = make(*options, **named).double()
        torch.set_rng_state(state)
        return first, make(*options, **named).double()

    found = {}
    for size in worlds:
        groups = [distributed.new_group(list(range(i, i + size))) for i in range(0, world, size)]
        group = groups[rank // size]
        torch.manual_seed(size + 100 * (rank // size))  # the same in a group
        for causal in (False, True):
            for zigzag in (False, True):
                found[size, "ring", causal, zigzag] = ring(size, group, causal, zigzag)
        found[size, "split"] = split(size, group)
        whole, divided = twice(EncoderBlock, 32, 8, 48, num_kv_heads=8, activation="swiglu")
        split_block(divided, group=group)
        found[size, "block"] = sliced(
            size, group, whole, divided, lambda b, x: b(x, causal=True), draw(2, 5, 32)
        )
    whole, divided = twice(DecoderBlock, 32, 8, 48)
    split_block(divided)
    given = draw(2, 5, 32), draw(2, 7, 32)
    found["decoder block"] = sliced(
        world, None, whole, divided, lambda b, x, memory: b(x, memory, causal=True), *given
    )
    found["weights"] = tuple(divided(*given, return_weights=True)[1].shape)
    whole, divided = twice(DecoderOnly, 11, 6, 32, 8, 64, 2)
    for block in divided.decoder:
        split_block(block)
    tokens = torch.randint(11, (3, 6))
    found["model"] = sliced(world, None, whole, divided, lambda m, x: m(x), tokens)
    try:
        split_block(EncoderBlock(32, 4, 48))
    except ValueError as error:
        found["wrong"] = str(error)
    half = [draw(1, 8, 4).bfloat16() for _ in range(3)]
    wide = ring_attention(*(a.double() for a in half))
    found["half"] = float((ring_attention(*half).double() - wide).abs().max())
    print("rank", rank)
    return found


def left() -> list[str]:
    """Processes of ours that are still there."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    own = f"attnbook tests {os.getpid()}"
    return [line for line in listed.stdout.splitlines() if own in line]


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """A temporary path with spaces, by which the processes are known."""
    path = tmp_path_factory.mktemp("of") / f"attnbook tests {os.getpid()}"
    path.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(path)
    yield path
    tempfile.tempdir = before
    assert left() == []
    assert list(path.iterdir()) == []


@pytest.fixture(scope="module")
def results(folder):
    return run(worker, 8, worlds=WORLDS)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("zigzag", [False, True])
def test_ring(results, world, causal, zigzag):
    for rank, result in enumerate(results):
        found = result[world, "ring", causal, zigzag]
        assert found["error"] <= 1e-14 and found["gradients"] <= 1e-13
        assert found["forward"] == world - 1
        assert found["backward"] == (4 * (world - 1) + 2) / 2
        assert found["messages"] == 6 * (world - 1) + 2
        blocks = world
        if causal:
            blocks = (2 * world + 1) / 4 if zigzag else rank % world + 1
        assert found["scores"] == blocks


@pytest.mark.parametrize("world", WORLDS)
def test_split_attention(results, world):
    for result in results:
        found = result[world, "split"]
        assert found["error"] <= 1e-14 and found["gradients"] <= 1e-13
        assert found["numbers"] == 2 * 5 * (1 + 6 + 1)  # forward: the largest, and both sums
        assert found["calls"] == 3  # and backward that of q
        assert found["without keys"] == 0  # where no rank has one


@pytest.mark.parametrize("world", WORLDS)
def test_block(results, world):
    for result in results:
        found = result[world, "block"]
        assert found["error"] <= 1e-14 and found["gradients"] <= 1e-13
        assert found["forward"] == found["backward"] == (2, 2 * 2 * 5 * 32 * 8)


def test_decoder_block_and_model(results):
    for result in results:
        for name in ("decoder block", "model"):
            assert result[name]["error"] <= 1e-14 and result[name]["gradients"] <= 1e-13
        assert result["decoder block"]["forward"][0] == 3
        assert result["decoder block"]["backward"][0] == 4  # what the memory is read for, too
        assert result["model"]["forward"] == result["model"]["backward"] == (4, 4 * 3 * 6 * 32 * 8)
        assert result["weights"] == (2, 1, 5, 5)
        assert (
            result["wrong"]
            == "world: got 8, expected a divisor of 4, the heads of MultiHeadAttention"
        )
        assert 0 < result["half"] <= 2**-8


def test_a_worker_that_fails(folder):
    """Its own error, once, and nothing of how it was started."""

    def failing(rank, world):
        import os

        from torch import distributed

        print("begun", rank)
        if rank == 1:
            raise ValueError(f"no {world}, {os.environ['RANK']}")
        distributed.barrier()

    with pytest.raises(RuntimeError) as told:
        run(failing, 2)
    assert str(told.value).splitlines() == [
        "rank 1 of 2 failed:",
        "Traceback (most recent call last):",
        '  File "worker.py", line 9, in failing',
        """    raise ValueError(f"no {world}, {os.environ['RANK']}")""",
        "ValueError: no 2, 1",
    ]


def test_workers_that_wait_for_ever(folder, capsys):
    """One does not take part in a sum: all are ended at the time limit, and it is said where they were."""

    def waiting(rank, world):
        import torch
        from torch import distributed

        print("begun", rank)
        if rank != 1:
            distributed.all_reduce(torch.ones(1))

    with pytest.raises(RuntimeError) as told:
        run(waiting, 3, time_limit=2)
    assert str(told.value) == (
        "after 2 seconds, the limit: at `distributed.all_reduce(torch.ones(1))`: rank 0, 2; "
        "done, and waiting for the others: rank 1"
    )
    assert capsys.readouterr().out == "begun 0\nbegun 1\nbegun 2\n"
    assert left() == []


def test_a_worker_that_is_killed(folder):
    def killed(rank, world):
        import os
        import signal

        from torch import distributed

        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        distributed.barrier()

    with pytest.raises(RuntimeError, match=r"^rank 1 of 2 was ended by signal 9$"):
        run(killed, 2)
