"""Character n-grams: the language model that a transformer has to beat."""

import numpy as np
from jaxtyping import Float, Int

from attnbook._validation import check_tokens, positive_int
from attnbook._validation import probability as check_share


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

    Source: Kneser and Ney (1995); interpolated as in Chen and Goodman (1999), section 3.
    """
    positive_int(order=order)
    check_share(discount=discount)
    positive_int(vocab_size=vocab_size)
    for name, array in (("train", train), ("held_out", held_out)):
        if array.ndim != 1:
            raise ValueError(f"{name}: got shape {array.shape}, expected (n,), one text")
    check_tokens(vocab_size, train=train)
    check_tokens(vocab_size, held_out=held_out)
    n, both = len(train), np.concatenate([train, held_out]).astype(np.int64)
    probability = np.full(len(held_out), 1 / vocab_size)
    contexts = np.zeros(len(both) + 1, dtype=np.intp)  # at t: the number of the gram before t
    grams, first = _numbered(contexts, both, vocab_size, 0)
    for length in range(1, order + 1):
        longer, first_longer = _numbered(np.append(0, grams), both, vocab_size, length)
        # below the highest order every different gram that is longer by one counts once
        ends = np.arange(length - 1, n) if length == order else first_longer[first_longer < n]
        count = np.bincount(grams[ends], minlength=len(first))
        seen = np.flatnonzero(count)
        context, most = contexts[first[seen]], int(contexts.max()) + 1
        total = np.bincount(context, count[seen], minlength=most)
        kinds = np.bincount(context, minlength=most)
        t = np.arange(length - 1, len(held_out))
        t = t[total[contexts[n + t]] > 0]
        gram, before = grams[n + t], contexts[n + t]
        kept = np.maximum(count[gram] - discount, 0)
        probability[t] = (kept + discount * kinds[before] * probability[t]) / total[before]
        contexts, grams, first = np.append(0, grams), longer, first_longer
    with np.errstate(divide="ignore"):  # without a discount, nothing is left for what is unseen
        return -np.log2(probability)


def _numbered(
    contexts: Int[np.ndarray, " n+1"],
    tokens: Int[np.ndarray, " n"],
    vocab_size: int,
    before: int,
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " grams"]]:
    """A number for every different gram, at the place where it ends, and where it ends first.

    contexts has the numbers of what stands before each token; a gram has so many tokens before its
    last, and the first ones have no number.
    """
    ends = np.arange(before, len(tokens))
    code = contexts[ends].astype(np.int64) * vocab_size + tokens[ends]
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    numbers = np.zeros(len(tokens), dtype=np.intp)  # 32 bits where a browser has them
    numbers[ends] = number
    return numbers, ends[first]
