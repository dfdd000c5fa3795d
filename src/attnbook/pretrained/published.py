"""From a folder or a file to a model of the book."""

from pathlib import Path
from typing import Any

from attnbook.pretrained.bert import ALBERT_HEADS, BERT_HEADS, albert_recipe, bert_recipe
from attnbook.pretrained.checkpoint import Config, Tensors
from attnbook.pretrained.files import MODEL, PICKLE, SHARDS, read_folder, read_gguf
from attnbook.pretrained.gpt2 import GPT2_HEADS, gpt2_recipe
from attnbook.pretrained.llama import (
    LLAMA_HEADS,
    MISTRAL_HEADS,
    QWEN2_HEADS,
    gguf_recipe,
    llama_recipe,
)
from attnbook.pretrained.load import build
from attnbook.pretrained.vit import VIT_HEADS, vit_recipe

RECIPES = {  # by model_type: what makes the model, and the architectures that it knows
    "gpt2": (gpt2_recipe, GPT2_HEADS),
    "llama": (llama_recipe, LLAMA_HEADS),
    "qwen2": (llama_recipe, QWEN2_HEADS),
    "mistral": (llama_recipe, MISTRAL_HEADS),
    "bert": (bert_recipe, BERT_HEADS),
    "albert": (albert_recipe, ALBERT_HEADS),
    "vit": (vit_recipe, VIT_HEADS),
}


def from_folder(
    folder: str | Path, *, backend: str = "torch", max_length: int | None = None
) -> Any:
    """A published model from a folder as Hugging Face's libraries write it, in the book's blocks.

    The architectures are GPT-2, Llama, Qwen2, Mistral without a sliding window, BERT, ALBERT and
    ViT. The model is called with token numbers (batch, n), and ViT with images.

    Args:
        folder: has config.json and model.safetensors, or the other files that read_folder reads.
        backend: "torch" or "jax".
        max_length: of a language model's texts, at most its own; its own without it. The cache that
            it writes with is as long, so a short one is quicker.

    Returns:
        A DecoderOnly for language models, which gives logits (batch, n, vocab) and writes with
        empty and step; a TextEncoder for BERT and ALBERT, whose result are logits of masked tokens
        where the file has a head for them, else the last hidden states (batch, n, embed_dim); an
        ImageEncoder for ViT. Its parameters are float32. In PyTorch it lies on the CPU, in
        evaluation mode.

    Raises:
        TypeError: a folder that is no path.
        FileNotFoundError: a file that is missing.
        ValueError: a file that is not what it says; another architecture or back end; an entry of
            config.json that the book's blocks cannot compute; a tensor that is missing, of another
            shape, not finite as float32, or unknown. The file and the entry or tensor are named.
    """
    folder = Path(folder)
    entries, arrays = read_folder(folder)
    config = Config(entries, str(folder / "config.json"))
    config.entries["model_type"] = kind = _kind(config)
    recipe_of, architectures = RECIPES[kind]
    for name in config.names("architectures"):
        if name not in architectures:
            raise config.refused("architectures", " or ".join(architectures))
    names = (name for name in (MODEL, SHARDS, PICKLE) if (folder / name).is_file())
    tensors = Tensors(arrays, str(folder / next(names)))
    del arrays  # what a model has taken and turned is freed
    return build(recipe_of, config, tensors, backend, max_length)


def from_gguf(file: str | Path, *, backend: str = "torch", max_length: int | None = None) -> Any:
    """A published language model from llama.cpp's kind of file, in the book's blocks.

    Its architecture is "llama", which SmolLM2 has. Quantised matrices are those of the file, not
    the published ones, and become float32.

    Args:
        file: of the format GGUF.
        backend: "torch" or "jax".
        max_length: as in from_folder.

    Returns:
        A DecoderOnly, as from_folder gives it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: as from_folder, of the file's fields and tensors.
    """
    fields, arrays = read_gguf(file)
    tensors = Tensors(arrays, str(file))
    del arrays
    return build(gguf_recipe, Config(fields, str(file)), tensors, backend, max_length)


def _kind(config: Config) -> str:
    """The model_type, or what the architectures say of it."""
    first = config.names("architectures")[:1]
    found = (kind for kind, (_, architectures) in RECIPES.items() if {*first} & {*architectures})
    kind: str = config.supported("model_type", RECIPES, next(found, None))
    return kind
