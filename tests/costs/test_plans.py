"""A plan against collectives that were called, tensors that were kept, and pipelines that took turns."""

import dataclasses
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from attnbook.distributed import traffic
from attnbook.distributed.layout import DEVICES, MODELS, Cluster, Layout, Model
from attnbook.distributed.plan import activations, operations, plan
from attnbook.distributed.traffic import Link

BYTES = Link(0.0, 1.0)  # seconds of sending are bytes
SMALL = Model(7e6, layers=12, width=60, heads=6, sequence=30, key_heads=3)
LARGE = MODELS["Llama 3 70B"]
H100 = DEVICES["H100"]


def counted(devices, **options):
    """A cluster of one machine whose seconds of sending are bytes, and of computing operations."""
    cluster = {"memory": 1e12, "flops": 1.0, "inside": BYTES, "between": BYTES}
    return Cluster(devices, **(cluster | {"per_machine": devices} | options))


def pipeline(stages, micro_batches, forward, backward):
    """Seconds, and the most micro-batches that a stage holds: each takes a way back when it can.

    One forward, one backward: stage s goes forward with at most p − s micro-batches ahead.
    """
    p, m = stages, micro_batches
    there, back = np.full((2, p, m), np.inf)  # when each is done
    free, most = np.zeros(p), np.zeros(p, dtype=int)
    gone, home = np.zeros(p, dtype=int), np.zeros(p, dtype=int)
    while home.min() < m:
        ready = []
        for s in range(p):
            i, j = gone[s], home[s]
            if i < m and i - j < p - s:
                ready.append((max(free[s], there[s - 1, i] if s else 0.0), 1, s))
            if j < i:
                after = back[s + 1, j] if s < p - 1 else there[s, j]
                ready.append((max(free[s], after), 0, s))  # first where both could start
        start, ahead, s = min(ready)
        if ahead:
            there[s, gone[s]] = free[s] = start + forward
            gone[s] += 1
        else:
            back[s, home[s]] = free[s] = start + backward
            home[s] += 1
        most[s] = max(most[s], gone[s] - home[s])
    return back.max(), most


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (2, 2), (3, 7), (4, 2), (6, 12)])
def test_a_pipeline_takes_turns(stages, micro_batches):
    cluster = counted(stages, inside=Link(0.0, 1e30))
    layout = Layout(stages=stages, micro_batches=micro_batches)
    found = plan(SMALL, 30 * micro_batches, cluster, layout)
    one = found.seconds["compute"] / micro_batches
    total, most = pipeline(stages, micro_batches, one / 3, 2 * one / 3)
    assert_allclose(found.step, total, rtol=1e-12)
    assert most[0] == min(stages, micro_batches)
    here = 30 * 12 / stages * activations(SMALL, "attention")
    assert_allclose(found.memory["activations"], most[0] * here)
    each_way = micro_batches * 2 * 30 * 60  # bfloat16 tokens of the stream to a neighbour
    slow = plan(SMALL, 30 * micro_batches, counted(stages), layout)
    assert_allclose(slow.sending["stages"], 2 * each_way * (stages > 1))


@pytest.mark.parametrize("zero", range(4))
def test_copies_send_what_zero_sends(zero):
    found = plan(SMALL, 210, counted(7), Layout(zero=zero, overlap=False))
    assert_allclose(found.seconds["copies"], traffic.zero_traffic(14e6, 7, zero))
    assert found.seconds["copies"] == found.sending["copies"]
    thrice = plan(SMALL, 630, counted(7), Layout(zero=zero, micro_batches=3))
    again = {0: 0, 1: 0, 2: traffic.reduce_scatter(14e6, 7)}.get(zero)  # at a further micro-batch
    more = 2 * (traffic.zero_traffic(14e6, 7, 3) if again is None else again)
    assert_allclose(thrice.sending["copies"] - found.sending["copies"], more, atol=1)


def test_heads_send_what_pytorch_calls():
    torch = pytest.importorskip("torch")
    import attnbook.torch as layers
    from attnbook.torch import counting
    from attnbook.torch import distributed as many

    block = layers.EncoderBlock(60, 6, 30).to(torch.bfloat16)
    x = torch.ones(2, 7, 60, dtype=torch.bfloat16, requires_grad=True)
    with counting.imagined_ranks(3), counting.Collectives() as seen:
        many.split_block(block)(x).sum().backward()
    model = Model(1e4, layers=1, width=60, heads=6, sequence=7)
    found = plan(model, 14, counted(3), Layout(heads=3))
    assert_allclose(found.seconds["heads"], seen.sent(3), rtol=1e-12)
    again = plan(model, 14, counted(3), Layout(heads=3, recompute="all"))
    assert_allclose(again.seconds["heads"], 1.5 * seen.sent(3), rtol=1e-12)
    latency = plan(model, 14, counted(3, inside=Link(1.0, 1e30)), Layout(heads=3))
    assert_allclose(latency.seconds["heads"], len(seen.calls) * 2 * (3 - 1))


