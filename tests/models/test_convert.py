"""The same layer in the other library: every parameter bit for bit, there and back."""

import inspect

import backends
import numpy as np
import pytest
from layer_harness import part

from attnbook import convert

torch, jax = backends.load_or_skip("torch").xp, backends.load_or_skip("jax").jax
jnp = jax.numpy
pytest.importorskip("equinox")

import equinox as eqx  # noqa: E402

import attnbook.jax  # noqa: E402
import attnbook.torch  # noqa: E402

ROOT_MEAN_SQUARE = {"num_kv_heads": 1, "bias": False, "rms_norm": True, "eps": 0.5}
MADE = {  # "layer" or "layer, variant": arguments, none of them the default
    "KernelRegression": ((0.7,), {}),
    "KernelRegression, one per coordinate": (([0.7, 1.3],), {}),
    "MultiHeadKernelRegression": (([0.7, 1.3, 2.9],), {}),
    "MultiHeadKernelRegression, one per coordinate": (([[0.7, 1.3], [2.9, 0.1], [3.1, 5.3]],), {}),
    "MetricKernelRegression": (([[0.7, 1.3], [-2.9, 0.0], [0.1, 1.0]],), {}),
    "AttentionPooling": ((11,), {"embed_dim": 2, "key_dim": 3, "hidden_dim": 5}),
    "GRUCell": ((5, 3), {}),
    "EncoderDecoder": ((11, 11), {"embed_dim": 3, "hidden_dim": 10, "score": "general"}),
    "EncoderDecoder, additive": ((11, 11), {"embed_dim": 3, "hidden_dim": 10}),
    "EncoderDecoder, dot": ((11, 11), {"embed_dim": 3, "hidden_dim": 10, "score": "dot"}),
    "EncoderDecoder, no attention": ((11, 11), {"embed_dim": 3, "hidden_dim": 10, "score": None}),
    "SelfAttention": ((5, 3), {}),
    "MultiHeadAttention": ((12, 4), {}),
    "MultiHeadAttention, no bias": ((12, 4), {"bias": False, "dropout": 0.3}),
    "MultiHeadAttention, shared": ((12, 4), {"num_kv_heads": 2, "dropout": 0.7}),
    "MultiHeadAttention, rotary": ((12, 3), {"rotary_base": 50.0}),
    "LinearAttention": ((12, 4), {}),
    "GatedDelta": ((12, 4), {}),
    "GatedDelta, decay alone": ((12, 3), {"delta": False, "bias": False}),
    "AttentionOnly": ((11, 7, 12, 6, 3), {"num_kv_heads": 2}),
    "AttentionOnly, one layer": ((11, 7), {"embed_dim": 6, "num_heads": 3, "num_layers": 1}),
    "MLP": ((12, 5), {"activation": "relu", "dropout": 0.3}),
    "MLP, gated": ((12, 5, "swiglu"), {}),
    "MLP, no bias": ((12, 5, "gelu_tanh"), {"bias": False}),
    "EncoderBlock": ((12, 3, 5), {"norm": "post", "activation": "relu", "dropout": 0.3}),
    "EncoderBlock, gated": ((12, 3, 5), {"activation": "swiglu"}),
    "EncoderBlock, as in Llama": ((12, 3, 5), ROOT_MEAN_SQUARE | {"rotary_base": 50.0}),
    "DecoderBlock": ((12, 3, 5), {"norm": "post", "activation": "relu", "dropout": 0.3}),
    "DecoderBlock, gated": ((12, 3, 5), {"activation": "swiglu"}),
    "DecoderBlock, another eps": ((12, 3, 5), {"eps": 0.5, "bias": False}),
    "DecoderBlock, shared": ((12, 3, 5), ROOT_MEAN_SQUARE),
    "EncoderOnly": ((12, 5, 7, 6, 3, 11, 2), {"norm": "post", "activation": "swiglu"}),
    "EncoderOnly, no positions": ((12, 5), {"embed_dim": 6, "num_heads": 2, "num_layers": 1}),
    "EncoderOnly, as in BERT": ((12, 5), {"norm": "post", "eps": 0.5, "last_norm": False}),
    "DecoderOnly": ((11, 7, 6, 3, 5, 3), {"norm": "post", "activation": "relu"}),
    "DecoderOnly, gated": ((11, 7, 6, 3, 5, 1), {"activation": "swiglu"}),
    "DecoderOnly, as in GPT-2": ((11, 7), {"activation": "gelu_tanh", "tied": True}),
    "DecoderOnly, as in Llama": ((11, 7, 12, 3), ROOT_MEAN_SQUARE | {"rotary_base": 50.0}),
    "DecoderOnly, delta": ((11, 7, 6, 3, 5), {"attention": "delta"}),
    "Transformer": ((11, 13, 7, 6, 3, 5, 3), {"norm": "post", "activation": "relu"}),
    "Transformer, gated": ((11, 13, 7, 6, 3, 5, 1), {"activation": "swiglu"}),
}
DATA = {  # what a layer is called with: shapes of numbers
    "KernelRegression": ((3, 2), (7, 2), (7, 5)),
    "MultiHeadKernelRegression": ((3, 2), (7, 2), (7, 5)),
    "MetricKernelRegression": ((3, 2), (7, 2), (7, 5)),
    "GRUCell": ((7, 5), (7, 3)),
    "SelfAttention": ((2, 7, 5),),
    "MultiHeadAttention": ((2, 5, 12), (2, 7, 12)),
    "LinearAttention": ((2, 5, 12),),
    "GatedDelta": ((2, 5, 12),),
    "MLP": ((2, 5, 12),),
    "EncoderBlock": ((2, 5, 12),),
    "DecoderBlock": ((2, 5, 12), (2, 7, 12)),
    "EncoderOnly": ((2, 5, 12),),
}
CAUSAL = {"GatedDelta": {"causal": True}}  # what it must be called with besides
FEEL_A_SHIFT_OF_KEYS = {
    "MultiHeadAttention, rotary",
    "LinearAttention",
    "GatedDelta",
    "DecoderOnly, delta",
}
TRANSLATORS = ("EncoderDecoder", "Transformer")


