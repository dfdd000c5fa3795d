"""The last two checks of chapter 2: a metric for the inputs, and a direction."""

import numpy as np

from attnbook.checks.answers import call
from attnbook.checks.verdict import Function, Wrong, check


@check
def whitening_metric(function: Function) -> str:
    """function(keys): a W (d, d) with W Σ Wᵀ = I, for the covariance Σ of the keys (n, d)."""
    keys = np.random.default_rng(6).standard_normal((60, 5))
    keys = (keys + 0.9 * keys[:, [1, 2, 3, 4, 0]] + [3, 0, 1, -2, 1]) * [0.5, 1.0, 2.0, 5.0, 10.0]
    got = call(function, keys)
    if got.shape != (5, 5):
        hint = " These are moved keys: return W." if got.shape == keys.shape else ""
        raise Wrong(f"for keys (60, 5) you give shape {got.shape}, expected (5, 5).{hint}")
    if np.any(np.isnan(got)):
        raise Wrong("W has NaN in it: the root of a matrix is not that of its entries.")
    c = np.cov(keys, rowvar=False)
    inverse, variances = np.linalg.inv(c), np.diag(c)
    gram, turned = got.T @ got, got @ got.T  # a rotation of W leaves WᵀW as it is
    if _alike(gram, inverse, 0.005) or _alike(gram, inverse * 60 / 59, 0.005):
        return "W Σ Wᵀ = I; every other such W is this one, rotated or mirrored."
    factor = np.allclose(got, np.tril(got)) or np.allclose(got, np.triu(got))
    for matrix, target, cause in (
        (gram, inverse @ inverse, "That is Σ⁻¹ in place of its root: the norm squares W."),
        (gram, c, "That is Σ's root: it stretches what is long already. Take the inverse."),
        (turned, c, "That is Σ's root: it stretches what is long already. Take the inverse."),
        (gram, np.diag(1 / variances**2), "Divide by the standard deviation. And the correlation?"),
        (gram, np.diag(variances), "That stretches what is long already, entry by entry."),
        (gram, 4 * inverse, "All moved keys are twice too long: is there a factor?"),
        (gram, np.linalg.inv(np.corrcoef(keys.T)), "That is for the correlations: take Σ."),
        (gram, np.diag(1 / variances), "Only the units are gone: the correlation is left."),
        (turned, inverse, "That is the transposed Cholesky factor." if factor else
         "That W is for rows, k W. The distance has columns, W k: transpose it."),
        (gram, np.linalg.inv(keys.T @ keys / 60), "Second moments about 0: subtract the mean."),
        (gram, np.eye(5), "That only rotates: divide each direction by its spread."),
        (gram, inverse / 60, "The sum of squares is not divided by n."),
    ):  # fmt: skip
        if _alike(matrix, target, 0.05):
            raise Wrong(f"the moved keys' covariance is not the identity. {cause}")
    begin = ", ".join(f"{v:.3g}" for v in (got @ c @ got.T)[0, :3])
    raise Wrong(f"the moved keys' covariance begins with {begin}, expected 1, 0, 0.")


def _alike(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Whether two symmetric matrices are equal in every direction, relative to the second."""
    root = np.linalg.inv(np.linalg.cholesky(b))
    return bool(np.allclose(root @ a @ root.T, np.eye(len(b)), rtol=0, atol=tolerance))


@check
def informative_direction(function: Function) -> str:
    """function(keys, values): the unit vector that the values depend on, for keys (n, 3)."""
    words, given = "", []
    for seed, order in ((7, [0, 1, 2]), (9, [2, 0, 1])):
        keys, values, b = _one_direction(seed, order)
        got = call(function, keys, values).ravel()
        if got.size != 3 or not np.all(np.isfinite(got)):
            raise Wrong(f"you give {got}, expected three numbers.")
        length = float(np.linalg.norm(got))
        if abs(length - 1) > 1e-3:
            hint = "expected a unit vector: divide by it."
            raise Wrong(f"your vector has length {length:.3g}, {hint}")
        given.append(got)
        words = _miss(got, keys, values, b, given)
    return f"{words} 18° are allowed; one row of W is enough here."


def _miss(
    got: np.ndarray, keys: np.ndarray, values: np.ndarray, b: np.ndarray, given: list[np.ndarray]
) -> str:
    """How far a unit vector is from b; Wrong if it is too far."""
    cosine = abs(float(got @ b))
    words = f"your direction is {np.degrees(np.arccos(min(1.0, cosine))):.0f}° from the true one."
    if cosine >= 0.95:
        return words
    if len(given) > 1 and np.allclose(got, given[0]):
        raise Wrong(f"{words} It was right for other data: find it from these keys and values.")
    slope = np.linalg.lstsq(keys, values, rcond=None)[0][:, 0]
    if np.sum(np.abs(got) > 0.01) == 1:
        raise Wrong(f"{words} It is a coordinate axis: the values depend on a mixture.")
    if abs(got @ slope) > 0.99 * np.linalg.norm(slope):
        raise Wrong(f"{words} It is a plane's slope: rises and falls of the curve cancel there.")
    if abs(got @ np.linalg.svd(keys)[2][0]) > 0.99:
        raise Wrong(f"{words} It is where the keys spread most: the values play no part in it.")
    if cosine >= 0.8:
        raise Wrong(f"{words} Near, 18° are allowed: search finer around it.")
    raise Wrong(f"{words} Is the search fine, the bandwidth narrow, the point itself left out?")


def _one_direction(seed: int, order: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys (200, 3) that spread most at a right angle to b, values cos(2 b·x) + noise, and b."""
    rng = np.random.default_rng(seed)
    b, wide = np.asarray([[0.6, -0.64, 0.48], [0.8, 0.48, -0.36]])[:, order]
    keys = rng.standard_normal((200, 3)) + 1.2 * rng.standard_normal((200, 1)) * wide
    keys = keys - keys.mean(axis=0)
    return keys, np.cos(2 * keys @ b[:, None]) + 0.2 * rng.standard_normal((200, 1)), b
