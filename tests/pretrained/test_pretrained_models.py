"""Published architectures in the book's blocks, against Hugging Face's library on the same files."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf_files import Kind, write_gguf
from safetensors.numpy import load_file, save_file

from attnbook import convert, datasets, pretrained
from attnbook.generate import sampling
from attnbook.pretrained import llama

transformers = pytest.importorskip("transformers")

BLOCKS = dict(hidden_size=48, num_hidden_layers=3, intermediate_size=96, vocab_size=300)
BLOCKS |= dict(max_position_embeddings=64, attn_implementation="eager")
GPT2 = dict(vocab_size=300, n_positions=64, n_embd=48, n_layer=3, n_head=4)
GPT2 |= dict(bos_token_id=0, eos_token_id=0, attn_implementation="eager")
LLAMA = BLOCKS | dict(num_attention_heads=6, num_key_value_heads=2)
FAR = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}
ALBERT = BLOCKS | dict(num_attention_heads=4, embedding_size=12)
MODELS = {  # the class, and what it is made with
    "GPT-2": ("GPT2LMHeadModel", GPT2),
    "Llama": ("LlamaForCausalLM", LLAMA | FAR | {"tie_word_embeddings": True}),
    "Llama, untied": ("LlamaForCausalLM", LLAMA | {"num_key_value_heads": 6}),
    "ALBERT": ("AlbertModel", ALBERT),
    "ALBERT, masked tokens": ("AlbertForMaskedLM", ALBERT | {"hidden_act": "gelu"}),
}
BOUND = 2e-6  # of the largest number; seen: 0.3e-6 to 0.7e-6 with PyTorch, to 1.1e-6 with JAX
TOKENS = np.random.default_rng(0).integers(0, 300, (2, 40))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model whose parameters are all random, and the folder where its library saved it."""

    @cache
    @torch.no_grad()
    def make(name: str) -> tuple[Any, Path]:
        kind, options = MODELS[name]
        torch.manual_seed(0)
        model_class = getattr(transformers, kind)
        model = model_class(model_class.config_class(**options)).eval()
        for parameter in model.parameters():  # norms and biases are 0 or 1 at first
            parameter.add_(0.1 * torch.randn_like(parameter))
        folder = tmp_path_factory.mktemp("model")
        model.save_pretrained(folder)
        return model, folder

    return make


