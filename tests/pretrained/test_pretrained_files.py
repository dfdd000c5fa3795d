"""Files of weights: every format gives the numbers that were written, or an error that names it."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import published
import pytest
from processes import run_python

from attnbook.pretrained import files

gguf = pytest.importorskip("gguf")
torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

from gguf_files import Kind as Q  # noqa: E402
from gguf_files import write_gguf  # noqa: E402

ON_MOST_MACHINES = 2000  # megabytes that are free


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
        "mask": torch.tensor([True, False]),
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_embd": 64}', encoding="utf-8")
    return tmp_path


def check(found, tensors):
    """Float32 arrays of NumPy's own that can be written to, and no whole numbers."""
    floats = {name: t for name, t in tensors.items() if t.is_floating_point()}
    assert {*found} == {*floats}
    for name, tensor in floats.items():
        assert type(found[name]) is np.ndarray
        assert found[name].dtype == np.float32
        assert found[name].flags.writeable
        np.testing.assert_array_equal(found[name], tensor.float().numpy(), err_msg=name)


def write_shards(folder, tensors):
    """Two files and the index of them."""
    first = dict(list(tensors.items())[:3])
    second = {name: t for name, t in tensors.items() if name not in first}
    places = dict.fromkeys(first, "one.safetensors") | dict.fromkeys(second, "two.safetensors")
    safetensors.save_file(first, folder / "one.safetensors")
    safetensors.save_file(second, folder / "two.safetensors")
    (folder / files.SHARDS).write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    return places


def test_one_file(folder, tensors):
    safetensors.save_file(tensors, folder / files.MODEL, metadata={"format": "pt"})
    config, found = files.read_folder(str(folder))
    assert config == {"model_type": "gpt2", "n_embd": 64}
    check(found, tensors)


def test_several_files(folder, tensors):
    write_shards(folder, tensors)
    check(files.read_folder(folder)[1], tensors)


@pytest.mark.parametrize("archive", [True, False])
def test_a_file_of_pytorch(folder, tensors, archive):
    """As PyTorch writes it today, and as it did before 2020."""
    torch.save(tensors, folder / files.PICKLE, _use_new_zipfile_serialization=archive)
    check(files.read_folder(folder)[1], tensors)


def test_safetensors_come_first(folder, tensors):
    torch.save({"other": torch.ones(1)}, folder / files.PICKLE)
    safetensors.save_file(tensors, folder / files.MODEL)
    check(files.read_folder(folder)[1], tensors)


def test_no_pickle_is_run(folder, tmp_path):
    """A pickle can call any function; this one would make a file."""

    class Harm:
        def __reduce__(self):
            return Path.touch, (tmp_path / "harm",)

    (folder / files.PICKLE).write_bytes(pickle.dumps({"weight": Harm()}, protocol=2))
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: expected tensors by name"):
        files.read_folder(folder)
    assert not (tmp_path / "harm").exists()


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


SPOILT = {
    "empty": lambda data: b"",
    "cut off in the header": lambda data: data[:60],
    "cut off in the numbers": lambda data: data[:-3],
    "something behind it": lambda data: data + b"123",
    "a header too long": lambda data: struct.pack("<Q", 10**12) + data[8:],
    "no JSON": lambda data: data[:8] + b"?" + data[9:],
    "another format": lambda data: b"GGUF" + data[4:],
    "overlapping": lambda data: data.replace(b"[0,", b"[4,", 1),
}


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_no_safetensors(folder, tensors, spoilt):
    file = folder / files.MODEL
    safetensors.save_file({"single": tensors["single"]}, file)
    file.write_bytes(spoilt(file.read_bytes()))
    with pytest.raises(ValueError, match=r"model\.safetensors: expected a whole safetensors file"):
        files.read_folder(folder)


def test_an_unknown_dtype(folder):
    safetensors.save_file({"weight": torch.ones(3).to(torch.float8_e4m3fn)}, folder / files.MODEL)
    message = r"model\.safetensors: got weight of dtype F8_E4M3, expected F64, F32, F16, BF16"
    with pytest.raises(ValueError, match=message):
        files.read_folder(folder)