def classes(module):
    return {n for n in module.__all__ if inspect.isclass(getattr(module, n))}


def make(case, dtype="float32"):
    """A torch layer at rest, whose parameters are no longer those it started from."""
    args, how = MADE[case]
    torch.manual_seed(3)
    layer = getattr(attnbook.torch, case.split(",")[0])(*args, **how)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    return layer.to(getattr(torch, dtype)).eval()


def inputs(case, rng):
    """Numbers of the shapes in DATA; tokens; or two sentences, the mask of one, and the other.

    Token 10 stands in the padding alone, and place 6 is not reached.
    """
    name, tokens = case.split(",")[0], rng.integers(0, 10, size=(3, 6))
    if name in DATA:
        return [rng.normal(size=shape) for shape in DATA[name]]
    mask = np.arange(6) < 4 + 0 * tokens
    return [np.where(mask, tokens, 10), mask, tokens] if name in TRANSLATORS else [tokens]


def test_every_layer_has_a_case():
    assert attnbook.torch.__all__ == attnbook.jax.__all__
    names = {case.split(",")[0] for case in MADE}
    assert classes(attnbook.torch) == classes(attnbook.jax) == names


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("case", MADE)
def test_round_trip_is_exact(case, dtype):
    """Names, nested ones too, dtypes and bits; what comes back learns."""
    layer = make(case, dtype)
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    name = case.split(",")[0]
    assert type(twin) is getattr(attnbook.jax, name)
    assert type(back) is getattr(attnbook.torch, name)
    assert back.state_dict().keys() == layer.state_dict().keys()
    leaves = len(jax.tree.leaves(eqx.filter(twin, eqx.is_inexact_array)))
    assert leaves == len(list(layer.parameters())) == len(list(back.parameters()))
    for path, original in layer.named_parameters():
        carried, returned = part(twin, path), back.get_parameter(path)
        assert str(carried.dtype) == dtype
        assert returned.dtype == original.dtype
        assert returned.requires_grad
        exact = original.detach().double().numpy()  # which holds every bit of the three dtypes
        np.testing.assert_array_equal(np.asarray(carried, dtype=np.float64), exact, strict=True)
        np.testing.assert_array_equal(returned.detach().double().numpy(), exact, strict=True)


