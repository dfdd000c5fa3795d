"""Models from GGUF files, and files that the book's blocks cannot be: errors that name what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import reference_pretrained as reference
import torch
from gguf.quants import dequantize, quantize
from gguf_files import Kind as Q
from gguf_files import write_gguf
from safetensors.numpy import load_file, save_file

from attnbook import pretrained

# of a small model with heads of width 16
FIELDS = {
    "llama.context_length": 32,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.feed_forward_length": 96,
    "llama.rope.freq_base": 5e4,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}
PARTS = {
    "attn_q": (64, 64),
    "attn_k": (32, 64),
    "attn_v": (32, 64),
    "attn_output": (64, 64),
    "ffn_gate": (96, 64),
    "ffn_up": (96, 64),
    "ffn_down": (64, 96),
}


def drawn(kind: Q, tied: bool = True) -> dict[str, tuple[np.ndarray, Q]]:
    """Tensors by llama.cpp's names; matrices of a kind, norms of F32 as its files have them."""
    rng = np.random.default_rng(0)
    shapes = {"token_embd.weight": (50, 64), "output_norm.weight": (64,)}
    shapes |= {} if tied else {"output.weight": (50, 64)}
    for i in range(2):
        shapes |= {f"blk.{i}.{part}.weight": shape for part, shape in PARTS.items()}
        shapes |= {f"blk.{i}.{norm}.weight": (64,) for norm in ("attn_norm", "ffn_norm")}
    found = {}
    for name, shape in shapes.items():
        array = rng.normal(size=shape, scale=0.1).astype(np.float32)
        found[name] = (array + 1, Q.F32) if len(shape) == 1 else (array, kind)
    return found


def write(
    file: Path, tensors: dict[str, tuple[np.ndarray, Q]], architecture: str = "llama", **fields: Any
) -> Path:
    """A file of such a model; fields: other ones than FIELDS, by their last names."""
    changed = {name: fields.pop(name.rsplit(".", 1)[-1], value) for name, value in FIELDS.items()}
    given = {name: value for name, value in (changed | fields).items() if value is not None}
    given["tokenizer.ggml.tokens"] = [f"word{i}" for i in range(50)]
    return write_gguf(file, given, tensors, architecture)


