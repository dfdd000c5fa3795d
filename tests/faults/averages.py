"""Mistakes in attention, kernel regression and non-local means."""

from __future__ import annotations

from faults.planting import fault

ARGUMENTS = ("test_arguments.py", "test_argument_values.py")
HANDED = ("test_answers.py",)
DEVICE = ("test_default_device.py",)
CAUSAL = ("test_causal.py",)
FAULTS = [
    # attention
    fault(
        "attention",
        "largest score not subtracted",
        "xp.exp(wide - xp.max(wide, axis=-1, keepdims=True))",
        "xp.exp(scores)",
    ),
    fault(
        "attention",
        "largest of all rows subtracted",
        "xp.max(wide, axis=-1, keepdims=True)",
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
        "exponentials / xp.sum(exponentials, axis=-1, keepdims=True)",
        "exponentials",
    ),
    fault("attention", "no scale", "score: Score = scores.scaled_dot", "score: Score = scores.dot"),
    fault("attention", "mask dropped", "softmax(found, mask)", "softmax(found)"),
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
    fault("arguments", "half precision stays half", ".bits < 32", ".bits < 16", tests=("test_attention.py",)),
    fault("attention", "no dtype back", "xp.astype(weights @ values, dtype)", "weights @ values"),
    fault("attention", "a token cannot see itself", "] <= position[:, None]", "] < position[:, None]"),
    fault("attention", "sees the future", "] <= position[:, None]", "] >= position[:, None]"),
    fault("attention", "one key of padding", "(position < ends", "(position <= ends"),
    fault("attention", "mask lost without weights", "return average(queries, keys, values, mask, causal)", "return average(queries, keys, values, None, causal)"),
    fault("attention", "no scale without weights", "values, mask, scores.scaled_dot)[0]", "values, mask, scores.dot)[0]"),
    fault("attention", "every score scaled dot", "if score is not scores.scaled_dot or return_weights:", "if return_weights:"),
    fault("attention", "weights as output", "mask, scores.scaled_dot)[0]", "mask, scores.scaled_dot)[1]"),
    fault(
        "attention",
        "mask lost before the fused kernel",
        "fused.average(queries, keys, values, mask, ",
        "fused.average(queries, keys, values, None, ",
        backends="torch",
        tests=("test_attend_fast.py",),
    ),
    fault(
        "attention",
        "the fused kernel for every score",
        "score is not scores.scaled_dot or return_weights:",
        "return_weights:",
        backends="torch",
        tests=("test_attend_fast.py::test_only_the_default_goes_through_it",),
    ),
    fault(
        "attention",
        "JAX compiles at every call",
        "@functools.cache\ndef _compiled",
        "def _compiled",
        backends="jax",
        tests=("test_attend_derivatives.py::test_jax_derivatives_of_the_compiled_way",),
    ),
    fault("attention", "a causal mask on the default device", "xp.arange(n, device=device(like))", "xp.arange(n)", backends="torch", tests=DEVICE),
    fault("attention", "a padding mask on the default device", "count(n=n), device=device(lengths))", "count(n=n))", backends="torch", tests=DEVICE),
    # attention, causal
    *(
        fault("attention", *words, tests=CAUSAL)
        for words in (
            ("causal ignored", "return average(queries, keys, values, mask, causal)", "return average(queries, keys, values, mask, False)"),
            ("causal ignored, with weights", "        mask = with_causal(mask, causal, queries)\n", ""),
            ("causal in place of the mask", "earlier if mask is None else mask & earlier", "earlier"),
            ("the mask in place of causal", "earlier if mask is None else mask & earlier", "earlier if mask is None else mask"),
            ("what either allows", "mask & earlier", "mask | earlier"),
            ("the future alone", "earlier if mask is None else", "earlier.mT if mask is None else"),
            ("a token cannot see itself, causal", "] <= position[:, None]", "] < position[:, None]"),
            ("other numbers of queries and keys", "        arguments.as_many(queries, keys)", "        pass"),
        )
    ),
    fault("attention", "always causal", "    if not causal:\n        return mask\n", ""),
    fault("attention", "causal lost before the fused kernel", "values, mask, causal, _scaled_dot_average)", "values, mask, False, _scaled_dot_average)", backends="torch", tests=CAUSAL),
    fault("attention", "causal is a value in JAX", 'jax.jit(_scaled_dot_average, static_argnames="causal")', "jax.jit(_scaled_dot_average)", backends="jax", tests=CAUSAL),
    # regression
    fault(
        "regression",
        "mask dropped, Gaussian",
        "weights = softmax(found, mask)",
        "weights = softmax(found)",
    ),
    fault(
        "regression",
        "mask dropped, other kernels",
        "of_kernel(kernel(distance), distance, mask)",
        "of_kernel(kernel(distance), distance, None)",
    ),
    fault(
        "regression",
        "mask after the weights",
        "similarity / xp.where(some, total, xp.ones_like(total)), some",
        "similarity / xp.sum(kernel(distance), -1, keepdims=True), some",
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
    fault("regression", "Gaussian underflows", "if kernel in (kernels.gaussian, _far_gaussian):", "if False:"),
    fault(
        "regression",
        "kernel ignored",
        "of_kernel(kernel(distance)",
        "of_kernel(kernels.epanechnikov(distance)",
    ),
    fault("regression", "K(u²)", "distance = kernels.distance(", "distance = kernels.squared_distance("),
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
    fault("regression", "values not looked at", "queries=queries, keys=keys, values=values)", "queries=queries, keys=keys)", tests=ARGUMENTS),
    fault("regression", "the mask not looked at", "xp = arguments.attention(queries, keys, values, mask)", "xp = arguments.attention(queries, keys, values, None)", tests=ARGUMENTS),
    fault("regression", "positions on the default device", "arange(keys.shape[-2], device=device(keys))[:, None]", "arange(keys.shape[-2])[:, None]", backends="torch", tests=DEVICE),
    # regression, far from the data
    *(
        fault(module, *words, tests=("test_regression_far.py",))
        for module, *words in (
            ("regression", "NaN far from the data", "if kernel is kernels.gaussian and known_true(xp.any(xp.isnan(output) & some)):", "if False:"),
            ("regression", "NaN far from the data, with weights", "if kernel is kernels.gaussian and known_true(xp.any(xp.isnan(weights[..., :1]))):", "if False:"),
            ("regression", "the mask lost far from the data", "from_nearest(queries, keys, bandwidth, mask)", "from_nearest(queries, keys, bandwidth, None)"),
            ("scores", "without half the square, far", "- 0.5 * key)", "- key)"),
            ("scores", "h not squared, far", "return found * in_bandwidths * in_bandwidths", "return found * in_bandwidths"),
            ("scores", "the farthest key for the nearest", "xp.argmin(farthest, axis=-1)", "xp.argmax(farthest, axis=-1)"),
            ("scores", "the largest not taken off, far", "found = found - xp.where(largest > -math.inf, largest, xp.zeros_like(largest))", "pass"),
            ("scores", "bandwidths of coordinates lost, far", "1.0 if one else bandwidth / least", "1.0"),
        )
    ),
    # regression: a metric
    fault("regression", "the metric transposed", 'metric=metric).mT', 'metric=metric)'),
    fault("regression", "the keys not moved", "queries @ moved, keys @ moved", "queries @ moved, keys"),
    fault("regression", "no mask in the metric", "keys @ moved, values, mask=mask)", "keys @ moved, values)"),
    # regression: several heads
    fault("regression", "combination dropped", "sum(combination[h] * output", "sum(output"),
    fault(
        "regression",
        "the combination made to sum to 1",
        "sum(combination[h] * output",
        "sum(combination[h] / sum(combination[i] for i in range(len(combination))) * output",
    ),
    fault("regression", "coefficients made positive", "sum(combination[h] * output", "sum(abs(combination[h]) * output"),
    fault("regression", "one bandwidth for all heads", "bandwidth=bandwidths[h, ...]", "bandwidth=bandwidths[0, ...]"),
    fault("regression", "a bandwidth a coordinate, not a head", "bandwidth=bandwidths[h, ...]", "bandwidth=bandwidths"),
    fault("regression", "mask dropped, heads", "bandwidths[h, ...], mask=mask)", "bandwidths[h, ...])"),
    fault("regression", "last head lost", "for h in range(combination.shape[0])", "for h in range(combination.shape[0] - 1)"),
    fault("regression", "heads in reverse", "enumerate(outputs))", "enumerate(list(outputs)[::-1]))"),
    # non-local means
    *(
        fault("images", *words)
        for words in (
            ("the border twice", 'mode="reflect"', 'mode="symmetric"'),
            ("black beyond the border", 'mode="reflect"', 'mode="constant"'),
            ("the other end beyond the border", 'mode="reflect"', 'mode="wrap"'),
            ("a patch read by columns", "(width, width))", "(width, width)).mT"),
            ("pixels in another order", "windows.reshape(image.size,", "windows.swapaxes(0, 1).reshape(image.size,"),
            ("any shape", "if image.ndim != 2:", "if image.ndim < 2:"),
            ("even widths", "width % 2 != 1 or ", ""),
            ("widths below 1", "not 1 <= width <=", "not -1 <= width <="),
            ("a width that the mirror does not fill", "min(image.shape) - 1", "min(image.shape) + 1"),
            ("a width no larger than the image", "<= 2 * min(image.shape) - 1", "<= min(image.shape)"),
            ("the larger side", "2 * min(image.shape)", "2 * max(image.shape)"),
            ("the sum over a patch", "patches(image, width) / width", "patches(image, width)"),
            ("divided twice", "patches(image, width) / width", "patches(image, width) / width**2"),
            ("the corners averaged", "image.reshape(-1, 1)", "patches(image, width)[:, :1]"),
            ("the pixels in columns", "image.reshape(-1, 1)", "image.T.reshape(-1, 1)"),
            ("exp(−d²/h²)", "bandwidth=bandwidth", "bandwidth=bandwidth / 2**0.5"),
            ("pixels ask, not patches", "nadaraya_watson(p, p,", "nadaraya_watson(image.reshape(-1, 1), image.reshape(-1, 1),"),
            ("another patch by default", "width: int = 5", "width: int = 7"),
        )
    ),
    # what scores and kernels give
    fault("answers", "a row of scores for all queries", "if tuple(found.shape[-2:]) != (m, n):", "if found.shape[-1] != n:", tests=HANDED),
    fault("answers", "scores of any shape", "if tuple(found.shape[-2:]) != (m, n):", "if False:", tests=HANDED),
    fault("answers", "integer scores", 'xp.isdtype(found.dtype, "real floating")', "True", tests=HANDED),
    fault("answers", "a kernel of any shape", "if tuple(found.shape) != tuple(distance.shape):", "if False:", tests=HANDED),
    fault("answers", "a score of another library", "xp = one_library(queries=queries, score=found)", "xp = one_library(queries=queries)", tests=HANDED),
    fault("attention", "any score", "if score is not scores.scaled_dot:\n        answers.of_score(", "if False:\n        answers.of_score(", tests=HANDED),
    fault("attention", "scores that are NaN", "answers.of_weights(weights, queries, keys)", "pass", tests=HANDED),
    fault("regression", "any kernel", "answers.of_kernel(kernel(distance), distance, mask)", "kernel(distance)", tests=HANDED),
    fault("heads", "any score beside dropout", "answers.of_score(score(*widen(xp, q, k)), q, k, v)", "score(*widen(xp, q, k))", backends="torch", tests=HANDED),
    # masks, dtypes
    fault("heads", "a mask for heads taken for sequences", "mask.ndim > max(queries.ndim, keys.ndim, values.ndim)", "False", backends="torch", tests=("test_layer_arguments.py",)),
    fault("attention", "a sum beyond float16", "(wide,) = widen(xp, scores)", "wide = scores", tests=("test_attention.py",)),
    fault("arguments", "anything for NumPy's", "if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):", "if False:", tests=("test_gaussian_process.py",)),
]  # fmt: skip
