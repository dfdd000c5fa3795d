"""Regression while reading: coefficients u = M v of estimators that predict k(q, ·) u.

With M = I the prediction is linear attention's sum, with the inverse of a triangle it is the delta
rule's, with (G + σ²I)⁻¹ the posterior mean of a Gaussian process.
"""

import math
from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_jax_array,
    is_torch_array,
)
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import (
    broadcast_leading_axes,
    check_floating,
    common_namespace,
    fits,
    is_concretely_true,
    is_such,
    nonnegative,
    nonnegative_int,
    positive,
    upcast_half,
)


def one_pass(
    gram: Float[Array, "... n n"], values: Float[Array, "... n p"], *, beta: Any = 1.0
) -> Float[Array, "... n p"]:
    """The delta rule's coefficients, u = (I + β tril(G, −1))⁻¹ β v: one pass over the pairs.

    Row by row this is u_i = β (v_i − Σ_{j<i} G_ij u_j): each pair corrects a share β of the error
    that the prediction from the pairs before it makes.

    Args:
        gram: G, the kernel between the keys, in the order of arrival, of shape (..., n, n). Only
            what is below its diagonal counts.
        values: v, of shape (..., n, p); leading axes broadcast.
        beta: β, a number, or an array of shape (..., n), one per pair.

    Returns:
        Coefficients of shape (..., n, p). float16 and bfloat16 are computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, a beta that is no finite number.
        TypeError: arrays of different libraries.

    Source: Widrow and Hoff (1960) for the rule; Yang et al. (2024), section 3.2, for this form.
    """
    xp, gram, wide = _checked(gram, values)
    return xp.astype(unchecked_one_pass(gram, wide, _rate(beta, gram, wide)), values.dtype)


def unchecked_one_pass(gram: Array, values: Array, rate: Any) -> Float[Array, "... n p"]:
    """The formula of one_pass, for what was checked before; rate: β, a number or (..., n, 1).

    Only what stands below the diagonal counts, so libraries that have it substitute forward.
    """
    xp = array_namespace(gram)
    below, right = rate * xp.tril(gram, k=-1), rate * values
    if is_torch_array(right):
        return xp.linalg.solve_triangular(below, right, upper=False, unitriangular=True)
    if is_jax_array(right):
        import jax

        lead = xp.broadcast_shapes(below.shape[:-2], right.shape[:-2])
        below, right = (xp.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (below, right))
        return jax.scipy.linalg.solve_triangular(below, right, lower=True, unit_diagonal=True)
    one = xp.eye(gram.shape[-1], dtype=gram.dtype, device=device(gram))
    return xp.linalg.solve(one + below, right)


def passes(
    gram: Float[Array, "... n n"], values: Float[Array, "... n p"], count: int, *, noise: float
) -> Float[Array, "... n p"]:
    """Coefficients after some passes of Gauss–Seidel on (G + σ²I) u = v, from u = 0.

    A pass goes through the pairs in their order and solves the equation of each for its own u_i. If
    K_ii = 1, the first pass is the delta rule's with β = 1/(1 + σ²); the limit of many passes is
    the posterior's coefficients.

    Args:
        gram: G, symmetric and not indefinite, of shape (..., n, n).
        values: v, of shape (..., n, p); leading axes broadcast.
        count: the number of passes, 0 or more.
        noise: standard deviation σ of the values, 0 or more.

    Returns:
        Coefficients of shape (..., n, p). float16 and bfloat16 are computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, a count that is no integer or below 0, noise
            below 0, or 0 where the diagonal of G has a 0: that equation has no solution of its own.
        TypeError: arrays of different libraries.

    Source: Saad (2003), section 4.1.
    """
    xp, gram, wide = _checked(gram, values)
    count = nonnegative_int(count=count)
    variance = nonnegative(noise=noise) ** 2
    one = xp.eye(gram.shape[-1], dtype=gram.dtype, device=device(gram))
    if is_concretely_true(xp.any(xp.linalg.diagonal(gram) + variance == 0)):
        got = f"{noise} and a 0 on the diagonal of gram"
        raise ValueError(f"noise: got {got}, expected noise above 0, or a diagonal without 0")
    lower, upper = xp.tril(gram) + variance * one, xp.triu(gram, k=1)
    first, carried = xp.linalg.solve(lower, wide), xp.linalg.solve(lower, upper)
    u = xp.zeros_like(first)
    for _ in range(count):
        u = first - carried @ u  # (L + D + σ²I) u = v − U u of the pass before
    return xp.astype(u, values.dtype)


