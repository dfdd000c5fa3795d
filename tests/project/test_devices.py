"""Which device: here as if there were others too."""

import os
import re

import pytest
from processes import run_python

from attnbook import devices


@pytest.mark.parametrize(
    ("cuda", "mps", "double", "expected"),
    [
        (True, True, False, "cuda"),
        (True, True, True, "cuda"),
        (False, True, False, "mps"),
        (False, True, True, "cpu"),
        (False, False, False, "cpu"),
    ],
)
def test_torch_device(monkeypatch, cuda, mps, double, expected):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setattr(devices, "wrong_on", lambda kind: ())
    assert devices.torch_device(double=double) == torch.device(expected)


def test_a_gpu_that_computes_otherwise_is_left_out(monkeypatch):
    """Here as on a Mac whose linear layers lose their bias."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(devices, "wrong_on", lambda kind: ("a linear layer",))
    with pytest.warns(
        UserWarning, match=r"computes otherwise than on the CPU: a linear layer\. The"
    ):
        assert devices.torch_device() == torch.device("cpu")


def test_the_cpu_agrees_with_itself_and_what_cannot_compute_is_wrong():
    pytest.importorskip("torch")
    assert devices.wrong_on("cpu") == ()
    assert len(devices.wrong_on("meta")) == 6  # which has shapes and no numbers


def test_jax_device():
    jax = pytest.importorskip("jax")
    assert devices.jax_device() == jax.numpy.ones(2).device


def test_describe():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    text = devices.describe()
    assert f"PyTorch {torch.__version__} on " in text
    assert f"JAX {jax.__version__} on " in text
    assert re.search(rf"{os.cpu_count()} logical cores; Python 3\.\d+\.\d+;", text)
    assert "\n" not in text


def test_jax_does_not_take_the_whole_gpu():
    """The setting is made on import, and a reader's own is kept."""
    code = "import os; from attnbook import devices; print(os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'])"
    assert run_python(code, XLA_PYTHON_CLIENT_PREALLOCATE="true").strip() == "true"
    if "XLA_PYTHON_CLIENT_PREALLOCATE" not in os.environ:
        assert run_python(code).strip() == "false"


@pytest.mark.parametrize("absent", [(), ("torch",), ("jax",)])
def test_full_precision_of_the_libraries_that_are_there(absent):
    """Each is installed on its own, and asked for float32 products in float32."""
    reads = {
        "torch": "torch.get_float32_matmul_precision()",
        "jax": "jax.config.jax_default_matmul_precision",
    }
    present = [name for name in reads if name not in absent]
    for name in present:
        pytest.importorskip(name)
    printed = run_python(
        f"import sys; sys.modules.update(dict.fromkeys({absent!r}))\n"
        "from attnbook import devices; devices.full_precision()\n"
        + "".join(f"import {name}; print({reads[name]})\n" for name in present)
    )
    assert printed.split() == ["highest"] * len(present)
