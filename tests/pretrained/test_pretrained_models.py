"""Published architectures in the book's blocks, against Hugging Face's library, in both back ends."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_pretrained as reference
import torch

from attnbook import convert, datasets, pretrained
from attnbook import torch as torch_layers
from attnbook.generate import sampling
from attnbook.pretrained import files

BOUND = 2e-6  # of the largest number; seen: 0.3e-6 to 0.7e-6 with PyTorch, to 1.1e-6 with JAX
ROWS, LENGTH = 2, 40
LIBRARIES = ("torch", "jax")
LEARNED_POSITIONS = ("gpt2", "bert", "albert")


def array(library: str, numbers: np.ndarray) -> Any:
    """An array of the library; JAX is imported by the tests that ask for it alone."""
    if library == "torch":
        return torch.tensor(numbers)
    import jax.numpy as jnp

    return jnp.asarray(numbers)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A random model of a name, and the folder where its library saved it."""

    @cache
    def make(name: str) -> tuple[Any, Path]:
        model = reference.make(name)
        return model, reference.save(model, tmp_path_factory.mktemp("model"))

    return make


@pytest.fixture(scope="module")
def read(saved):
    """The same in the book's blocks."""
    return cache(lambda name, library: pretrained.from_folder(saved(name)[1], backend=library))


def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 300, (ROWS, LENGTH))


def padding() -> np.ndarray:
    """True = a token; the second row has padding before it and a hole."""
    mask = np.ones((ROWS, LENGTH), bool)
    mask[1, :7] = mask[1, 20] = False
    return mask


def pixels() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, 3, 32, 32)).astype(np.float32)


@torch.no_grad()
def theirs(model: Any, given: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, Any]:
    how = {} if mask is None else {"attention_mask": torch.tensor(mask, dtype=torch.long)}
    if mask is not None and model.config.model_type in LEARNED_POSITIONS:
        how["position_ids"] = (torch.tensor(mask).cumsum(-1) - 1).clamp(min=0)  # as generate does
    out = model(torch.tensor(given), output_attentions=True, **how)
    result = out.logits if hasattr(out, "logits") else out.last_hidden_state
    return result.numpy(), [w.numpy() for w in out.attentions]


@torch.no_grad()
def ours(model: Any, library: str, given: np.ndarray, mask: np.ndarray | None = None, **how: Any):
    if mask is not None:
        how["mask"] = array(library, mask)
    out = model(array(library, given), **how)
    if how.get("return_weights"):
        return np.asarray(out[0]), [np.asarray(w) for w in out[1]]
    return np.asarray(out)


def difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest, of the largest number expected."""
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", reference.DECODERS | reference.ENCODERS)
def test_tokens(saved, read, name, library):
    """Logits or hidden states, and every head's weights, with and without padding."""
    model, mine = saved(name)[0], read(name, library)
    expected, expected_weights = theirs(model, tokens(), padding())
    got, weights = ours(mine, library, tokens(), padding(), return_weights=True)
    real = padding()
    assert difference(got[real], expected[real]) < BOUND
    assert len(weights) == len(expected_weights) == 3
    for w, expected_w in zip(weights, expected_weights, strict=True):
        by_query = (np.moveaxis(a, 1, 2)[real] for a in (w, expected_w))
        assert difference(*by_query) < BOUND
    if library == "jax":
        return  # its operations are compiled for every shape anew
    whole = ours(mine, library, tokens())
    assert difference(whole, theirs(model, tokens())[0]) < BOUND
    assert difference(whole[1][real[1]], expected[1][real[1]]) > 1000 * BOUND, "padding counts"


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", reference.VISION)
def test_images(saved, read, name, library):
    expected, expected_weights = theirs(saved(name)[0], pixels())
    got, weights = ours(read(name, library), library, pixels(), return_weights=True)
    assert difference(got, expected) < BOUND
    for w, expected_w in zip(weights, expected_weights, strict=True):
        assert difference(w, expected_w) < BOUND


@pytest.mark.parametrize(
    ("name", "library"),
    [("GPT-2", "torch"), ("Llama", "torch"), ("Qwen2", "torch"), ("Llama", "jax")],
)
def test_cache(saved, read, name, library):
    """Step by step, the logits of the full pass."""
    expected, _ = theirs(saved(name)[0], tokens())
    mine = read(name, library)
    written, steps = mine.empty(ROWS), []
    with torch.no_grad():
        for column in tokens().T:
            written, logits = mine.step(written, array(library, column))
            steps.append(np.asarray(logits))
    assert difference(np.stack(steps, axis=1), expected) < BOUND


@pytest.mark.parametrize(
    ("name", "library"), [("GPT-2", "torch"), ("Mistral", "torch"), ("GPT-2", "jax")]
)
def test_text(saved, read, name, library):
    """What chapter 8's sampler writes with the most probable token is their greedy text."""
    prompt = tokens()[0, :8]
    how = dict(max_new_tokens=20, min_new_tokens=20, do_sample=False, pad_token_id=0)
    how |= dict(attention_mask=torch.ones(1, 8, dtype=torch.long), eos_token_id=None)
    expected = saved(name)[0].generate(torch.tensor(prompt[None]), **how)
    got = sampling.sample(read(name, library), prompt, 20, top_k=1)
    np.testing.assert_array_equal(got, expected[0].numpy())
    assert len(set(got[8:])) > 2, "a text that repeats one token would show little"