@pytest.mark.parametrize("case", MADE)
def test_twins_predict_the_same_and_have_the_same_gradients(rng, case):
    """Under jit, of every parameter; what does not occur has none, nor has the keys' shift."""
    layer, arrays = make(case, "float64"), inputs(case, rng)
    how = CAUSAL.get(case.split(",")[0], {})
    layer_is_tied = getattr(layer, "tied", False)
    tensors, given = [*map(torch.from_numpy, arrays)], [*map(jnp.asarray, arrays)]
    out = layer(*tensors, **how)
    cotangent = rng.normal(size=out.shape)
    (out * torch.from_numpy(cotangent)).sum().backward()
    expected = out.detach().numpy()
    assert np.ptp(expected) > 1e-4
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin).eval()(*tensors, **how)
    np.testing.assert_array_equal(back.detach().numpy(), expected)

    def loss(twin):
        found = twin(*given, **how)
        return (found * cotangent).sum(), found

    (_, found), gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))(twin)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    for path, parameter in layer.named_parameters():
        ours = parameter.grad.numpy()
        room = 1e-10 * max(1, np.abs(ours).max())
        np.testing.assert_allclose(part(gradient, path), ours, rtol=1e-10, atol=room)
        unfelt = path.endswith("key.bias") and case not in FEEL_A_SHIFT_OF_KEYS
        assert (np.abs(ours).max() > 1e-6) != unfelt, path
        if path.endswith("embedding.weight") and len(ours) == 11 and not layer_is_tied:
            assert not ours[10].any()
        if path.endswith("position"):
            assert not ours[6].any()


@pytest.mark.parametrize("case", MADE)
def test_arguments_are_carried_over(case):
    """What a constructor takes, both twins have: a layer of other heads or dropout is another."""
    layer = make(case)
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    args, how = MADE[case]
    names = list(inspect.signature(type(layer)).parameters)
    if "KernelRegression" not in case:
        for name, value in (dict(zip(names, args, strict=False)) | how).items():
            for each in (layer, twin, back):
                assert getattr(each, name) == value, name
    for name in names:
        if isinstance(getattr(layer, name), int | float | str | None):
            assert getattr(layer, name) == getattr(twin, name) == getattr(back, name), name


@pytest.mark.parametrize("case", ["KernelRegression", "MultiHeadKernelRegression"])
def test_bandwidths_that_float32_does_not_hold(case):
    """Log bandwidths of ±200: h is 10^±87, which a layer in float64 may well reach."""
    layer = make(case, "float64")
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), (-200.0, 200.0), strict=False):
            parameter.fill_(value)
    back = convert.jax_to_torch(convert.torch_to_jax(layer))
    for a, b in zip(layer.parameters(), back.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_twins_share_no_memory():
    """What one layer learns in place, its twin does not see."""
    layer = attnbook.torch.KernelRegression(list(np.full(1024, 2.0)))
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    with torch.no_grad():
        layer.log_bandwidth.zero_()
        back.log_bandwidth.add_(1)
    np.testing.assert_allclose(twin.log_bandwidth, np.log(2), rtol=1e-6)


def test_float64_needs_x64():
    """An error, with no warning before it; float32 and bfloat16 go through."""
    layer = attnbook.torch.KernelRegression(0.7).double()
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match=r"layer: log_bandwidth is float64, .* float32"):
            convert.torch_to_jax(layer)
        assert convert.torch_to_jax(layer.float()).log_bandwidth.dtype == np.float32
        assert convert.torch_to_jax(layer.bfloat16()).log_bandwidth.dtype == jnp.bfloat16
        back = convert.jax_to_torch(attnbook.jax.KernelRegression(0.7))
        assert back.log_bandwidth.dtype == torch.float32
    finally:
        jax.config.update("jax_enable_x64", True)