def test_what_is_missing(tmp_path, tensors):
    with pytest.raises(FileNotFoundError, match=r"nowhere: expected a folder with config\.json"):
        files.read_folder(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"config\.json: there is no such file"):
        files.read_folder(tmp_path)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"expected model\.safetensors, model\.safetens"):
        files.read_folder(tmp_path)
    write_shards(tmp_path, tensors)
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"two\.safetensors: there is no such file"):
        files.read_folder(tmp_path)
    for reader in (files.read_safetensors, files.read_gguf, files.read_gguf_fields):
        with pytest.raises(FileNotFoundError, match="nowhere: there is no such file"):
            reader(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["", "[1]", '{"a": ', "\x80", "[" * 10**5, '{"a":' * 10**5])
def test_no_configuration(folder, text):
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.json: got .*, expected an object"):
        files.read_folder(folder)


def test_a_wrong_index(folder, tensors):
    places = write_shards(folder, tensors)
    for wrong, message in (
        (None, "got no weight_map"),
        (["w"], "got no weight_map"),
        (places | {"lost": "one.safetensors"}, r"one\.safetensors: .*lost"),
        ({"w": "../one.safetensors"}, "got the file '../one.safetensors'"),
        ({"w": None}, "got the file None"),
        ({"w": ["one.safetensors"]}, r"got the file \['one.safetensors'\], expected"),
        ({"w": {}}, "got the file {}"),
    ):
        index = {"weight_map": wrong} if wrong else {}
        (folder / files.SHARDS).write_text(json.dumps(index), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            files.read_folder(folder)


@pytest.mark.parametrize("content", ["a list", "no tensors", "cut off", "text"])
def test_no_file_of_pytorch(folder, content):
    file = folder / files.PICKLE
    torch.save({"w": 1} if content == "no tensors" else [torch.ones(2)], file)
    if content == "cut off":
        file.write_bytes(file.read_bytes()[:100])
    if content == "text":
        file.write_text("weights", encoding="utf-8")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: .*expected tensors by name"):
        files.read_folder(folder)


@pytest.mark.parametrize("archive", [True, False])
def test_a_file_of_pytorch_cut_off_anywhere(folder, archive):
    """PyTorch raises six kinds of errors; here it is one, which names the file."""
    file = folder / files.PICKLE
    torch.save({"w": torch.ones(9)}, file, _use_new_zipfile_serialization=archive)
    data = file.read_bytes()
    for end in range(0, len(data) - 1, 29):
        file.write_bytes(data[:end])
        with pytest.raises(ValueError, match=r"pytorch_model\.bin: expected tensors by name"):
            files.read_folder(folder)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({1: torch.ones(2)}, "got 1 as a name, expected tensors by name"),
        ({"w": torch.eye(3).to_sparse()}, "got a sparse w, expected plain tensors with numbers"),
        ({"w": torch.ones(2, device="meta")}, "got w on the device meta, expected plain tensors"),
        ({"w": torch.ones(2) * 1j}, "got w of dtype torch.complex64, expected real numbers"),
    ],
)
def test_tensors_of_pytorch_that_are_not_plain(folder, tensors, message):
    torch.save(tensors, folder / files.PICKLE)
    with pytest.raises(ValueError, match=rf"pytorch_model\.bin: {message}"):
        files.read_folder(folder)


def test_a_parameter_of_pytorch(folder):
    torch.save({"w": torch.nn.Parameter(torch.ones(2))}, folder / files.PICKLE)
    assert files.read_folder(folder)[1]["w"].tolist() == [1, 1]


def by_hand(data: bytes, kind: gguf.GGMLQuantizationType) -> list[float]:
    """The numbers of quantised blocks, one after the other, by the formulas of the module."""
    found = []
    size = {Q.Q4_0: 18, Q.Q4_1: 20, Q.Q8_0: 34}[kind]
    for start in range(0, len(data), size):
        block = data[start : start + size]
        (scale,) = struct.unpack_from("<e", block)
        if kind is Q.Q8_0:
            found += [scale * q for q in struct.unpack_from("<32b", block, 2)]
            continue
        least = struct.unpack_from("<e", block, 2)[0] if kind is Q.Q4_1 else -8 * scale
        q = block[-16:]  # the lower four bits of each byte are the first 16 numbers
        found += [scale * (byte & 15) + least for byte in q]
        found += [scale * (byte >> 4) + least for byte in q]
    return found