def test_activations_are_what_pytorch_keeps():
    """A block of Korthikanti et al., in bfloat16: storages that the way back holds on to."""
    torch = pytest.importorskip("torch")
    from torch.nn import functional as F

    b, s, heads, d = 2, 11, 3, 5
    e, kept, floats = heads * d, {}, torch.bfloat16
    shapes = (3 * e, e), (e, e), (4 * e, e), (e, 4 * e)
    weights = [torch.randn(*shape, dtype=floats, requires_grad=True) for shape in shapes]
    norms = [torch.ones(e, dtype=floats, requires_grad=True) for _ in range(4)]
    x = torch.randn(b, s, e, dtype=floats, requires_grad=True)

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # so that no other takes its place
        return tensor

    def dropped(y):
        mask = torch.rand(y.shape) < 0.9
        return torch.where(mask, y, 0)

    alive = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = F.layer_norm(x, (e,), norms[0], norms[1])
        parts = (y @ weights[0].T).chunk(3, -1)
        q, k, v = (a.reshape(b, s, heads, d).transpose(1, 2) for a in parts)
        w = dropped(torch.softmax(q @ k.mT, -1))
        x1 = x + dropped((w @ v).transpose(1, 2).reshape(b, s, e) @ weights[1].T)
        y = F.layer_norm(x1, (e,), norms[2], norms[3])
        x1 + dropped(F.gelu(y @ weights[2].T) @ weights[3].T)
    own = {p.untyped_storage().data_ptr() for p in (*weights, *norms)}
    found = sum(size for address, size in kept.items() if address not in own)
    means = 2 * 2 * b * s * 4  # mean and deviation of two norms, in 4 bytes at most
    model = Model(1e4, 1, e, heads, s)
    assert 0 <= found - b * s * activations(model) - means / 2 <= means / 2
    assert activations(model) - activations(model, "attention") == 5 * heads * s


@pytest.mark.parametrize("zero", range(4))
def test_a_ring_holds_and_sums_what_as_many_copies_would(zero):
    """Its devices have tokens of the same rows, and the gradients of them all are one sum."""
    layout = Layout(zero=zero, overlap=False)
    copies = plan(SMALL, 360, counted(6), Layout(zero=zero, overlap=False))
    ring = plan(SMALL, 360, counted(6), dataclasses.replace(layout, ring=3))
    assert (copies.copies, ring.copies, ring.rows) == (6, 2, 6)
    assert copies.memory == ring.memory
    assert copies.seconds["copies"] == ring.seconds["copies"] > 0


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("bandwidth", [1e5, 1e9])
def test_the_ring_hides_behind_its_attention(bandwidth, overlap):
    """There and back, each behind its own part of the scores; the model has nothing else."""
    model = Model(1e-9, layers=12, width=60, heads=6, sequence=30)
    cluster = counted(5, flops=1e9, inside=Link(1e-6, bandwidth))
    found = plan(model, 60, cluster, Layout(ring=5, recompute="none", overlap=overlap))
    compute, ring = found.seconds["compute"], found.seconds["ring"]
    keys = 2 * 60 / 5 * 60
    there = 12 * ((5 - 1) * 1e-6 + traffic.ring(keys, 5) / bandwidth)
    back = 12 * (5 * 1e-6 + traffic.ring_backward(keys, 5) / bandwidth)
    hides = compute * (5 - 1) / 5
    expected = [max(0, there - hides / 3) + max(0, back - 2 * hides / 3), there + back]
    assert_allclose(ring, expected[not overlap], rtol=1e-9)


@pytest.mark.parametrize("zero", range(4))
def test_the_training_state_is_zeros(zero):
    found = plan(LARGE, 2**23, Cluster(1024, **H100), Layout(zero=zero))
    state = sum(found.memory[kind] for kind in ("weights", "gradients", "optimizer"))
    gathered = 2 * 2 * LARGE.parameters / 80 if zero == 3 else 0
    assert_allclose(state, traffic.zero(LARGE.parameters, 1024, zero) + gathered)
    assert found.binds == "memory" and found.held > found.available


