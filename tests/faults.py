"""Bugs that a test must catch: where, the text as it is, the text as it would be wrong, in words.

Each is planted alone in a copy of the package, and the tests of its module must fail.
"""

from __future__ import annotations

from dataclasses import dataclass

TESTS = {  # of each module; on NumPy alone unless a fault names another back end
    "kernels": ("test_kernels.py",),
    "scores": ("test_scores.py",),
    "attention": ("test_attention.py",),
    "regression": ("test_regression.py",),
    "streaming": ("test_streaming.py", "test_regression.py"),
    "arguments": ("test_arguments.py", "test_scores.py"),
    "fused": ("test_fused.py",),
    "convert": (
        "test_layers.py::test_twins_share_no_memory",
        "test_layers.py::test_float64_needs_x64",
    ),
    "torch/regression": (
        "test_layers.py::test_layers_equal_the_function",
        "test_layers.py::test_layers_take_a_mask",
    ),
    "jax/regression": (
        "test_layers.py::test_layers_equal_the_function",
        "test_layers.py::test_layers_take_a_mask",
    ),
}

TORCH_GRADIENTS = ("test_transformations.py::test_gradcheck_where_queries_are_keys",)
TORCH_KERNEL = ("test_transformations.py::test_torch_kernel_with_a_parameter_of_its_own",)


@dataclass(frozen=True)
class Fault:
    module: str
    original: str
    changed: str
    words: str
    backends: str = "numpy"
    tests: tuple[str, ...] = ()


