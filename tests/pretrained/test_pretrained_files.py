"""Files of weights: every format gives the numbers that were written, or an error that names it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from processes import run_python

from attnbook.pretrained import files

pytest.importorskip("gguf")
torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from gguf_files import Kind as Q  # noqa: E402
from gguf_files import write_gguf  # noqa: E402


@pytest.fixture
def tensors(rng):
    """One tensor of each kind of float, one of whole numbers, and one number alone."""
    weight = torch.tensor(rng.normal(size=(6, 64)))
    return {
        "double": weight,
        "single": weight.float(),
        "half": weight.half(),
        "brain": weight.bfloat16(),
        "alone": torch.tensor(0.25),
        "position_ids": torch.arange(5),
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    return tmp_path


def write(file, tensors, folder):
    (safetensors.save_file if file == files.MODEL else torch.save)(tensors, folder / file)


@pytest.mark.parametrize("kind", [files.MODEL, files.PICKLE])
def test_a_folder(folder, tensors, kind):
    """Float32 arrays, and no whole numbers."""
    write(kind, tensors, folder)
    config, found = files.read_folder(str(folder))
    assert config == {"model_type": "gpt2"}
    assert {*found} == {*tensors} - {"position_ids"}
    for name, array in found.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, tensors[name].float().numpy(), err_msg=name)


def test_brain_floats_without_jax(folder, tensors):
    """NumPy knows no bfloat16 until a library is imported that JAX happens to bring."""
    safetensors.save_file(tensors, folder / files.MODEL)
    code = (
        "import sys; sys.modules['jax'] = sys.modules['torch'] = None\n"
        "from attnbook.pretrained.files import read_safetensors\n"
        f"print(read_safetensors({str(folder / files.MODEL)!r})['brain'].sum())"
    )
    expected = tensors["brain"].float().sum().item()
    assert float(run_python(code)) == pytest.approx(expected, abs=1e-3)


def test_no_pickle_is_run(folder):
    """A pickle can call any function; this one would make a file."""

    class Harm:
        def __reduce__(self):
            return Path.touch, (folder / "harm",)

    (folder / files.PICKLE).write_bytes(pickle.dumps({"weight": Harm()}, protocol=2))
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: expected tensors by name"):
        files.read_folder(folder)
    assert not (folder / "harm").exists()


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        (files.MODEL, lambda data: b"", "expected a whole safetensors file"),
        (files.MODEL, lambda data: data[:-3], "expected a whole safetensors file"),
        (files.MODEL, lambda data: b"GGUF" + data[4:], "expected a whole safetensors file"),
        (files.PICKLE, lambda data: data[:100], "expected tensors by name, written by torch.save"),
        (files.PICKLE, lambda data: pickle.dumps([1]), "expected tensors by name"),
        ("config.json", lambda data: b'{"a": ', "expected an object in JSON"),
        ("config.json", lambda data: b"[1]", "got a list, expected an object in JSON"),
    ],
)
def test_damaged_files(folder, tensors, name, spoil, message):
    file = files.PICKLE if name == files.PICKLE else files.MODEL
    write(file, tensors, folder)
    (folder / name).write_bytes(spoil((folder / name).read_bytes()))
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        files.read_folder(folder)


def test_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere: expected a folder with config\.json"):
        files.read_folder(tmp_path / "nowhere")
    (tmp_path / "model.gguf").touch()
    with pytest.raises(FileNotFoundError, match=r"config\.json.*from_gguf reads model\.gguf$"):
        files.read_folder(tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"got a folder, expected a file in it.*model\.gguf$"
    ):
        files.read_gguf(tmp_path)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"expected model\.safetensors or pytorch_model"):
        files.read_folder(tmp_path)


# the share of the largest number that rounding to so many bits cannot pass
BOUNDS = {Q.F32: 0, Q.F16: 2**-11, Q.BF16: 2**-8, Q.Q4_0: 1 / 8, Q.Q4_1: 1 / 15, Q.Q8_0: 1 / 254}


@pytest.fixture
def written(tmp_path, rng):
    """A file with a tensor of each kind, and what they were."""
    arrays = {kind.name: rng.normal(size=(6, 64)).astype(np.float32) for kind in BOUNDS}
    fields = {"llama.block_count": 30, "yes": True, "tokens": ["a", "Ġb", "東京"]}
    tensors = {kind.name: (arrays[kind.name], kind) for kind in BOUNDS}
    return write_gguf(tmp_path / "model.gguf", fields, tensors), arrays, fields


def test_gguf(written):
    file, arrays, said = written
    fields, found = files.read_gguf(str(file))
    assert fields == files.read_gguf_fields(file) == said | {"general.architecture": "llama"}
    for kind, bound in BOUNDS.items():
        array, read = arrays[kind.name], found[kind.name]
        assert (read.shape, read.dtype) == ((6, 64), np.float32)
        error = np.abs(read - array).max() / np.abs(array).max()
        assert error <= 1.01 * bound
        assert (error > 0) == (kind is not Q.F32)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"PK\x03\x04" + data[4:], r"got b'PK\\x03\\x04' as the first four bytes"),
        (lambda data: data[:4] + b"\x09" + data[5:], "expected a whole GGUF file, version 2 or 3"),
        (lambda data: data[:100], "expected a whole GGUF file"),
        (lambda data: data[:-300], "expected a whole GGUF file"),
    ],
)
def test_no_gguf(written, spoil, message):
    file, *_ = written
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(ValueError, match=rf"model\.gguf: .*{message}"):
        files.read_gguf(file)
