"""Trained models for live figures: stored in the package, loaded by a page for its figure.

A file is in the safetensors format: the length of a JSON header in 8 bytes, the header with each
parameter's name, shape and place, then the numbers, here float16. The website serves the files
from _static/models; static/stored_model.js reads them, and static/decoder.js runs a DecoderOnly.
A reader's own file is opened by static/own_model.js.
"""

import json
import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from attnbook.models.config import arguments
from attnbook.train.byte_pairs import SIGNS, BytePairs

FOLDER = Path(str(files("attnbook_course"))) / "live" / "models"
KINDS = ("Transformer", "EncoderOnly", "DecoderOnly")
BUILT = {  # what chapter 7's build calls the parameters of a block
    "norm_1": "attention_norm",
    "w_q": "attention.query",
    "w_k": "attention.key",
    "w_v": "attention.value",
    "w_o": "attention.output",
    "norm_2": "mlp_norm",
    "w_1": "mlp.hidden",
    "w_2": "mlp.output",
}


def pack(model: Any, pairs: BytePairs | None = None, characters: str = "") -> bytes:
    """A model as the bytes of a file, its parameters rounded to float16.

    Args:
        model: a Transformer, an EncoderOnly or a DecoderOnly of attnbook.torch.
        pairs: those of learn_pairs, if the model reads and writes byte pairs.
        characters: one for each token, if it reads and writes characters.

    Raises:
        TypeError: another model.
        ValueError: a parameter that is not finite as float16, whose largest number is 65,504, or
            characters that are not as many as the model has tokens, each another.
    """
    kind = type(model).__name__
    if kind not in KINDS:
        raise TypeError(f"model: got {kind}, expected one of attnbook's {', '.join(KINDS)}")
    sizes = json.dumps(arguments(type(model), model))
    header: dict[str, Any] = {"__metadata__": {"kind": kind, "sizes": sizes}}
    if pairs is not None:
        header["__metadata__"]["merges"] = json.dumps(list(pairs.rank))
    if characters:
        if not len(characters) == len(set(characters)) == model.vocab_size:
            found = f"{len(set(characters))} different of {len(characters)}"
            raise ValueError(f"characters: got {found}, expected {model.vocab_size}")
        header["__metadata__"]["characters"] = characters
    numbers = b""
    for name, parameter in sorted(model.named_parameters()):
        with np.errstate(over="ignore"):
            half = parameter.detach().cpu().double().numpy().astype("<f2")
        if not np.all(np.isfinite(half)):
            raise ValueError(f"model: got {name} that is not finite as float16")
        end = len(numbers) + half.nbytes
        place = {"dtype": "F16", "shape": half.shape, "data_offsets": [len(numbers), end]}
        header[name] = place
        numbers += half.tobytes()
    header["__metadata__"]["sha256"] = sha256(numbers).hexdigest()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + numbers


def unpack(data: bytes) -> Any:
    """The attnbook.torch model of a file's bytes, in evaluation mode; torch draws no number.

    Args:
        data: what pack has given.

    Raises:
        ValueError: a part of it.
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


def save(file: str | Path, model: Any, characters: str) -> None:
    """Write a reader's own model, which chapter 8's live writer opens.

    Args:
        file: where to.
        model: a DecoderOnly of attnbook.torch.
        characters: one for each token.
    """
    Path(file).write_bytes(pack(model, characters=characters))


def save_built(file: str | Path, weights: Any, num_heads: int, characters: str) -> None:
    """Write the weights of chapter 8's build, a GPT with ReLU and without biases, as save does.

    Args:
        file: where to.
        weights: PyTorch's tensors, as builds.logits asks for them.
        num_heads: in each block.
        characters: one for each token.
    """
    from attnbook.torch import DecoderOnly

    blocks, (vocab, width) = weights["blocks"], weights["embedding"].shape
    sizes = vocab, len(weights["position"]), width, num_heads, len(blocks[0]["w_1"]), len(blocks)
    state = {"position": weights["position"], "decoder_norm.weight": weights["norm"]}
    state |= {f"{name}.weight": weights[name] for name in ("embedding", "readout")}
    for n, of_block in enumerate(blocks):
        state |= {f"decoder.{n}.{own}.weight": of_block[name] for name, own in BUILT.items()}
    model = DecoderOnly(*sizes, activation="relu", bias=False)
    model.load_state_dict(state)
    save(file, model, characters)


def store(name: str, model: Any, pairs: BytePairs | None = None) -> Path:
    """Write a model into the package, from where the website takes it.

    Args:
        name: of the file, without its ending: small letters, digits and hyphens.
        model: as in pack.
        pairs: as in pack.

    Returns:
        The file.
    """
    file = file_of(name)
    file.write_bytes(pack(model, pairs))
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
    merges = json.loads(header["__metadata__"]["merges"])
    tokens = dict.fromkeys([*SIGNS, *(first + second for first, second in merges)])
    return BytePairs(list(tokens), merges)


def load_label(name: str) -> str:
    """What a button says that loads a model, with the bytes that this takes."""
    return f"Load the model ({file_of(name).stat().st_size / 1e6:.1f} MB)"


def file_of(name: str, ending: str = ".bin") -> Path:
    """Where a file of this name is, or will be."""
    if not re.fullmatch(r"[a-z0-9-]+", name):
        raise ValueError(f"name: got {name!r}, expected small letters, digits and hyphens")
    return FOLDER / f"{name}{ending}"


def read(name: str, ending: str = ".bin") -> bytes:
    """A stored file, or an error that says which there are."""
    file = file_of(name, ending)
    if not file.is_file():
        stored = ", ".join(sorted(f.stem for f in FOLDER.glob(f"*{ending}")))
        raise ValueError(f"name: got {name!r}, expected one of {stored}")
    return file.read_bytes()


def _parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the bytes of the numbers."""
    at = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:at])
    ends = [place["data_offsets"][1] for name, place in header.items() if name != "__metadata__"]
    if max(ends) != len(data) - at:
        raise ValueError(f"data: got {len(data)} bytes, expected {at + max(ends)}")
    return header, data[at:]
