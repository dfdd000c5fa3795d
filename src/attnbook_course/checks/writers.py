"""A small GPT for the checks of chapter 8's build, and what the usual mistakes make of it.

All is in float64. PyTorch is asked for only where slopes are, because browsers lack it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnbook.layers import norms
from attnbook_course import builds

VOCAB, WIDTH, WINDOW, BLOCKS, HEADS = 11, 6, 8, 2, 2
Weights = dict[str, Any]


def weights(seed: int) -> Weights:
    """Everything that learns, at random."""
    rng = np.random.default_rng(seed)

    def of_block() -> Weights:
        shapes = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (WIDTH, WIDTH))
        shapes |= {"w_1": (4 * WIDTH, WIDTH), "w_2": (WIDTH, 4 * WIDTH)}
        gains = {name: rng.uniform(0.5, 1.5, WIDTH) for name in ("norm_1", "norm_2")}
        return gains | {name: rng.normal(size=shape) / 2 for name, shape in shapes.items()}

    return {
        "embedding": rng.normal(size=(VOCAB, WIDTH)),
        "position": rng.normal(size=(WINDOW, WIDTH)),
        "blocks": [of_block() for _ in range(BLOCKS)],
        "norm": rng.uniform(0.5, 1.5, WIDTH),
        "readout": rng.normal(size=(VOCAB, WIDTH)),
    }


def wrong_logits(tokens: np.ndarray, given: Weights) -> list[tuple[np.ndarray, str]]:
    """What the usual mistakes give for logits."""

    def found(blocks: int = BLOCKS, mask: str = "causal", norm: str = "g", place: float = 1) -> Any:
        n = tokens.shape[-1]
        x = given["embedding"][tokens] + place * given["position"][:n]
        for of_block in given["blocks"][:blocks]:
            x = builds.block(x, of_block, HEADS, np.tri(n, dtype=bool) if mask else None)
        gain = given["norm"] if norm == "g" else 1.0
        x = gain * norms.layer_norm(x) if norm else x
        return x @ given["readout"].T

    right = found()
    p = np.exp(right - right.max(axis=-1, keepdims=True))
    return [
        (found(mask=""), "Every token sees the later ones: hand each block a causal mask."),
        (found(place=0), "The positions are missing: add the first n rows of position."),
        (found(blocks=1), "Only the first block is used: is the return inside the loop?"),
        (found(norm=""), "The last norm is missing: the stream comes to the readout through it."),
        (found(norm="1"), "The last norm has no gain: multiply by weights['norm']."),
        (p / p.sum(axis=-1, keepdims=True), "These are probabilities: return what softmax gets."),
    ]


def trained(
    given: Weights,
    text: np.ndarray,
    starts: np.ndarray,
    rate: float,
    *,
    ahead: int = 1,
    softmax: bool = False,
    forget: bool = True,
    blocks: bool = True,
    length: int = WINDOW,
) -> np.ndarray:
    """The bits of every step as builds.train has them, or with one of the mistakes in it."""
    import torch

    torch_weights = _tensors(given)
    tables = [torch_weights, *(torch_weights["blocks"] if blocks else [])]
    parts = [one for table in tables for one in table.values() if isinstance(one, torch.Tensor)]
    for part in parts:
        part.requires_grad_()
    optimiser, bits = torch.optim.Adam(parts, lr=rate), []
    for first in torch.from_numpy(starts):
        rows = torch.from_numpy(text)[first[:, None] + torch.arange(length + 1)]
        found = builds.logits(rows[:, :-1], torch_weights, HEADS)
        found = found.softmax(-1) if softmax else found
        labels = rows[:, ahead : ahead + length]
        loss = torch.nn.functional.cross_entropy(found.mT, labels)
        if forget:
            optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        bits.append(loss.item() / math.log(2))
    return np.array(bits)


def written(
    tokens: np.ndarray,
    given: Weights,
    draws: np.ndarray,
    temperature: float,
    *,
    at: int = -1,
    best: bool = False,
    first: bool = False,
) -> np.ndarray:
    """The tokens as builds.generate has them, or with one of the mistakes in it."""
    for draw in draws:
        seen = tokens[:WINDOW] if first else tokens[-WINDOW:]
        scores = builds.logits(seen, given, HEADS)[at] / temperature
        p = np.exp(scores - scores.max())
        drawn = np.searchsorted((p / p.sum()).cumsum(), draw, side="right")
        tokens = np.append(tokens, scores.argmax() if best else min(drawn, VOCAB - 1))
    return tokens


def _tensors(given: Any) -> Any:
    import torch

    if isinstance(given, dict):
        return {name: _tensors(one) for name, one in given.items()}
    return [*map(_tensors, given)] if isinstance(given, list) else torch.tensor(given)
