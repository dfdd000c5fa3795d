"""What the kernels in Triton and in Pallas are both tested on."""

from collections.abc import Iterable
from typing import Any

import numpy as np

# leading axes, m, d, n, p: whole blocks and not, one of everything, other widths and lengths
CASES = {
    "two whole blocks": ((2,), 128, 32, 128, 32),
    "broken blocks": ((1, 2), 150, 20, 150, 7),
    "other lengths": ((3,), 70, 16, 33, 40),
    "one of each": ((), 1, 1, 1, 1),
    "wide": ((), 40, 200, 40, 130),
}
PATTERNS = [(case, False) for case in CASES] + [
    (case, True) for case in CASES if CASES[case][1] == CASES[case][3]
]
HALF = {"float16": 2e-3, "bfloat16": 1.6e-2}  # two units in the last place of numbers around 2


def arrays(case: str, seed: int = 0) -> list[np.ndarray]:
    """q, k and v in float32, with scores of several sizes, the largest far from the first."""
    lead, m, d, n, p = CASES[case]
    rng = np.random.default_rng(seed)
    shapes = (*lead, m, d), (*lead, n, d), (*lead, n, p)
    q, k, v = (rng.normal(size=shape).astype("float32") for shape in shapes)
    return [3 * q, k, v]


def bounds(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """How far averages and log-sum-exps in float32 may be off: terms × unit roundoff × size.

    A score of d terms is off by at most (d + 2) u Σ |q||k| / √d. Its exponential, of s − top, has
    that as a relative error, and a rounding of s − top and of itself. An average moves by these
    errors, weighted, times the distance of the values from it, and its own sums of n terms add
    n roundings. All to first order in u, twice over for what is left out.
    """
    average, log_sum_exp = expected(q, k, v, causal)
    q, k, v = (a.astype("float64") for a in (q, k, v))
    unit, (n, d) = np.finfo("float32").eps / 2, k.shape[-2:]
    scores = q @ k.mT / np.sqrt(d)
    sizes = np.abs(q) @ np.abs(k).mT / np.sqrt(d)
    allowed = np.tri(q.shape[-2], n, dtype=bool) if causal else np.ones(n, dtype=bool)
    weights = np.where(allowed, np.exp(scores - log_sum_exp[..., None]), 0)
    top = np.where(allowed, scores, -np.inf).max(axis=-1, keepdims=True)
    errors = unit * np.where(allowed, (d + 2) * sizes + np.abs(scores - top) + 4, 0)
    apart = np.abs(v[..., None, :, :] - average[..., None, :])  # (..., m, n, p)
    of_average = np.einsum("...mn,...mnp->...mp", weights * errors, apart)
    of_average += (n + 4) * unit * (weights @ np.abs(v))
    of_logs = (weights * errors).sum(axis=-1) + unit * (n + 4 + np.abs(log_sum_exp))
    return 2 * of_average, 2 * of_logs


def assert_within_rounding(found: Iterable[Any], *given: Any) -> None:
    """Averages and log-sum-exps in float32 lie within their bounds."""
    triples = zip(found, expected(*given), bounds(*given), strict=True)
    for ours, right, bound in triples:
        assert (np.abs(np.asarray(ours, "float64") - right) <= bound).all()


def expected(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Averages and log-sum-exps from whole rows of scores, in float64."""
    q, k, v = (a.astype("float64") for a in (q, k, v))
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    total = np.exp(scores - top).sum(axis=-1, keepdims=True)
    return np.exp(scores - top) / total @ v, (top + np.log(total))[..., 0]
