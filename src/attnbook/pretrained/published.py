"""From a folder or a file to a model of the book."""

from pathlib import Path
from typing import Any

from attnbook.pretrained.checkpoint import Config, Tensors
from attnbook.pretrained.files import read_folder, read_gguf
from attnbook.pretrained.gpt2 import gpt2
from attnbook.pretrained.llama import llama, llama_of_gguf


def from_folder(folder: str | Path, *, max_length: int | None = None) -> Any:
    """A published model from a folder as Hugging Face's libraries write it, in the book's blocks.

    The architectures are Llama (SmolLM2 is one), GPT-2 and ALBERT. The model is called with token
    numbers (batch, n).

    Args:
        folder: has config.json and model.safetensors, or pytorch_model.bin.
        max_length: of a language model's texts, at most its own; its own without it. The cache that
            it writes with is as long, so a short one is quicker.

    Returns:
        A module of PyTorch with parameters of float32, on the CPU, in evaluation mode. It is a
        DecoderOnly for language models, which gives logits (batch, n, vocab) and writes with empty
        and step; an Albert for ALBERT, whose result are logits of masked tokens where the file has
        a head for them, else the last hidden states (batch, n, embed_dim). convert.torch_to_jax
        makes a DecoderOnly's twin in JAX.

    Raises:
        TypeError: a folder that is no path.
        FileNotFoundError: a file that is missing.
        ValueError: a file that is not what it says; another architecture; an entry of config.json
            that the book's blocks cannot compute; a tensor that is missing, of another shape, not
            finite as float32, or unknown. The file and the entry or tensor are named.
    """
    folder = Path(folder)
    entries, arrays = read_folder(folder)
    config = Config(entries, str(folder / "config.json"))
    tensors = Tensors(arrays, str(folder))
    kind = config.supported("model_type", ["llama", "gpt2", "albert"])
    if kind == "albert":
        from attnbook.pretrained.albert import albert

        if max_length is not None:
            raise ValueError(f"max_length: got {max_length!r} for an encoder, expected None")
        return albert(config, tensors)
    return (llama if kind == "llama" else gpt2)(config, tensors, max_length)


def from_gguf(file: str | Path, *, max_length: int | None = None) -> Any:
    """A published language model from llama.cpp's kind of file, in the book's blocks.

    Its architecture is "llama", which SmolLM2 has. Quantised matrices are those of the file, not
    the published ones, and become float32.

    Args:
        file: of the format GGUF.
        max_length: as in from_folder.

    Returns:
        A DecoderOnly, as from_folder gives it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: as from_folder, of the file's fields and tensors.
    """
    fields, arrays = read_gguf(file)
    return llama_of_gguf(Config(fields, str(file)), Tensors(arrays, str(file)), max_length)
