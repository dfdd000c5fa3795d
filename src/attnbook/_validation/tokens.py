"""What the models of sequences accept: token numbers, masks of them, labels, states."""

import math
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from attnbook._validation.arrays import (
    broadcast_shapes,
    check_floating,
    check_same_library,
    common_namespace,
    is_broadcastable,
    is_concretely_true,
    promote_autocast,
)
from attnbook._validation.types import Array


def check_tokens(vocab_size: int, longest: int | None = None, **argument: Array) -> None:
    """Check token numbers: PyTorch would stop with an index error, JAX would clip them."""
    ((name, tokens),) = argument.items()
    xp = common_namespace(**argument)
    if not xp.isdtype(tokens.dtype, "integral") or tokens.ndim == 0:
        got = f"dtype {tokens.dtype}, shape {tuple(tokens.shape)}"
        raise ValueError(f"{name}: got {got}, expected integers of shape (..., n)")
    if longest is not None and tokens.shape[-1] > longest:
        raise ValueError(f"{name}: got {tokens.shape[-1]} of them, expected at most {longest}")
    # no larger than the dtype holds: compared with uint8, 256 would become 0
    largest = min(vocab_size - 1, int(xp.iinfo(tokens.dtype).max))
    if is_concretely_true(xp.any((tokens < 0) | (tokens > largest))):
        got = f"{int(xp.min(tokens))} to {int(xp.max(tokens))}"
        raise ValueError(f"{name}: got {got}, expected 0 to {vocab_size - 1}")


def token_list(vocab_size: int | None = None, **argument: Any) -> list[int]:
    """Token numbers of one text, an array of any library or a list, as Python's integers."""
    ((name, tokens),) = argument.items()
    try:
        given = np.asarray(tokens.tolist() if is_array_api_obj(tokens) else tokens)
    except ValueError:  # rows of different lengths
        given = np.asarray(math.nan)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        got = f"dtype {given.dtype}, shape {given.shape}"
        raise ValueError(f"{name}: got {got}, expected integers of shape (n,), one text")
    if vocab_size is not None and given.size:
        check_tokens(vocab_size, None, **{name: given})
    return [int(token) for token in given]


def widen_tokens(tokens: Array) -> Array:
    """Token numbers as integers of 32 bits or more: smaller ones wrap where they index a table."""
    xp = common_namespace(tokens=tokens)
    return xp.astype(tokens, xp.int32) if xp.iinfo(tokens.dtype).bits < 32 else tokens


def check_batch(**argument: Array) -> None:
    """Check that token numbers are rows of a batch, at least one of them."""
    ((name, tokens),) = argument.items()
    common_namespace(**argument)
    if tokens.ndim != 2 or tokens.shape[0] == 0:
        shape = tuple(tokens.shape)
        raise ValueError(f"{name}: got shape {shape}, expected (b, n), one row or more")


def check_given_by(method: str, kind: type, **argument: Any) -> None:
    """Check that an argument is what a method of the model gives."""
    ((name, value),) = argument.items()
    if not isinstance(value, kind):
        got = type(value).__name__
        raise TypeError(f"{name}: got a {got}, expected what {method} of the model gives")


def check_recurrent_step(model: Any, memory: Any, state: Array, token: Array) -> None:
    """Check what a recurrent decoder reads, and its token, one per row of its state."""
    hidden_dim = model.hidden_dim
    check_memory(model.output, hidden_dim, memory)
    common_namespace(token=token, state=state)
    check_same_library(model.output, state=state)
    values, alike_state = promote_autocast(memory.values, state)
    check_floating(memory=values, state=alike_state)
    if tuple(state.shape[-1:]) != (hidden_dim,):
        raise ValueError(f"state: got shape {tuple(state.shape)}, expected (..., {hidden_dim})")
    if tuple(token.shape) != tuple(state.shape[:-1]):
        got, expected = tuple(token.shape), tuple(state.shape[:-1])
        raise ValueError(f"token: got shape {got}, expected {expected}, one per row of the state")
    try:
        broadcast_shapes(tuple(memory.values.shape[:-2]), tuple(state.shape[:-1]))
    except ValueError:
        got, expected = tuple(state.shape[:-1]), tuple(memory.values.shape[:-2])
        raise ValueError(f"state: got rows {got}, expected {expected} as in memory") from None
    check_tokens(model.target_vocab, token=token[None])


def check_cell(layer: Any, inputs: Array, state: Array) -> None:
    """Check what a recurrent cell is given."""
    check_floating(inputs=inputs, state=state)
    check_same_library(layer.input, inputs=inputs)
    given = (("inputs", inputs, layer.input_dim), ("state", state, layer.hidden_dim))
    for name, array, width in given:
        if tuple(array.shape[-1:]) != (width,):
            raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected (..., {width})")
    rows = zip(inputs.shape[-2::-1], state.shape[-2::-1], strict=False)
    if any(a != b and a != 1 and b != 1 for a, b in rows):
        got, expected = tuple(state.shape), tuple(inputs.shape[:-1])
        raise ValueError(
            f"state: got shape {got}, expected {(*expected, layer.hidden_dim)} as in inputs"
        )


