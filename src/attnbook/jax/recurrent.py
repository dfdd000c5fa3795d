"""The recurrent encoder–decoder: parameters, and a scan through time."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Int, PRNGKeyArray

from attnbook._validation import even, positive_int, widen_tokens
from attnbook.jax.dropout import check_key
from attnbook.models import recurrent
from attnbook.models.recurrent import Memory

_decode_step = eqx.filter_jit(recurrent.decode_step)


class GRUCell(eqx.Module):
    """The JAX twin of attnbook.torch.GRUCell; the key draws the parameters."""

    input: eqx.nn.Linear
    hidden: eqx.nn.Linear
    input_dim: int = eqx.field(static=True)
    hidden_dim: int = eqx.field(static=True)

    def __init__(self, input_dim: int, hidden_dim: int, *, key: PRNGKeyArray) -> None:
        self.input_dim = positive_int(input_dim=input_dim)
        self.hidden_dim = positive_int(hidden_dim=hidden_dim)
        to_input, to_hidden, to_draw = jax.random.split(check_key(key), 3)
        cell = (
            eqx.nn.Linear(self.input_dim, 3 * self.hidden_dim, key=to_input),
            eqx.nn.Linear(self.hidden_dim, 3 * self.hidden_dim, key=to_hidden),
        )
        parameters, tree = jax.tree.flatten(cell)
        limit, keys = 1 / math.sqrt(self.hidden_dim), jax.random.split(to_draw, len(parameters))
        self.input, self.hidden = jax.tree.unflatten(
            tree,
            [
                jax.random.uniform(k, p.shape, p.dtype, -limit, limit)
                for k, p in zip(keys, parameters, strict=True)
            ],
        )

    def __call__(self, inputs: Array, state: Array) -> Array:
        """The state after inputs (..., input_dim), from the state (..., hidden_dim) before."""
        new: Array = recurrent.call_cell(self, inputs, state)
        return new


def _keeping(cell: GRUCell) -> GRUCell:
    """A cell whose update gate is nearer to 1."""
    z = slice(cell.hidden_dim, 2 * cell.hidden_dim)

    def higher(bias: Array) -> Array:
        return bias.at[z].add(recurrent.UPDATE_BIAS)

    return eqx.tree_at(lambda c: c.input.bias, cell, replace_fn=higher)


class EncoderDecoder(eqx.Module):
    """The JAX twin of attnbook.torch.EncoderDecoder; the key draws the parameters."""

    source_embedding: eqx.nn.Embedding
    target_embedding: eqx.nn.Embedding
    forward_cell: GRUCell
    backward_cell: GRUCell
    start: eqx.nn.Linear
    decoder_cell: GRUCell
    output: eqx.nn.Linear
    key: eqx.nn.Linear | None
    query: eqx.nn.Linear | None
    combine: Array | None
    source_vocab: int = eqx.field(static=True)
    target_vocab: int = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    hidden_dim: int = eqx.field(static=True)
    score: str | None = eqx.field(static=True)

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        embed_dim: int = 64,
        hidden_dim: int = 128,
        score: str | None = "additive",
        *,
        key: PRNGKeyArray,
    ) -> None:
        self.source_vocab = positive_int(source_vocab=source_vocab)
        self.target_vocab = positive_int(target_vocab=target_vocab)
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.hidden_dim = h = even(hidden_dim=hidden_dim)
        self.score = recurrent.decoder_score(score)
        keys = jax.random.split(check_key(key), 10)
        self.source_embedding = eqx.nn.Embedding(self.source_vocab, self.embed_dim, key=keys[0])
        self.target_embedding = eqx.nn.Embedding(self.target_vocab, self.embed_dim, key=keys[1])
        self.forward_cell = _keeping(GRUCell(self.embed_dim, h // 2, key=keys[2]))
        self.backward_cell = _keeping(GRUCell(self.embed_dim, h // 2, key=keys[3]))
        self.start = eqx.nn.Linear(h, h, key=keys[4])
        self.decoder_cell = _keeping(GRUCell(self.embed_dim + h, h, key=keys[5]))
        self.output = eqx.nn.Linear(2 * h, self.target_vocab, key=keys[6])
        additive, multiplied = score == "additive", score in ("additive", "general")
        self.key = eqx.nn.Linear(h, h, use_bias=False, key=keys[7]) if multiplied else None
        self.query = eqx.nn.Linear(h, h, use_bias=False, key=keys[8]) if additive else None
        self.combine = jax.random.normal(keys[9], (h,)) / math.sqrt(h) if additive else None

    def __call__(
        self,
        source: Int[Array, "... n"],
        mask: Bool[Array, "... n"],
        target: Int[Array, "... m"],
        return_weights: bool = False,
    ) -> Any:
        """Logits (..., m, target_vocab) of what comes next; with weights (..., m, n) if asked."""
        return recurrent.translate(self, source, mask, target, return_weights)

    def encode(
        self, source: Int[Array, "... n"], mask: Bool[Array, "... n"]
    ) -> tuple[Memory, Array]:
        """What the decoder may read, and the state it starts from."""
        return recurrent.encode(self, source, mask)

    def step(
        self, memory: Memory, state: Array, token: Int[Array, "..."]
    ) -> tuple[Array, Array, Array]:
        """After a character: the new state, logits (..., target_vocab), weights (..., n)."""
        recurrent.check_step(self, memory, state, token)
        return _decode_step(self, memory, state, widen_tokens(token))

    @staticmethod
    def unroll(step: Callable[..., Any], carry: Any, inputs: tuple[Array, ...]) -> Any:
        """(carry, outputs) of carry, output = step(carry, inputs at t) for all t: jax.lax.scan."""
        return jax.lax.scan(step, carry, inputs)
