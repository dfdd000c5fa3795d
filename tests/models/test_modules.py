"""What readers do with layers: save, copy, move, differentiate, compile them; and follow a call."""

import sys
from pathlib import Path

import numpy as np
import pytest
from layer_harness import Library

import attnbook

TOKENS = np.array([[1, 2, 3, 4], [4, 3, 0, 1]])
X = np.linspace(-1, 1, 2 * 5 * 8).reshape(2, 5, 8)
CASES = {
    "MLP": ((8, 12, "swiglu"), (X,)),
    "EncoderBlock": ((8, 2, 12), (X,)),
    "DecoderBlock": ((8, 2, 12), (X, X)),
    "EncoderOnly": ((8, 3, None, 8, 2, 12, 2), (X,)),
    "DecoderOnly": ((7, 6, 8, 2, 12, 2), (TOKENS,)),
    "AttentionOnly": ((7, 6, 8, 2, 2), (TOKENS,)),
    "Transformer": ((7, 7, 6, 8, 2, 12, 2), (TOKENS, TOKENS >= 0, TOKENS)),
    "EncoderDecoder": ((7, 7, 6, 8), (TOKENS, TOKENS >= 0, TOKENS)),
    "GRUCell": ((8, 6), (X, X[..., :6])),
}
each = pytest.mark.parametrize("name", CASES)


def make(library, name, **how):
    """The layer, and what it is called with, in the library's arrays."""
    sizes, given = CASES[name]
    return library.make(name, *sizes, **how), [*map(library.moved, given)]


@each
def test_under_autocast(torch, name):
    """Near the full precision, and every parameter has a gradient."""
    library = Library("torch")
    layer, given = make(library, name)
    expected = layer(*given)
    layer.float()
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(*(a.float() if a.is_floating_point() else a for a in given))
    torch.testing.assert_close(found.double(), expected, rtol=0.1, atol=0.05)
    found.float().sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())


def test_a_bandwidth_is_learnt_by_its_logarithm(library):
    """A step of 50 on h itself would land at −49; on log h it lands at e^(−50)."""
    layer = library.make("KernelRegression", [1.0, np.e])
    np.testing.assert_allclose(library.parameters(layer)["log_bandwidth"], [0, 1], atol=1e-7)
    plain = library.make("KernelRegression", 1.0)
    assert list(library.parameters(plain)) == ["log_bandwidth"]
    if library.name == "torch":
        plain.log_bandwidth.grad = library.backend.xp.full_like(plain.log_bandwidth, 50.0)
        library.backend.xp.optim.SGD(plain.parameters(), lr=1.0).step()
        np.testing.assert_allclose(plain.bandwidth.item(), np.exp(-50.0), rtol=1e-12)


@pytest.mark.parametrize("name", ["MetricKernelRegression", "MultiHeadKernelRegression"])
def test_what_a_layer_starts_from_does_not_learn(library, name):
    """The caller's array is copied."""
    start = np.full((64, 64), 2.0)
    layer = library.make(name, start)
    kept = {n: a.copy() for n, a in library.parameters(layer).items()}
    start += 1
    for n, a in library.parameters(layer).items():
        np.testing.assert_array_equal(a, kept[n])


@pytest.mark.parametrize("grad", [False, True])
def test_a_small_call_enters_few_functions(torch, grad):
    """Arguments are checked once, then come the formulas: who follows a call finds them soon."""
    layer = Library("torch").make("MultiHeadAttention", 8, 2)
    x, package, entered = torch.zeros(2, 5, 8).double(), str(Path(attnbook.__file__).parent), []

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package) and code.co_name[0] != "<":
            entered.append(code.co_filename)

    with torch.set_grad_enabled(grad):
        layer(x)  # what is made once, at the first call, does not count
        sys.setprofile(note)
        try:
            layer(x)
        finally:
            sys.setprofile(None)
    assert len(entered) <= (30 if grad else 36)  # without a gradient the fused kernel pads and cuts
    assert len(set(entered)) <= 6
