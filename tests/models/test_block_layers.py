"""The MLP and the blocks as layers: their loops, their starts, dropout, and what must not count."""

import numpy as np
import pytest
import reference_blocks
import reference_heads
from layer_harness import Library, distinct_starts, randomized, with_parameters

from attnbook.attention import heads

BLOCKS = {"EncoderBlock": ("attention",), "DecoderBlock": ("attention", "cross_attention")}
blocks = pytest.mark.parametrize("name", BLOCKS)
SIZES = {"MLP": (12, 7), "EncoderBlock": (12, 3, 7), "DecoderBlock": (12, 3, 7)}
OWNERS = [0, 1, 2]
CAUSAL = np.tril(np.ones((5, 5), bool))
MODES = pytest.mark.parametrize("seed", [None, 3], ids=["at rest", "training"])


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 5, 12))


@pytest.fixture
def memory(rng):
    return rng.normal(size=(2, 7, 12))


def assert_close(out, expected, atol=1e-11):
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=atol)


def given_to(name, x, memory):
    return (x, memory) if name == "DecoderBlock" else (x,)


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
def test_project_equals_the_loop(library, x, memory, num_kv_heads):
    """Head by head; neighbouring query heads share keys and values."""
    layer = library.scaled_up("MultiHeadAttention", 12, 4, num_kv_heads=num_kv_heads)
    parameters, values = library.parameters(layer), memory[:, ::-1].copy()
    out = library.returned(heads.project(layer, *map(library.moved, (x, memory, values))))
    shapes = [(2, 4, 5, 3), (2, 4, 7, 3), (2, 4, 7, 3)]
    assert [a.shape for a in out] == shapes
    names = "query", "key", "value"
    for found, given, name in zip(out, (x, memory, values), names, strict=True):
        for b, h in np.ndindex(2, 4):
            start = 3 * (h if name == "query" else h * num_kv_heads // 4)
            right = reference_heads.projected(parameters, name, given[b], start, start + 3)
            assert_close(found[b, h], right)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
def test_mlp_equals_the_loop(library, x, activation):
    layer = randomized(library, "MLP", 12, 7, activation)
    out, parameters = library.call(layer, x), library.parameters(layer)
    right = reference_blocks.rows(lambda r: reference_blocks.mlp(parameters, activation, r), x)
    assert_close(out, right)
    assert_close(library.call(layer, x[0]), out[0])


MASKS = {
    "no mask": (None, None),
    "one for all": ((5, 5), (5, 7)),
    "one per sequence": ((2, 1, 5), (2, 1, 7)),
    "one per pair": ((2, 5, 5), (2, 5, 7)),
}


@pytest.mark.parametrize("shapes", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("kind", ["pre gelu", "post relu", "pre swiglu", "post gelu"])
@blocks
def test_blocks_equal_the_loop(library, x, memory, rng, name, kind, shapes):
    """Stream and weights, sequence by sequence; a layer with dropout is the same at rest."""
    norm, activation = kind.split()
    layer = randomized(library, name, 12, 3, 7, norm=norm, activation=activation, dropout=0.3)
    parameters, given = library.parameters(layer), given_to(name, x, memory)
    masks = [None if s is None else rng.random(s) < 0.6 for s in shapes[: len(given)]]
    found = library.call(layer, *given, *masks, return_weights=True)
    for b in range(2):
        own, other = (reference_heads.of_each(m, b) for m in (masks * 2)[:2])
        expected = reference_blocks.block(
            *(parameters, OWNERS, norm, activation, x[b], own),
            *((memory[b], other) if name == "DecoderBlock" else ()),
        )
        assert len(found) == len(expected) == 1 + len(BLOCKS[name])
        for ours, right in zip(found, expected, strict=True):
            assert_close(ours[b], right)
    assert_close(library.call(layer, *given, *masks), found[0], 1e-12)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
@blocks
def test_names_and_shapes(library, name, activation):
    layer = library.make(name, 12, 3, 7, activation=activation)
    parts = "query", "key", "value", "output"
    expected = {f"{a}.{p}.weight": (12, 12) for a in BLOCKS[name] for p in parts}
    expected |= {"mlp.hidden.weight": (7, 12), "mlp.output.weight": (12, 7)}
    expected |= {"mlp.gate.weight": (7, 12)} if activation == "swiglu" else {}
    expected |= {n.replace("weight", "bias"): shape[:1] for n, shape in expected.items()}
    norms = ("attention_norm", "cross_norm", "mlp_norm")[:: 2 if name == "EncoderBlock" else 1]
    expected |= {f"{n}.{kind}": (12,) for n in norms for kind in ("weight", "bias")}
    parameters = library.parameters(layer)
    assert {n: a.shape for n, a in parameters.items()} == expected
    for n in norms:
        np.testing.assert_array_equal(parameters[f"{n}.weight"], np.ones(12))
        np.testing.assert_array_equal(parameters[f"{n}.bias"], np.zeros(12))
        assert getattr(layer, n).eps == 1e-5
    assert (layer.embed_dim, layer.num_heads, layer.norm) == (12, 3, "pre")


@blocks
def test_defaults_and_what_parts_are_told(library, name):
    layer = library.make(name, 12, 3, 7)
    assert (layer.norm, layer.dropout) == ("pre", 0.0)
    assert library.make(name, 12, 3, 7, norm="post").norm == "post"
    layer = library.make(name, 12, 3, 7, dropout=0.3, activation="relu")
    parts = [getattr(layer, a) for a in BLOCKS[name]]
    assert [p.dropout for p in (layer, layer.mlp, *parts)] == [0.3] * (2 + len(parts))
    assert [p.num_heads for p in parts] == [3] * len(parts)
    inner = layer.mlp
    assert (inner.embed_dim, inner.mlp_dim, inner.activation) == (12, 7, "relu")
    mlp = library.make("MLP", 12, 7)
    assert (mlp.embed_dim, mlp.mlp_dim, mlp.activation, mlp.dropout) == (12, 7, "gelu", 0.0)
    assert library.make("MLP", 12, 7, "relu", 0.3).dropout == 0.3


@pytest.mark.parametrize("name", [*BLOCKS, "MLP"])
def test_starts_differ_from_part_to_part(library, name):
    """As wide as torch.nn.Linear's, 1/√e."""
    starts = distinct_starts(library, name, *SIZES[name], activation="swiglu")
    learned = [path for path in starts if "norm" not in path]
    for path in learned:
        width = starts[path.replace("bias", "weight")].shape[1]
        assert 0.5 / np.sqrt(width) < np.abs(starts[path]).max() <= 1 / np.sqrt(width)
    assert sum(starts[path].size for path in learned) > 250


def test_bad_memory(library, x, memory):
    layer = library.make("DecoderBlock", *SIZES["DecoderBlock"])
    message = r"memory: got shape \(2, 7, 11\), expected \(\.\.\., n, 12\)"
    with pytest.raises(ValueError, match=message):
        library.call(layer, x, memory[..., :11])
    with pytest.raises(TypeError, match="memory: got a NoneType, expected a NumPy, PyTorch"):
        library.call(layer, x, None)
    message = r"mask: got shape \(5, 5\), expected one that fits \(2, 5, 7\)"
    with pytest.raises(ValueError, match=message):
        library.call(layer, x, memory, memory_mask=np.ones((5, 5), bool))


@pytest.mark.parametrize("norm", ["pre", "post"])
@MODES
@blocks
def test_the_future_does_not_count_at_all(library, x, memory, rng, name, norm, seed):
    """Later tokens changed: earlier outputs move by exactly 0, with the same entries left out."""
    layer = randomized(library, name, 12, 3, 7, norm=norm, dropout=0.3)
    before = library.call(layer, *given_to(name, x, memory), mask=CAUSAL, seed=seed)
    for t in (1, 4):
        other = x.copy()
        other[:, t:] += 1e3 * rng.normal(size=(2, 5 - t, 12))
        after = library.call(layer, *given_to(name, other, memory), mask=CAUSAL, seed=seed)
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert np.all(np.abs(after[:, t] - before[:, t]).max(-1) > 0.1)


@MODES
def test_padding_of_the_memory_does_not_count_at_all(library, x, memory, seed):
    """Whatever stands behind the mask; what stands before it counts."""
    layer = randomized(library, "DecoderBlock", 12, 3, 7, dropout=0.3)
    mask = np.arange(7) < np.array([3, 6])[:, None, None]
    before = library.call(layer, x, memory, None, mask, seed=seed)
    for filling in (0.0, 1e6):
        other = np.where(mask[:, 0, :, None], memory, filling)
        after = library.call(layer, x, other, None, mask, seed=seed)
        np.testing.assert_array_equal(after, before)
    shorter = np.where(np.arange(7)[:, None] < 2, memory, 0)
    assert np.abs(library.call(layer, x, shorter, None, mask, seed=seed) - before).max() > 0.01


def test_a_memory_of_padding_alone_adds_the_bias(library, x, memory):
    """A token that may attend to nothing reads 0, of which W_o · 0 + b_o is left."""
    layer = randomized(library, "DecoderBlock", 12, 3, 7)
    nothing = np.zeros((2, 5, 7), bool)
    out = library.call(layer, x, memory, memory_mask=nothing)
    silent = with_parameters(library, layer, {"cross_attention.output.weight": np.zeros((12, 12))})
    np.testing.assert_array_equal(out, library.call(silent, x, memory))


@blocks
def test_silent_parts_leave_the_stream_alone(library, x, memory, name):
    """Output projections of 0: the identity before, in any mode; a norm of norms after."""
    silent = [f"{p}.output.{kind}" for p in (*BLOCKS[name], "mlp") for kind in ("weight", "bias")]
    for norm in ("pre", "post"):
        layer = library.make(name, 12, 3, 7, norm=norm, dropout=0.3)
        shapes = {n: a.shape for n, a in library.parameters(layer).items()}
        layer = with_parameters(library, layer, {n: np.zeros(shapes[n]) for n in silent})
        for seed in (None, 3):
            out = library.call(layer, *given_to(name, x, memory), seed=seed)
            if norm == "pre":
                np.testing.assert_array_equal(out, x)
            else:
                assert_close(out.mean(-1), 0)
                assert_close(out.std(-1), 1, 1e-4)


CARRIERS = [(name, carrier) for name, parts in BLOCKS.items() for carrier in (*parts, "mlp")]


@pytest.mark.parametrize("rate", [0.2, 0.7])
@pytest.mark.parametrize(("name", "carrier"), CARRIERS)
def test_an_entry_is_left_out_twice_or_grows(library, rng, name, carrier, rate):
    """One part speaks, and would add 1 to every entry: attention's one weight, or one hidden entry.

    That is left out, and then what is added: 0, or 1 / (1 − rate)², in its share of the draws.
    """
    layer, draws = library.make(name, 4, 4, 4, activation="relu", dropout=rate), 2003
    still = {n: np.zeros(a.shape) for n, a in library.parameters(layer).items()}
    said = "hidden" if carrier == "mlp" else "value"
    speaks = {f"{carrier}.{said}.bias": np.ones(4), f"{carrier}.output.weight": np.eye(4)}
    layer = with_parameters(library, layer, still | speaks)
    x, memory = rng.normal(size=(2, draws, 1, 4))
    change = library.call(layer, *given_to(name, x, memory), seed=3) - x
    kept = (change > 0.5).ravel()
    assert_close(change.ravel(), kept / (1 - rate) ** 2)
    share = (1 - rate) ** 2
    assert abs(kept.mean() - share) < 4 * np.sqrt(share * (1 - share) / kept.size)
    assert_close(library.call(layer, *given_to(name, x, memory)) - x, 1)


def test_what_the_mlp_leaves_out(library):
    """Hidden entries of 1, one for each output; in MLP itself nothing is left out of the output."""
    layer, draws = library.make("MLP", 4, 4, "relu", 0.3), 2003
    said = {
        "hidden.weight": np.zeros((4, 4)),
        "hidden.bias": np.ones(4),
        "output.weight": np.eye(4),
        "output.bias": np.full(4, 5.0),
    }
    layer = with_parameters(library, layer, said)
    out = library.call(layer, np.ones((draws, 1, 4)), seed=3)[:, 0] - 5
    kept = out > 0.5
    assert_close(out, kept / 0.7)
    assert np.all(np.abs(kept.mean(0) - 0.7) < 4 * np.sqrt(0.21 / draws))
    assert abs((kept[:, 0] & kept[:, 1]).mean() - 0.49) < 4 * np.sqrt(0.25 / draws)
    assert_close(library.call(layer, np.ones((1, 1, 4))), 6)


@blocks
def test_the_parts_leave_out_each_its_own(library, rng, name):
    """Two parts that add 1 and 10: what is left of one says nothing of the other."""
    layer, draws = library.make(name, 4, 4, 4, dropout=0.5), 2003
    still = {n: np.zeros(a.shape) for n, a in library.parameters(layer).items()}
    speaks = {f"{p}.output.bias": np.full(4, 10.0**k) for k, p in enumerate((*BLOCKS[name], "mlp"))}
    layer = with_parameters(library, layer, still | speaks)
    x, memory = np.zeros((2, draws, 1, 4))
    out = library.call(layer, *given_to(name, x, memory), seed=3).round(9)
    values, counts = np.unique(out, return_counts=True)
    several = 2 ** len(speaks)
    expected = sorted(2 * int(f"{number:b}") for number in range(several))
    np.testing.assert_allclose(values, expected, atol=1e-9)
    shares = counts / counts.sum()
    error = np.sqrt((1 - 1 / several) / several / (4 * draws))
    assert np.all(np.abs(shares - 1 / several) < 4 * error)


@pytest.mark.parametrize("name", [*BLOCKS, "MLP"])
def test_a_seed_settles_what_is_left_out(library, x, memory, name):
    """And a layer of rate 0, or at rest, leaves nothing out."""
    layer, plain = (randomized(library, name, *SIZES[name], dropout=rate) for rate in (0.3, 0.0))
    given = given_to(name, x, memory)
    one, again, other = (library.call(layer, *given, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (np.abs(one - other).max(-1) > 1e-3).mean() > 0.7  # few hidden entries fall alike
    expected = library.call(plain, *given)
    np.testing.assert_array_equal(library.call(layer, *given), expected)
    np.testing.assert_array_equal(library.call(plain, *given, seed=3), expected)
    assert np.abs(one - expected).max() > 0.1


@blocks
def test_returned_weights_are_those_before_any_is_left_out(library, x, memory, name):
    layer = randomized(library, name, 12, 3, 7, dropout=0.3)
    given = given_to(name, x, memory)
    _, shares, *_ = library.call(layer, *given, return_weights=True)
    out, weights, *others = library.call(layer, *given, return_weights=True, seed=3)
    np.testing.assert_allclose(weights, shares, rtol=1e-11, atol=1e-13)
    for each in (weights, *others):
        assert_close(each.sum(-1), 1)
    assert_close(out, library.call(layer, *given, seed=3))  # by PyTorch's kernel


@blocks
def test_compiled(x, memory, name):
    """Under jax.jit and a random key that is traced."""
    made = Library("jax")
    import equinox as eqx

    layer = randomized(made, name, 12, 3, 7, dropout=0.3)
    given, key = [*map(made.moved, given_to(name, x, memory))], made.backend.jax.random.key(3)
    for how in ({}, {"key": key}):
        assert_close(eqx.filter_jit(layer)(*given, **how), layer(*given, **how))
