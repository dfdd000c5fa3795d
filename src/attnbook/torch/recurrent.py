"""The recurrent encoder–decoder: parameters, and a loop through time."""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attnbook._validation import even, positive_int, widen_tokens
from attnbook.models import recurrent
from attnbook.models.recurrent import Memory


class GRUCell(nn.Module):
    """A gated recurrent unit; its formula is attnbook.models.recurrent.gru.

    Args:
        input_dim: the width of an input.
        hidden_dim: the width of the state.

    Raises:
        ValueError: a size that is not an integer of at least 1.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input_dim = positive_int(input_dim=input_dim)
        self.hidden_dim = positive_int(hidden_dim=hidden_dim)
        self.input = nn.Linear(input_dim, 3 * hidden_dim)
        self.hidden = nn.Linear(hidden_dim, 3 * hidden_dim)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(hidden_dim), 1 / math.sqrt(hidden_dim))

    def forward(self, inputs: Tensor, state: Tensor) -> Tensor:
        """The state after inputs (..., input_dim), from the state (..., hidden_dim) before."""
        new: Tensor = recurrent.call_cell(self, inputs, state)
        return new


class EncoderDecoder(nn.Module):
    """A bidirectional GRU reads, a GRU with attention writes; see attnbook.models.recurrent.

    Before training, the bias of each cell's gate z lies one higher than in a GRUCell of its own.

    Args:
        source_vocab: how many different words are read.
        target_vocab: how many different characters are written.
        embed_dim: the width of a word's and of a character's embedding.
        hidden_dim: the width of the decoder's state, and of the encoder's two states together.
        score: "additive" (Bahdanau's), "general" or "dot" (Luong's), or None: no attention, the
            decoder reads a summary of fixed width.

    Raises:
        ValueError: a size that is not an integer of at least 1, an odd hidden_dim, another score.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        embed_dim: int = 64,
        hidden_dim: int = 128,
        score: str | None = "additive",
    ) -> None:
        super().__init__()
        self.source_vocab = positive_int(source_vocab=source_vocab)
        self.target_vocab = positive_int(target_vocab=target_vocab)
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.hidden_dim = even(hidden_dim=hidden_dim)
        self.score = recurrent.decoder_score(score)
        self.source_embedding = nn.Embedding(source_vocab, embed_dim)
        self.target_embedding = nn.Embedding(target_vocab, embed_dim)
        self.forward_cell = GRUCell(embed_dim, hidden_dim // 2)
        self.backward_cell = GRUCell(embed_dim, hidden_dim // 2)
        self.start = nn.Linear(hidden_dim, hidden_dim)
        self.decoder_cell = GRUCell(embed_dim + hidden_dim, hidden_dim)
        self.output = nn.Linear(2 * hidden_dim, target_vocab)
        if score in ("additive", "general"):
            self.key = nn.Linear(hidden_dim, hidden_dim, bias=False)
        if score == "additive":
            self.query = nn.Linear(hidden_dim, hidden_dim, bias=False)
            self.combine = nn.Parameter(torch.randn(hidden_dim) / math.sqrt(hidden_dim))
        for cell in (self.forward_cell, self.backward_cell, self.decoder_cell):
            cell.input.bias.data[cell.hidden_dim : 2 * cell.hidden_dim] += recurrent.UPDATE_BIAS

    def forward(
        self,
        source: Int[Tensor, "... n"],
        mask: Bool[Tensor, "... n"],
        target: Int[Tensor, "... m"],
        return_weights: bool = False,
    ) -> Any:
        """Logits (..., m, target_vocab) of what comes next; with weights (..., m, n) if asked."""
        return recurrent.translate(self, source, mask, target, return_weights)

    def encode(
        self, source: Int[Tensor, "... n"], mask: Bool[Tensor, "... n"]
    ) -> tuple[Memory, Tensor]:
        """What the decoder may read, and the state it starts from."""
        return recurrent.encode(self, source, mask)

    def step(
        self, memory: Memory, state: Tensor, token: Int[Tensor, "..."]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """After a character: the new state, logits (..., target_vocab), weights (..., n)."""
        recurrent.check_step(self, memory, state, token)
        return recurrent.decode_step(self, memory, state, widen_tokens(token))

    @staticmethod
    def unroll(step: Callable[..., Any], carry: Any, inputs: tuple[Tensor, ...]) -> Any:
        """(carry, outputs) of carry, output = step(carry, inputs at t) for all t, as lax.scan."""
        outputs = []
        for at in zip(*inputs, strict=True):
            carry, output = step(carry, at)
            outputs.append(output)
        if isinstance(outputs[0], tuple):
            return carry, tuple(torch.stack(series) for series in zip(*outputs, strict=True))
        return carry, torch.stack(outputs)
