"""Mistakes in the kernels, the scores and the arguments."""

from __future__ import annotations

from faults.planting import fault

EXPANDED = """h = bandwidth
    return (
        ((queries / h) ** 2).sum(-1)[..., :, None]
        - 2 * (queries / h) @ (keys / h).mT
        + ((keys / h) ** 2).sum(-1)[..., None, :]
    )"""

FAULTS = [
    # kernels
    fault("kernels", "Gaussian without ½", "-0.5 * u * u", "-1.0 * u * u"),
    fault("kernels", "Gaussian of u, not u²", "-0.5 * u * u", "-0.5 * u"),
    fault("kernels", "boxcar without its edge", "xp.abs(u) <= 1,", "xp.abs(u) < 1,"),
    fault("kernels", "triangular is a parabola", "xp.zeros_like(u), 1 - u)", "xp.zeros_like(u), 1 - u * u)"),
    fault(
        "kernels",
        "triangular goes below 0",
        "xp.where(u >= 1, xp.zeros_like(u), 1 - u)",
        "1 - u",
    ),
    fault("kernels", "Epanechnikov's constant", "0.75 * (1 - u * u)", "0.5 * (1 - u * u)"),
    fault("kernels", "Epanechnikov is a triangle", "0.75 * (1 - u * u)", "0.75 * (1 - u)"),
    fault(
        "kernels",
        "Epanechnikov goes below 0",
        "xp.where(xp.abs(u) >= 1, xp.zeros_like(u), 0.75 * (1 - u * u))",
        "0.75 * (1 - u * u)",
    ),
    fault("kernels", "sum of |u|, not u²", "return u * u", "return abs(u)"),
    fault("kernels", "first coordinate only", "range(queries.shape[-1])", "range(1)"),
    fault("kernels", "one bandwidth for all", "bandwidth[c] if", "bandwidth[0] if"),
    fault("kernels", "times h", "keys[..., None, :, c]) / (", "keys[..., None, :, c]) * ("),
    fault(
        "kernels",
        "no square root",
        "xp.sqrt(xp.where(apart, squared, xp.ones_like(squared)))",
        "xp.where(apart, squared, xp.ones_like(squared))",
    ),
    fault(
        "kernels",
        "expanded square, which cancels",
        "return reduce(operator.add, map(term, range(queries.shape[-1])))",
        EXPANDED,
    ),
    fault(
        "kernels",
        "the root at 0 has an infinite slope",
        "xp.where(apart, squared, xp.ones_like(squared))",
        "squared",
        backends="torch",
        tests=("test_kernels.py::test_distance_has_a_gradient_where_points_coincide",),
    ),
    # scores
    fault("scores", "no scale", "dot(q, k) / math.sqrt(q.shape[-1])", "dot(q, k)"),
    fault("scores", "scale by d", "/ math.sqrt(q.shape[-1])", "/ q.shape[-1]"),
    fault("scores", "scale by √n", "/ math.sqrt(q.shape[-1])", "/ math.sqrt(k.shape[-2])"),
    fault("scores", "times √d", "/ math.sqrt(q.shape[-1])", "* math.sqrt(q.shape[-1])"),
    fault("scores", "Gaussian score without ½", "-0.5 * squared", "-1.0 * squared"),
    fault("scores", "Gaussian score upside down", "-0.5 * squared", "0.5 * squared"),
    fault("scores", "h ignored", "squared_distance(q, k, bandwidth)", "squared_distance(q, k)"),
    fault(
        "scores",
        "h not squared",
        "squared_distance(q, k, bandwidth)",
        "squared_distance(q, k) / bandwidth",
    ),
    fault(
        "scores",
        "distance not squared",
        "squared_distance(q, k, bandwidth)",
        "squared_distance(q, k, bandwidth) ** 0.5",
    ),
    fault("scores", "mean in place of sum", "return q @ k.mT", "return q @ k.mT / k.shape[-1]"),
    fault("scores", "weight dropped", "q @ weight @ k.mT", "q @ k.mT"),
    fault("scores", "weight transposed", "q @ weight @ k.mT", "q @ weight.mT @ k.mT"),
    fault("scores", "cosine not normalised", "_unit(q) @ _unit(k).mT", "q @ k.mT / q.shape[-1]"),
    fault("scores", "only keys normalised", "_unit(q) @ _unit(k).mT", "q @ _unit(k).mT"),
    fault("scores", "only queries normalised", "_unit(q) @ _unit(k).mT", "_unit(q) @ k.mT"),
    fault("scores", "divided by the squared norm", "xp.sqrt(xp.where(squares > 0", "(xp.where(squares > 0"),
    fault("scores", "a vector of zeros is NaN", "xp.where(squares > 0, squares, xp.ones_like(squares))", "squares"),
    fault(
        "scores",
        "the norm overflows",
        "x / xp.where(largest > 0, largest, xp.ones_like(largest))",
        "x * xp.ones_like(largest)",
    ),
    fault("scores", "the largest of all vectors", "xp.max(xp.abs(x), axis=-1, keepdims=True)", "xp.max(xp.abs(x))"),
    fault("scores", "no tanh", "xp.tanh(hidden) @ v", "hidden @ v"),
    fault("scores", "logistic for tanh", "xp.tanh(hidden) @ v", "(1 / (1 + xp.exp(-hidden))) @ v"),
    fault("scores", "v dropped", "xp.tanh(hidden) @ v", "xp.sum(xp.tanh(hidden), axis=-1)"),
    fault("scores", "tanh after v", "xp.tanh(hidden) @ v", "xp.tanh(hidden @ v)"),
    fault("scores", "product for sum", "[..., :, None, :] + k[", "[..., :, None, :] * k["),
    fault("scores", "keys lost", "+ k[..., None, :, :]", "+ 0 * k[..., None, :, :]"),
    # arguments
    fault("arguments", "NaN let in", "bad = ~xp.isfinite(array)", "bad = xp.isfinite(array) & False"),
    fault("arguments", "infinity let in", "~xp.isfinite(array)", "xp.isnan(array)"),
    fault("arguments", "bandwidth 0 let in", "0 < h < math.inf", "0 <= h < math.inf"),
    fault("arguments", "bandwidths below 0 let in", "(h > 0) & xp.isfinite(h)", "xp.isfinite(h)"),
    fault("arguments", "rows not compared", "if rows != expected:", "if False:"),
    fault("arguments", "coordinates not compared", "if d != expected:", "if False:"),
    fault("arguments", "dtypes not compared", "if array.dtype != expected:", "if False:"),
    fault("arguments", "any mask will do", "[-2:] == target[-2:]", "[-2:] != ()"),
    fault("arguments", "one bandwidth for all in a list", "not in ((), (d,))", "not in ((), (1,), (d,))"),
    fault("arguments", "NumPy scalars widen float32", "h = float(h)", "h = np.float64(h)"),
    fault("arguments", "a parameter widens float32", "return xp.astype(array, like.dtype)", "return array"),
    fault("arguments", "a parameter of any shape", "isinstance(wanted, int) and got != wanted", "False"),
    fault("arguments", "no head let in", " or count == 0:", ":"),
    fault("arguments", "any number of bandwidths", "not in ((count,), (count, d))", "in ((),)"),
    fault("tokens", "numbers that are cut off", 'or (given.size and given.dtype.kind not in "iu")', "", tests=("test_sampling.py",)),
    fault("tokens", "a table for a prompt", "if given.ndim != 1 or", "if", tests=("test_sampling.py",)),
    fault("tokens", "a token too many", "min(vocab_size - 1,", "min(vocab_size,", tests=("test_argument_values.py",)),
    fault("tokens", "tokens below 0 let in", "(tokens < 0) | ", "", tests=("test_argument_values.py",)),
]  # fmt: skip
