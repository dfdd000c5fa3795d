"""Llama, SmolLM2, Qwen2 and Mistral in the book's DecoderOnly, from either kind of file."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from attnbook.models.config import block_config
from attnbook.pretrained.checkpoint import Config, Recipe, Tensors
from attnbook.pretrained.load import build

LLAMA_HEADS, QWEN2_HEADS, MISTRAL_HEADS = (
    (f"{name}ForCausalLM", f"{name}Model") for name in ("Llama", "Qwen2", "Mistral")
)


class Names(NamedTuple):
    """What a file calls the parts of a model; parts: by the book's names, of a block."""

    embedding: str
    norm: str
    readout: str
    block: str
    parts: dict[str, str]


NAMES = {  # of a block's parts: the book's, those in a folder, those in a GGUF file
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
PARTS = tuple(NAMES)
IN_FOLDER, IN_GGUF = ({part: there[k] for part, there in NAMES.items()} for k in (0, 1))
FOLDER = Names("embed_tokens", "norm", "lm_head", "layers.", IN_FOLDER)
GGUF = Names("token_embd", "output_norm", "output", "blk.", IN_GGUF)


class Sizes(NamedTuple):
    """The sizes of a model, and the parts of a block that have a bias."""

    vocab_size: int
    max_length: int
    embed_dim: int
    num_heads: int
    num_kv_heads: int
    mlp_dim: int
    num_layers: int
    eps: float
    rotary_base: float
    tied: bool
    biased: tuple[str, ...] = ()


def llama(config: Mapping[str, Any], tensors: Mapping[str, Any], *, backend: str = "torch") -> Any:
    """Llama and models of its architecture: a DecoderOnly with rotary positions, no table.

    SmolLM2, Qwen2 (whose queries, keys and values have biases) and Mistral without a sliding window
    are such models. Their blocks are the book's "pre" blocks with RMS norm, a gated MLP and shared
    key and value heads. Hugging Face's files pair x[i] with x[i + d/2] where rotary positions turn,
    the book pairs neighbours: the rows of queries and keys are put in that order.

    Args:
        config: the entries of config.json.
        tensors: NumPy arrays by the names of the file.
        backend: "torch" or "jax".

    Returns:
        A DecoderOnly of that back end.

    Raises:
        ValueError: an entry that the blocks cannot compute; a tensor that is missing, of another
            shape, or unknown.

    Source: Touvron et al. (2023), section 2.2.
    """
    return build(llama_recipe, Config(config), Tensors(tensors), backend)


def llama_recipe(config: Config, tensors: Tensors) -> Recipe:
    """What llama makes, from the entries and tensors of a folder."""
    sizes = _sizes(config)
    start = tensors.prefix("model.")
    tensors.drop("*.rotary_emb.inv_freq")  # frequencies, which the base gives
    names = FOLDER._replace(
        embedding=start + FOLDER.embedding, norm=start + FOLDER.norm, block=start + FOLDER.block
    )
    recipe = decoder_recipe(sizes, names, tensors)
    for name in recipe.parameters:
        if ".attention.query." in name or ".attention.key." in name:
            head_dim = sizes.embed_dim // sizes.num_heads
            recipe.parameters[name] = neighbours(recipe.parameters[name], head_dim)
    return recipe


def gguf_recipe(config: Config, tensors: Tensors) -> Recipe:
    """What from_gguf makes, from the fields and tensors of a file; pairs are neighbours there."""
    config.supported("general.architecture", ["llama"])
    config.supported("llama.rope.scaling.type", ["none"], "none")
    config.supported("llama.expert_count", [0], 0)
    e = config.size("llama.embedding_length")
    heads = config.divisor("llama.attention.head_count", e)
    head_dim = e // heads
    for name in ("key_length", "value_length"):
        config.supported(f"llama.attention.{name}", [head_dim], head_dim)
    config.supported("llama.rope.dimension_count", [head_dim], head_dim)
    words = config.get("tokenizer.ggml.tokens", None)
    sizes = Sizes(
        vocab_size=config.size("llama.vocab_size", len(words) if words is not None else None),
        max_length=config.size("llama.context_length"),
        embed_dim=e,
        num_heads=heads,
        num_kv_heads=config.divisor("llama.attention.head_count_kv", heads, heads),
        mlp_dim=config.size("llama.feed_forward_length"),
        num_layers=config.size("llama.block_count"),
        eps=config.positive("llama.attention.layer_norm_rms_epsilon"),
        rotary_base=config.positive("llama.rope.freq_base", 10_000.0),
        tied="output.weight" not in tensors.left,
        biased=tuple(p for p in PARTS[:7] if f"blk.0.{GGUF.parts[p]}.bias" in tensors.left),
    )
    return decoder_recipe(sizes, GGUF, tensors)


def decoder_recipe(sizes: Sizes, names: Names, tensors: Tensors) -> Recipe:
    """A DecoderOnly of these sizes, its parameters as the file has them."""
    vocab, e = sizes.vocab_size, sizes.embed_dim
    options = sizes._asdict() | dict(activation="swiglu", rms_norm=True, bias=bool(sizes.biased))
    del options["biased"]
    config = block_config(options)
    table = tensors.take(f"{names.embedding}.weight", vocab, e)
    found = {
        "embedding.weight": table,
        "decoder_norm.weight": tensors.take(f"{names.norm}.weight", e),
    }
    if sizes.tied:
        tensors.drop_copy(f"{names.readout}.weight", table)
    else:
        found["readout.weight"] = tensors.take(f"{names.readout}.weight", vocab, e)
    if sizes.biased and not sizes.tied:
        found["readout.bias"] = np.zeros(vocab, np.float32)
    for i in range(sizes.num_layers):
        for part, theirs in names.parts.items():
            mine, theirs = f"decoder.{i}.{part}", f"{names.block}{i}.{theirs}"
            shape = config.shape(part)
            found[f"{mine}.weight"] = tensors.take(f"{theirs}.weight", *shape)
            if part in sizes.biased:
                found[f"{mine}.bias"] = tensors.take(f"{theirs}.bias", shape[0])
            elif sizes.biased and len(shape) == 2:  # the book's blocks have all biases or none
                found[f"{mine}.bias"] = np.zeros(shape[0], np.float32)
    return Recipe("DecoderOnly", options, found)


def neighbours(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of a head whose pairs are i and i + d/2, in the order in which pairs are neighbours."""
    pairs = rows.reshape(-1, 2, head_dim // 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _sizes(config: Config) -> Sizes:
    config.supported("hidden_act", ["silu"], "silu")
    config.supported("partial_rotary_factor", [1.0], 1.0)
    e = config.size("hidden_size")
    heads = config.divisor("num_attention_heads", e)
    config.supported("head_dim", [e // heads], e // heads)
    longest = config.size("max_position_embeddings")
    _check_window(config, longest)
    return Sizes(
        vocab_size=config.size("vocab_size"),
        max_length=longest,
        embed_dim=e,
        num_heads=heads,
        num_kv_heads=config.divisor("num_key_value_heads", heads, heads),
        mlp_dim=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        eps=config.positive("rms_norm_eps", 1e-6),
        rotary_base=_rotary_base(config),
        tied=config.supported("tie_word_embeddings", [True, False], False),
        biased=_biased(config),
    )


def _rotary_base(config: Config) -> float:
    """θ of the rotary positions, which may not be stretched for longer texts."""
    name = "rope_parameters" if config.get("rope_parameters", None) else "rope_scaling"
    given = config.get(name, {})
    if not isinstance(given, Mapping) or any(isinstance(v, Mapping) for v in given.values()):
        raise config.refused(name, "the parameters of one rotation")
    said = Config(given, f"{config.file}: {name}")
    if said.get("rope_type", said.get("type", "default")) != "default":
        raise config.refused(name, "rope_type 'default': the book's rotation is not stretched")
    said.supported("partial_rotary_factor", [1.0], 1.0)
    return said.positive("rope_theta", config.get("rope_theta", 10_000.0))


def _check_window(config: Config, longest: int) -> None:
    """Refuse a window that would hide a token of the longest text."""
    kind = config.get("model_type", "llama")
    if kind == "qwen2" and not config.supported("use_sliding_window", [True, False], False):
        return
    if "sliding_window" in config.entries:  # null is none, and no entry the default
        window = config.entries["sliding_window"]
    else:
        window = 4096 if kind in ("mistral", "qwen2") else None
    if window is None:
        return
    if not isinstance(window, int) or isinstance(window, bool) or window < longest:
        raise ValueError(
            f"{config.file}: sliding_window: got {window!r}, expected null, or at least {longest}, "
            "the longest text: the book's attention has no window"
        )


def _biased(config: Config) -> tuple[str, ...]:
    """The parts of a block that have a bias."""
    queries_keys_values = PARTS[:3]
    if config.get("model_type", "llama") == "qwen2":
        return queries_keys_values
    attention = config.supported("attention_bias", [True, False], False)
    mlp = config.supported("mlp_bias", [True, False], False)
    return (PARTS[:4] if attention else ()) + (PARTS[4:7] if mlp else ())
