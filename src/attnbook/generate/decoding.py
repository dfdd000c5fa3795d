"""Decoding: which characters a model writes, when every one of them depends on those before.

A model of either back end encodes a source once, and then steps from character to character.
"""

import math
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array
from jaxtyping import Bool, Float, Int

from attnbook._types import Array
from attnbook._validation import (
    common_namespace,
    nonnegative_int,
    positive_int,
    to_numpy,
    widen_tokens,
)
from attnbook.models.losses import log_softmax


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
        The tokens, without start, integers of the source's dtype, of 32 bits at least; after the
        end of a row, end again. And the weights with which each was written.

    Raises:
        ValueError: a source that is not (b, n), an end that is no token, a limit that is not an
            integer of at least 1.
        TypeError: another model, what is no array.
    """
    xp, like = _checked(model, source, mask, start, end, limit)
    if source.ndim != 2 or source.shape[0] == 0:
        shape = tuple(source.shape)
        raise ValueError(f"source: got shape {shape}, expected (b, n), one row or more")
    with without_graph(source):
        memory, state = model.encode(source, mask)
        token = xp.full(source.shape[:1], start, dtype=like.dtype, device=device(source))
        ended = xp.zeros(source.shape[:1], dtype=xp.bool, device=device(source))
        written: list[np.ndarray] = []
        read: list[np.ndarray] = []
        while len(written) < limit and not bool(xp.all(ended)):
            state, logits, weights = model.step(memory, state, token)
            best = xp.astype(xp.argmax(logits, axis=-1), like.dtype)
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
        ValueError: a source that is not (n,), an end that is no token, a width or a limit that is
            not an integer of at least 1.
        TypeError: another model, what is no array.

    Source: Sutskever, Vinyals and Le (2014), section 3.2.
    """
    positive_int(width=width)
    xp, like = _checked(model, source, mask, start, end, limit)
    if source.ndim != 1:
        raise ValueError(f"source: got shape {tuple(source.shape)}, expected (n,), one sentence")

    def as_array(numbers: Any) -> Array:
        return xp.asarray([int(n) for n in numbers], dtype=like.dtype, device=device(source))

    beginnings: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[tuple[list[int], float]] = []
    with without_graph(source):
        memory, state = model.encode(source[None], mask[None])
        token = as_array([start])
        while beginnings and len(beginnings[0][0]) < limit:
            state, logits, _ = model.step(memory, state, token)
            so_far = np.array([[probability] for _, probability in beginnings])
            longer = so_far + log_softmax(to_numpy(logits).astype(np.float64))
            best = np.argsort(-longer, axis=None, kind="stable")[: width - len(ended)]
            rows, tokens = np.unravel_index(best, longer.shape)  # of (beginnings, vocab)
            found = [
                ([*beginnings[row][0], int(t)], float(longer[row, t]))
                for row, t in zip(rows, tokens, strict=True)
            ]
            ended += [pair for pair in found if pair[0][-1] == end]
            beginnings = [pair for pair in found if pair[0][-1] != end]
            state = _rows(state, xp.asarray(rows[tokens != end], device=device(source)))
            token = as_array(tokens[tokens != end])
    return sorted(ended or beginnings, key=lambda pair: -pair[1])


def without_graph(like: Array) -> AbstractContextManager[Any]:
    """In which torch, if it is the library of an array, keeps nothing for a gradient."""
    return sys.modules["torch"].no_grad() if is_torch_array(like) else nullcontext()


def _checked(
    model: Any, source: Array, mask: Array, start: int, end: int, limit: int
) -> tuple[Any, Array]:
    """Check what both searches are given; the namespace, and a source as wide as targets."""
    if not (hasattr(model, "encode") and hasattr(model, "step")):
        got = type(model).__name__
        raise TypeError(f"model: got a {got}, expected an EncoderDecoder or a Transformer")
    positive_int(limit=limit)
    xp = common_namespace(source=source, mask=mask)
    if not xp.isdtype(source.dtype, "integral"):
        raise ValueError(f"source: got dtype {source.dtype}, expected integers")
    nonnegative_int(start=start)
    nonnegative_int(most=getattr(model, "target_vocab", math.inf) - 1, end=end)
    return xp, widen_tokens(source)


def _rows(state: Any, rows: Int[Array, " k"]) -> Any:
    """The same rows of a state: of an array, or of each array that it consists of."""
    if isinstance(state, tuple):
        return type(state)(*(_rows(part, rows) for part in state))
    return array_namespace(state).take(state, rows, axis=0)
