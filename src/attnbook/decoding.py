"""Decoding: which characters a model writes, when every one of them depends on those before.

A model of either back end encodes a source once, and then steps from character to character.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Bool, Float, Int

from attnbook import sizes
from attnbook.convert import to_numpy

Array = Any  # a PyTorch or JAX array


def greedy(
    model: Any,
    source: Int[Array, "b n"],
    mask: Bool[Array, "b n"],
    *,
    start: int,
    end: int,
    limit: int,
) -> tuple[Int[np.ndarray, "b written"], Float[np.ndarray, "b written n"]]:
    """Greedy decoding, y_i = argmax p(y_i | y_1 … y_{i−1}, x), until every row has ended.

    Args:
        model: an EncoderDecoder or a Transformer of either back end.
        source: token numbers of the words.
        mask: True = a word.
        start: the token that a target begins with.
        end: the token that it ends with.
        limit: of the written length.

    Returns:
        The tokens, without start; after the end of a row, end again. And the weights with which
        each was written.

    Raises:
        ValueError: a limit that is not an integer of at least 1.
    """
    sizes.size(limit=limit)
    xp = array_namespace(source)
    memory, state = model.encode(source, mask)
    token = xp.full(source.shape[:1], start, dtype=source.dtype, device=device(source))
    ended = xp.zeros(source.shape[:1], dtype=xp.bool, device=device(source))
    written: list[np.ndarray] = []
    read: list[np.ndarray] = []
    while len(written) < limit and not bool(xp.all(ended)):
        state, logits, weights = model.step(memory, state, token)
        best = xp.astype(xp.argmax(logits, axis=-1), source.dtype)
        token = xp.where(ended, xp.full_like(best, end), best)
        ended = ended | (token == end)
        written.append(to_numpy(token))
        read.append(to_numpy(weights))
    return np.stack(written, axis=1), np.stack(read, axis=1)


def beam(
    model: Any,
    source: Int[Array, " n"],
    mask: Bool[Array, " n"],
    *,
    start: int,
    end: int,
    limit: int,
    width: int,
) -> list[tuple[list[int], float]]:
    """Beam search: at every length the width most probable beginnings are kept.

    Args:
        model: an EncoderDecoder or a Transformer of either back end.
        source: token numbers of one sentence.
        mask: True = a word.
        start: the token that a target begins with.
        end: the token that it ends with.
        limit: of the written length.
        width: beginnings to keep; one that ends leaves the beam, and its place stays empty. With a
            width of 1 this is greedy decoding.

    Returns:
        At most width pairs of tokens, without start and with end, and their log-probability, the
        most probable first. At the limit nothing may have ended: then the beginnings.

    Raises:
        ValueError: a width or a limit that is not an integer of at least 1.

    Source: Sutskever, Vinyals and Le (2014), section 3.2.
    """
    sizes.size(width=width)
    sizes.size(limit=limit)
    xp = array_namespace(source)

    def as_array(numbers: Any) -> Array:
        return xp.asarray([int(n) for n in numbers], dtype=source.dtype, device=device(source))

    memory, state = model.encode(source[None], mask[None])
    token = as_array([start])
    beginnings: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[tuple[list[int], float]] = []
    while beginnings and len(beginnings[0][0]) < limit:
        state, logits, _ = model.step(memory, state, token)
        so_far = np.array([[probability] for _, probability in beginnings])
        longer = so_far + _log_softmax(to_numpy(logits))  # (beginnings, vocab)
        best = np.argsort(-longer, axis=None, kind="stable")[: width - len(ended)]
        rows, tokens = np.unravel_index(best, longer.shape)
        found = [
            ([*beginnings[row][0], int(t)], float(longer[row, t]))
            for row, t in zip(rows, tokens, strict=True)
        ]
        ended += [pair for pair, t in zip(found, tokens, strict=True) if t == end]
        beginnings = [pair for pair, t in zip(found, tokens, strict=True) if t != end]
        state = _rows(state, xp.asarray(rows[tokens != end], device=device(source)))
        token = as_array(tokens[tokens != end])
    return sorted(ended or beginnings, key=lambda pair: -pair[1])


def _rows(state: Any, rows: Int[Array, " k"]) -> Any:
    """The same rows of a state: of an array, or of each array that it consists of."""
    if isinstance(state, tuple):
        return type(state)(*(_rows(part, rows) for part in state))
    return array_namespace(state).take(state, rows, axis=0)


def _log_softmax(logits: Float[np.ndarray, "... vocab"]) -> Float[np.ndarray, "... vocab"]:
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
