"""The MLP and both blocks: PyTorch's own layers, the loop of what those lack, dropout, causality."""

from types import SimpleNamespace

import backends
import numpy as np
import pytest
import reference_blocks
import reference_heads
from contracts import layers as contract
from layer_harness import Library, randomized, with_parameters

from attnbook import convert
from attnbook.models import blocks

BACKENDS = ("numpy", "strict", "torch", "jax-jit")
BLOCKS = {"EncoderBlock": ("attention",), "DecoderBlock": ("attention", "cross_attention")}
NORMS = {"EncoderBlock": ("attention_norm", "mlp_norm")}
NORMS["DecoderBlock"] = ("attention_norm", "cross_norm", "mlp_norm")
each_block = pytest.mark.parametrize("name", BLOCKS)


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


# by hand, and on every back end


def test_residual_by_hand(backend):
    """x = (3, 5), doubled. Before: n = (−1, 1)/2 is read. After: (9, 15) has mean 12, variance 9."""

    def called(placement, eps, drop=None):
        def function(x, g=None, b=None):
            norm = SimpleNamespace(weight=g, bias=b, eps=eps)
            return blocks.residual(norm, placement, lambda x: 2 * x, x, drop)

        return function

    x, scale = np.array([[3.0, 5]]), (np.array([2.0, 3]), np.array([10.0, 20]))
    assert_close(backend.call(called("pre", 3), x), [[2, 6]])
    assert_close(backend.call(called("post", 16), x), [[-0.6, 0.6]])
    assert_close(backend.call(called("pre", 3, lambda a: 10 * a), x), [[-7, 15]])
    assert_close(backend.call(called("post", 3, lambda a: 0 * a), x), [[-0.5, 0.5]])
    assert_close(backend.call(called("pre", 3), x, *scale), [[3 + 18, 5 + 43]])
    assert_close(backend.call(called("post", 16), x, *scale), [[10 - 1.2, 20 + 1.8]])


def as_namespaces(arrays, **how):
    """A block that is nothing but its parameters: no layer, and of any library."""
    heads = {"embed_dim": 12, "num_heads": 3, "num_kv_heads": 3}
    attentions = {name: SimpleNamespace(**heads) for name in BLOCKS["DecoderBlock"]}
    layer = SimpleNamespace(**attentions, mlp=SimpleNamespace(**how), **how)
    for path in {name.rpartition(".")[0] for name in arrays}:
        owner, _, part = path.rpartition(".")
        linear = {kind: arrays[f"{path}.{kind}"] for kind in ("weight", "bias")}
        setattr(getattr(layer, owner) if owner else layer, part, SimpleNamespace(**linear, eps=0.1))
    return layer


@pytest.mark.parametrize("norm", ["pre", "post"])
@each_block
def test_the_functions_take_arrays_of_any_library(backend, rng, x, memory, name, norm):
    """Stream and weights, of parameters without a layer around them."""
    parts = [f"{a}.{p}" for a in BLOCKS[name] for p in ("query", "key", "value", "output")]
    shapes = dict.fromkeys(parts, (12, 12)) | dict.fromkeys(NORMS[name], (12,))
    shapes |= {"mlp.hidden": (5, 12), "mlp.gate": (5, 12), "mlp.output": (12, 5)}
    known = {f"{part}.weight": rng.normal(size=shape) / 2 for part, shape in shapes.items()}
    known |= {f"{part}.bias": rng.normal(size=shape[0]) for part, shape in shapes.items()}
    own_mask, memory_mask = np.tri(5, dtype=bool), rng.random((2, 1, 7)) < 0.6

    def function(x, memory, own_mask, memory_mask, *arrays):
        given = dict(zip(known, arrays, strict=True))
        layer = as_namespaces(given, norm=norm, activation="swiglu")
        own = blocks.AttentionSublayer(layer.attention, mask=own_mask, return_weights=True)
        if name == "EncoderBlock":
            return blocks.encoder_block(layer, x, own), own.weights
        cross = blocks.AttentionSublayer(layer.cross_attention, memory, memory_mask, True)
        return blocks.decoder_block(layer, x, own, cross), own.weights, cross.weights

    found = backend.call(function, x, memory, own_mask, memory_mask, *known.values())
    for b in range(2):
        read = (memory[b], memory_mask[b]) if name == "DecoderBlock" else ()
        how = (known, [0, 1, 2], norm, "swiglu", x[b], own_mask, *read)
        for ours, right in zip(found, reference_blocks.block(*how, eps=0.1), strict=True):
            assert_close(ours[b], right)


# PyTorch's own layers

KINDS = {"EncoderBlock": "TransformerEncoderLayer", "DecoderBlock": "TransformerDecoderLayer"}
PEERS = {
    "relu": {"activation": "relu"},
    "gelu": {"activation": "gelu"},
    "gelu_tanh, no bias, another eps": {
        "activation": "gelu_tanh",
        "bias": False,
        "layer_norm_eps": 0.1,
    },
}
PREFIXES = {"EncoderBlock": ("src",), "DecoderBlock": ("tgt", "memory")}
each_peer = pytest.mark.parametrize("how", PEERS.values(), ids=PEERS)
norm_first = pytest.mark.parametrize("first", [True, False], ids=["pre", "post"])


