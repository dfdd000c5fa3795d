"""The encoder–decoder as loops over Python numbers, and the layers that are compared with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import reference
from layer_harness import Library, with_parameters
from reference import Row

SCORES = ("additive", "general", "dot", None)
SIZES = {"source_vocab": 13, "target_vocab": 17, "embed_dim": 3, "hidden_dim": 22}  # 2 · 11
LENGTHS = (5, 7)  # of the two sentences
M = 19  # characters written


def cell_shapes(name: str, inputs: int, h: int) -> dict[str, tuple[int, ...]]:
    of_input = {f"{name}input.weight": (3 * h, inputs), f"{name}input.bias": (3 * h,)}
    return of_input | {f"{name}hidden.weight": (3 * h, h), f"{name}hidden.bias": (3 * h,)}


def shapes(score: str | None) -> dict[str, tuple[int, ...]]:
    """Every parameter's name and shape."""
    e, h, vocab = SIZES["embed_dim"], SIZES["hidden_dim"], SIZES["target_vocab"]
    named: dict[str, tuple[int, ...]] = {
        "source_embedding.weight": (SIZES["source_vocab"], e),
        "target_embedding.weight": (vocab, e),
    }
    named |= cell_shapes("forward_cell.", e, h // 2) | cell_shapes("backward_cell.", e, h // 2)
    named |= {"start.weight": (h, h), "start.bias": (h,)}
    named |= cell_shapes("decoder_cell.", e + h, h)
    named |= {"output.weight": (vocab, 2 * h), "output.bias": (vocab,)}
    if score in ("additive", "general"):
        named |= {"key.weight": (h, h)}
    if score == "additive":
        named |= {"query.weight": (h, h), "combine": (h,)}
    return named


def random_parameters(named: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Parameters large enough for weights that are far from even."""
    rng = np.random.default_rng(11)
    return {
        name: rng.normal(size=shape) * (1 if "embedding" in name else 0.5)
        for name, shape in named.items()
    }


def translator(library: Library, score: str | None) -> Any:
    """An EncoderDecoder with the drawn parameters."""
    layer = library.make("EncoderDecoder", **SIZES, score=score)
    return with_parameters(library, layer, random_parameters(shapes(score)))


def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two padded sentences, their mask, and what was written."""
    n = max(LENGTHS)
    source = rng.integers(0, SIZES["source_vocab"], size=(len(LENGTHS), n))
    mask = np.arange(n) < np.array(LENGTHS)[:, None]
    return source, mask, rng.integers(0, SIZES["target_vocab"], size=(len(LENGTHS), M))


def run(library: Library, function: Any, *arrays: np.ndarray) -> Any:
    """A function of a library's arrays, such as a layer; in JAX compiled, which is the faster."""
    if library.name == "jax":
        import equinox as eqx

        function = eqx.filter_jit(function)
    return library.returned(function(*map(library.moved, arrays)))


def with_weights(layer: Any) -> Any:
    return lambda *arrays: layer(*arrays, return_weights=True)


# the same as loops


def gru(parameters: dict[str, np.ndarray], name: str, x: Row, state: Row) -> list[float]:
    """r, z = σ(W x + b + U h + d), c = tanh(W x + b + r (U h + d)), h' = (1 − z) c + z h."""
    h = len(state)
    of_input, of_state = (
        reference.linear(parameters[f"{name}{part}.weight"], parameters[f"{name}{part}.bias"], v)
        for part, v in (("input", x), ("hidden", state))
    )
    new = []
    for i in range(h):
        r, z = (1 / (1 + math.exp(-of_input[j] - of_state[j])) for j in (i, h + i))
        c = math.tanh(of_input[2 * h + i] + r * of_state[2 * h + i])
        new.append((1 - z) * c + z * state[i])
    return new


def walk(
    parameters: dict[str, np.ndarray], name: str, words: Sequence[int], places: Sequence[int]
) -> dict[int, list[float]]:
    """The state at each of these places, in this order."""
    state, states = [0.0] * (SIZES["hidden_dim"] // 2), {}
    for j in places:
        x = parameters["source_embedding.weight"][words[j]].tolist()
        states[j] = state = gru(parameters, name, x, state)
    return states


def encoder_decoder(
    parameters: dict[str, np.ndarray],
    score: str | None,
    words: Sequence[int],
    real: Sequence[bool],
    written: Sequence[int],
) -> tuple[list[list[float]], list[list[float]]]:
    """Logits and weights of one sentence; in the padding the weights are 0."""

    def matrix(name: str, x: Row) -> list[float]:
        weight = parameters[f"{name}.weight"]
        return reference.linear(weight, np.zeros(len(weight)), x)

    def scored(state: Row, key: Row) -> float:
        if score == "dot":
            return reference.dot(state, key)
        if score == "general":
            return reference.dot(state, matrix("key", key))
        hidden = [a + b for a, b in zip(matrix("query", state), matrix("key", key), strict=True)]
        return math.fsum(
            v * math.tanh(a) for v, a in zip(parameters["combine"], hidden, strict=True)
        )

    places = [j for j in range(len(words)) if real[j]]
    forward = walk(parameters, "forward_cell.", words, places)
    backward = walk(parameters, "backward_cell.", words, places[::-1])
    summary = forward[places[-1]] + backward[places[0]]
    read = [summary] if score is None else [forward[j] + backward[j] for j in places]
    output = parameters["output.weight"], parameters["output.bias"]
    start = reference.linear(parameters["start.weight"], parameters["start.bias"], summary)
    state = [math.tanh(a) for a in start]
    logits, weights = [], []
    for token in written:
        if score is None:
            attended = [1.0]
        else:
            attended = reference.softmax([scored(state, key) for key in read], [True] * len(read))
        context = reference.average(attended, np.array(read))
        before = parameters["target_embedding.weight"][token].tolist()
        state = gru(parameters, "decoder_cell.", before + context, state)
        logits.append(reference.linear(*output, state + context))
        row = dict(zip(places, attended, strict=True)) if score else {0: 1.0}
        weights.append([row.get(j, 0.0) for j in range(len(words) if score else 1)])
    return logits, weights


def translations(
    parameters: dict[str, np.ndarray],
    score: str | None,
    source: np.ndarray,
    mask: np.ndarray,
    written: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Logits and weights of every sentence."""
    each = [
        encoder_decoder(parameters, score, *(a.tolist() for a in row))
        for row in zip(source, mask, written, strict=True)
    ]
    logits, weights = zip(*each, strict=True)
    return np.array(logits), np.array(weights)