@torch.no_grad()
def theirs(model: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    out = model(torch.tensor(TOKENS), output_attentions=True)
    result = out.logits if hasattr(out, "logits") else out.last_hidden_state
    return result.numpy(), [w.numpy() for w in out.attentions]


@torch.no_grad()
def ours(model: Any) -> np.ndarray:
    return model(torch.tensor(TOKENS)).numpy()


def difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest, of the largest number expected."""
    assert got.shape == expected.shape
    return float(np.abs(got - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_weights(saved, name):
    """Logits or hidden states, and every head's weights."""
    model, folder = saved(name)
    mine = pretrained.from_folder(folder)
    expected, expected_weights = theirs(model)
    with torch.no_grad():
        got, weights = mine(torch.tensor(TOKENS), return_weights=True)
    assert difference(got.numpy(), expected) < BOUND
    assert len(weights) == len(expected_weights) == 3
    for w, expected_w in zip(weights, expected_weights, strict=True):
        assert difference(w.numpy(), expected_w) < BOUND
    assert not mine.training and all(p.requires_grad for p in mine.parameters())


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_a_twin_in_jax(saved, name):
    """The converted model, and the same logits."""
    jnp = pytest.importorskip("jax.numpy")
    model, folder = saved(name)
    twin = convert.torch_to_jax(pretrained.from_folder(folder))
    assert difference(np.asarray(twin(jnp.asarray(TOKENS))), theirs(model)[0]) < BOUND


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_writing(saved, name):
    """Chapter 8's sampler writes their greedy text, with a cache as long as is asked for."""
    model, folder = saved(name)
    short = pretrained.from_folder(folder, max_length=32)
    assert short.empty(1).keys.shape[-2] == short.max_length == 32
    prompt = TOKENS[0, :8]
    how = dict(max_new_tokens=20, min_new_tokens=20, do_sample=False, pad_token_id=0)
    how |= dict(attention_mask=torch.ones(1, 8, dtype=torch.long), eos_token_id=None)
    expected = model.generate(torch.tensor(prompt[None]), **how)[0].numpy()
    got = sampling.sample(short, prompt, 20, top_k=1)
    np.testing.assert_array_equal(got, expected)
    assert len(set(got[8:])) > 2, "a text that repeats one token would show little"


def test_tied(saved):
    """One matrix in memory serves as embedding and readout; an untied one is another."""
    tied, apart = (pretrained.from_folder(saved(n)[1]) for n in ("Llama", "Llama, untied"))
    assert tied.readout.weight is tied.embedding.weight
    assert apart.readout.weight is not apart.embedding.weight


def changed(folder: Path, to: Path, entries: dict[str, Any], tensors: dict[str, Any]) -> Path:
    """A copy with other entries and tensors; "absent" or None takes one away."""
    config = json.loads((folder / "config.json").read_text()) | entries
    (to / "config.json").write_text(json.dumps({n: v for n, v in config.items() if v != "absent"}))
    arrays = load_file(folder / "model.safetensors") | tensors
    save_file({n: a for n, a in arrays.items() if a is not None}, to / "model.safetensors")
    return to


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
OTHER = np.ones((3, 5), np.float32)
NOT_FINITE = np.full(48, np.inf)
REFUSED = [  # a model, entries of its config.json, tensors, the error
    ("GPT-2", {"model_type": "bloom"}, {}, "model_type: got 'bloom', expected 'llama' or 'gpt2'"),
    ("GPT-2", {"activation_function": "silu"}, {}, "activation_function: got 'silu', expected"),
    ("GPT-2", {"n_layer": "3"}, {}, "n_layer: got '3', expected an integer, 1 or more"),
    ("GPT-2", {"n_embd": "absent"}, {}, "got no entry n_embd, expected one"),
    ("Llama", {"head_dim": 16}, {}, "head_dim: got 16, expected 8"),
    ("Llama", {"attention_bias": True}, {}, "attention_bias: got True, expected False"),
    ("Llama", {"rope_parameters": YARN}, {}, "rope_type: got 'yarn', expected 'default'"),
    ("Llama", {"partial_rotary_factor": 0.5}, {}, "partial_rotary_factor: got 0.5, expected 1.0"),
    ("ALBERT", {"num_hidden_groups": 2}, {}, "num_hidden_groups: got 2, expected 1"),
    ("GPT-2", {}, {"transformer.h.1.ln_2.bias": None}, "got no tensor transformer.h.1.ln_2.bias"),
    ("GPT-2", {}, {"transformer.wpe.weight": OTHER}, "got shape (3, 5), expected (64, 48)"),
    ("GPT-2", {}, {"transformer.ln_f.bias": NOT_FINITE}, "ln_f.bias: got NaN or infinity"),
    ("Llama", {}, {"lm_head.weight": OTHER}, "lm_head.weight: got a tensor of its own, expected"),
    ("Llama", {}, {"score.weight": OTHER}, "got score.weight, expected no tensor of that name"),
]


@pytest.mark.parametrize(("name", "entries", "tensors", "message"), REFUSED)
def test_what_the_blocks_cannot_compute(saved, tmp_path, name, entries, tensors, message):
    folder = changed(saved(name)[1], tmp_path, entries, tensors)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        pretrained.from_folder(folder)
    assert str(folder / "config.json" if entries else folder) in str(caught.value)


HARMLESS = [  # what a file may have beside its model, or leave unsaid
    ("GPT-2", {"n_inner": "absent"}, {"transformer.h.0.attn.bias": OTHER}),
    ("Llama", {"rope_parameters": "absent", "rope_theta": 1e5, "head_dim": "absent"}, {}),
    ("Llama, untied", {"num_key_value_heads": None}, {}),
    ("ALBERT", {"hidden_dropout_prob": 0.5}, {"embeddings.position_ids": OTHER}),
]


@pytest.mark.parametrize(("name", "entries", "tensors"), HARMLESS)
def test_what_changes_nothing(saved, tmp_path, name, entries, tensors):
    model, folder = saved(name)
    read = pretrained.from_folder(changed(folder, tmp_path, entries, tensors))
    assert difference(ours(read), theirs(model)[0]) < BOUND


def test_arguments(saved, tmp_path):
    with pytest.raises(ValueError, match="max_length: got 65, expected 1 to 64"):
        pretrained.from_folder(saved("GPT-2")[1], max_length=65)
    with pytest.raises(ValueError, match="max_length: got 8 for an encoder, expected None"):
        pretrained.from_folder(saved("ALBERT")[1], max_length=8)
    with pytest.raises(FileNotFoundError, match=r"nowhere: expected a folder"):
        pretrained.from_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="tokens: got 300 to 300, expected 0 to 299"):
        pretrained.from_folder(saved("ALBERT")[1])(torch.tensor([[300]]))