# the share of the largest number that rounding to so many bits cannot pass
BOUNDS = {Q.F32: 0, Q.F16: 2**-11, Q.BF16: 2**-8, Q.Q4_0: 1 / 8, Q.Q4_1: 1 / 15, Q.Q8_0: 1 / 254}
TOKENS = ["a", "Ġb", "東京"]


@pytest.fixture
def written(tmp_path, rng):
    """A file with a tensor of each kind, and what they were."""
    arrays = {kind.name: rng.normal(size=(6, 64)).astype(np.float32) for kind in BOUNDS}
    fields = {"llama.block_count": 30, "llama.rope.freq_base": 1e5, "yes": True, "tokens": TOKENS}
    tensors = {kind.name: (arrays[kind.name], kind) for kind in BOUNDS}
    return write_gguf(tmp_path / "model.gguf", fields, tensors), arrays


def test_gguf(written):
    file, arrays = written
    fields, found = files.read_gguf(str(file))
    assert fields == files.read_gguf_fields(file)
    assert fields.pop("llama.rope.freq_base") == pytest.approx(1e5)
    assert (fields.pop("general.architecture"), fields.pop("tokens")) == ("llama", TOKENS)
    assert fields == {"llama.block_count": 30, "yes": True}
    for kind, bound in BOUNDS.items():
        array, read = arrays[kind.name], found[kind.name]
        assert read.shape == (6, 64)
        assert read.dtype == np.float32
        assert read.flags.writeable
        error = np.abs(read - array).max() / np.abs(array).max()
        assert error <= 1.01 * bound
        assert (error > 0) == (kind is not Q.F32)


@pytest.mark.parametrize("kind", [Q.Q4_0, Q.Q4_1, Q.Q8_0])
def test_blocks_by_hand(written, kind):
    file, _ = written
    (tensor,) = (t for t in gguf.GGUFReader(file).tensors if t.name == kind.name)
    expected = np.reshape(by_hand(tensor.data.tobytes(), kind), (6, 64))
    np.testing.assert_allclose(files.read_gguf(file)[1][kind.name], expected, rtol=1e-6, atol=1e-7)


def with_number(data, at, number, form="<Q"):
    """The same bytes with another number at a place."""
    return data[:at] + struct.pack(form, number) + data[at + struct.calcsize(form) :]


def kind_in(data):
    """The place of a tensor's kind: behind its name, two as the number of axes, and the axes."""
    at = data.index(b"Q8_0") + 4 + 4 + 16
    assert data[at : at + 4] == struct.pack("<I", 8)
    return at


WHOLE = "expected a whole GGUF file"


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (lambda data: b"", r"got b'' as the first four bytes, expected b'GGUF'"),
        (lambda data: b"PK\x03\x04" + data[4:], r"got b'PK\\x03\\x04' as the first"),
        (lambda data: with_number(data, 4, 9, "<I"), f"{WHOLE}, version 2 or 3 .*9"),
        (lambda data: data[:100], WHOLE),
        (lambda data: data[:-300], WHOLE),
        (lambda data: with_number(data, 16, 10**15), WHOLE),  # fields
        (lambda data: with_number(data, 8, 10**15), WHOLE),  # tensors
        (lambda data: with_number(data, kind_in(data), 999, "<I"), f"{WHOLE}.*999.* is not"),
        (lambda data: with_number(data, kind_in(data), 15, "<I"), "expected"),  # IQ1_BN
    ],
)
def test_no_gguf(written, spoilt, message):
    file, _ = written
    file.write_bytes(spoilt(file.read_bytes()))
    with pytest.raises(ValueError, match=rf"model\.gguf: .*{message}"):
        files.read_gguf(file)


@pytest.mark.parametrize("place", [2**64 - 32, 2**63, 1, 32, 10**6, 0])
def test_places_of_numbers_that_are_others(written, place):
    """Before the first, unaligned, within another's numbers, behind the end."""
    file, _ = written
    data = file.read_bytes()
    at = kind_in(data) + 4
    (own,) = struct.unpack("<Q", data[at : at + 8])
    assert own % 32 == 0 and own > 32
    file.write_bytes(with_number(data, at, place))
    with pytest.raises(ValueError, match=r"model\.gguf: expected a whole GGUF file, .*got"):
        files.read_gguf(file)


