"""The three transformers again, from the blocks of reference_blocks and the parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import reference_blocks
import reference_heads
from reference_heads import Parameters

Sizes = Mapping[str, Any]  # what a model was made with


def stack(
    parameters: Parameters,
    name: str,
    sizes: Sizes,
    x: np.ndarray,
    mask: np.ndarray | None = None,
    memory: np.ndarray | None = None,
    memory_mask: np.ndarray | None = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Blocks and a last norm, of one sequence; the weights of the attention that comes last."""
    kept, heads = [], sizes["num_heads"]
    base = sizes.get("rotary_base")
    score = reference_heads.plain if base is None else reference_heads.turned(base)
    norm = {"rms": sizes.get("rms_norm", False), "eps": sizes.get("eps", 1e-5)}
    for number in range(sizes["num_layers"]):
        x, *weights = reference_blocks.block(
            reference_blocks.own(parameters, f"{name}.{number}"),
            [h * sizes.get("num_kv_heads", heads) // heads for h in range(heads)],
            sizes["norm"],
            sizes["activation"],
            x,
            mask,
            memory,
            memory_mask,
            score,
            **norm,
        )
        kept.append(weights[-1])
    if not sizes.get("last_norm", True):
        return x, kept
    return reference_blocks.normed(parameters, f"{name}_norm", x, **norm), kept


def earlier(n: int) -> np.ndarray:
    return np.array([[j <= i for j in range(n)] for i in range(n)])


def embedded(embedding: np.ndarray, position: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    return np.array([embedding[token] + position[i] for i, token in enumerate(tokens.tolist())])


def encoder_only(
    parameters: Parameters, sizes: Sizes, x: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """What is said of each token of one sequence, and each layer's weights."""
    x = np.array(reference_heads.projected(parameters, "embedding", x))
    if "position" in parameters:
        x = np.array([row + parameters["position"][i] for i, row in enumerate(x)])
    stream, kept = stack(parameters, "encoder", sizes, x, mask)
    return np.array(reference_heads.projected(parameters, "readout", stream)), kept


def decoder_only(
    parameters: Parameters, sizes: Sizes, tokens: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits and each layer's weights, of one sequence."""
    embedding = parameters["embedding.weight"]
    position = parameters.get("position", np.zeros((len(tokens), embedding.shape[1])))
    x = embedded(embedding, position, tokens)
    stream, kept = stack(parameters, "decoder", sizes, x, earlier(len(x)))
    parameters = {"readout.weight": embedding} | dict(parameters)  # if they are tied
    return np.array(reference_heads.projected(parameters, "readout", stream)), kept


def transformer(
    parameters: Parameters, sizes: Sizes, source: np.ndarray, mask: np.ndarray, written: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits and each decoder layer's weights to the source, of one pair of sequences."""
    x, y = (
        embedded(parameters[f"{side}_embedding.weight"], parameters[f"{side}_position"], tokens)
        for side, tokens in (("source", source), ("target", written))
    )
    memory, _ = stack(parameters, "encoder", sizes, x, mask)
    stream, kept = stack(parameters, "decoder", sizes, y, earlier(len(y)), memory, mask)
    return np.array(reference_heads.projected(parameters, "output", stream)), kept
