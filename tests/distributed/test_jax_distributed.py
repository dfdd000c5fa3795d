"""Eight devices against one: sequences that are split, and models that are placed."""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import attnbook.linear_attention as states
from attnbook.jax import DecoderOnly, train
from attnbook.jax import distributed as many
from attnbook.models import losses

LEAD, N, D = (2, 3), 64, 16


def test_eight_devices():
    """What the tests below count on."""
    assert [device.platform for device in jax.devices()] == ["cpu"] * 8


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def qkvg(double, rng):
    return [jnp.asarray(rng.normal(size=(*LEAD, N, D))) for _ in range(4)]


def on_one_device(q, k, v, causal=False):
    s = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        s = jnp.where(jnp.tri(s.shape[-1], dtype=bool), s, -jnp.inf)
    return jax.nn.softmax(s) @ v


def with_gradient(function, *arrays, g):
    """Output and gradients of Σ g ⊙ output, in one compiled program."""

    def total(*arrays):
        output = function(*arrays)
        return jnp.sum(output * g), output

    places = tuple(range(len(arrays)))
    gradients, output = jax.jit(jax.grad(total, places, has_aux=True))(*arrays)
    return output, gradients


def assert_as_on_one_device(function, right, *arrays, g):
    """The same output, which is returned, and the same gradients."""
    output, found = with_gradient(function, *arrays, g=g)
    expected, gradients = with_gradient(right, *arrays, g=g)
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-14)
    for one, other in zip(found, gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
    return output


@pytest.mark.parametrize("causal", [False, True])
def test_the_ring_equals_one_device(qkvg, causal):
    *qkv, g = qkvg
    ring, right = (partial(f, causal=causal) for f in (many.ring_attention, on_one_device))
    output = assert_as_on_one_device(ring, right, *qkv, g=g)
    assert output.sharding.spec == P(None, None, "devices")


def test_the_ring_passes_blocks_on(qkvg):
    """Keys and values once in the loop; no gathering. Backward: their gradients, too."""
    ring = jax.jit(many.ring_attention).lower(*qkvg[:3]).compile()
    none = dict.fromkeys(many.collectives(""), 0)
    assert many.collectives(ring) == none | {"collective-permute": 2}


@pytest.mark.parametrize("kind", ["sum", "decay", "delta", "gated delta"])
def test_states_handed_over(rng, qkvg, kind):
    """Outputs, last state and their gradients as token by token."""
    q, k, v, g = qkvg
    k, v, g = k / jnp.linalg.norm(k, axis=-1, keepdims=True), v[:1, ..., :5], g[..., :5]
    rates = {
        "decay": jnp.asarray(rng.uniform(0.8, 1, size=(3, N))),
        "beta": jnp.asarray(rng.uniform(0, 1, size=(*LEAD, N))),
    }
    needs = {"decay": ("decay",), "delta": ("beta",), "gated delta": ("decay", "beta")}
    names = needs.get(kind, ())

    def called(function, q, k, v, *given, **how):
        output, last = function(q, k, v, **dict(zip(names, given, strict=True)), **how)
        return jnp.concatenate([output, last], axis=-2)  # both count in the gradient

    arrays = (q, k, v, *(rates[name] for name in names))
    g = jnp.concatenate([g, jnp.ones((*LEAD, D, 5))], axis=-2)
    found = with_gradient(partial(called, many.linear_attention, chunk=3), *arrays, g=g)
    right = with_gradient(partial(called, states.recurrent), *arrays, g=g)
    np.testing.assert_allclose(found[0], right[0], rtol=0, atol=1e-12)
    for one, other in zip(found[1], right[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


def test_bytes_of_states_do_not_grow(double, rng):
    """What is gathered has d (d + p) numbers, or d p + 1, for 64 tokens as for 128."""
    for n in (64, 128):
        q, k, v = (jnp.asarray(rng.normal(size=(n, width))) for width in (4, 4, 6))
        beta = jnp.ones(n)
        text = jax.jit(many.linear_attention).lower(q, k, v, beta=beta).compile().as_text()
        gathered = re.findall(r"= (\S+)\{\S* all-gather\(", text)
        assert sorted(gathered) == ["f64[8,4,4]", "f64[8,4,6]"]
        text = jax.jit(many.linear_attention).lower(q, k, v).compile().as_text()
        assert text.count("f64[8,4,6]{2,1,0} all-gather(") == 1


def windows(rng, steps, rows=16, n=9):
    return [rng.integers(0, 11, size=(rows, n)) for _ in range(steps)]


def test_a_placed_model_trains_as_on_one_device(rng):
    """The losses of train, unchanged, with copies, with split arrays and with split heads."""
    start = DecoderOnly(11, 8, 16, 4, 32, 1, key=jax.random.key(0))
    text = windows(rng, 4)

    def loss(model, tokens):
        return losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])

    def run(kind, devices, split):
        mesh = many.make_mesh(devices)
        placed = NamedSharding(mesh, P("devices") if split else P())
        rows = [(jax.device_put(tokens, placed),) for tokens in text]
        model = start if kind is None else many.shard(start, mesh, kind)
        return train(model, loss, rows, learning_rate=0.01, clip=1.0)

    _, one = run(None, 1, False)
    for kind, devices in (("ddp", 8), ("fsdp", 8), ("heads", 4)):
        model, found = run(kind, devices, split=kind != "heads")
        np.testing.assert_allclose(found.losses, one.losses, rtol=3e-6)
        held = model.decoder[0].mlp.hidden.weight.addressable_shards[0].data.size
        assert held == {"ddp": 512, "fsdp": 512 // 8, "heads": 512 // 4}[kind]
    assert one.losses[-1] < one.losses[0] - 0.01


def test_heads_split_need_two_sums_per_block():
    """Forward, an all-reduce after the attention and one after the MLP, and nothing else."""
    model = DecoderOnly(11, 8, 16, 8, 32, 2, key=jax.random.key(0))
    placed = many.shard(model, many.make_mesh(), "heads")
    tokens = jnp.zeros((4, 8), dtype=jnp.int32)
    compiled = jax.jit(lambda model, tokens: model(tokens)).lower(placed, tokens).compile()
    assert {kind: n for kind, n in many.collectives(compiled).items() if n} == {"all-reduce": 4}
    np.testing.assert_allclose(compiled(placed, tokens), model(tokens), atol=1e-6)
    weight = placed.decoder[1].attention.output.weight
    assert weight.addressable_shards[0].data.shape == (16, 2)


def test_what_cannot_be_is_refused(qkvg):
    q, k, v, _ = qkvg
    model, mesh = DecoderOnly(11, 8, 16, 4, 32, 1, key=jax.random.key(0)), many.make_mesh()
    ring, shard = many.ring_attention, many.shard
    most = "expected at most 8, as many as JAX has here"
    divisor = "expected a divisor of 4, the heads of MultiHeadAttention"
    for message, call in (
        (
            "q: got 60 rows, expected a multiple of 8, the devices",
            lambda: ring(q[..., 4:, :], k, v),
        ),
        ("k: got 60 rows, expected", lambda: ring(q, k[..., 4:, :], v[..., 4:, :])),
        ("v: got 56 rows, expected 64, one per key", lambda: ring(q, k, v[..., 8:, :])),
        ("causal: got 32 queries and 64 keys", lambda: ring(q[..., 32:, :], k, v, causal=True)),
        (f"devices: got 9, {most}", lambda: many.make_mesh(9)),
        ("kind: got 'zero', expected 'ddp', 'fsdp' or 'heads'", lambda: shard(model, mesh, "zero")),
        (f"world: got 8, {divisor}", lambda: shard(model, mesh, "heads")),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="q: got a ndarray, expected an array of JAX"):
        ring(*map(np.asarray, (q, k, v)))
