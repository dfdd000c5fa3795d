"""Llama and SmolLM2 in the book's DecoderOnly, from either kind of file."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook._validation import int_between
from attnbook.pretrained.checkpoint import Config, Tensors

PARTS = {  # of a block: the book's names, those in a folder, those in a GGUF file
    "attention.query": ("self_attn.q_proj", "attn_q"),
    "attention.key": ("self_attn.k_proj", "attn_k"),
    "attention.value": ("self_attn.v_proj", "attn_v"),
    "attention.output": ("self_attn.o_proj", "attn_output"),
    "mlp.gate": ("mlp.gate_proj", "ffn_gate"),
    "mlp.hidden": ("mlp.up_proj", "ffn_up"),
    "mlp.output": ("mlp.down_proj", "ffn_down"),
    "attention_norm": ("input_layernorm", "attn_norm"),
    "mlp_norm": ("post_attention_layernorm", "ffn_norm"),
}
PARTIAL = "partial_rotary_factor"  # the share of a head's width that turns


def llama(config: Config, tensors: Tensors, max_length: int | None = None) -> Any:
    """Llama and models of its architecture: a DecoderOnly with rotary positions, no table.

    The blocks are the book's "pre" blocks with RMS norm, a gated MLP and shared key and value
    heads. A folder's files pair x[i] with x[i + d/2] where rotary positions turn, the book pairs
    neighbours: the rows of queries and keys are put in that order.

    Source: Touvron et al. (2023), section 2.2.
    """
    config.supported("hidden_act", ["silu"], "silu")
    for name, value in (("attention_bias", False), ("mlp_bias", False), (PARTIAL, 1.0)):
        config.supported(name, [value], value)
    e, heads = config.size("hidden_size"), config.size("num_attention_heads")
    config.supported("head_dim", [e // heads], e // heads)
    model = _decoder(
        config,
        max_length,
        config.size("max_position_embeddings"),
        vocab_size=config.size("vocab_size"),
        embed_dim=e,
        num_heads=heads,
        num_kv_heads=config.size("num_key_value_heads", heads),
        mlp_dim=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        eps=config.positive("rms_norm_eps", 1e-6),
        rotary_base=_rotary_base(config),
        tied=config.supported("tie_word_embeddings", [True, False], False),
    )
    tensors.drop("*.rotary_emb.inv_freq")  # frequencies, which the base gives
    start = tensors.prefix("model.")
    layers = {"embedding": f"{start}embed_tokens", "decoder_norm": f"{start}norm"}
    layers["readout"] = "lm_head"
    for i in range(model.num_layers):
        layers |= {f"decoder.{i}.{p}": f"{start}layers.{i}.{n}" for p, (n, _) in PARTS.items()}
    found = {}
    for layer, there in layers.items():
        if layer.endswith((".query", ".key")):
            rows = tensors.take(f"{there}.weight", *model.get_submodule(layer).weight.shape)
            found[f"{layer}.weight"] = neighbours(rows, e // heads)
    return tensors.fill(model, layers, found)


def llama_of_gguf(config: Config, tensors: Tensors, max_length: int | None = None) -> Any:
    """The same from the fields and tensors of a GGUF file; pairs are neighbours there."""
    config.supported("general.architecture", ["llama"])
    config.supported("llama.rope.scaling.type", ["none"], "none")
    config.supported("llama.expert_count", [0], 0)
    e = config.size("llama.embedding_length")
    heads = config.size("llama.attention.head_count")
    for name in ("attention.key_length", "attention.value_length", "rope.dimension_count"):
        config.supported(f"llama.{name}", [e // heads], e // heads)
    model = _decoder(
        config,
        max_length,
        config.size("llama.context_length"),
        vocab_size=config.size("llama.vocab_size", len(config.get("tokenizer.ggml.tokens", []))),
        embed_dim=e,
        num_heads=heads,
        num_kv_heads=config.size("llama.attention.head_count_kv", heads),
        mlp_dim=config.size("llama.feed_forward_length"),
        num_layers=config.size("llama.block_count"),
        eps=config.positive("llama.attention.layer_norm_rms_epsilon"),
        rotary_base=config.positive("llama.rope.freq_base", 10_000.0),
        tied="output.weight" not in tensors.left,
    )
    layers = {"embedding": "token_embd", "decoder_norm": "output_norm", "readout": "output"}
    for i in range(model.num_layers):
        layers |= {f"decoder.{i}.{part}": f"blk.{i}.{name}" for part, (_, name) in PARTS.items()}
    return tensors.fill(model, layers)


def neighbours(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of a head whose pairs are i and i + d/2, in the order in which pairs are neighbours."""
    pairs = rows.reshape(-1, 2, head_dim // 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _decoder(config: Config, max_length: int | None, longest: int, **options: Any) -> Any:
    """A DecoderOnly of Llama's architecture without numbers."""
    from attnbook.torch import DecoderOnly

    if max_length is not None:
        longest = int_between(1, longest, max_length=max_length)
    options |= dict(max_length=longest, activation="swiglu", rms_norm=True, bias=False)
    return config.empty(DecoderOnly, **options)


def _rotary_base(config: Config) -> float:
    """θ of the rotary positions, which may not be stretched for longer texts."""
    name = "rope_parameters" if config.get("rope_parameters", None) else "rope_scaling"
    given = config.get(name, {})
    if not isinstance(given, Mapping):
        raise ValueError(f"{config.file}: {name}: got {given!r}, expected an object")
    said = Config(given, f"{config.file}: {name}")
    said.supported(PARTIAL, [1.0], 1.0)
    said.supported("rope_type", ["default"], said.get("type", "default"))
    return said.positive("rope_theta", config.get("rope_theta", 10_000.0))
