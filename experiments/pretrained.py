"""Published models in the book's blocks: how equal they are to the original, and what they cost.

python -m experiments.pretrained            all; stores the results (a few minutes)
python -m experiments.pretrained --quick    fewer tokens, no JAX; stores nothing

The referee is Hugging Face's library, which reads the same files: transformers, with accelerate.
Seconds are CPU seconds of one thread; each back end runs in a process of its own, whose peak memory
counts.
"""

import multiprocessing
import os
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

import numpy as np
import torch

from attnbook import pretrained
from experiments.storing import asked_quick, store, summary

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


def equality(
    model: Any, twin: Any | None, theirs: Any, tokens: np.ndarray, steps: int
) -> dict[str, Any]:
    """The largest differences from the original, and the largest number they are differences of."""
    with torch.no_grad():
        given = torch.tensor(tokens)
        out = theirs(given, output_attentions=True)
        logits, weights = model(given, return_weights=True)
        found = {
            "tokens": tokens.size,
            "largest": float(out.logits.abs().max()),
            "logits": largest_difference(logits, out.logits),
            "weights": max(map(largest_difference, weights, out.attentions)),
        }
        if steps:
            found["cache"] = largest_difference(written(model, given, steps), out.logits[:, :steps])
    if twin is not None:
        import jax.numpy as jnp

        given = jnp.asarray(tokens)
        found["JAX"] = largest_difference(twin(given), out.logits)
        if steps:
            found["JAX, cache"] = largest_difference(
                written(twin, given, steps), out.logits[:, :steps]
            )
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
    how: dict[str, Any] = {"max_length": 128}
    model = pretrained.from_gguf(folder / GGUF, **how)
    twin = None if quick else pretrained.from_gguf(folder / GGUF, backend="jax", **how)
    theirs = hugging_face().AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=GGUF, dtype=torch.float32, attn_implementation="eager"
    )
    return equality(model, twin, theirs.eval(), tokens, 8 if quick else tokens.shape[1])


def rxnmapper(quick: bool) -> dict[str, Any]:
    """Against transformers on the same ALBERT."""
    folder = pretrained.fetch("rxnmapper")
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    tokens = np.array([[words.index(word) for word in REACTION.split()]])
    model = pretrained.from_folder(folder)
    twin = None if quick else pretrained.from_folder(folder, backend="jax")
    theirs = hugging_face().AlbertForMaskedLM.from_pretrained(
        folder, attn_implementation="eager", use_safetensors=False
    )
    found = equality(model, twin, theirs.eval(), tokens, 0)
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


def costs(library: str, max_length: int | None, quick: bool) -> dict[str, Any]:
    """CPU seconds and gigabytes of SmolLM2 in this process, which has done nothing before."""
    torch.set_num_threads(1)
    if library == "jax":
        import jax.numpy as jnp
    to_array: Any = torch.tensor if library == "torch" else jnp.asarray
    file = pretrained.fetch("smollm2") / GGUF
    before = gigabytes()
    start = time.process_time()
    model = pretrained.from_gguf(file, backend=library, max_length=max_length)
    loading, loaded = time.process_time() - start, gigabytes()
    tokens = to_array(np.random.default_rng(0).integers(0, model.vocab_size, (1, 80)))
    with torch.no_grad():
        passes = seconds(lambda: np.asarray(model(tokens)), 2 if quick else 6)
        cache = model.empty(1)
        state = [cache]

        def step() -> None:
            state[0], logits = model.step(state[0], tokens[:, 0])
            np.asarray(logits)

        steps = seconds(step, 4 if quick else 21)
    return {
        "loading": loading,
        "80 tokens": summary(passes[1:]),
        "80 tokens, the first time": passes[0],
        "a step": summary(steps[1:]),
        "a step, the first time": steps[0],
        "memory": {"imports": before, "loaded": loaded, "at the end": gigabytes()},
    }


def seconds(compute: Callable[[], Any], times: int) -> list[float]:
    found = []
    for _ in range(times):
        start = time.process_time()
        compute()
        found.append(time.process_time() - start)
    return found


def gigabytes() -> float:
    """The most that this process has needed."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a process of its own."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    found: dict[str, Any] = {"costs": {}, "equality": {}}
    cases = [("torch", 512), ("torch", None), ("jax", 512)]
    for library, max_length in cases[:1] if quick else cases:
        name = f"{library}, {'its own length' if max_length is None else max_length}"
        found["costs"][name] = alone(costs, library, max_length, quick)
        print(name, found["costs"][name], flush=True)
    for name, compare in (("SmolLM2", smollm2), ("RXNMapper", rxnmapper)):
        found["equality"][name] = alone(compare, quick)
        print(name, found["equality"][name], flush=True)
    if not quick:
        store("pretrained", transformers=hugging_face().__version__, **found)


if __name__ == "__main__":
    main()