def recursive(
    features: Float[Array, "... n r"], values: Float[Array, "... n p"], *, noise: float
) -> tuple[Float[Array, "... r p"], Float[Array, "... r r"]]:
    """Recursive least squares: mean and covariance of weights w ~ N(0, I), one pair at a time.

    A pair (φ, y) has the gain γ = Pφ / (φᵀPφ + σ²); w becomes w + γ (y − φᵀw), and P becomes
    P − γ (Pφ)ᵀ. After all pairs these are the posterior of Bayesian linear regression,
    (ΦᵀΦ + σ²I)⁻¹ Φᵀy and σ² (ΦᵀΦ + σ²I)⁻¹.

    Args:
        features: Φ, a row per pair, of shape (..., n, r).
        values: y, of shape (..., n, p); leading axes broadcast.
        noise: standard deviation σ of the values, above 0.

    Returns:
        The mean, of shape (..., r, p), and the covariance, of shape (..., r, r), which has the
        leading axes of both too. A prediction at φ is φᵀw, with variance φᵀPφ. float16 and bfloat16
        are computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, noise that is not above 0.
        TypeError: arrays of different libraries.

    Source: Plackett (1950); Särkkä (2013), section 3.2.
    """
    xp, rows, wide = _checked(features, values, first="features")
    variance = positive(noise=noise) ** 2
    lead, r = rows.shape[:-2], rows.shape[-1]
    one = xp.eye(r, dtype=rows.dtype, device=device(rows))
    mean = xp.zeros((*lead, r, wide.shape[-1]), dtype=rows.dtype, device=device(rows))
    covariance = xp.broadcast_to(one, (*lead, r, r))
    for i in range(rows.shape[-2]):
        row = rows[..., i : i + 1, :]  # φᵀ
        moved = covariance @ row.mT  # Pφ, (..., r, 1)
        gain = moved / (row @ moved + variance)
        mean = mean + gain * (wide[..., i : i + 1, :] - row @ mean)
        covariance = covariance - gain * moved.mT
    return xp.astype(mean, values.dtype), xp.astype(covariance, values.dtype)


def _checked(matrix: Array, values: Array, *, first: str = "gram") -> tuple[Any, Array, Array]:
    """The namespace, and both arrays in float32 or wider with the same leading axes."""
    arrays = {first: matrix, "values": values}
    xp = check_floating(**arrays)
    shape, expected = tuple(matrix.shape), "(..., n, n)" if first == "gram" else "(..., n, r)"
    if matrix.ndim < 2 or (first == "gram" and shape[-1] != shape[-2]):
        raise ValueError(f"{first}: got shape {shape}, expected {expected}")
    if values.ndim < 2 or values.shape[-2] != shape[-2]:
        got, n = tuple(values.shape), shape[-2]
        raise ValueError(f"values: got shape {got}, expected (..., {n}, p), a row per pair")
    lead = broadcast_leading_axes(**arrays)
    wide = upcast_half(xp, matrix, values)
    return xp, *(xp.broadcast_to(a, (*lead, *a.shape[-2:])) for a in wide)


def _rate(beta: Any, gram: Array, values: Array) -> Any:
    """β as a number, or as a column of shape (..., n, 1)."""
    expected = tuple(values.shape[:-1])
    if not is_array_api_obj(beta) or isinstance(beta, np.generic):
        if not is_such(beta, math.isfinite):
            raise ValueError(f"beta: got {beta!r}, expected a finite number, or one per pair")
        return float(beta)
    xp, shape = common_namespace(values=values, beta=beta), tuple(beta.shape)
    if shape[-1:] != expected[-1:] or not fits(shape, expected):
        raise ValueError(f"beta: got shape {shape}, expected one that fits {expected}")
    if not xp.isdtype(beta.dtype, "real floating"):
        raise ValueError(f"beta: got dtype {beta.dtype}, expected a floating one")
    return xp.astype(beta, gram.dtype)[..., None]
