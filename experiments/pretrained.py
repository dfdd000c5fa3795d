"""Published models in the book's blocks: how equal they are to the original.

The referee is Hugging Face's library, which reads the same files: transformers, with accelerate.
Takes a few minutes.
"""

import os
import warnings
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import convert, pretrained
from experiments.harness import Experiment

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = (
    "A weighted average is the answer, whatever the question. In 1964 Nadaraya and Watson each "
    "wrote it down, and in 2017 a whole network was built of nothing else: queries, keys, values, "
    "and weights that add up to one. def attend(q, k, v): return softmax(q @ k.T / d**0.5) @ v"
)
REACTION = "[CLS] C C ( = O ) O . O C C >> C C ( = O ) O C C . O [SEP]"


def largest_difference(got: Any, expected: Any) -> float:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max())


@torch.no_grad()
def equality(
    model: Any, twin: Any | None, theirs: Any, tokens: np.ndarray, steps: int
) -> dict[str, Any]:
    """The largest differences from the original, and the largest number they are differences of."""
    out = theirs(torch.tensor(tokens), output_attentions=True)
    _, weights = model(torch.tensor(tokens), return_weights=True)
    found = {
        "tokens": tokens.size,
        "largest": float(out.logits.abs().max()),
        "weights": max(map(largest_difference, weights, out.attentions)),
    }
    names = ("logits", "cache"), ("JAX", "JAX, cache")
    for (at_once, by_steps), ours in zip(names, (model, twin), strict=True):
        if ours is not None:
            given = torch.tensor(tokens) if ours is model else jnp.asarray(tokens)
            found[at_once] = largest_difference(ours(given), out.logits)
            if steps:
                expected = out.logits[:, :steps]
                found[by_steps] = largest_difference(written(ours, given, steps), expected)
    return found


def written(model: Any, tokens: Any, steps: int) -> np.ndarray:
    """Logits (b, steps, vocab) of a model that reads token by token."""
    cache, found = model.empty(tokens.shape[0]), []
    for at in range(steps):
        cache, logits = model.step(cache, tokens[:, at])
        found.append(np.asarray(logits))
    return np.stack(found, axis=1)


def smollm2(quick: bool) -> dict[str, Any]:
    """Against transformers on the same quantised file."""
    folder = pretrained.fetch("smollm2")
    tokens = np.array([pretrained.tokens_from_gguf(folder / GGUF).encode(TEXT)[:80]])
    model = pretrained.from_gguf(folder / GGUF, max_length=128)
    twin = None if quick else convert.torch_to_jax(model)
    theirs = hugging_face().AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=GGUF, dtype=torch.float32, attn_implementation="eager"
    )
    return equality(model, twin, theirs.eval(), tokens, 8 if quick else tokens.shape[1])


def rxnmapper() -> dict[str, Any]:
    """Against transformers on the same ALBERT."""
    folder = pretrained.fetch("rxnmapper")
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokens = np.array([[words.index(word) for word in REACTION.split()]])
    model = pretrained.from_folder(folder)
    theirs = hugging_face().AlbertForMaskedLM.from_pretrained(
        folder, attn_implementation="eager", use_safetensors=False
    )
    found = equality(model, None, theirs.eval(), tokens, 0)
    model.head = None  # the stream, without what makes logits of it
    with torch.no_grad():
        stream = theirs(torch.tensor(tokens), output_hidden_states=True).hidden_states[-1]
        found["largest in the stream"] = float(stream.abs().max())
        found["stream"] = largest_difference(model(torch.tensor(tokens)), stream)
    return found


def hugging_face() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def main(experiment: Experiment) -> None:
    found = {"SmolLM2": smollm2(experiment.quick), "RXNMapper": rxnmapper()}
    print(found)
    experiment.store(transformers=hugging_face().__version__, equality=found)
