"""Attention pooling with a learned query."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from attnbook._validation import positive_int
from attnbook.attention.pooling import pool


class AttentionPooling(nn.Module):
    """One number for a sequence of tokens: a learned query attends to them; see attention.pooling.

    Args:
        vocab_size: how many different tokens there are.
        embed_dim: the width of a token's embedding.
        key_dim: the width of the query and the keys.
        hidden_dim: of the networks that make the values and read the average.

    Raises:
        ValueError: a size that is not an integer of at least 1.
    """

    def __init__(
        self, vocab_size: int, embed_dim: int = 16, key_dim: int = 32, hidden_dim: int = 32
    ) -> None:
        super().__init__()
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.key_dim = positive_int(key_dim=key_dim)
        self.hidden_dim = positive_int(hidden_dim=hidden_dim)
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.query = nn.Parameter(torch.randn(1, key_dim))
        self.key = nn.Linear(embed_dim, key_dim)
        self.value_hidden = nn.Linear(embed_dim, hidden_dim)
        self.value_out = nn.Linear(hidden_dim, 1)
        self.head_hidden = nn.Linear(1, hidden_dim)
        self.head_out = nn.Linear(hidden_dim, 1)

    def forward(
        self, tokens: Int[Tensor, "... n"], mask: Tensor | None = None, return_weights: bool = False
    ) -> Any:
        """Logits of shape (...), or the triple (logits, weights, values), the latter (..., n)."""
        return pool(self, tokens, mask, return_weights)
