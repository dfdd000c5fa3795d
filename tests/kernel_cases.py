"""What the kernels in Triton and in Pallas are both tested on."""

import numpy as np

# leading axes, m, d, n, p: whole blocks and not, one of everything, other widths and lengths
CASES = {
    "two whole blocks": ((2,), 128, 32, 128, 32),
    "broken blocks": ((1, 2), 150, 20, 150, 7),
    "other lengths": ((3,), 70, 16, 33, 40),
    "one of each": ((), 1, 1, 1, 1),
    "wide": ((), 40, 200, 40, 130),
}
HALF = {"float16": 2e-3, "bfloat16": 1.6e-2}  # two units in the last place of numbers around 2


def arrays(case: str, seed: int = 0) -> list[np.ndarray]:
    """q, k and v in float32, with scores of several sizes, the largest far from the first."""
    lead, m, d, n, p = CASES[case]
    rng = np.random.default_rng(seed)
    shapes = (*lead, m, d), (*lead, n, d), (*lead, n, p)
    q, k, v = (rng.normal(size=shape).astype("float32") for shape in shapes)
    return [3 * q, k, v]


def expected(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Averages and log-sum-exps from whole rows of scores, in float64."""
    q, k, v = (a.astype("float64") for a in (q, k, v))
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    total = np.exp(scores - top).sum(axis=-1, keepdims=True)
    return np.exp(scores - top) / total @ v, (top + np.log(total))[..., 0]