@pytest.mark.parametrize(
    "layout",
    [
        Layout(heads=8, stages=4, zero=1, micro_batches=4),
        Layout(heads=4, ring=2, zero=3),
        Layout(heads=2, ring=4, stages=2, zero=2, micro_batches=2, recompute="none"),
    ],
)
def test_every_operation_is_somewhere(layout):
    cluster = Cluster(64, **H100, reached=0.5)
    found = plan(LARGE, 2**23, cluster, layout)
    again = 7 / 6 if layout.recompute == "attention" else 1
    scores = 12 * 80 * 8192 * 8192
    once = 2**23 * (6 * LARGE.parameters + again * scores)
    assert_allclose(found.seconds["compute"] * 64 * 989e12 * 0.5, once)
    assert_allclose(found.tokens_per_second * found.step, 2**23)
    whole = operations(LARGE) * found.tokens_per_second / (64 * 989e12)
    assert_allclose(found.utilisation, whole)
    assert found.utilisation < 0.5
    assert found.rows * found.copies * layout.micro_batches * 8192 == 2**23
    seen = plan(LARGE, 2**23, cluster, dataclasses.replace(layout, overlap=False))
    assert seen.step >= found.step and seen.sending == found.sending
    for kind in ("heads", "ring", "copies"):
        assert found.seconds[kind] <= found.sending[kind] * (1 + 1e-12)


def test_links():
    """Inside a machine, through as many cards as ranks, no faster than inside, and one card."""
    fast = {"flops": 1e30, "inside": Link(0.0, 450.0), "between": Link(0.0, 50.0), "memory": 1.0}
    size = 2 * SMALL.parameters

    def sending(devices, kind="copies", **layout):
        options = Layout(**({"recompute": "none"} | layout))
        return plan(SMALL, 30 * devices, Cluster(devices, **fast), options).sending[kind]

    assert_allclose(sending(8), traffic.all_reduce(size, 8) / 450)
    assert_allclose(sending(16), traffic.all_reduce(size, 16) / 400)
    assert_allclose(sending(16, heads=2), traffic.all_reduce(size / 2, 8) / 200)
    assert_allclose(sending(48, heads=6), traffic.all_reduce(size / 6, 8) / 50)
    slow = fast | {"inside": Link(0.0, 300.0)}
    found = plan(SMALL, 480, Cluster(16, **slow), Layout())
    assert_allclose(found.sending["copies"], traffic.all_reduce(size, 16) / 300)
    keys = 2 * 10 * 30 / 10 * 30  # of ten rows: a tenth of the tokens, half of the width
    both = traffic.ring(keys, 10) + traffic.ring_backward(keys, 10)
    machines = Cluster(10, **fast, per_machine=5)
    found = plan(SMALL, 300, machines, Layout(ring=10, recompute="none"))
    assert_allclose(found.sending["ring"], 12 * both / 50)
    assert found.rows == 10


def test_the_models_have_the_parameters_of_their_shapes():
    """Queries and output, keys and values, three matrices of an MLP, two norms; two embeddings."""
    hidden = {"8B": 14336, "70B": 28672, "405B": 53248}
    for name, model in MODELS.items():
        e = model.width
        block = 2 * e**2 + 2 * e * model.key_width + 3 * e * hidden[name.split()[-1]] + 2 * e
        assert model.parameters == model.layers * block + e + 2 * 128_256 * e


def test_what_binds():
    cluster = Cluster(64, **H100)
    fits = Layout(zero=3, heads=8, recompute="all", micro_batches=16)
    assert plan(LARGE, 2**23, cluster, fits).binds == "compute"
    assert plan(LARGE, 2**23, cluster, dataclasses.replace(fits, zero=0)).binds == "memory"
    slow = dataclasses.replace(cluster, inside=Link(1e-5, 1e10))
    assert plan(LARGE, 2**23, slow, fits).binds == "heads"
    deep = Layout(zero=1, heads=8, stages=8, recompute="all")
    assert plan(LARGE, 2**13, cluster, deep).binds == "bubble"


CLUSTER = Cluster(64, **H100)
MULTIPLE = "expected a multiple of the layout's"
UNPLANNED = [  # a model, a batch of tokens, a layout, and what does not fit
    (LARGE, 2**23, Layout(heads=8, ring=16), f"devices: got 64, {MULTIPLE} 128"),
    (SMALL, 2**23, Layout(heads=8), f"heads: got 6, {MULTIPLE} 8"),
    (SMALL, 30 * 64, Layout(ring=4), f"sequence: got 30, {MULTIPLE} 4"),
    (LARGE, 2**18, Layout(), f"batch: got 262144, {MULTIPLE} 524288"),
    (SMALL, 3840, Layout(stages=16), "stages: got 16, expected 12 or fewer"),
]


@pytest.mark.parametrize(("model", "batch", "layout", "message"), UNPLANNED)
def test_what_cannot_be_planned(model, batch, layout, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        plan(model, batch, CLUSTER, layout)


@pytest.mark.parametrize(
    ("before", "change", "message"),
    [
        (CLUSTER, {"devices": 60}, "devices: got 60 in machines of 8, expected whole machines"),
        (Layout(), {"zero": 4}, "zero: got 4, expected 0 to 3"),
        (Layout(), {"recompute": "some"}, "recompute: got 'some', expected "),
        (SMALL, {"key_heads": 7}, "key_heads: got 7, expected 1 to 6"),
    ],
)
def test_what_cannot_be_described(before, change, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        dataclasses.replace(before, **change)