def as_hugging_face(tensors: dict[str, np.ndarray], tied: bool) -> Any:
    """The same model of transformers, whose rotary pairs are i and i + d/2."""
    sizes = dict(vocab_size=50, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
    more = dict(max_position_embeddings=32, rms_norm_eps=1e-5, tie_word_embeddings=tied)
    rotation = {"rope_parameters": {"rope_type": "default", "rope_theta": 5e4}}
    options = reference.LLAMA | sizes | more | rotation
    transformers = reference.transformers
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**options)).eval()
    parts = {"attn_q": "q_proj", "attn_k": "k_proj", "attn_v": "v_proj", "attn_output": "o_proj"}
    names = {part: f"self_attn.{theirs}" for part, theirs in parts.items()}
    names |= {f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")}
    names |= {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    names |= {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    state = {}
    for name, array in tensors.items():
        *block, part, _ = name.split(".")
        theirs = ".".join(["model.layers", *block[1:], names[part]]) if block else names[part]
        if part in ("attn_q", "attn_k"):
            array = array.reshape(-1, 8, 2, 64).swapaxes(1, 2).reshape(array.shape)
        state[f"{theirs}.weight"] = torch.tensor(array)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and missing in ([], ["lm_head.weight"])
    model.tie_weights()
    return model


@pytest.mark.parametrize("kind", [Q.Q4_0, Q.Q4_1, Q.Q8_0, Q.F16, Q.F32], ids=lambda kind: kind.name)
def test_gguf(tmp_path, kind):
    """Quantised as the file says, and computed as Hugging Face's library does."""
    tensors, tied = drawn(kind, kind is not Q.Q8_0), kind is not Q.Q8_0
    file = write(tmp_path / "small.gguf", tensors)
    model = pretrained.from_gguf(file)
    kept = {name: dequantize(quantize(a, k), k) for name, (a, k) in tensors.items()}
    mine = {name: p.detach().numpy() for name, p in model.named_parameters()}
    here, there = "decoder.1.attention.key.weight", "blk.1.attn_k.weight"
    np.testing.assert_array_equal(mine["embedding.weight"], kept["token_embd.weight"])
    np.testing.assert_array_equal(mine[here], kept[there])
    assert ("readout.weight" in mine) != tied
    tokens = torch.arange(30).reshape(1, -1)
    with torch.no_grad():
        expected, got = as_hugging_face(kept, tied)(tokens).logits, model(tokens)
    assert (got - expected).abs().max() < 2e-6 * expected.abs().max()
    if kind is Q.Q4_1:
        twin = pretrained.from_gguf(file, backend="jax")(jnp.asarray(tokens.numpy()))
        assert np.abs(np.asarray(twin) - expected.numpy()).max() < 4e-6 * expected.abs().max()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("block_count", None, "got no entry llama.block_count, expected one"),
        (
            "block_count",
            1,
            "got blk.1.attn_k.weight, .* and 6 more, expected no tensor of that name",
        ),
        ("llama.attention.head_count", 0, "{}: got 0, expected an integer, 1 or more"),
        ("llama.attention.head_count", 3, "{}: got 3, expected a divisor of 64"),
        ("llama.attention.head_count_kv", 3, "{}: got 3, expected a divisor of 4"),
        ("llama.attention.key_length", 8, "{}: got 8, expected 16"),
        ("llama.rope.scaling.type", "yarn", "{}: got 'yarn', expected 'none'"),
        ("llama.rope.dimension_count", 8, "{}: got 8, expected 16"),
        ("llama.expert_count", 8, "{}: got 8, expected 0"),
        (
            "llama.feed_forward_length",
            64,
            r"blk.0.ffn_gate.weight: got shape \(96, 64\), expected \(64, 64\)",
        ),
        ("architecture", "qwen2", "general.{}: got 'qwen2', expected 'llama'"),
    ],
)
def test_gguf_that_does_not_fit(tmp_path, name, value, message):
    """The name takes the place of {} in a message."""
    file = write(tmp_path / "small.gguf", drawn(Q.F32), **{name: value})
    with pytest.raises(ValueError, match=message.format(name)) as caught:
        pretrained.from_gguf(file)
    assert "small.gguf" in str(caught.value)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One saved model of each kind."""
    return {
        name: reference.save(reference.make(name), tmp_path_factory.mktemp("m"))
        for name in {row[0] for row in (*REFUSED, *MISFITS)}
    }


def changed(folder: Path, to: Path, entries: dict[str, Any], tensors: dict[str, Any]) -> Path:
    """A copy with other entries and tensors; None takes one away, a number is its new length."""
    config = json.loads((folder / "config.json").read_text()) | entries
    to.mkdir()
    left = {name: value for name, value in config.items() if value != "absent"}
    (to / "config.json").write_text(json.dumps(left))
    arrays = load_file(folder / "model.safetensors")
    for name, what in tensors.items():
        if what is None:
            del arrays[name]
        elif isinstance(what, int):
            arrays[name] = arrays[name][:what]
        else:
            arrays[name] = what
    save_file(arrays, to / "model.safetensors")
    return to


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}
OTHER = np.ones((3, 5), np.float32)
REFUSED = [  # a model, an entry of its config.json and its value, what is expected
    ("GPT-2", "model_type", "bloom", "'gpt2' or 'llama' or"),
    ("GPT-2", "model_type", ["gpt2"], "'gpt2' or"),
    ("GPT-2", "architectures", ["GPT2ForTokenClassification"], "GPT2LMHeadModel"),
    ("GPT-2", "architectures", 3, "a list of names"),
    ("GPT-2", "architectures", {"GPT2Model": 1}, "a list of names"),
    ("GPT-2", "architectures", [["GPT2Model"]], "a list of names"),
    ("GPT-2", "activation_function", "silu", "'gelu' or 'gelu_new' or"),
    ("GPT-2", "activation_function", ["gelu"], ""),
    ("GPT-2", "scale_attn_weights", False, "True"),
    ("GPT-2", "scale_attn_by_inverse_layer_idx", True, "False"),
    ("GPT-2", "n_layer", 1.5, "an integer, 1 or more"),
    ("GPT-2", "n_layer", "3", "an integer, 1 or more"),
    ("GPT-2", "n_head", 5, "a divisor of 48"),
    ("GPT-2", "n_embd", [48], "an integer, 1 or more"),
    ("GPT-2", "layer_norm_epsilon", 0.0, "a number above 0"),
    ("GPT-2", "layer_norm_epsilon", "1e-5", "a number above"),
    ("Llama", "hidden_act", "gelu", "'silu'"),
    ("Llama", "head_dim", 16, "8"),
    ("Llama", "rope_parameters", YARN, ""),
    ("Llama", "rope_parameters", {"full_attention": YARN}, "the parameters of one rotation"),
    ("Llama", "rope_parameters", 3, "the parameters of one rotation"),
    ("Mistral", "sliding_window", 16, "null, or at least 64"),
    ("Mistral", "sliding_window", 63, "null, or at least 64"),
    ("Mistral", "sliding_window", "wide", "null, or at least 64"),
    ("Mistral", "sliding_window", True, "null"),
    ("Mistral", "sliding_window", 1e3, "null"),
    ("BERT", "position_embedding_type", "relative_key", "'absolute'"),
    ("BERT", "is_decoder", True, "False"),
    ("BERT", "architectures", ["BertForQuestionAnswering"], ""),
    ("ALBERT, masked tokens", "num_hidden_groups", 2, "1"),
    ("ALBERT, masked tokens", "tie_word_embeddings", False, "True"),
    ("ViT, classes", "hidden_act", "quick_gelu", "'gelu'"),
]
NO_TYPE = {"model_type": "absent"}
WIDE = {"sliding_window": "absent", "max_position_embeddings": 8192}
LINEAR = {"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}}
HALF = {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}}
REFUSED_TOGETHER = [  # a model, entries, the error
    ("GPT-2", NO_TYPE | {"architectures": ["T5Model"]}, "model_type: got None, expected 'gpt2' or"),
    ("GPT-2", NO_TYPE | {"architectures": []}, "model_type: got None, expected 'gpt2' or"),
    ("GPT-2", {"n_embd": "absent"}, "got no entry n_embd, expected one"),
    ("Llama", LINEAR, "rope_scaling: got .*'linear'.*, expected"),
    ("Llama", HALF, "rope_parameters: partial_rotary_factor: got 0.5, expected 1.0"),
    ("Mistral", WIDE, "sliding_window: got 4096, expected null, or at least 8192"),
    (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 8},
        "sliding_window: got 8, expected null",
    ),
    ("ViT, classes", {"image_size": 30}, "patch_size: got 8, expected a divisor of image_size, 30"),
]
NAN = np.full((64, 48), np.nan)
INFINITE, LARGE = (np.array([number] + [0.0] * 47) for number in (np.inf, 1e300))
NOT_FINITE = "numbers NaN, infinite or too large for float32, expected finite"
Q_BIAS = "model.layers.0.self_attn.q_proj.bias"
MISFITS = [  # a model, one of its tensors, what becomes of it, the error
    ("GPT-2", "transformer.h.1.ln_2.bias", None, r"no tensor {}, expected one of shape \(48,\)"),
    ("GPT-2", "transformer.wpe.weight", 60, r"{}: got shape \(60, 48\), expected \(64, 48\)"),
    ("GPT-2", "transformer.h.0.attn.c_attn.weight", 40, r"{}: .*\(40, 144\), expected \(48, 144\)"),
    ("GPT-2", "transformer.wpe.weight", NAN, "{}: got 3072 of 3072 " + NOT_FINITE),
    ("GPT-2", "transformer.ln_f.bias", INFINITE, "{}: got 1 of 48 " + NOT_FINITE),
    ("GPT-2", "transformer.ln_f.bias", LARGE, "{}: got 1 of 48 " + NOT_FINITE),
    (
        "Llama",
        "lm_head.weight",
        OTHER,
        "{}: got a tensor of its own, expected the one it is tied to",
    ),
    ("Llama, untied", "lm_head.weight", None, "got no tensor {}"),
    ("Qwen2", Q_BIAS, None, "got no tensor {}"),
    ("Mistral", Q_BIAS, OTHER, "got {}, expected no tensor"),
    ("BERT", "classifier.weight", OTHER, "got {}, expected no tensor of that name"),
    ("ALBERT, masked tokens", "predictions.decoder.bias", OTHER, "{}: got a tensor of its own"),
    ("ViT, classes", "vit.embeddings.cls_token", None, "got no tensor {}"),
]


def refused(folder, to, message, entries, tensors):
    """Loading what is changed says so, and in which of the two files."""
    with pytest.raises(ValueError, match=message) as caught:
        pretrained.from_folder(changed(folder, to / "model", entries, tensors))
    assert ("config.json" if entries else "model.safetensors") in str(caught.value)


@pytest.mark.parametrize(("name", "entry", "value", "expected"), REFUSED)
def test_entries_that_the_blocks_cannot_compute(folders, tmp_path, name, entry, value, expected):
    message = re.escape(f"{entry}: got {value!r}, expected {expected}")
    refused(folders[name], tmp_path, message, {entry: value}, {})


@pytest.mark.parametrize(("name", "entries", "message"), REFUSED_TOGETHER)
def test_entries_that_together_cannot_be_computed(folders, tmp_path, name, entries, message):
    refused(folders[name], tmp_path, message, entries, {})


@pytest.mark.parametrize(("name", "tensor", "what", "message"), MISFITS)
def test_tensors_that_do_not_fit(folders, tmp_path, name, tensor, what, message):
    refused(folders[name], tmp_path, message.format(tensor), {}, {tensor: what})


HARMLESS = [  # what a file may have beside its model, or leave unsaid
    ("GPT-2", {"model_type": "absent", "n_inner": "absent"}, {"transformer.h.0.attn.bias": OTHER}),
    ("GPT-2", {"layer_norm_epsilon": "absent", "architectures": "absent"}, {}),
    (
        "Llama",
        {"rope_parameters": "absent", "rope_theta": 1e5, "head_dim": "absent"},
        {"model.layers.0.self_attn.rotary_emb.inv_freq": OTHER},
    ),
    ("GPT-2", {"architectures": []}, {}),
    ("Llama, untied", {"num_key_value_heads": "absent"}, {}),
    ("Llama, untied", {"num_key_value_heads": None}, {}),
    ("Mistral", {"sliding_window": 64}, {}),
    ("Mistral", {"sliding_window": "absent"}, {}),
    ("Qwen2", {"model_type": "absent"}, {}),
    ("Qwen2", {"use_sliding_window": False, "sliding_window": 8}, {}),
    ("BERT", {"layer_norm_eps": "absent"}, {"embeddings.position_ids": OTHER}),
    ("ALBERT, masked tokens", {"hidden_dropout_prob": 0.5}, {"albert.pooler.weight": OTHER}),
]


@pytest.mark.parametrize(("name", "entries", "tensors"), HARMLESS)
def test_what_changes_nothing(folders, tmp_path, name, entries, tensors):
    folder = changed(folders[name], tmp_path / "model", entries, tensors)
    tokens = torch.arange(20).reshape(1, -1)
    with torch.no_grad():
        expected, got = (pretrained.from_folder(f)(tokens) for f in (folders[name], folder))
    assert torch.equal(got, expected)


def test_what_an_absent_entry_means(folders, tmp_path):
    """Llama's own defaults, in either kind of file."""
    entries = {"rms_norm_eps": "absent", "num_key_value_heads": "absent"}
    model = pretrained.from_folder(changed(folders["Llama, untied"], tmp_path / "m", entries, {}))
    assert {norm.eps for norm in (model.decoder_norm, model.decoder[0].mlp_norm)} == {1e-6}
    assert model.num_kv_heads == model.num_heads == 6
    tensors = drawn(Q.F32)
    for i in range(2):
        for part in ("attn_k", "attn_v"):
            tensors[f"blk.{i}.{part}.weight"] = (np.ones((64, 64), np.float32), Q.F32)
    model = pretrained.from_gguf(write(tmp_path / "m.gguf", tensors, head_count_kv=None))
    assert model.num_kv_heads == model.num_heads == 4


def test_arrays_that_are_none(folders):
    config = json.loads((folders["GPT-2"] / "config.json").read_text())
    arrays = load_file(folders["GPT-2"] / "model.safetensors")
    arrays["transformer.ln_f.bias"] = [0.0] * 48
    with pytest.raises(ValueError, match=r"ln_f\.bias: got a list, expected an array"):
        pretrained.gpt2(config, arrays)


@pytest.mark.parametrize("wrong", [None, 3, ["model"], b"model"])
def test_what_is_no_path(wrong):
    readers = {
        "folder": (pretrained.from_folder, pretrained.tokens_from_folder),
        "file": (pretrained.from_gguf, pretrained.tokens_from_gguf),
    }
    for name, two in readers.items():
        message = f"{name}: got a {type(wrong).__name__}, expected a path"
        for read in two:
            with pytest.raises(TypeError, match=message):
                read(wrong)


def test_first_names_of_norms(folders, tmp_path):
    """The first BERTs say gamma and beta."""
    arrays = load_file(folders["BERT"] / "model.safetensors")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {}
    for name, array in arrays.items():
        for new, first in old.items():
            name = name.replace(new, first)
        renamed[name] = array
    config = json.loads((folders["BERT"] / "config.json").read_text())
    tokens = torch.arange(20).reshape(1, -1)
    with torch.no_grad():
        got = pretrained.bert(config, renamed)(tokens)
        assert torch.equal(got, pretrained.from_folder(folders["BERT"])(tokens))
    assert set(renamed) & {"embeddings.LayerNorm.gamma"}, "the names given are left as they were"


def test_arguments(folders, tmp_path):
    with pytest.raises(ValueError, match="backend: got 'numpy', expected 'torch' or 'jax'"):
        pretrained.from_folder(folders["GPT-2"], backend="numpy")
    with pytest.raises(ValueError, match="backend: got 'flax'"):
        pretrained.from_gguf(write(tmp_path / "small.gguf", drawn(Q.F32)), backend="flax")
    with pytest.raises(ValueError, match="max_length: got 65, expected 1 to 64"):
        pretrained.from_folder(folders["GPT-2"], max_length=65)
    with pytest.raises(ValueError, match="max_length: got 8 for an encoder, expected None"):
        pretrained.from_folder(folders["BERT"], max_length=8)
    with pytest.raises(FileNotFoundError, match=r"nowhere: expected a folder"):
        pretrained.from_folder(tmp_path / "nowhere")


def test_calls(folders):
    """A model says what it cannot read."""
    bert, vit = (pretrained.from_folder(folders[name]) for name in ("BERT", "ViT, classes"))
    tokens, mask = torch.zeros((1, 4), dtype=torch.long), torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match="tokens: got 300 to 300, expected 0 to 299"):
        bert(tokens + 300)
    with pytest.raises(ValueError, match="tokens: got 65 of them, expected at most 64"):
        bert(torch.zeros((1, 65), dtype=torch.long))
    with pytest.raises(ValueError, match=r"mask: got dtype torch.bool, shape \(1, 3\), expected"):
        bert(tokens, mask=mask)
    with pytest.raises(TypeError, match="tokens, weight: got arrays of numpy, torch"):
        bert(np.zeros((1, 4), int))
    message = r"images: got shape \(1, 3, 32, 24\), expected \(..., 3, 32, 32\)"
    with pytest.raises(ValueError, match=message):
        vit(torch.zeros(1, 3, 32, 24))