def peer(torch, name, first=True, activation="relu", **how):
    """A layer of torch's, of 4 heads of width 3, with other numbers than those of its start."""
    torch.manual_seed(11)
    phi = torch.nn.GELU("tanh") if activation == "gelu_tanh" else activation
    how = {"dtype": torch.float64, "batch_first": True, "dropout": 0.0} | how
    made = getattr(torch.nn, KINDS[name])(12, 4, 7, activation=phi, norm_first=first, **how)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape))
    return made


def ours(name, original):
    import attnbook.torch

    return getattr(attnbook.torch, name).from_pytorch(original)


def by_our_names(name, original, get):
    """What get says of every parameter of torch's; it has three projections' rows in one."""
    theirs = {"attention": "self_attn", "cross_attention": "multihead_attn"}
    theirs |= {part: f"norm{i}" for i, part in enumerate(NORMS[name], 1)}
    theirs |= {"mlp.hidden": "linear1", "mlp.output": "linear2"}
    found = {}
    for path, parameter in original.named_parameters():
        owner, _, kind = path.rpartition(".")
        part = next(p for p, there in theirs.items() if owner.startswith(there))
        if "in_proj" in kind:
            rows = zip(("query", "key", "value"), get(parameter).chunk(3), strict=True)
            found |= {f"{part}.{p}.{kind.removeprefix('in_proj_')}": g for p, g in rows}
        else:
            found[f"{part}{'.output' if 'out_proj' in owner else ''}.{kind}"] = get(parameter)
    return found


@norm_first
@each_peer
@each_block
def test_equals_pytorch(torch, rng, x, memory, name, how, first):
    """Output, gradients of the inputs and of every parameter; and the twin in JAX."""
    original = peer(torch, name, first, **how)
    layer = ours(name, original)
    given = [torch.from_numpy(a) for a in given_to(name, x, memory)]
    theirs, allowed = {}, []
    for prefix, n in zip(PREFIXES[name], (5, 7), strict=False):
        shut, padding = (torch.from_numpy(rng.random(s) < 0.4) for s in ((5, n), (2, n)))
        shut[:, 0] = padding[:, 0] = False  # every query has a key
        theirs |= {f"{prefix}_mask": shut, f"{prefix}_key_padding_mask": padding}
        allowed.append(~shut & ~padding[:, None, :])
    cotangent, slopes = torch.from_numpy(rng.normal(size=x.shape)), []
    for call in (lambda *a: original(*a, **theirs), lambda *a: layer(*a, *allowed)):
        leaves = [a.clone().requires_grad_() for a in given]
        out = call(*leaves)
        (out * cotangent).sum().backward()
        slopes.append((out, *(a.grad for a in leaves)))
    for right, found in zip(*slopes, strict=True):
        torch.testing.assert_close(found, right, rtol=0, atol=1e-9)
    expected = by_our_names(name, original, lambda parameter: parameter.grad)
    assert set(expected) == set(dict(layer.named_parameters()))
    for path, parameter in layer.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[path], rtol=0, atol=1e-9)
    if "jax" in backends.chosen():
        jax = Library("jax")
        arrays = (a.numpy() for a in (*given, *allowed))
        found = jax.call(convert.torch_to_jax(layer), *arrays)
        np.testing.assert_allclose(found, out.detach(), rtol=0, atol=1e-9)


@each_block
def test_from_pytorch_refuses(torch, name):
    with pytest.raises(ValueError, match=r"original: got activation .*, expected relu or gelu"):
        ours(name, peer(torch, name, activation=torch.tanh))
    original = peer(torch, name)
    original.norm2.eps = 1e-3
    with pytest.raises(ValueError, match=r"original: got norms of eps 1e-05 and 0\.001"):
        ours(name, original)
    for stranger in (None, peer(torch, next(n for n in KINDS if n != name))):
        with pytest.raises(
            TypeError, match=rf"original: got \w+, expected a torch.nn.{KINDS[name]}"
        ):
            ours(name, stranger)


# what PyTorch's do not have: the loop

OPTIONS = {
    "swiglu, shared heads": {"activation": "swiglu", "num_kv_heads": 2},
    "post, rms norm, eps": {"norm": "post", "rms_norm": True, "eps": 0.1, "activation": "relu"},
    "Llama": {
        "activation": "swiglu",
        "num_kv_heads": 1,
        "bias": False,
        "rms_norm": True,
        "eps": 0.1,
        "rotary_base": 20.0,
    },
}


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
def test_mlp_equals_the_loop(library, x, activation):
    layer = randomized(library, "MLP", 12, 7, activation)
    parameters = library.parameters(layer)
    right = reference_blocks.rows(lambda r: reference_blocks.mlp(parameters, activation, r), x)
    assert_close(library.call(layer, x), right)


