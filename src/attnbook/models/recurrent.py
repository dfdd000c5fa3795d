"""The recurrent encoder–decoder with attention: one forward for both back ends.

A layer of attnbook.torch or attnbook.jax holds the parameters, and knows how its library walks
through time: unroll(step, carry, inputs), as jax.lax.scan does.
"""

from functools import partial
from typing import Any, NamedTuple

from array_api_compat import array_namespace, device
from jaxtyping import Bool, Float, Int

from attnbook._types import Array, Layer
from attnbook._validation import (
    check_floating,
    check_same_library,
    check_sentences,
    check_tokens,
    promote_autocast,
    widen_tokens,
)
from attnbook.attention import attend, scores
from attnbook.layers.activations import sigmoid
from attnbook.layers.linear import embed, linear
from attnbook.models.transformer import check_given_by

# Added to the bias of z before training, so that states keep: z near 1/2 halves them at every step.
# Jozefowicz, Zaremba and Sutskever (2015) find that an LSTM needs as much in its forget gate.
UPDATE_BIAS = 1.0


class Memory(NamedTuple):
    """What a decoder may read.

    Args:
        keys: of shape (..., n, hidden_dim), already multiplied by the score's matrix.
        values: the encoder's states, of shape (..., n, hidden_dim).
        mask: of shape (..., 1, n), True = a word, or None.
    """

    keys: Array
    values: Array
    mask: Array | None


def gru(cell: Layer, inputs: Float[Array, "... e"], state: Float[Array, "... h"]) -> Array:
    """One step of a gated recurrent unit, h' = (1 − z) ⊙ c + z ⊙ h.

    The gates are r, z = σ(W x + b + U h + d), the candidate is c = tanh(W x + b + r ⊙ (U h + d)).

    Args:
        cell: a GRUCell of either back end; rows of its matrices are those of r, z and c, as in
            torch.nn.GRUCell.
        inputs: x, of shape (..., input_dim).
        state: h, of shape (..., hidden_dim).

    Returns:
        The new state, of the old one's shape.

    Source: Cho et al. (2014), equations 5 to 8, with r applied after the product with U.
    """
    xp = array_namespace(inputs, state)
    h = state.shape[-1]
    from_input, from_state = linear(cell.input, inputs), linear(cell.hidden, state)
    gates = sigmoid((from_input + from_state)[..., : 2 * h])
    r, z = gates[..., :h], gates[..., h:]
    candidate = xp.tanh(from_input[..., 2 * h :] + r * from_state[..., 2 * h :])
    return candidate + z * (state - candidate)


def call_cell(cell: Layer, inputs: Array, state: Array) -> Any:
    """What calling a GRUCell of either back end gives."""
    inputs, state = promote_autocast(inputs, state)
    check_floating(inputs=inputs, state=state)
    check_same_library(cell.input, inputs=inputs)
    for name, array, width in (
        ("inputs", inputs, cell.input_dim),
        ("state", state, cell.hidden_dim),
    ):
        if tuple(array.shape[-1:]) != (width,):
            raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected (..., {width})")
    return gru(cell, inputs, state)


