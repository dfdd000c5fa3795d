"""Speculative decoding: a small model drafts tokens, a large one judges all of them in one pass.

What is written has exactly the large model's distribution, whatever the small one drafts. With p
the large model's probabilities of the next token and q the small one's:

    a draft x, drawn from q, is kept with probability min(1, p(x) / q(x));
    in place of the first that is not, a token is drawn from r = max(p − q, 0) / (1 − α),
    with α = Σ_x min(p(x), q(x)), the accepted share;
    and if all are kept, one token more is drawn from p.

Source: Leviathan, Kalman and Matias (2023); Chen et al. (2023).
"""

import numpy as np
from jaxtyping import Float, Int

from attnbook._validation import finite, is_such, nonnegative_int, token_list


def accepted_share(
    target: Float[np.ndarray, "... vocab"], draft: Float[np.ndarray, "... vocab"]
) -> Float[np.ndarray, "..."]:
    """The share of drafts that are kept, α = Σ_x min(p(x), q(x)), one less their total variation.

    Args:
        target: p, probabilities of the large model, of shape (..., vocab).
        draft: q, those of the small one, of the same shape.

    Returns:
        Of shape (...), from 0 to 1.

    Raises:
        ValueError: what are no probabilities that sum to 1 along the last axis, another shape.

    Source: Leviathan, Kalman and Matias (2023), theorem 3.5.
    """
    p, q = _both(target, draft)
    share: np.ndarray = np.minimum(p, q).sum(axis=-1)
    return share


def residual(
    target: Float[np.ndarray, " vocab"], draft: Float[np.ndarray, " vocab"]
) -> Float[np.ndarray, " vocab"]:
    """What a token is drawn from where a draft is refused, r = max(p − q, 0) / Σ max(p − q, 0).

    Args:
        target: p, probabilities of the large model, of shape (vocab,).
        draft: q, those of the small one, of the same shape.

    Returns:
        Of shape (vocab,). Where p = q nothing is ever refused, and p is given back.

    Raises:
        ValueError: what are no probabilities that sum to 1, another shape.

    Source: Leviathan, Kalman and Matias (2023), section 2.3; Chen et al. (2023), algorithm 2.
    """
    p, q = _both(target, draft)
    return _residual(p, q)


def keep(
    tokens: Int[np.ndarray, " drafts"],
    target: Float[np.ndarray, "drafts_and_1 vocab"],
    draft: Float[np.ndarray, "drafts vocab"],
    rng: np.random.Generator,
) -> list[int]:
    """The tokens that a pass of the large model yields: the drafts that it keeps, and one more.

    Args:
        tokens: the drafts, each drawn from its row of draft, none or more of them.
        target: p, of shape (drafts + 1, vocab): the large model's probabilities of each draft and
            of what follows the last one.
        draft: q, of shape (drafts, vocab): the small one's, of each draft.
        rng: what the decisions are drawn from: one number for each draft that is judged, and one
            for the last token.

    Returns:
        One token to drafts + 1 of them.

    Raises:
        ValueError: what are no probabilities that sum to 1, other shapes, drafts that are no
            tokens.

    Source: Leviathan, Kalman and Matias (2023), algorithm 1; Chen et al. (2023), algorithm 2.
    """
    p, q = _probabilities(target=target), _probabilities(draft=draft)
    if p.ndim != 2 or q.shape != (p.shape[0] - 1, p.shape[1]):
        expected = "expected (drafts + 1, vocab), (drafts, vocab)"
        raise ValueError(f"target, draft: got shapes {p.shape}, {q.shape}, {expected}")
    drafts, vocab = q.shape
    proposed = token_list(vocab, tokens=tokens)
    if len(proposed) != drafts:
        raise ValueError(f"tokens: got {len(proposed)}, expected {drafts}, one less than target")
    for i, x in enumerate(proposed):
        if rng.random() * q[i, x] >= p[i, x]:
            return [*proposed[:i], _drawn(_residual(p[i], q[i]), rng)]
    return [*proposed, _drawn(p[-1], rng)]


def tokens_per_pass(share: float, drafts: int) -> float:
    """How many tokens a pass yields on average, 1 + α + … + α^γ = (1 − α^{γ+1}) / (1 − α).

    Args:
        share: α, from 0 to 1, the probability that a draft is kept, whatever the others do.
        drafts: γ, how many are drafted for a pass, 0 or more.

    Raises:
        ValueError: a share outside [0, 1], drafts that are no integer of at least 0.

    Source: Leviathan, Kalman and Matias (2023), equation 1.
    """
    if not is_such(share, lambda x: 0 <= x <= 1):
        raise ValueError(f"share: got {share!r}, expected a number from 0 to 1")
    return float(sum(float(share) ** k for k in range(nonnegative_int(drafts=drafts) + 1)))


def _residual(
    p: Float[np.ndarray, " vocab"], q: Float[np.ndarray, " vocab"]
) -> Float[np.ndarray, " vocab"]:
    missing = np.maximum(p - q, 0)
    total = missing.sum()
    return missing / total if total > 0 else p


def _drawn(p: Float[np.ndarray, " vocab"], rng: np.random.Generator) -> int:
    return int(rng.choice(len(p), p=p / p.sum()))


def _probabilities(**argument: np.ndarray) -> Float[np.ndarray, "..."]:
    """Rows that sum to 1 but for the rounding of float32."""
    ((name, _),) = argument.items()
    p = finite(**argument)
    if np.any(p < 0) or np.any(np.abs(p.sum(axis=-1) - 1) > 1e-4):
        raise ValueError(f"{name}: got other numbers, expected rows of 0 or more that sum to 1")
    return p


def _both(target: np.ndarray, draft: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of two models, of one shape."""
    p, q = _probabilities(target=target), _probabilities(draft=draft)
    if p.shape != q.shape:
        raise ValueError(f"draft: got shape {q.shape}, expected {p.shape}, as target")
    return p, q
