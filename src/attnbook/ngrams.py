"""Character n-grams: the language model that a transformer has to beat."""

from collections import Counter
from collections.abc import Hashable

import numpy as np
from jaxtyping import Float, Int

from attnbook._validation import numbers
from attnbook._validation import tokens as check
from attnbook._validation.arrays import check_numpy


def bits(
    train: Int[np.ndarray, " n"],
    held_out: Int[np.ndarray, " m"],
    order: int,
    *,
    vocab_size: int,
    discount: float = 0.75,
) -> Float[np.ndarray, " m"]:
    """Bits −log₂ p(y_t | the order − 1 tokens before) of every held-out token.

    Interpolated absolute discounting: with c(·) the counts of the context's continuations,
    C their sum, N how many different ones there are, and D the discount,
    p(y) = max(c(y) − D, 0) / C + (D N / C) p'(y), with p' the same for a context shorter by one;
    at the end p' = 1 / vocab_size. Below the highest order c counts, in place of occurrences, how
    many different tokens stand before (Kneser and Ney).

    Args:
        train: token numbers.
        held_out: token numbers; its first ones have shorter contexts.
        order: n of the n-grams, 1 or more.
        vocab_size: how many different tokens there are.
        discount: D, from 0 to below 1.

    Returns:
        Of the shape of held_out.

    Raises:
        ValueError: an order or a vocabulary below 1, a discount outside [0, 1), texts that are no
            rows of integers, tokens outside the vocabulary.
        TypeError: what is no NumPy array.

    Source: Kneser and Ney (1995); interpolated as in Chen and Goodman (1999), section 3.
    """
    check_numpy(train=train, held_out=held_out)
    numbers.positive_int(order=order)
    numbers.probability(discount=discount)
    numbers.positive_int(vocab_size=vocab_size)
    for name, array in (("train", train), ("held_out", held_out)):
        if array.ndim != 1:
            raise ValueError(f"{name}: got shape {array.shape}, expected (n,), one text")
    check.check_tokens(vocab_size, train=train)
    check.check_tokens(vocab_size, held_out=held_out)
    probability = np.full(len(held_out), 1 / vocab_size)
    for n in range(1, order + 1):
        counts = _counts(train, n, highest=n == order)
        total: Counter[Hashable] = Counter()
        kinds: Counter[Hashable] = Counter()
        for gram, count in counts.items():
            total[gram[:-1]] += count
            kinds[gram[:-1]] += 1
        text = held_out.tolist()
        for t in range(n - 1, len(text)):
            gram = tuple(text[t - n + 1 : t + 1])
            if seen := total[gram[:-1]]:
                kept = max(counts[gram] - discount, 0)
                probability[t] = (kept + discount * kinds[gram[:-1]] * probability[t]) / seen
    with np.errstate(divide="ignore"):  # without a discount, nothing is left for what is unseen
        return -np.log2(probability)


def _counts(train: Int[np.ndarray, " n"], n: int, *, highest: bool) -> Counter[tuple[int, ...]]:
    """Occurrences of n-grams; below the highest order the different tokens before them."""
    text = train.tolist()
    longer = n if highest else n + 1
    grams = zip(*(text[k:] for k in range(longer)), strict=False)
    return Counter(grams) if highest else Counter(gram[1:] for gram in set(grams))
