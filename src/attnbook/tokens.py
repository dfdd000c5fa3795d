"""What the models of sequences accept: token numbers, masks of them, labels, states."""

from typing import Any

from attnbook.arguments import floating, known_true, one_library, same_library

Array = Any


def numbers(vocab_size: int, longest: int | None = None, **argument: Array) -> None:
    """Check token numbers: PyTorch would stop with an index error, JAX would clip them."""
    ((name, tokens),) = argument.items()
    xp = one_library(**argument)
    if not xp.isdtype(tokens.dtype, "integral") or tokens.ndim == 0:
        got = f"dtype {tokens.dtype}, shape {tuple(tokens.shape)}"
        raise ValueError(f"{name}: got {got}, expected integers of shape (..., n)")
    if longest is not None and tokens.shape[-1] > longest:
        raise ValueError(f"{name}: got {tokens.shape[-1]} of them, expected at most {longest}")
    if known_true(xp.any((tokens < 0) | (tokens >= vocab_size))):
        got = f"{int(xp.min(tokens))} to {int(xp.max(tokens))}"
        raise ValueError(f"{name}: got {got}, expected 0 to {vocab_size - 1}")


def one(vocab_size: int, token: Array, state: Array) -> None:
    """Check the token that a recurrent decoder has written, one a row of its state (..., width)."""
    one_library(token=token, state=state)
    if tuple(token.shape) != tuple(state.shape[:-1]):
        got, expected = tuple(token.shape), tuple(state.shape[:-1])
        raise ValueError(f"token: got shape {got}, expected {expected}, one a row of the state")
    numbers(vocab_size, token=token[None])


def cell(layer: Any, inputs: Array, state: Array) -> None:
    """Check what a recurrent cell is given."""
    floating(inputs=inputs, state=state)
    same_library(layer.input, inputs=inputs)
    given = (("inputs", inputs, layer.input_dim), ("state", state, layer.hidden_dim))
    for name, array, width in given:
        if tuple(array.shape[-1:]) != (width,):
            raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected (..., {width})")


def at_most(longest: int | None, **arrays: Array) -> None:
    """Check the length of sequences (..., n, width)."""
    for name, array in arrays.items():
        n = array.shape[-2]
        if longest is not None and n > longest:
            raise ValueError(f"{name}: got {n} tokens, expected at most {longest}")


def next_token(vocab_size: int, longest: int, token: Array, length: Array) -> None:
    """Check one more token a row, after so many of them."""
    numbers(vocab_size, token=token)
    xp = one_library(token=token, length=length)
    if tuple(token.shape) != tuple(length.shape):
        got, expected = tuple(token.shape), tuple(length.shape)
        raise ValueError(f"token: got shape {got}, expected {expected}, one a row of the cache")
    if known_true(xp.any(length >= longest)):
        raise ValueError(f"cache: got {longest} tokens, expected fewer: it is full")


def sentences(source: Array, mask: Array, written: Array, source_vocab: int, vocab: int) -> None:
    """Check what an encoder–decoder reads and what it has written."""
    numbers(source_vocab, source=source)
    numbers(vocab, written=written)
    _mask(source, mask, "source")
    if written.shape[-1] == 0:
        raise ValueError("written: got no token, expected at least one, START")
    if tuple(written.shape[:-1]) != tuple(source.shape[:-1]):
        got, expected = tuple(written.shape[:-1]), tuple(source.shape[:-1])
        raise ValueError(f"written: got leading axes {got}, expected {expected} as in source")
    xp = one_library(mask=mask)
    if source.shape[-1] == 0 or known_true(~xp.all(xp.any(mask, axis=-1))):
        raise ValueError("mask: got a sentence without a word, expected at least one in each")


def labels(logits: Array, labels: Array, mask: Array | None) -> None:
    """Check labels and their mask against logits (..., n, vocab)."""
    if logits.ndim < 2 or logits.shape[-1] == 0:
        raise ValueError(f"logits: got shape {tuple(logits.shape)}, expected (..., n, vocab)")
    one_library(logits=logits, labels=labels)
    numbers(logits.shape[-1], labels=labels)
    if tuple(labels.shape) != tuple(logits.shape[:-1]):
        got, expected = tuple(labels.shape), tuple(logits.shape[:-1])
        raise ValueError(f"labels: got shape {got}, expected {expected}, one a row of logits")
    if mask is not None:
        _mask(labels, mask, "labels")


def _mask(tokens: Array, mask: Array, name: str) -> None:
    xp = one_library(**{name: tokens}, mask=mask)
    if not xp.isdtype(mask.dtype, "bool") or tuple(mask.shape) != tuple(tokens.shape):
        got = f"dtype {mask.dtype}, shape {tuple(mask.shape)}"
        raise ValueError(f"mask: got {got}, expected bool of shape {tuple(tokens.shape)}")
