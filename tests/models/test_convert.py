"""The same layer in the other library: every parameter bit for bit, there and back."""

import inspect

import backends
import numpy as np
import pytest
from layer_harness import part

from attnbook import convert

torch, jax = backends.load_or_skip("torch").xp, backends.load_or_skip("jax").jax
jnp = jax.numpy
eqx = pytest.importorskip("equinox")

import attnbook.jax  # noqa: E402
import attnbook.torch  # noqa: E402

AS_LLAMA = dict(num_kv_heads=1, bias=False, rms_norm=True, eps=0.5, rotary_base=50.0)
MADE = {  # "layer" or "layer, variant": arguments, none of them the default
    "KernelRegression": (([0.7, 1.3],), {}),
    "MultiHeadKernelRegression": (([0.7, 1.3, 2.9],), {}),
    "MetricKernelRegression": (([[0.7, 1.3], [-2.9, 0.0], [0.1, 1.0]],), {}),
    "AttentionPooling": ((11,), {"embed_dim": 2, "key_dim": 3, "hidden_dim": 5}),
    "GRUCell": ((5, 3), {}),
    "EncoderDecoder": ((11, 11), {"embed_dim": 3, "hidden_dim": 10}),
    "SelfAttention": ((5, 3), {}),
    "MultiHeadAttention": ((12, 4), {"num_kv_heads": 2, "dropout": 0.7, "bias": False}),
    "LinearAttention": ((12, 4), {}),
    "GatedDelta": ((12, 4), {}),
    "AttentionOnly": ((11, 7, 12, 6, 3), {"num_kv_heads": 2}),
    "MLP": ((12, 5), {"activation": "relu", "dropout": 0.3}),
    "EncoderBlock": ((12, 3, 5), AS_LLAMA | {"activation": "swiglu", "dropout": 0.3}),
    "DecoderBlock": ((12, 3, 5), {"norm": "post", "activation": "relu", "dropout": 0.3}),
    "EncoderOnly": ((12, 5, 7, 6, 3, 11, 2), {"norm": "post", "last_norm": False}),
    "DecoderOnly": ((11, 7, 6, 3, 5, 3), {"norm": "post", "activation": "relu"}),
    "DecoderOnly, as in GPT-2": ((11, 7), {"activation": "gelu_tanh", "tied": True}),
    "DecoderOnly, delta": ((11, 7, 6, 3, 5), {"attention": "delta"}),
    "Transformer": ((11, 13, 7, 6, 3, 5, 3), {"norm": "post", "activation": "relu"}),
}


def make(case, dtype="float32"):
    """A torch layer whose parameters are no longer those it started from."""
    args, how = MADE[case]
    torch.manual_seed(3)
    layer = getattr(attnbook.torch, case.split(",")[0])(*args, **how)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    return layer.to(getattr(torch, dtype))


def test_every_layer_has_a_case():
    names = {case.split(",")[0] for case in MADE}
    for module in (attnbook.torch, attnbook.jax):
        assert {n for n in module.__all__ if inspect.isclass(getattr(module, n))} == names


@pytest.mark.parametrize(
    ("case", "dtype"), [*((case, "float64") for case in MADE), ("MLP", "bfloat16")]
)
def test_there_and_back(case, dtype):
    """Names, nested ones too, dtypes, bits and what a constructor takes; what comes back learns."""
    layer = make(case, dtype)
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    name = case.split(",")[0]
    assert type(twin) is getattr(attnbook.jax, name)
    assert type(back) is type(layer) and not back.training
    assert back.state_dict().keys() == layer.state_dict().keys()
    leaves = len(jax.tree.leaves(eqx.filter(twin, eqx.is_inexact_array)))
    assert leaves == len(list(layer.parameters())) == len(list(back.parameters()))
    for path, original in layer.named_parameters():
        carried, returned = part(twin, path), back.get_parameter(path)
        assert str(carried.dtype) == dtype and returned.dtype == original.dtype
        assert returned.requires_grad
        exact = original.detach().double().numpy()  # which holds every bit
        np.testing.assert_array_equal(np.asarray(carried, dtype=np.float64), exact, strict=True)
        np.testing.assert_array_equal(returned.detach().double().numpy(), exact, strict=True)
    if getattr(layer, "tied", False):  # one matrix there, one matrix here
        assert twin.readout is None and back.readout.weight is back.embedding.weight
    for argument in inspect.signature(type(layer)).parameters:
        value = getattr(layer, argument, None)
        if isinstance(value, int | float | str):
            assert getattr(twin, argument) == getattr(back, argument) == value, argument
    if hasattr(layer, "config"):
        assert twin.config == back.config == layer.config


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
    layer = attnbook.torch.KernelRegression(0.7).double()
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match=r"layer: log_bandwidth is float64, .* float32"):
            convert.torch_to_jax(layer)
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("stranger", [None, torch.nn.Linear(2, 3)])
def test_what_cannot_be_converted(stranger):
    for turn in (convert.torch_to_jax, convert.jax_to_torch):
        with pytest.raises(TypeError, match=r"layer: got \w+, expected (a layer of|one of MLP)"):
            turn(stranger)


def test_a_layer_that_was_changed():
    layer = make("DecoderOnly")
    layer.decoder = layer.decoder[:2]
    with pytest.raises(ValueError, match=r"^layer: got decoder\.2\.\w+\.\S+ of shape none, exp"):
        convert.torch_to_jax(layer)
