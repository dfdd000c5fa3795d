"""BERT and ALBERT in the book's encoder blocks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.models.config import block_config
from attnbook.pretrained.checkpoint import Config, Recipe, Tensors, take_linear
from attnbook.pretrained.load import build

BERT = {  # parts of a block by the book's names
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "mlp.hidden": "intermediate.dense",
    "mlp.output": "output.dense",
    "mlp_norm": "output.LayerNorm",
}
ALBERT = {
    "attention.query": "attention.query",
    "attention.key": "attention.key",
    "attention.value": "attention.value",
    "attention.output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "mlp.hidden": "ffn",
    "mlp.output": "ffn_output",
    "mlp_norm": "full_layer_layer_norm",
}
BERT_HEADS = ("BertModel", "BertForMaskedLM", "BertForPreTraining")
ALBERT_HEADS = ("AlbertModel", "AlbertForMaskedLM", "AlbertForPreTraining")


def bert(config: Mapping[str, Any], tensors: Mapping[str, Any], *, backend: str = "torch") -> Any:
    """BERT and models of its architecture: a TextEncoder of "post" blocks.

    All tokens are of the first type, type 0. A file with the head of masked tokens gives logits,
    one without it the stream. What is pooled for whole sentences is left out.

    Args:
        config: the entries of config.json.
        tensors: NumPy arrays by the names of the file.
        backend: "torch" or "jax".

    Returns:
        A TextEncoder of that back end.

    Raises:
        ValueError: an entry that the blocks cannot compute; a tensor that is missing, of another
            shape, or unknown.

    Source: Devlin et al. (2019), section 3.
    """
    return build(bert_recipe, Config(config), Tensors(tensors), backend)


def albert(config: Mapping[str, Any], tensors: Mapping[str, Any], *, backend: str = "torch") -> Any:
    """ALBERT and models of its architecture: a TextEncoder whose one block acts in every layer.

    Its embedding is narrower than its stream. All else is as in bert.

    Args:
        config: the entries of config.json.
        tensors: NumPy arrays by the names of the file.
        backend: "torch" or "jax".

    Returns:
        A TextEncoder of that back end.

    Raises:
        ValueError: an entry that the blocks cannot compute; a tensor that is missing, of another
            shape, or unknown.

    Source: Lan et al. (2020), section 3.1.
    """
    return build(albert_recipe, Config(config), Tensors(tensors), backend)


def bert_recipe(config: Config, tensors: Tensors) -> Recipe:
    """What bert makes, from checked entries and tensors."""
    _rename_norms(tensors)
    config.supported("is_decoder", [False], False)
    config.supported("add_cross_attention", [False], False)
    start = tensors.prefix("bert.")
    tensors.drop("*pooler.*", "cls.seq_relationship.*", "*.position_ids")
    options = _options(config, "gelu", config.size("hidden_size"))
    found = _embeddings(tensors, f"{start}embeddings.", config, options)
    for i in range(options["num_layers"]):
        found |= _block(tensors, f"encoder.{i}.", f"{start}encoder.layer.{i}.", BERT, options)
    if _has_head(config, tensors, "cls.predictions.bias"):
        found |= _head(tensors, "cls.predictions.", "transform.", found, options)
    return Recipe("TextEncoder", options, found)


def albert_recipe(config: Config, tensors: Tensors) -> Recipe:
    """What albert makes, from checked entries and tensors."""
    config.supported("num_hidden_groups", [1], 1)
    config.supported("inner_group_num", [1], 1)
    start = tensors.prefix("albert.")
    tensors.drop("*pooler.*", "sop_classifier.*", "*.position_ids")
    width = config.size("embedding_size", 128)
    options = _options(config, "gelu_new", width) | dict(shared=True, widened=True)
    found = _embeddings(tensors, f"{start}embeddings.", config, options)
    there = f"{start}encoder.embedding_hidden_mapping_in"
    found |= take_linear(tensors, "widen", there, (options["embed_dim"], width))
    there = f"{start}encoder.albert_layer_groups.0.albert_layers.0."
    found |= _block(tensors, "encoder.0.", there, ALBERT, options)
    if _has_head(config, tensors, "predictions.bias"):
        found |= _head(tensors, "predictions.", "", found, options)
    return Recipe("TextEncoder", options, found)


def _options(config: Config, activation: str, width: int) -> dict[str, Any]:
    """What a TextEncoder is made with, as BERT has it."""
    config.supported("position_embedding_type", ["absolute"], "absolute")
    config.supported("tie_word_embeddings", [True], True)
    return dict(
        vocab_size=config.size("vocab_size"),
        max_length=config.size("max_position_embeddings", 512),
        embedding_dim=width,
        embed_dim=config.size("hidden_size"),
        num_heads=config.divisor("num_attention_heads", config.size("hidden_size")),
        mlp_dim=config.size("intermediate_size"),
        num_layers=config.size("num_hidden_layers"),
        shared=False,
        widened=False,
        masked_head=False,
        activation=config.activation("hidden_act", activation),
        eps=config.positive("layer_norm_eps", 1e-12),
    )


def _embeddings(
    tensors: Tensors, theirs: str, config: Config, options: dict[str, Any]
) -> dict[str, np.ndarray]:
    """The tables of tokens and of positions; the first token type is part of every position."""
    width, types = options["embedding_dim"], config.size("type_vocab_size", 2)
    position = tensors.take(f"{theirs}position_embeddings.weight", options["max_length"], width)
    first = tensors.take(f"{theirs}token_type_embeddings.weight", types, width)[0]
    return {
        "embedding.weight": tensors.take(
            f"{theirs}word_embeddings.weight", options["vocab_size"], width
        ),
        "position": position + first,
        **take_linear(tensors, "embedding_norm", f"{theirs}LayerNorm", (width,)),
    }


def _block(
    tensors: Tensors, mine: str, theirs: str, names: dict[str, str], options: dict[str, Any]
) -> dict[str, np.ndarray]:
    config = block_config(options)
    found: dict[str, np.ndarray] = {}
    for part, there in names.items():
        found |= take_linear(tensors, f"{mine}{part}", f"{theirs}{there}", config.shape(part))
    return found


def _has_head(config: Config, tensors: Tensors, name: str) -> bool:
    """Whether the file is said, or seen, to have a head of masked tokens."""
    said = config.get("architectures", [])
    return any(not kind.endswith("Model") for kind in said) if said else name in tensors.left


def _head(
    tensors: Tensors,
    theirs: str,
    inner: str,
    found: dict[str, np.ndarray],
    options: dict[str, Any],
) -> dict[str, np.ndarray]:
    """The head of masked tokens, whose matrix is the embedding's."""
    width, e = options["embedding_dim"], options["embed_dim"]
    bias = tensors.take(f"{theirs}bias", options["vocab_size"])
    tensors.drop_copy(f"{theirs}decoder.bias", bias)
    tensors.drop_copy(f"{theirs}decoder.weight", found["embedding.weight"])
    options["masked_head"] = True
    return {
        "head.bias": bias,
        **take_linear(tensors, "head.dense", f"{theirs}{inner}dense", (width, e)),
        **take_linear(tensors, "head.norm", f"{theirs}{inner}LayerNorm", (width,)),
    }


def _rename_norms(tensors: Tensors) -> None:
    """The first BERTs call the weight and the bias of a norm gamma and beta."""
    for name in list(tensors.left):
        for old, new in (
            ("LayerNorm.gamma", "LayerNorm.weight"),
            ("LayerNorm.beta", "LayerNorm.bias"),
        ):
            if name.endswith(old):
                tensors.left[name.removesuffix(old) + new] = tensors.left.pop(name)