def bidirectional_states(
    model: Layer, source: Int[Array, "... n"], mask: Bool[Array, "... n"]
) -> tuple[Float[Array, "... n hidden"], Float[Array, "... hidden"]]:
    """The encoder's states, →h_j beside ←h_j: word j with what stands before and after it.

    Args:
        model: an EncoderDecoder of either back end.
        source: token numbers.
        mask: True = a word; padding leaves a state as it is.

    Returns:
        The states, of shape (..., n, hidden_dim), and the summary, of shape (..., hidden_dim). The
        summary is →h of the last word beside ←h of the first, each of which has seen all words.

    Source: Schuster and Paliwal (1997); Bahdanau, Cho and Bengio (2015), section 3.2.
    """
    xp = array_namespace(source)
    embedded = embed(model.source_embedding, source)  # (..., n, embed_dim)
    words, real = (xp.moveaxis(a, (-2,), (0,)) for a in (embedded, mask[..., None]))  # time first

    def walk(cell: Any, words: Array, real: Array) -> Array:
        def step(state: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
            word, is_word = at
            state = xp.where(is_word, cell(word, state), state)
            return state, state

        shape = (*words.shape[1:-1], cell.hidden_dim)
        start = xp.zeros(shape, dtype=words.dtype, device=device(words))
        _, states = model.unroll(step, start, (words, real))
        return states

    forward = walk(model.forward_cell, words, real)
    backward = xp.flip(
        walk(model.backward_cell, xp.flip(words, axis=0), xp.flip(real, axis=0)), axis=0
    )
    states = xp.moveaxis(xp.concat([forward, backward], axis=-1), (0,), (-2,))
    return states, xp.concat([forward[-1], backward[0]], axis=-1)


def encode(
    model: Layer, source: Int[Array, "... n"], mask: Bool[Array, "... n"]
) -> tuple[Memory, Float[Any, "... hidden"]]:
    """What the decoder may read, and the state it starts from, s_0 = tanh(W · summary + b).

    Without a score the summary is all that it may read: attention to a single key.

    Args:
        model: an EncoderDecoder of either back end.
        source: token numbers.
        mask: True = a word.

    Returns:
        The memory, and s_0 of shape (..., hidden_dim).
    """
    check_same_library(model.output, source=source)
    check_sentences(source, mask, source, model.source_vocab, model.source_vocab)
    return _encode(model, widen_tokens(source), mask)


def _encode(model: Layer, source: Array, mask: Array) -> tuple[Memory, Array]:
    """The formula of encode, for what was checked before."""
    xp = array_namespace(source)
    states, summary = bidirectional_states(model, source, mask)
    start = xp.tanh(linear(model.start, summary))
    if model.score is None:
        return Memory(summary[..., None, :], summary[..., None, :], None), start
    keys = states if model.score == "dot" else linear(model.key, states)
    return Memory(keys, states, mask[..., None, :]), start


def step(
    model: Layer,
    memory: Memory,
    state: Float[Array, "... hidden"],
    previous: Float[Array, "... e"],
) -> tuple[Array, tuple[Array, Array, Array]]:
    """One step of the decoder: the state asks, the context answers, both make the new state.

    c_i = attend(s_{i−1}, memory) and s_i = GRU([y_{i−1}; c_i], s_{i−1}).

    Args:
        model: an EncoderDecoder of either back end.
        memory: what encode gave.
        state: s_{i−1}.
        previous: y_{i−1}, the embedding of the character before.

    Returns:
        s_i, and the triple to keep, of s_i, the context c_i and the weights (..., n).

    Source: Bahdanau, Cho and Bengio (2015), equations 4 to 6 and section A.2.2.
    """
    xp = array_namespace(state)
    query, score = state[..., None, :], scores.dot
    if model.score == "additive":
        query = linear(model.query, query)
        score = partial(scores.additive_of_projected, v=model.combine)
    asked = attend(
        query, memory.keys, memory.values, score=score, mask=memory.mask, return_weights=True
    )
    context, weights = (array[..., 0, :] for array in asked)
    state = model.decoder_cell(xp.concat([previous, context], axis=-1), state)
    return state, (state, context, weights)


def logits(model: Layer, state: Array, context: Array) -> Float[Array, "... vocab"]:
    """Logits of the next character, W [s_i; c_i] + b.

    Args:
        model: an EncoderDecoder of either back end.
        state: s_i, of shape (..., hidden_dim).
        context: c_i, of shape (..., hidden_dim).

    Returns:
        Of shape (..., target_vocab).
    """
    xp = array_namespace(state)
    return linear(model.output, xp.concat([state, context], axis=-1))


def translate(
    model: Layer,
    source: Int[Array, "... n"],
    mask: Bool[Array, "... n"],
    target: Int[Array, "... m"],
    return_weights: bool = False,
) -> Any:
    """Logits of every next character, given the true characters before: teacher forcing.

    Args:
        model: an EncoderDecoder of either back end.
        source: token numbers of the words.
        mask: True = a word.
        target: token numbers of START and the characters, the last one left out.
        return_weights: give the attention weights too.

    Returns:
        Logits of shape (..., m, target_vocab), or the pair (logits, weights (..., m, n)).

    Source: teacher forcing is Williams and Zipser's (1989).
    """
    check_same_library(model.output, source=source)
    check_same_library(model.output, target=target)
    check_sentences(source, mask, target, model.source_vocab, model.target_vocab)
    xp = array_namespace(source)
    memory, start = _encode(model, widen_tokens(source), mask)
    embedded = embed(model.target_embedding, widen_tokens(target))
    previous = xp.moveaxis(embedded, (-2,), (0,))  # time first

    def at(state: Array, inputs: tuple[Array]) -> tuple[Array, tuple[Array, Array, Array]]:
        return step(model, memory, state, inputs[0])

    _, (states, contexts, weights) = model.unroll(at, start, (previous,))
    found = xp.moveaxis(logits(model, states, contexts), (0,), (-2,))
    return (found, xp.moveaxis(weights, (0,), (-2,))) if return_weights else found


def decode_step(
    model: Layer,
    memory: Memory,
    state: Float[Array, "... hidden"],
    token: Int[Array, "..."],
) -> tuple[Any, Any, Any]:
    """The decoder on its own: one step after a character that it has written.

    Args:
        model: an EncoderDecoder of either back end.
        memory: what encode gave.
        state: the state before.
        token: the character's number, of shape (...).

    Returns:
        The new state, the next character's logits (..., target_vocab), the weights (..., n).
    """
    previous = embed(model.target_embedding, token)
    state, (_, context, weights) = step(model, memory, state, previous)
    return state, logits(model, state, context), weights


def check_step(model: Layer, memory: Memory, state: Array, token: Array) -> None:
    """Check what an EncoderDecoder's step is given."""
    check_given_by("encode", Memory, memory=memory)
    check_same_library(model.output, state=state)
    if tuple(state.shape[-1:]) != (model.hidden_dim,):
        got, expected = tuple(state.shape), model.hidden_dim
        raise ValueError(f"state: got shape {got}, expected (..., {expected})")
    if tuple(token.shape) != tuple(state.shape[:-1]):
        got, expected = tuple(token.shape), tuple(state.shape[:-1])
        raise ValueError(f"token: got shape {got}, expected {expected}, one per row of the state")
    check_tokens(model.target_vocab, token=token[None])


def decoder_score(score: str | None) -> str | None:
    """The name of the score of a decoder, or None for a decoder without attention."""
    if not isinstance(score, str | None) or score not in ("additive", "general", "dot", None):
        raise ValueError(f"score: got {score!r}, expected 'additive', 'general', 'dot' or None")
    return score
