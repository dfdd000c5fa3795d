"""Files in which others keep the weights of a model, read as NumPy arrays of float32.

A folder as Hugging Face's libraries write it holds a configuration, `config.json`, and the
tensors by name, in a file of the format safetensors. A GGUF file, llama.cpp's format, holds
everything in one: fields that describe the model and its tokens, and the tensors, often quantised.
A quantised matrix is kept in blocks of 32 numbers that share a scale,

    w = scale · q               Q8_0, q of eight bits with a sign
    w = scale · (q − 8)         Q4_0, q of four bits, from 0 to 15
    w = scale · q + least       Q4_1, q of four bits, from 0 to 15

so that a number costs 8.5, 4.5 or 5 bits instead of 32.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

Tensors = dict[str, Float[np.ndarray, "..."]]

MODEL, PICKLE = "model.safetensors", "pytorch_model.bin"
FLOATS = ("F64", "F32", "F16", "BF16")
WHOLE_GGUF = "a whole GGUF file, version 2 or 3"
WHOLE_NUMBERS = ("BOOL", "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64")  # of no weight


def read_folder(folder: str | Path) -> tuple[dict[str, Any], Tensors]:
    """The configuration and the tensors of a model in a folder of Hugging Face's.

    The tensors are read from `model.safetensors`, else from `pytorch_model.bin`, of which PyTorch
    reads nothing but numbers (weights_only=True). Tensors of whole numbers are left out.

    Args:
        folder: has `config.json` and the tensors.

    Returns:
        What `config.json` says, and the tensors by name, float32.

    Raises:
        FileNotFoundError: a file that is missing; it is named.
        ValueError: a file that is not what it says; it is named, with what was expected.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: expected a folder with config.json and {MODEL}")
    config = read_json(folder / "config.json")
    if (folder / MODEL).is_file():
        return config, read_safetensors(folder / MODEL)
    if (folder / PICKLE).is_file():
        return config, _read_pickle(folder / PICKLE)
    raise FileNotFoundError(f"{folder}: expected {MODEL} or {PICKLE} in it")


def read_json(file: str | Path) -> dict[str, Any]:
    """The object in a JSON file; a ValueError names a file that holds anything else."""
    file = existing(file)
    with reading(file, "an object in JSON", ValueError):
        found = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError(f"{file}: got a {type(found).__name__}, expected an object in JSON")
    return found


def read_safetensors(file: str | Path) -> Tensors:
    """The tensors of a safetensors file by name, as float32; whole numbers are left out.

    Args:
        file: of the format safetensors, with F64, F32, F16 or BF16.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file of another format, one that is cut off, a dtype that is not read.
    """
    import ml_dtypes  # noqa: F401  (with it NumPy knows bfloat16)
    from safetensors import SafetensorError, safe_open

    file = existing(file)
    found: Tensors = {}
    with (
        reading(file, "a whole safetensors file", SafetensorError),
        np.errstate(over="ignore"),  # a model refuses what float32 does not hold
        safe_open(file, "np") as data,
    ):
        for name in data.keys():  # noqa: SIM118  (it is no dictionary)
            dtype = data.get_slice(name).get_dtype()
            if dtype in FLOATS:
                found[name] = data.get_tensor(name).astype(np.float32, copy=False)
            elif dtype not in WHOLE_NUMBERS:
                raise ValueError(
                    f"{file}: got {name} of dtype {dtype}, expected {', '.join(FLOATS)}"
                )
    return found


def read_gguf(file: str | Path) -> tuple[dict[str, Any], Tensors]:
    """What a GGUF file says of a model, and its tensors, dequantised.

    Args:
        file: of a version of 2 or 3.

    Returns:
        The fields by name, as Python's numbers, strings and lists, and the tensors by name,
        float32, a row of a matrix for each output, as in PyTorch.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: what is no GGUF file, is cut off, or is quantised in an unknown way.

    Source: GGUF, the specification in ggml's docs/gguf.md.
    """
    from gguf.quants import dequantize

    reader = _open_gguf(file)
    found: Tensors = {}
    for tensor in reader.tensors:
        try:
            found[tensor.name] = dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            got = f"{tensor.name} quantised as {tensor.tensor_type.name}"
            raise ValueError(
                f"{file}: got {got}, expected F32, F16, Q4_0, Q4_1, Q8_0 or the like"
            ) from error
    return _fields(file, reader), found


def read_gguf_fields(file: str | Path) -> dict[str, Any]:
    """What a GGUF file says of a model and its tokens, by name; no tensor is read."""
    return _fields(file, _open_gguf(file))


def existing(file: str | Path) -> Path:
    """The path of a file that is there, else a FileNotFoundError that names it."""
    file = Path(file)
    if file.is_file():
        return file
    folder = file if file.is_dir() else file.parent
    there = ", ".join(sorted(one.name for one in folder.glob("*.gguf")))
    hint = f"; from_gguf reads {there}" if there else ""
    got = "got a folder, expected a file in it" if file.is_dir() else "there is no such file"
    raise FileNotFoundError(f"{file}: {got}{hint}")


@contextmanager
def reading(file: Path, expected: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn a library's errors into a ValueError that names the file and what was expected.

    Args:
        file: that is read.
        expected: what it should be.
        errors: that mean that it is not.
    """
    try:
        yield
    except errors as error:
        raise ValueError(f"{file}: expected {expected} ({error})") from error


def _read_pickle(file: Path) -> Tensors:
    """The tensors of a file that PyTorch wrote; what is no number in it is refused."""
    import torch

    expected = "tensors by name, written by torch.save"
    with reading(file, expected, Exception):  # of a damaged file PyTorch raises what its parts do
        read = torch.load(file, map_location="cpu", weights_only=True)
    if not isinstance(read, dict) or not all(map(torch.is_tensor, read.values())):
        raise ValueError(f"{file}: got a {type(read).__name__}, expected {expected}")
    floats = {name: tensor for name, tensor in read.items() if tensor.is_floating_point()}
    return {name: tensor.detach().float().numpy() for name, tensor in floats.items()}


def _open_gguf(file: str | Path) -> Any:
    """A reader of fields and tensors of the library gguf."""
    from gguf import GGUFReader

    file = existing(file)
    with file.open("rb") as opened:
        first = opened.read(4)
    if first != b"GGUF":
        raise ValueError(f"{file}: got {first!r} as the first four bytes, expected b'GGUF'")
    # of a file that is damaged the library finds an index or a shape that cannot be
    with reading(file, WHOLE_GGUF, ValueError, IndexError, KeyError, TypeError, OverflowError):
        return GGUFReader(file)


def _fields(file: str | Path, reader: Any) -> dict[str, Any]:
    """The fields of an open GGUF file, as Python's numbers, strings and lists."""
    own = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    with reading(Path(file), WHOLE_GGUF, ValueError, IndexError):  # a string of other bytes
        return {name: field.contents() for name, field in own.items()}
