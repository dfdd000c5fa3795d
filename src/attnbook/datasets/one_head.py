"""Queries, keys and values of one head of a published model on one sentence."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from attnbook.datasets.stored_results import results

Array = np.ndarray

UNIT = 1000  # of the whole numbers that are stored


@dataclass(frozen=True)
class OneHead:
    """A sentence as tokens, and what one head makes of each of them."""

    tokens: tuple[str, ...]
    queries: Float[Array, "16 64"] = field(repr=False)
    keys: Float[Array, "16 64"] = field(repr=False)
    values: Float[Array, "16 64"] = field(repr=False)


def one_head() -> OneHead:
    """Layer 14, head 9 of SmolLM2-135M on "The old man walked his dog along the river before …".

    A token reads itself and those before it: the softmax of the query's dot products with their
    keys, over √64, is the model's weight of each, to 0.0003. "his", number 5, gives "man" 0.63.

    Returns:
        tokens, 16 strings without blanks, of which the first, "<s>", begins every text; queries,
        keys and values, float64, of shape (16, 64), rounded to 0.001. Queries and keys have been
        turned by their positions, as they are when the model scores them.

    Source: Ben Allal et al. (2025), the model, licensed under Apache 2.0;
        experiments/sentence.py asked it.
    """
    found = results("sentence")
    queries, keys, values = (
        np.array([line.split() for line in found["one_head"][name]], dtype=float) / UNIT
        for name in ("queries", "keys", "values")
    )
    return OneHead(tuple(token.strip() for token in found["tokens"]), queries, keys, values)