def fault(module: str, words: str, original: str, changed: str, **how: object) -> Fault:
    return Fault(module, original, changed, words, **how)  # type: ignore[arg-type]


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
    fault("kernels", "boxcar without its edge", "xp.where(u <= 1,", "xp.where(u < 1,"),
    fault("kernels", "triangular is a parabola", "u < 1, 1 - u,", "u < 1, 1 - u * u,"),
    fault(
        "kernels",
        "triangular goes below 0",
        "xp.where(u < 1, 1 - u, xp.zeros_like(u))",
        "1 - u",
    ),
    fault("kernels", "Epanechnikov's constant", "0.75 * (1 - u * u)", "0.5 * (1 - u * u)"),
    fault("kernels", "Epanechnikov is a triangle", "0.75 * (1 - u * u)", "0.75 * (1 - u)"),
    fault(
        "kernels",
        "Epanechnikov goes below 0",
        "xp.where(u < 1, 0.75 * (1 - u * u), xp.zeros_like(u))",
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
    # attention
    fault(
        "attention",
        "largest score not subtracted",
        "xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))",
        "xp.exp(scores)",
    ),
    fault(
        "attention",
        "largest of all rows subtracted",
        "xp.max(scores, axis=-1, keepdims=True)",
        "xp.max(scores)",
    ),
    fault(
        "attention",
        "softmax over queries",
        "xp.sum(exponentials, axis=-1, keepdims=True)",
        "xp.sum(exponentials, axis=max(-2, -scores.ndim), keepdims=True)",
    ),
    fault(
        "attention",
        "weights do not sum to 1",
        "return exponentials / xp.sum(exponentials, axis=-1, keepdims=True)",
        "return exponentials",
    ),
    fault("attention", "no scale", "score: Score = scores.scaled_dot", "score: Score = scores.dot"),
    fault("attention", "mask dropped", "score(queries, keys), mask)", "score(queries, keys))"),
    fault(
        "attention",
        "mask after the softmax",
        "xp.where(some, _softmax(xp, xp.where(mask, scores, shut)), xp.zeros_like(scores))",
        "xp.where(mask, _softmax(xp, scores), xp.zeros_like(scores))",
    ),
    fault(
        "attention", "mask inverted", "xp.where(mask, scores, shut)", "xp.where(mask, shut, scores)"
    ),
    fault("attention", "masked scores are 0", "xp.where(some, -xp.inf,", "xp.where(some, 0.0,"),
    fault("attention", "masked scores are −10⁴", "xp.where(some, -xp.inf,", "xp.where(some, -1e4,"),
    fault(
        "attention",
        "an empty row is the mean",
        "xp.where(some, _softmax(xp, xp.where(mask, scores, shut)), xp.zeros_like(scores))",
        "_softmax(xp, xp.where(mask, scores, shut))",
    ),
    fault("attention", "half precision stays half", ".bits < 32", ".bits < 16"),
    fault("attention", "no dtype back", "xp.astype(weights @ values, dtype)", "weights @ values"),
    fault("attention", "a token cannot see itself", "] <= position[:, None]", "] < position[:, None]"),
    fault("attention", "sees the future", "] <= position[:, None]", "] >= position[:, None]"),
    fault("attention", "one key of padding", "(position < ends", "(position <= ends"),
    # regression
    fault(
        "regression",
        "mask dropped, Gaussian",
        "softmax(gaussian_score(queries, keys, bandwidth), mask)",
        "softmax(gaussian_score(queries, keys, bandwidth))",
    ),
    fault(
        "regression",
        "mask dropped, other kernels",
        "xp.where(mask, similarity, xp.zeros_like(similarity))",
        "similarity",
    ),
    fault(
        "regression",
        "mask after the weights",
        "similarity / xp.where(some, total, xp.ones_like(total)), some",
        "similarity / xp.sum(kernel(kernels.distance(queries, keys, bandwidth)), -1, keepdims=True), some",
    ),
    fault(
        "regression",
        "0 in place of NaN",
        "array_namespace(queries).where(some, weights @ values, math.nan)",
        "weights @ values",
    ),
    fault(
        "regression",
        "0 in place of NaN, with weights",
        "output = xp.where(some, weights @ values, math.nan)",
        "output = weights @ values",
    ),
    fault(
        "regression",
        "0 in place of NaN, in the weights",
        "weights = xp.where(some, weights, math.nan)",
        "weights = weights",
    ),
    fault("regression", "self not left out", "rows != position", "rows == rows"),
    fault("regression", "self only", "rows != position", "rows == position"),
    fault("regression", "sum over queries", "xp.sum(similarity, axis=-1,", "xp.sum(similarity, axis=-2,"),
    fault(
        "regression",
        "weights do not sum to 1",
        "similarity / xp.where(some, total, xp.ones_like(total))",
        "similarity",
    ),
    fault("regression", "Gaussian underflows", "if kernel is kernels.gaussian:", "if False:"),
    fault(
        "regression",
        "kernel ignored",
        "kernel(kernels.distance(",
        "kernels.epanechnikov(kernels.distance(",
    ),
    fault("regression", "K(u²)", "kernel(kernels.distance(", "kernel(kernels.squared_distance("),
    fault(
        "regression",
        "h ignored",
        "kernels.distance(queries, keys, bandwidth)",
        "kernels.distance(queries, keys)",
    ),
    fault(
        "regression",
        "h not squared",
        "gaussian_score(queries, keys, bandwidth)",
        "gaussian_score(queries, keys, bandwidth**0.5)",
    ),
    fault(
        "regression",
        "NaN before the average, so that gradients are NaN",
        "similarity / xp.where(some, total, xp.ones_like(total))",
        "similarity / xp.where(some, total, math.nan)",
        backends="torch",
        tests=("test_regression.py::test_a_query_without_neighbour_spoils_no_gradient",),
    ),
    # streaming
    fault("streaming", "remainder lost", "range(0, per_query[0].shape[-2], rows)", "range(0, per_query[0].shape[-2] - rows + 1, rows)"),
    fault("streaming", "blocks out of order", "range(0, per_query[0].shape[-2], rows)", "reversed(range(0, per_query[0].shape[-2], rows))"),
    fault("streaming", "blocks overlap", "range(0, per_query[0].shape[-2], rows)", "range(0, per_query[0].shape[-2], max(1, rows - 1))"),
    fault("streaming", "one row short", "min(start + rows, per_query[0].shape[-2])", "max(start + 1, start + rows - 1)"),
    fault(
        "streaming",
        "mask not cut",
        "a is not None and a.ndim >= 2 and a.shape[-2] == m",
        "a is queries",
    ),
    fault("streaming", "leading axes not counted", "batch * keys.shape[-2]", "keys.shape[-2]"),
    fault("streaming", "bits for bytes", ".bits // 8", ".bits"),
    fault("streaming", "joined along the wrong axis", "cut, rows)], axis=-2", "cut, rows)], axis=-1"),
    fault("streaming", "no blocks", "if rows >= m or", "if True or"),
    fault(
        "streaming",
        "no blocks in JAX",
        "batch_size=rows",
        "batch_size=10**9",
        backends="jax",
        tests=("test_streaming.py",),
    ),
    fault(
        "streaming",
        "torch keeps every block's weights for the gradient",
        "if is_torch_array(queries) and not _learned(kernel, queries):",
        "if False:",
        backends="torch",
        tests=("test_memory.py::test_memory_grows_with_m_plus_n",),
    ),
    fault(
        "streaming",
        "JAX keeps every block's weights for the gradient",
        "jax.checkpoint(one)",
        "one",
        backends="jax",
        tests=("test_memory.py::test_memory_grows_with_m_plus_n",),
    ),
    fault(
        "streaming",
        "the gradient of torch's last block only",
        "sums = [a + b for a, b in zip(sums, found, strict=True)]",
        "sums = list(found)",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "every torch block has the first one's share of the gradient",
        "here = gradient[..., done : done + block.shape[-2], :]",
        "here = gradient[..., : block.shape[-2], :]",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "a tensor that is queries and keys is counted twice",
        "(a.view_as(a) for a in ctx.saved_tensors)",
        "iter(ctx.saved_tensors)",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "no second derivative through torch's blocks",
        "higher, done = torch.is_grad_enabled(), 0",
        "higher, done = False, 0",
        backends="torch",
        tests=TORCH_GRADIENTS,
    ),
    fault(
        "streaming",
        "a learned kernel's gradient lost",
        "and kernel(like.new_ones((1, 1))).requires_grad",
        "and False",
        backends="torch",
        tests=TORCH_KERNEL,
    ),
    # fused
    fault("fused", "not centred", "keys.mean(-2, keepdim=True)", "0 * keys.mean(-2, keepdim=True)"),
    fault("fused", "norm of the key lost", "-0.5 * (k * k)", "-0.0 * (k * k)"),
    fault("fused", "norm of the key without ½", "-0.5 * (k * k)", "-1.0 * (k * k)"),
    fault("fused", "scaled by the padded width", "scale=1.0", "scale=None"),
    fault("fused", "padding in place of values", ": values.shape[-1]]", "-values.shape[-1] :]"),
    fault("fused", "reach too wide", "REACH = 13.0", "REACH = 1300.0"),
    fault("fused", "reach too narrow", "REACH = 13.0", "REACH = 1.0"),
    fault("fused", "gradients through it", "if torch.is_grad_enabled() and any(", "if False and any("),
    fault(
        "fused",
        "far queries not seen",
        "torch.maximum((scaled_queries**2).sum(-1).max(), (scaled_keys**2).sum(-1).max())",
        "(scaled_keys**2).sum(-1).max()",
    ),
    fault(
        "regression",
        "mask lost in the fused kernel",
        "kernels.gaussian and mask is None and",
        "kernels.gaussian and",
        tests=("test_fused.py",),
    ),
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
    # layers
    fault("torch/regression", "log h for h", "return self.log_bandwidth.exp()", "return self.log_bandwidth", backends="torch,jax"),
    fault("torch/regression", "mask dropped", ", mask=mask)", ")", backends="torch,jax"),
    fault("jax/regression", "mask dropped", ", mask=mask)", ")", backends="torch,jax"),
    fault("jax/regression", "log h for h", "return jnp.exp(self.log_bandwidth)", "return self.log_bandwidth", backends="torch,jax"),
    fault("convert", "twins share memory", "np.array(getattr(layer, name))", "np.asarray(getattr(layer, name))", backends="torch,jax"),
    fault("convert", "float64 rounded without a word", "if copied.dtype != array.dtype:", "if False:", backends="torch,jax"),
]  # fmt: skip