@pytest.mark.parametrize("how", OPTIONS.values(), ids=OPTIONS)
@each_block
def test_options_equal_the_loop(library, x, memory, rng, name, how):
    """Stream and weights, with a mask for every pair; and the stream alone."""
    how = {n: v for n, v in how.items() if name == "EncoderBlock" or n != "rotary_base"}
    layer = randomized(library, name, 12, 2, 7, **how)
    parameters, given = library.parameters(layer), given_to(name, x, memory)
    masks = [rng.random((2, 5, a.shape[1])) < 0.6 for a in given]
    found = library.call(layer, *given, *masks, return_weights=True)
    base = how.get("rotary_base")
    score = reference_heads.plain if base is None else reference_heads.turned(base)
    norm = {"rms": how.get("rms_norm", False), "eps": how.get("eps", 1e-5)}
    for b in range(2):
        read = [a[b] for a in (*given[1:], *masks[1:])]
        owners = [0, 0] if how.get("num_kv_heads") == 1 else [0, 1]
        first = (parameters, owners, how.get("norm", "pre"), how["activation"], x[b], masks[0][b])
        expected = reference_blocks.block(*first, *read, score=score, **norm)
        for one, right in zip(found, expected, strict=True):
            assert_close(one[b], right)
    assert_close(library.call(layer, *given, *masks), found[0], 1e-12)


@pytest.mark.parametrize("attention", ["linear", "delta", "decay", "gated_delta"])
def test_blocks_of_other_attentions(library, x, attention):
    """The contract's oracles in place of the softmax."""
    layer = randomized(library, "EncoderBlock", 12, 2, 7, attention=attention, activation="relu")
    parameters = library.parameters(layer)
    own = reference_blocks.own(parameters, "attention")

    def attend(stream):
        if attention == "linear":
            return contract.linear_attention(own, stream, np.ones((2, 1, 5), bool), True)[0]
        return contract.gated_delta(own, stream)

    def mlp(stream):
        inner = reference_blocks.own(parameters, "mlp")
        return reference_blocks.rows(lambda r: reference_blocks.mlp(inner, "relu", r), stream)

    expected = reference_blocks.added(parameters, "attention_norm", "pre", attend, x)
    expected = reference_blocks.added(parameters, "mlp_norm", "pre", mlp, expected)
    assert_close(library.call(layer, x, causal=True), expected)


# what must not count


def test_a_memory_of_padding_alone_adds_the_bias(library, x, memory):
    """A token that may attend to nothing reads 0, of which W_o · 0 + b_o is left."""
    layer = randomized(library, "DecoderBlock", 12, 3, 7)
    out = library.call(layer, x, memory, memory_mask=np.zeros((2, 5, 7), bool))
    silent = with_parameters(library, layer, {"cross_attention.output.weight": np.zeros((12, 12))})
    np.testing.assert_array_equal(out, library.call(silent, x, memory))


# dropout

CARRIERS = [(name, carrier) for name, parts in BLOCKS.items() for carrier in (*parts, "mlp")]


def speaking(library, name, how, said):
    """A block whose parameters are 0 but for those."""
    layer = library.make(name, 4, 4, 4, **how)
    still = {n: np.zeros(a.shape) for n, a in library.parameters(layer).items()}
    return with_parameters(library, layer, still | said)


@pytest.mark.parametrize(("name", "carrier"), CARRIERS)
def test_an_entry_is_left_out_twice_or_grows(library, rng, name, carrier):
    """One part speaks, and would add 1 to every entry: attention's one weight, or one hidden entry.

    That is left out, and then what is added: 0, or 1 / (1 − rate)², in its share of the draws,
    within four standard errors. At rest 1 is added.
    """
    rate, draws = 0.3, 2003
    inner = "hidden" if carrier == "mlp" else "value"
    said = {f"{carrier}.{inner}.bias": np.ones(4), f"{carrier}.output.weight": np.eye(4)}
    layer = speaking(library, name, {"activation": "relu", "dropout": rate}, said)
    x, memory = rng.normal(size=(2, draws, 1, 4))
    change = library.call(layer, *given_to(name, x, memory), seed=3) - x
    kept = (change > 0.5).ravel()
    assert_close(change.ravel(), kept / (1 - rate) ** 2)
    share = (1 - rate) ** 2
    assert abs(kept.mean() - share) < 4 * np.sqrt(share * (1 - share) / kept.size)
    assert_close(library.call(layer, *given_to(name, x, memory)) - x, 1)


@each_block
def test_the_parts_leave_out_each_its_own(library, name):
    """Parts that add 1, 10, 100: what is left of one says nothing of the others."""
    said = {f"{p}.output.bias": np.full(4, 10.0**k) for k, p in enumerate((*BLOCKS[name], "mlp"))}
    layer, draws = speaking(library, name, {"dropout": 0.5}, said), 2003
    x, memory = np.zeros((2, draws, 1, 4))
    out = library.call(layer, *given_to(name, x, memory), seed=3).round(9)
    values, counts = np.unique(out, return_counts=True)
    share = 1 / 2 ** len(said)
    assert_close(values, sorted(2 * int(f"{number:b}") for number in range(2 ** len(said))))
    error = np.sqrt((1 - share) * share / (4 * draws))
    assert np.all(np.abs(counts / counts.sum() - share) < 4 * error)