FIELDS = {  # of a file of llama.cpp for the random Llama
    "llama.context_length": 64,
    "llama.embedding_length": 48,
    "llama.block_count": 3,
    "llama.feed_forward_length": 96,
    "llama.rope.freq_base": 1e5,
    "llama.attention.head_count": 6,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-6,
    "tokenizer.ggml.tokens": [f"word{i}" for i in range(300)],
}


def as_gguf(model: Any, file: Path, **fields: Any) -> Path:
    """The same Llama in a GGUF file, where rotary pairs are neighbours."""
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    for i in range(3):
        there = f"model.layers.{i}."
        names |= {there + one: f"blk.{i}.{other}" for one, other in llama.PARTS.values()}
    tensors = {}
    for name, parameter in model.named_parameters():
        array = parameter.detach().numpy()
        if "q_proj" in name or "k_proj" in name:
            array = array.reshape(-1, 2, 4, 48).swapaxes(1, 2).reshape(array.shape)
        tensors[names[name.removesuffix(".weight")] + ".weight"] = (array, Kind.F32)
    last = {name: name.rpartition(".")[2] for name in FIELDS}
    own = {name: fields.pop(last[name], value) for name, value in FIELDS.items()}
    return write_gguf(file, {n: v for n, v in (own | fields).items() if v is not None}, tensors)


def test_gguf(saved, tmp_path):
    model, _ = saved("Llama")
    mine = pretrained.from_gguf(as_gguf(model, tmp_path / "small.gguf"))
    assert difference(ours(mine), theirs(model)[0]) < BOUND
    assert mine.readout.weight is mine.embedding.weight


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("block_count", None, "got no entry llama.block_count, expected one"),
        ("block_count", 2, "got blk.2.attn_k.weight, .* and 6 more, expected no tensor of that"),
        ("head_count", 5, "num_heads: got 5, expected a divisor of 48"),
        ("llama.rope.scaling.type", "yarn", "{}: got 'yarn', expected 'none'"),
        ("llama.rope.dimension_count", 4, "{}: got 4, expected 8"),
        ("llama.expert_count", 8, "{}: got 8, expected 0"),
        ("feed_forward_length", 64, r"ffn_up.weight: got shape \(96, 48\), expected \(64, 48\)"),
    ],
)
def test_gguf_that_does_not_fit(saved, tmp_path, name, value, message):
    """The name takes the place of {} in a message."""
    file = as_gguf(saved("Llama")[0], tmp_path / "small.gguf", **{name: value})
    with pytest.raises(ValueError, match=rf"small\.gguf: .*{message.format(name)}"):
        pretrained.from_gguf(file)


def test_real_models():
    """What was measured on SmolLM2 and RXNMapper's ALBERT, against the same files read by theirs."""
    bounds = {"logits": 3e-6, "cache": 3e-6, "JAX": 3e-6, "JAX, cache": 3e-6, "stream": 2e-6}
    for found in datasets.results("pretrained")["equality"].values():
        assert found["weights"] < 1e-5
        for name in bounds.keys() & found.keys():
            largest = found["largest in the stream" if name == "stream" else "largest"]
            assert found[name] < bounds[name] * largest, name