def test_kinds(read):
    """Language models are the book's own class."""
    for name in reference.DECODERS:
        assert type(read(name, "torch")) is torch_layers.DecoderOnly


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_shorter(saved, read, name):
    """A shorter model computes the same, and has a shorter cache."""
    short = pretrained.from_folder(saved(name)[1], max_length=16)
    given = tokens()[:, :16]
    np.testing.assert_array_equal(
        ours(short, "torch", given), ours(read(name, "torch"), "torch", given)
    )
    assert short.empty(1).keys.shape[-2] == short.max_length == 16


def test_tied(saved, read):
    """One matrix in memory serves as embedding and readout; an untied one is another."""
    tied, apart = read("Llama", "torch"), read("Llama, untied", "torch")
    assert tied.readout.weight is tied.embedding.weight
    assert read("Llama", "jax").readout is None
    assert apart.readout.weight is not apart.embedding.weight
    with torch.no_grad():
        expected = sum(p.numel() for p in saved("Llama")[0].parameters())
    assert sum(p.numel() for p in tied.parameters()) == expected


def test_twin(read):
    """Bit for bit what the conversion of the PyTorch model gives."""
    jax = pytest.importorskip("jax")
    expected, got = convert.torch_to_jax(read("Llama", "torch")), read("Llama", "jax")
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_block_serves_all_layers(read):
    albert = read("ALBERT", "torch")
    assert len(albert.encoder) == 1 and albert.num_layers == 3


# what a reader of a file might get wrong, one at a time; configuration and tensors are changed
def _entry(**changes: Any):
    def change(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        config.update(changes)

    return change


def _no_bias(name: str):
    def change(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[name] = np.zeros_like(tensors[name])

    return change


def _exchanged(one: str, other: str):
    def change(config: dict[str, Any], tensors: dict[str, Any]) -> None:
        for name in list(tensors):
            if one in name:
                twin = name.replace(one, other)
                tensors[name], tensors[twin] = tensors[twin], tensors[name]

    return change


MUTATIONS = [
    ("GPT-2", "gpt2", _entry(activation_function="gelu")),
    ("GPT-2, exact gelu", "gpt2", _entry(activation_function="gelu_new")),
    ("GPT-2", "gpt2", _entry(layer_norm_epsilon=1e-6)),
    ("GPT-2", "gpt2", _entry(n_head=2)),
    ("GPT-2", "gpt2", _no_bias("transformer.h.1.attn.c_attn.bias")),
    ("Llama", "llama", _entry(rms_norm_eps=1e-5)),
    ("Llama", "llama", _entry(rope_parameters={"rope_type": "default", "rope_theta": 1e4})),
    ("Llama", "llama", _exchanged("gate_proj", "up_proj")),
    ("Llama", "llama", _exchanged("input_layernorm", "post_attention_layernorm")),
    ("Llama, biases", "llama", _no_bias("model.layers.2.mlp.down_proj.bias")),
    ("Qwen2", "llama", _no_bias("model.layers.0.self_attn.k_proj.bias")),
    ("BERT", "bert", _entry(layer_norm_eps=1e-5)),
    ("BERT", "bert", _entry(hidden_act="gelu_new")),
    ("BERT, masked tokens", "bert", _no_bias("cls.predictions.bias")),
    ("ALBERT", "albert", _entry(hidden_act="gelu")),
    ("ALBERT", "albert", _exchanged("attention.LayerNorm", "full_layer_layer_norm")),
]


@pytest.mark.parametrize(("name", "adapter", "change"), MUTATIONS)
def test_mutations(saved, name, adapter, change):
    """Every wrong option moves what comes out by far more than the bound."""
    model, folder = saved(name)
    expected, _ = theirs(model, tokens())
    config, tensors = files.read_folder(folder)
    make = getattr(pretrained, adapter)
    assert difference(ours(make(config, tensors), "torch", tokens()), expected) < BOUND
    change(config, tensors)
    wrong = difference(ours(make(config, tensors), "torch", tokens()), expected)
    assert wrong > 10 * BOUND, wrong


def test_pairs_must_be_neighbours(saved, monkeypatch):
    model, folder = saved("Llama")
    module = sys.modules["attnbook.pretrained.llama"]  # the package's llama is the adapter
    monkeypatch.setattr(module, "neighbours", lambda rows, head_dim: rows)
    got = ours(pretrained.from_folder(folder), "torch", tokens())
    assert difference(got, theirs(model, tokens())[0]) > 1000 * BOUND


def test_real_models():
    """What was measured on SmolLM2 and RXNMapper's ALBERT, against the same files read by theirs."""
    stored = datasets.results("pretrained")["equality"]
    bounds = {"logits": 3e-6, "cache": 3e-6, "JAX": 3e-6, "JAX, cache": 3e-6, "stream": 2e-6}
    for found in stored.values():
        assert found["weights"] < 1e-5
        for name in bounds.keys() & found.keys():
            largest = found["largest in the stream" if name == "stream" else "largest"]
            assert found[name] < bounds[name] * largest, name
