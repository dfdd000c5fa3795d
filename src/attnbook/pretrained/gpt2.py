"""GPT-2 in the book's DecoderOnly."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.pretrained.checkpoint import Config, Recipe, Tensors, take_linear
from attnbook.pretrained.load import build

GPT2_HEADS = ("GPT2LMHeadModel", "GPT2Model")


def gpt2(config: Mapping[str, Any], tensors: Mapping[str, Any], *, backend: str = "torch") -> Any:
    """GPT-2 and models of its architecture: a DecoderOnly with learned positions.

    Its blocks are the book's "pre" blocks with biases. Queries, keys and values lie in one matrix
    there, and matrices act from the right, x W: both are undone.

    Args:
        config: the entries of config.json.
        tensors: NumPy arrays by the names of the file.
        backend: "torch" or "jax".

    Returns:
        A DecoderOnly of that back end.

    Raises:
        ValueError: an entry that the blocks cannot compute; a tensor that is missing, of another
            shape, or unknown.

    Source: Radford et al. (2019), section 2.3.
    """
    return build(gpt2_recipe, Config(config), Tensors(tensors), backend)


def gpt2_recipe(config: Config, tensors: Tensors) -> Recipe:
    """What gpt2 makes, from checked entries and tensors."""
    config.supported("scale_attn_weights", [True], True)
    config.supported("scale_attn_by_inverse_layer_idx", [False], False)
    config.supported("add_cross_attention", [False], False)
    tied = config.supported("tie_word_embeddings", [True, False], True)
    e, n = config.size("n_embd"), config.size("n_positions")
    vocab, mlp_dim = config.size("vocab_size"), config.size("n_inner", 4 * e)
    options: dict[str, Any] = dict(
        vocab_size=vocab,
        max_length=n,
        embed_dim=e,
        num_heads=config.divisor("n_head", e),
        mlp_dim=mlp_dim,
        num_layers=config.size("n_layer"),
        activation=config.activation("activation_function", "gelu_new"),
        eps=config.positive("layer_norm_epsilon", 1e-5),
        tied=tied,
    )
    start = tensors.prefix("transformer.")
    tensors.drop("*.attn.bias", "*.attn.masked_bias")  # masks
    table = tensors.take(f"{start}wte.weight", vocab, e)
    found = {
        "embedding.weight": table,
        "position": tensors.take(f"{start}wpe.weight", n, e),
        **take_linear(tensors, "decoder_norm", f"{start}ln_f", (e,)),
    }
    if tied:
        tensors.drop_copy("lm_head.weight", table)
    else:
        found["readout.weight"] = tensors.take("lm_head.weight", vocab, e)
        found["readout.bias"] = np.zeros(vocab, np.float32)
    for i in range(options["num_layers"]):
        found |= _block(tensors, f"decoder.{i}.", f"{start}h.{i}.", e, mlp_dim)
    return Recipe("DecoderOnly", options, found)


def _block(tensors: Tensors, mine: str, theirs: str, e: int, mlp_dim: int) -> dict[str, np.ndarray]:
    """The parameters of one block, matrices transposed."""
    joint = _transposed(tensors, "joint", f"{theirs}attn.c_attn", (e, 3 * e))
    found: dict[str, np.ndarray] = {}
    for at, part in enumerate(("query", "key", "value")):
        rows = slice(at * e, (at + 1) * e)
        found |= {f"{mine}attention.{part}.{p}": joint[f"joint.{p}"][rows] for p in WEIGHT_AND_BIAS}
    return {
        **found,
        **_transposed(tensors, f"{mine}attention.output", f"{theirs}attn.c_proj", (e, e)),
        **_transposed(tensors, f"{mine}mlp.hidden", f"{theirs}mlp.c_fc", (e, mlp_dim)),
        **_transposed(tensors, f"{mine}mlp.output", f"{theirs}mlp.c_proj", (mlp_dim, e)),
        **take_linear(tensors, f"{mine}attention_norm", f"{theirs}ln_1", (e,)),
        **take_linear(tensors, f"{mine}mlp_norm", f"{theirs}ln_2", (e,)),
    }


WEIGHT_AND_BIAS = ("weight", "bias")


def _transposed(
    tensors: Tensors, mine: str, theirs: str, shape: tuple[int, int]
) -> dict[str, np.ndarray]:
    """Weight and bias of a layer whose matrix is stored as (in, out)."""
    return {
        f"{mine}.weight": tensors.take(f"{theirs}.weight", *shape).T,
        f"{mine}.bias": tensors.take(f"{theirs}.bias", shape[1]),
    }