class KernelRegression(torch.nn.Module):
    """A stranger of a known name."""


@pytest.mark.parametrize("stranger", [None, 3, "layer", torch.nn.Linear(2, 3), KernelRegression()])
def test_what_cannot_be_converted(stranger):
    with pytest.raises(TypeError, match=r"layer: got \w+, expected"):
        convert.torch_to_jax(stranger)
    with pytest.raises(TypeError, match=r"layer: got \w+, expected"):
        convert.jax_to_torch(stranger)


def test_the_error_names_the_layers_and_no_function():
    names = ", ".join(n for n in attnbook.torch.__all__ if n in classes(attnbook.torch))
    assert "train" not in names
    with pytest.raises(TypeError, match=f"layer: got Linear, expected one of {names}$"):
        convert.jax_to_torch(eqx.nn.Linear(2, 3, key=jax.random.key(0)))


def test_what_comes_back_leaves_nothing_out(rng):
    """As the JAX layer does without a key; in training mode the dropout acts again."""
    x = rng.normal(size=(2, 5, 12))
    twin = convert.torch_to_jax(make("EncoderBlock", "float64").train())
    back = convert.jax_to_torch(twin)
    assert not any(part.training for part in back.modules())
    out = back(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(out, twin(jnp.asarray(x)), rtol=1e-11, atol=1e-13)
    assert np.any(back.train()(torch.from_numpy(x)).detach().numpy() != out)


def test_parameters_that_are_one():
    """An output tied to its embedding: both parts of the twin hold its numbers."""
    layer = make("DecoderOnly")
    layer.readout.weight = layer.embedding.weight
    twin = convert.torch_to_jax(layer)
    for tied in (twin.readout, twin.embedding):
        np.testing.assert_array_equal(tied.weight, layer.embedding.weight.detach())


def test_a_tied_readout_stays_tied():
    """One matrix there, one matrix here; a readout with a matrix of its own is no longer tied."""
    layer = make("DecoderOnly, as in GPT-2")
    twin = convert.torch_to_jax(layer)
    assert twin.readout is None
    back = convert.jax_to_torch(twin)
    assert back.readout.weight is back.embedding.weight
    assert back.embedding.num_embeddings == 11
    torch.testing.assert_close(back.state_dict(), layer.state_dict(), rtol=0, atol=0)
    layer.readout.weight = torch.nn.Parameter(layer.embedding.weight.detach().clone())
    with pytest.raises(ValueError, match=r"^layer: got a readout\.weight of its own, expected the"):
        convert.torch_to_jax(layer)


@pytest.mark.parametrize("case", ["EncoderBlock", "DecoderOnly, as in Llama", "Transformer"])
def test_another_eps_than_the_layers_is_an_error(case):
    """Not a loss that nobody sees: both ways, for the norm that has it."""
    layer = make(case)
    twin = convert.torch_to_jax(layer)
    norm = [n for n, _ in layer.named_modules() if n.endswith("norm")][-1]
    made = layer.get_submodule(norm).eps
    layer.get_submodule(norm).eps = 0.25
    with pytest.raises(ValueError, match=f"^layer: got {norm} of eps 0.25, expected {made}$"):
        convert.torch_to_jax(layer)
    old = part(twin, norm)
    other = type(old)(old.shape, eps=0.25, use_bias=old.bias is not None)
    other = eqx.tree_at(lambda m: part(m, norm), twin, other)
    with pytest.raises(ValueError, match=f"^layer: got {norm} of eps 0.25, expected {made}$"):
        convert.jax_to_torch(other)


def adapted():
    layer = make("MultiHeadAttention")
    layer.query = torch.nn.Sequential(layer.query, torch.nn.Linear(12, 12))
    return layer


def quantised():
    layer = make("MultiHeadAttention")
    layer.query.weight = torch.nn.Parameter(layer.query.weight.to(torch.float8_e4m3fn), False)
    return layer


def without_values():
    return make("MultiHeadAttention").to("meta")


def shortened():
    layer = make("DecoderOnly")
    layer.decoder = layer.decoder[:2]
    return layer


def widened():
    layer = make("DecoderOnly")
    layer.readout = torch.nn.Linear(6, 13)
    return layer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (adapted, r"layer: got query\.0\.bias of shape \(12,\), expected none"),
        (
            quantised,
            "layer: query.weight is float8_e4m3fn, expected float16 or bfloat16 or float32",
        ),
        (without_values, r"layer: query\.weight is on the device meta, without numbers, expected"),
        (shortened, r"layer: got decoder\.2\.\w+\.\S+ of shape none, expected \("),
        (widened, r"layer: got readout\.bias of shape \(13,\), expected \(11,\)"),
    ],
)
def test_layers_that_have_no_twin(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        convert.torch_to_jax(make())


def test_jax_layers_that_have_no_twin():
    twin = convert.torch_to_jax(make("DecoderOnly"))
    for bias, shape in ((jnp.zeros(13), r"\(13,\)"), (None, "none")):
        other = eqx.tree_at(lambda m: m.readout.bias, twin, bias)
        message = rf"^layer: got readout\.bias of shape {shape}, expected \(11,"
        with pytest.raises(ValueError, match=message):
            convert.jax_to_torch(other)


class MultiHeadAttention(attnbook.torch.MultiHeadAttention):
    """A subclass of a known name."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, where it compiles first
def test_classes_that_are_not_attnbooks_own():
    for layer, words in (
        (MultiHeadAttention(6, 2), rf".*, as attnbook has it, not {__name__}$"),
        (torch.compile(make("MLP")), ".*: convert the layer before it is compiled$"),
        (torch.nn.Sequential(make("MLP")), "MLP, AttentionOnly"),
    ):
        got = type(layer).__name__
        with pytest.raises(TypeError, match=f"layer: got {got}, expected one of {words}"):
            convert.torch_to_jax(layer)


@pytest.mark.parametrize("wrong", [None, "3", [1.0], 3])
def test_what_is_no_array(wrong):
    message = f"^array: got a {type(wrong).__name__}, expected a NumPy, PyTorch or JAX array"
    with pytest.raises(TypeError, match=message):
        convert.to_numpy(wrong)
    with pytest.raises(ValueError, match=r"^array: got one on the device meta, expected one that"):
        convert.to_numpy(torch.zeros(3, device="meta"))


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: torch.eye(3).to_sparse(), "got a tensor of layout torch.sparse_coo, expected a"),
        (lambda: torch.eye(3).to_sparse_csr(), "got a tensor of layout torch.sparse_csr, expected"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "got a nested tensor"),
        (lambda: torch.ones(3, dtype=torch.complex32), "got dtype torch.complex32, expected one"),
        (lambda: jax.random.key(0), "got random keys, expected numbers; jax.random.key_data has"),
    ],
)
def test_arrays_that_are_not_plain(make, message):
    with pytest.raises(ValueError, match=f"^array: {message}"):
        convert.to_numpy(make())


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_floats_that_numpy_does_not_have_become_float32(dtype):
    numbers = np.array([1.5, -2.0, 0.25], np.float32)
    tensor = torch.tensor(numbers).to(getattr(torch, dtype))
    for array in (tensor, jnp.asarray(numbers).astype(dtype)):
        found = convert.to_numpy(array)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, numbers)


def test_views_that_are_read_in_another_way():
    z = torch.tensor([1 + 2j, 3 - 1j])
    np.testing.assert_array_equal(convert.to_numpy(z.conj()), [1 - 2j, 3 + 1j])
    np.testing.assert_array_equal(convert.to_numpy(z.conj().imag), [-2, 1])
    assert convert.to_numpy(torch.tensor([True, False])).dtype == bool
    assert convert.to_numpy(torch.arange(3, dtype=torch.int8)).dtype == np.int8