T = gguf.GGUFValueType
NESTED = struct.pack("<IQ", T.ARRAY, 1)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        *((T.ARRAY, struct.pack("<IQ", kind, 2**50)) for kind in (T.UINT8, T.STRING, T.ARRAY)),
        (T.ARRAY, struct.pack("<IQ", T.UINT8, 2**50) + bytes(2000)),
        (T.ARRAY, struct.pack("<IQ", T.UINT8, 2**64 - 1)),
        (T.ARRAY, NESTED * 5000 + struct.pack("<IQ", T.UINT8, 0)),
        (T.STRING, struct.pack("<Q", 2**63)),
        (T.STRING, struct.pack("<Q", 2) + b"\xff\xff"),
        (T.ARRAY, struct.pack("<IQ", T.STRING, 1) + struct.pack("<Q", 1) + b"\xff"),
        (T.FLOAT64, b"1234"),
        (99, b"12345678"),
    ],
)
def test_a_field_that_cannot_be(tmp_path, kind, content):
    """Counts that the file cannot hold are refused before anything is made of them."""
    file = tmp_path / "model.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)  # version 3, no tensor, one field
    file.write_bytes(head + struct.pack("<Q", 3) + b"own" + struct.pack("<I", kind) + content)
    for read in (files.read_gguf, files.read_gguf_fields):
        with pytest.raises(ValueError, match=r"model\.gguf: expected a whole GGUF file"):
            read(file)


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Megabytes that what is done within needs at most, where Linux tells."""
    found: list[float] = []
    status, marks = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if status.exists() and os.access(marks, os.W_OK):
        marks.write_text("5", encoding="ascii")  # forget the peak so far
        before = memory_of(status, "VmRSS")
        yield found
        found.append(memory_of(status, "VmHWM") - before)
    else:
        yield found


def memory_of(status: Path, name: str) -> float:
    (line,) = (line for line in status.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1000


def test_smollm2():
    """The published file: what it says, its shapes, and some of its numbers."""
    file = published.smollm2()
    with peak_memory() as megabytes:
        fields, found = files.read_gguf(file)
    assert all(peak < ON_MOST_MACHINES / 2 for peak in megabytes)  # 538 are the numbers' own
    assert fields["llama.block_count"] == 30
    assert fields["llama.embedding_length"] == 576
    assert len(fields["tokenizer.ggml.tokens"]) == 49152
    assert len(found) == 2 + 30 * 9
    assert sum(array.size for array in found.values()) == 134_515_008
    assert found["token_embd.weight"].shape == (49152, 576)
    assert found["blk.29.ffn_down.weight"].shape == (576, 1536)
    # Q4_1, Q8_0 and F32, as a second reader with nothing in common has them
    for name, first in (
        ("blk.29.ffn_down.weight", [-0.2733154296875, 0.186279296875, 0.186279296875]),
        ("token_embd.weight", [-0.10654449462890625, 0.032978057861328125, 0.048198699951171875]),
        ("blk.0.attn_norm.weight", [0.01397705078125, 0.0238037109375, -0.019775390625]),
    ):
        np.testing.assert_allclose(found[name].ravel()[:3], first, rtol=1e-6)


def test_rxnmapper():
    """A file that PyTorch wrote in 2020, without a pickle of more than numbers."""
    config, found = files.read_folder(published.folder("rxnmapper"))
    assert config["model_type"] == "albert"
    assert found["albert.embeddings.word_embeddings.weight"].shape == (591, 128)
    assert all(np.all(np.isfinite(array)) for array in found.values())


def test_a_folder_for_a_file_and_a_file_for_a_folder(tmp_path):
    (tmp_path / "model.gguf").touch()
    with pytest.raises(FileNotFoundError, match=r"got a folder, expected .*there is model\.gguf$"):
        files.read_gguf(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"config\.json.*from_gguf reads model\.gguf$"):
        files.read_folder(tmp_path)
