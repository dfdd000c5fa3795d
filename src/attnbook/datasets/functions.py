"""Random functions, to learn regression itself from."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnbook._validation import nonnegative, nonnegative_int
from attnbook.kernel import gaussian_process

Array = np.ndarray


class Functions(NamedTuple):
    """Random functions on [−1, 1], seen at some points.

    Args:
        x: where each is seen, of shape (functions, points).
        y: its values there with noise, of the same shape.
        true: its values there without noise.
        length_scale: of each, of shape (functions,).
    """

    x: Float[Array, "functions points"]
    y: Float[Array, "functions points"]
    true: Float[Array, "functions points"]
    length_scale: Float[Array, " functions"]


def smooth_functions(
    n: int,
    points: int = 33,
    *,
    seed: int | np.random.Generator = 0,
    length_scale: float | tuple[float, float] = 0.3,
    noise: float = 0.2,
) -> Functions:
    """Functions drawn from a Gaussian process, at points drawn evenly from [−1, 1].

    Args:
        n: the number of functions.
        points: at which each is seen.
        seed: of NumPy's default generator, or one.
        length_scale: of all functions; or the ends of a range in which its logarithm is drawn
            evenly, anew for every function.
        noise: standard deviation that is added; that of the functions is 1.

    Raises:
        ValueError: counts that are no integers of at least 0, a length scale that is not above 0,
            noise below 0.
    """
    nonnegative(noise=noise)
    if not isinstance(seed, np.random.Generator):
        nonnegative_int(seed=seed)
    shape = nonnegative_int(n=n), nonnegative_int(points=points)
    rng = np.random.default_rng(seed)
    given = np.asarray(length_scale)
    if given.shape not in ((), (2,)) or not np.all((given > 0) & np.isfinite(given)):
        raise ValueError(f"length_scale: got {length_scale!r}, expected above 0, one or two ends")
    ends = np.sort(np.broadcast_to(given, (2,)))
    scale = np.exp(rng.uniform(math.log(ends[0]), math.log(ends[1]), size=n))
    x = rng.uniform(-1, 1, size=shape)
    true = gaussian_process.draw(x, scale, rng)
    return Functions(x, true + noise * rng.standard_normal(shape), true, scale)
