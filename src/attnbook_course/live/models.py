"""Trained models for live figures: stored in the package, loaded by a page for its figure.

A file is in the safetensors format: the length of a JSON header in 8 bytes, the header with each
parameter's name, shape and place, then the numbers, here float16. The website serves the files
from _static/models; static/models.js reads them, and static/transformer.js runs the models.
"""

import json
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from attnbook import convert
from attnbook.models.config import arguments
from attnbook.train.byte_pairs import GPT2, SIGNS, BytePairs
from attnbook_course.live.figure import read_scripts

FOLDER = Path(str(files("attnbook_course"))) / "live" / "models"
SCRIPTS = ("transformer.js", "models.js")  # that read a model and run it
KINDS = ("Transformer", "EncoderOnly", "DecoderOnly")


def pack(model: Any, pairs: BytePairs | None = None) -> bytes:
    """A model as the bytes of a file, its parameters rounded to float16.

    Args:
        model: a Transformer, an EncoderOnly or a DecoderOnly of attnbook.torch or attnbook.jax.
        pairs: those of learn_pairs, if the model reads and writes byte pairs.

    Raises:
        TypeError: another model.
        ValueError: options of its blocks that static/transformer.js does not know; a parameter that
            is not finite as float16, whose largest number is 65,504; byte pairs that learn_pairs
            does not give.
    """
    kind, model = _in_torch(model)
    _check_plain(model)
    sizes = json.dumps(arguments(type(model), model))
    header: dict[str, Any] = {"__metadata__": {"kind": kind, "sizes": sizes}}
    if pairs is not None:
        header["__metadata__"]["merges"] = json.dumps(_merges(pairs))
    numbers = b""
    for name, parameter in model.named_parameters():
        half = _half(name, parameter.detach().cpu().double().numpy())
        end = len(numbers) + half.nbytes
        place = {"dtype": "F16", "shape": half.shape, "data_offsets": [len(numbers), end]}
        header[name] = place
        numbers += half.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + numbers


def unpack(data: bytes) -> Any:
    """The attnbook.torch model of a file's bytes, in evaluation mode; torch draws no number.

    Args:
        data: what pack has given.

    Raises:
        ValueError: something else, or a part of it.
    """
    import torch

    import attnbook.torch

    header, numbers = _parts(data)
    about = header.pop("__metadata__")
    with torch.device("meta"):  # sizes alone
        model = getattr(attnbook.torch, about["kind"])(**json.loads(about["sizes"]))
    state = {}
    for name, place in header.items():
        start, end = place["data_offsets"]
        half = np.frombuffer(numbers[start:end], dtype="<f2").reshape(place["shape"])
        state[name] = torch.from_numpy(half.astype(np.float32))
    model.load_state_dict(state, assign=True)
    return model.eval()


def store(name: str, model: Any, pairs: BytePairs | None = None) -> Path:
    """Write a model into the package, from where the website takes it.

    Args:
        name: of the file, without its ending: small letters, digits and hyphens.
        model: as in pack.
        pairs: as in pack.

    Returns:
        The file.

    Raises:
        TypeError: another model.
        ValueError: another name, a parameter that is not finite as float16, other byte pairs.
    """
    file, data = file_of(name), pack(model, pairs)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def load(name: str) -> Any:
    """A stored model as one of attnbook.torch; convert.torch_to_jax gives its JAX twin.

    Args:
        name: that it is stored under.

    Raises:
        ValueError: a name under which nothing is stored.
    """
    return unpack(read(name))


def load_pairs(name: str) -> BytePairs:
    """The byte pairs that a stored model reads and writes.

    Args:
        name: that it is stored under.

    Raises:
        ValueError: a name under which nothing is stored, or a model of other tokens.
    """
    header, _ = _parts(read(name))
    if "merges" not in header["__metadata__"]:
        raise ValueError(f"name: got {name!r}, expected a model that reads byte pairs")
    return _of_merges(json.loads(header["__metadata__"]["merges"]))


def load_label(name: str) -> str:
    """What a button says that loads a model, with the bytes that this takes."""
    file = file_of(name)
    size = f" ({file.stat().st_size / 1e6:.1f} MB)" if file.is_file() else ""
    return f"Load the model{size}"


def scripts(*names: str) -> str:
    """Scripts one after the other, the transformer's first."""
    return read_scripts(*SCRIPTS, *names)


def file_of(name: str, ending: str = ".bin") -> Path:
    """Where a file of this name is, or will be."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]+", name):
        raise ValueError(f"name: got {name!r}, expected small letters, digits and hyphens")
    return FOLDER / f"{name}{ending}"


def read(name: str, ending: str = ".bin") -> bytes:
    """A stored file, or an error that says which there are."""
    file = file_of(name, ending)
    if not file.is_file():
        stored = ", ".join(sorted(f.stem for f in FOLDER.glob(f"*{ending}"))) or "nothing stored"
        raise ValueError(f"name: got {name!r}, expected one of {stored}")
    return file.read_bytes()


def _of_merges(merges: list[tuple[str, str]]) -> BytePairs:
    """Byte pairs from their merges alone: first the bytes, then each pair."""
    tokens = dict.fromkeys([*SIGNS, *(first + second for first, second in merges)])
    return BytePairs(list(tokens), merges)


def _merges(pairs: BytePairs) -> list[tuple[str, str]]:
    merges, plain = list(pairs.rank), (pairs.patterns, pairs.special)
    if plain != ([GPT2], []) or _of_merges(merges).tokens != pairs.tokens:
        raise ValueError("pairs: got others, expected byte pairs of learn_pairs")
    return merges


def _in_torch(model: Any) -> tuple[str, Any]:
    """The kind of a model of either library, and the model as one of attnbook.torch."""
    for library in ("attnbook.torch", "attnbook.jax"):
        module = sys.modules.get(library)  # that of a model is imported
        for kind in KINDS:
            if type(model) is getattr(module, kind, None):
                return kind, convert.jax_to_torch(model) if library == "attnbook.jax" else model
    got = type(model).__name__
    raise TypeError(f"model: got {got}, expected one of attnbook's {', '.join(KINDS)}")


def _check_plain(model: Any) -> None:
    """Check that a model's blocks are as static/transformer.js has them."""
    plain = {
        "num_kv_heads": model.num_heads,
        "bias": True,
        "rms_norm": False,
        "eps": 1e-5,
        "rotary_base": None,
        "last_norm": True,
        "attention": "softmax",
        "tied": False,
    }
    given = arguments(type(model), model)
    for name, expected in plain.items():
        got = given.get(name, expected)
        if got is not None and got != expected:
            raise ValueError(f"model: got {name}={got!r}, expected {expected!r} on a web page")
    if given["activation"] == "gelu_tanh":
        raise ValueError('model: got activation="gelu_tanh", expected another on a web page')


def _half(name: str, array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        half = array.astype("<f2")
    if not np.all(np.isfinite(half)):
        raise ValueError(f"model: got {name} that is not finite as float16")
    return half


def _parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the bytes of the numbers."""
    length = int.from_bytes(data[:8], "little")
    text, numbers = data[8 : 8 + length], data[8 + length :]
    try:
        header: dict[str, Any] = json.loads(text)
        ends = [place["data_offsets"][1] for n, place in header.items() if n != "__metadata__"]
        whole = header["__metadata__"]["kind"] in KINDS and max(ends) == len(numbers)
    except (ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ValueError(f"data: got {len(data)} bytes that are no stored model, or not all of one")
    return header, numbers
