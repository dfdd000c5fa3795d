"""A pipeline on processes: one forward, one backward in turn, and what distributed.plan says of it."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch")

from attnbook.distributed.communication_time import Link  # noqa: E402
from attnbook.distributed.layout import Cluster, Layout, Model  # noqa: E402
from attnbook.distributed.plan import plan  # noqa: E402
from attnbook.torch.distributed import run  # noqa: E402


def stage(rank, world, x, weights):
    """Blocks x + relu(x W) of one stage, over micro-batches: gradients, bytes that left, most kept."""
    import torch
    from torch import distributed

    mine = weights[rank].clone().requires_grad_()
    kept, sent, most, left = [], [], 0, 0

    def send(array, to):
        nonlocal left
        left += array.numel() * array.element_size()
        # both neighbours may be sending to each other: nobody waits until it has arrived
        sent.append((array, distributed.isend(array, to)))

    def receive(source):
        array = torch.empty_like(x[0])
        distributed.recv(array, source)
        return array

    def forward(micro_batch):
        nonlocal most
        given = (receive(rank - 1) if rank else x[micro_batch].clone()).requires_grad_()
        out = given
        for weight in mine:
            out = out + torch.relu(out @ weight)
        if rank < world - 1:
            send(out.detach(), rank + 1)
        kept.append((given, out))
        most = max(most, len(kept))

    def backward():
        given, out = kept.pop(0)
        of_square = 2 * out.detach()
        out.backward(receive(rank + 1) if rank < world - 1 else of_square)
        if rank:
            send(given.grad, rank - 1)

    first = min(world - 1 - rank, len(x))  # micro-batches that fill the stages behind
    for i in range(first):
        forward(i)
    for i in range(first, len(x)):
        forward(i)
        backward()
    for _ in range(first):
        backward()
    for _, handle in sent:
        handle.wait()
    distributed.barrier()
    return mine.grad, left, most


@pytest.mark.parametrize("micro_batches", [2, 5])
def test_stages_compute_one_model_and_send_and_keep_what_is_planned(micro_batches):
    torch.manual_seed(0)
    world, layers, rows, n, e = 3, 2, 2, 4, 6
    x = torch.randn(micro_batches, rows, n, e, dtype=torch.float64)
    weights = torch.randn(world, layers, e, e, dtype=torch.float64) / e**0.5
    found = run(stage, world, x=x, weights=weights)

    whole, out = weights.clone().requires_grad_(), x
    for weight in whole.flatten(0, 1):
        out = out + torch.relu(out @ weight)
    out.square().sum().backward()
    for rank, (gradient, _, _) in enumerate(found):
        assert_allclose(gradient, whole.grad[rank], rtol=1e-9, atol=1e-9)

    byte = Link(0.0, 1.0)  # seconds of sending are bytes
    planned = plan(
        Model(1e4, world * layers, e, 1, n),
        rows * n * micro_batches,
        Cluster(world, 1e9, 1e9, byte, byte, per_machine=world),
        Layout(stages=world, micro_batches=micro_batches),
    )
    sent = [left / 4 for _, left, _ in found]  # the plan has 2 bytes, not 8
    assert_allclose(planned.seconds["stages"], max(sent))  # a stage in the middle sends both ways
    assert sent[0] == sent[-1] == max(sent) / 2
    assert [most for _, _, most in found] == [min(micro_batches, world - r) for r in range(world)]
    assert found[0][2] == min(micro_batches, world)  # as many as the plan's memory has