def check_length(longest: int | None, **arrays: Array) -> None:
    """Check the length of sequences (..., n, width)."""
    for name, array in arrays.items():
        n = array.shape[-2]
        if longest is not None and n > longest:
            raise ValueError(f"{name}: got {n} tokens, expected at most {longest}")


def check_next_token(vocab_size: int, longest: int, token: Array, length: Array) -> None:
    """Check one more token per row, after so many of them."""
    check_tokens(vocab_size, token=token)
    xp = common_namespace(token=token, length=length)
    if tuple(token.shape) != tuple(length.shape):
        got, expected = tuple(token.shape), tuple(length.shape)
        raise ValueError(f"token: got shape {got}, expected {expected}, one per row of the cache")
    if is_concretely_true(xp.any(length < 0)):
        raise ValueError(f"cache: got length {length}, expected 0 or more")
    if is_concretely_true(xp.any(length >= longest)):
        raise ValueError(f"cache: got {longest} tokens, expected fewer: it is full")


def check_cache(model: Any, cache: Any, row: tuple[int, int, int, int], memory: Any = None) -> None:
    """Check that a cache, and a memory if there is one, are this transformer's, of as many rows.

    A row of its keys and values has the shape row.
    """
    for array in cache:
        check_same_library(model.decoder_norm, cache=array)
    if not common_namespace(cache=cache.length).isdtype(cache.length.dtype, "integral"):
        raise ValueError(f"cache: got length of dtype {cache.length.dtype}, expected integers")
    if memory is not None:
        check_memory(model.decoder_norm, model.embed_dim, memory)
    expected = (*cache.length.shape, *row)
    for part, array in zip(("keys", "values"), cache[:2], strict=True):
        if tuple(array.shape) != expected:
            got = f"{part} of shape {tuple(array.shape)}"
            raise ValueError(f"cache: got {got}, expected {expected}, as this model has them")
    rows = cache.length.shape[0]
    if memory is not None and memory.values.shape[0] not in (1, rows):  # 1 for all rows: a beam
        got = memory.values.shape[0]
        raise ValueError(f"memory: got {got} rows, expected 1, or {rows} as in cache")


def check_memory(layer: Any, width: int, memory: Any) -> None:
    """Check what an encoder has read: arrays (..., n, width) and a mask (..., 1, n)."""
    *parts, mask = memory
    for array in parts:
        check_same_library(layer, memory=array)
        if tuple(array.shape[-1:]) != (width,):
            shape = tuple(array.shape)
            raise ValueError(f"memory: got shape {shape}, expected (..., n, {width})")
    if mask is None:
        return
    check_same_library(layer, memory=mask)
    n = parts[-1].shape[-2]
    whole = common_namespace(memory=mask).isdtype(mask.dtype, "bool")
    if not whole or not is_broadcastable(tuple(mask.shape), (1, n)):
        got = f"a mask of dtype {mask.dtype}, shape {tuple(mask.shape)}"
        raise ValueError(f"memory: got {got}, expected bool (..., 1, {n})")


def check_sentences(
    source: Array, mask: Array, target: Array, source_vocab: int, vocab: int
) -> None:
    """Check what an encoder–decoder reads and what it is to write."""
    check_tokens(source_vocab, source=source)
    check_tokens(vocab, target=target)
    check_mask_of_tokens(source, mask, "source")
    if target.shape[-1] == 0:
        raise ValueError("target: got no token, expected at least one, START")
    if tuple(target.shape[:-1]) != tuple(source.shape[:-1]):
        got, expected = tuple(target.shape[:-1]), tuple(source.shape[:-1])
        raise ValueError(f"target: got leading axes {got}, expected {expected} as in source")
    xp = common_namespace(mask=mask)
    if source.shape[-1] == 0 or is_concretely_true(~xp.all(xp.any(mask, axis=-1))):
        raise ValueError("mask: got a sentence without a word, expected at least one in each")


def check_labels(logits: Array, labels: Array, mask: Array | None) -> None:
    """Check labels and their mask against logits (..., n, vocab)."""
    if logits.ndim < 2 or logits.shape[-1] == 0:
        raise ValueError(f"logits: got shape {tuple(logits.shape)}, expected (..., n, vocab)")
    common_namespace(logits=logits, labels=labels)
    if tuple(labels.shape) != tuple(logits.shape[:-1]):
        got, expected = tuple(labels.shape), tuple(logits.shape[:-1])
        raise ValueError(f"labels: got shape {got}, expected {expected}, one per row of logits")
    if mask is not None:
        check_mask_of_tokens(labels, mask, "labels")
        xp = common_namespace(labels=labels, mask=mask)
        labels = xp.where(mask, labels, xp.zeros_like(labels))  # what is masked may be anything
    check_tokens(logits.shape[-1], labels=labels)


def check_mask_of_tokens(tokens: Array, mask: Array, name: str) -> None:
    """Check that a mask says of every token, called by a name, whether it is one."""
    xp = common_namespace(**{name: tokens}, mask=mask)
    if not xp.isdtype(mask.dtype, "bool") or tuple(mask.shape) != tuple(tokens.shape):
        got = f"dtype {mask.dtype}, shape {tuple(mask.shape)}"
        raise ValueError(f"mask: got {got}, expected bool of shape {tuple(tokens.shape)}")
