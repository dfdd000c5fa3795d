"""Mistakes in weighted averages: kernels, scores, attention, regression, pooling."""

from faults.fault import faults

FAULTS = faults(r"""
kernel/kernels | numpy
    Gaussian without ½ | -⟦0.5→1.0⟧ * u * u
    boxcar without its edge | xp.abs(u) <⟦=→⟧ 1,
    triangular is a parabola | xp.zeros_like(u), 1 - u⟦→ * u⟧
    triangular goes below 0 | ⟦xp.where(u >= 1, xp.zeros_like(u), 1 - u)→1 - u⟧
    Epanechnikov's constant | ⟦0.75→0.5⟧ * (1 - u * u)
    Epanechnikov goes below 0 |
        ⟦xp.where(xp.abs(u) >= 1, xp.zeros_like(u), 0.75 * (1 - u * u))→0.75 * (1 - u * u)⟧
attention/distances | numpy
    sum of |u|, not u² | return ⟦u * u→abs(u)⟧
    first coordinate only | range(⟦queries.shape[-1]→1⟧)
    one bandwidth for all | h[⟦c→0⟧] if
    no square root | xp.⟦sqrt(xp.where(apart, squared, xp.ones_like(squared)))
        →where(apart, squared, xp.ones_like(squared))⟧
    expanded square, which cancels |
        return ⟦reduce(operator.add, map(term, range(queries.shape[-1])))→(\n
                ((queries / h) ** 2).sum(-1)[..., :, None]\n
                - 2 * (queries / h) @ (keys / h).mT\n
                + ((keys / h) ** 2).sum(-1)[..., None, :]\n
            )⟧
attention/distances | torch |
        kernel/test_kernels.py::test_distance_has_a_gradient_where_points_coincide
    the root at 0 has an infinite slope | ⟦xp.where(apart, squared, xp.ones_like(squared))→squared⟧
attention/scores | numpy
    no scale | q @ k.mT⟦ / math.sqrt(q.shape[-1])→⟧
    scale by √n | / math.sqrt(⟦q.shape[-1]→k.shape[-2]⟧)
    Gaussian score without ½ | -⟦0.5→1.0⟧ * unchecked_squared_distance
    h not squared | unchecked_squared_distance⟦(q, k, h)→(q, k, 1.0) / h⟧
    weight transposed | q @ weight⟦→.mT⟧ @ k.mT
    only keys normalised | ⟦_unit(q)→q⟧ @ _unit(k).mT
    only queries normalised | _unit(q) @ ⟦_unit(k)→k⟧.mT
    a vector of zeros is NaN | ⟦xp.where(squares > 0, squares, xp.ones_like(squares))→squares⟧
    the norm overflows |
        x ⟦/ xp.where(largest > 0, largest, xp.ones_like(largest))→* xp.ones_like(largest)⟧
    the largest of all vectors | xp.max(xp.abs(x)⟦, axis=-1, keepdims=True→⟧)
    tanh after v | xp.tanh⟦(hidden) @ v→(hidden @ v)⟧
    product for sum | [..., :, None, :] ⟦+→*⟧ k
attention/scores | numpy | kernel/test_regression_far.py
    without half the square, far | - ⟦0.5 * →⟧key
    h not squared, far | return found * in_bandwidths⟦ * in_bandwidths→⟧
    the farthest key for the nearest | xp.⟦argmin→argmax⟧(farthest, axis=-1)
    the largest not taken off, far |
        ⟦found = found - xp.where(largest > -math.inf, largest, xp.zeros_like(largest))→pass⟧
    bandwidths of coordinates lost, far | 1.0⟦ if one else bandwidth / least→⟧
attention/scores | torch | models/test_recurrent.py::test_equals_the_loop
    queries lost, projected | hidden = ⟦→0 * ⟧q[..., :, None, :] +
attention/weighted_average | numpy
    largest score not subtracted | xp.exp(⟦wide - xp.max(wide, axis=-1, keepdims=True)→scores⟧)
    largest of all rows subtracted | xp.max(⟦wide, axis=-1, keepdims=True→scores⟧)
    softmax over queries | xp.sum(exponentials, axis=⟦-1→max(-2, -scores.ndim)⟧, keepdims=True)
    weights do not sum to 1 | exponentials⟦ / xp.sum(exponentials, axis=-1, keepdims=True)→⟧
    mask after the softmax | masked_softmax(xp, ⟦xp.where(mask, scores, shut), None)\n
                return xp.where(some→scores, None)\n
                return xp.where(mask⟧,
    mask inverted | xp.where(mask, ⟦scores, shut→shut, scores⟧)
    masked scores are −10⁴ | some, -⟦xp.inf→1e4⟧,
    an empty row is the mean | return ⟦xp.where(some, weights, xp.zeros_like(scores))→weights⟧
    no scale | score: Score = scores.⟦scaled_dot
        →dot⟧,\n
            mask: Bool[Array, "..."] | None = None,\n
            causal: bool = False,\n
            return_weights: bool = False
    mask dropped | scores.unchecked_scaled_dot(q, k), ⟦mask→None⟧
    mask dropped, another score | q, k, values), ⟦mask→None⟧)
    mask lost without weights | return average(queries, keys, values, ⟦mask→None⟧, causal)
    no scale without weights | mask, causal, scores.⟦scaled_dot→dot⟧
attention/masks | numpy
    a token cannot see itself | <⟦=→⟧ position[:, None]
    one key of padding | position <⟦→=⟧ ends
attention/weighted_average | torch | fast/test_fast_sdpa.py
    mask lost before the fused kernel | sdpa.average(queries, keys, values, ⟦mask→None⟧,
attention/weighted_average | torch | fast/test_fast_sdpa.py::test_only_the_default_goes_through_it
    the fused kernel for every score | if ⟦score is scores.scaled_dot and →⟧not return_weights:
attention/weighted_average | numpy | attention/test_causal.py
    causal ignored | return average(queries, keys, values, mask, ⟦causal→False⟧)
    causal ignored, with weights | values, mask, ⟦causal→False⟧, score)\n
attention/masks | numpy | attention/test_causal.py
    causal in place of the mask | earlier⟦ if mask is None else mask & earlier→⟧
    what either allows | mask ⟦&→|⟧ earlier
attention/weighted_average | torch | attention/test_causal.py
    causal lost before the fused kernel | values, mask, ⟦causal→False⟧, _scaled_dot_average
attention/weighted_average | numpy | attention/test_attention.py
    a sum beyond float16 | ⟦(wide,) = upcast_half(xp, scores)→wide = scores⟧
    float16 scores overflow | q, k = ⟦upcast_half(xp, queries, keys)→queries, keys⟧
_validation/arrays | numpy | attention/test_attention.py
    half precision stays half | .bits < ⟦32→16⟧
kernel/regression | numpy
    mask dropped, Gaussian | masked_softmax(xp, score, ⟦mask→None⟧)
    mask dropped, other kernels | check_kernel(kernel(distance), distance, ⟦mask→None⟧)
    mask after the weights |
        / xp.⟦where(some, total, xp.ones_like(total))→sum(kernel(distance), -1, keepdims=True)⟧,
    0 in place of NaN |
        ⟦array_namespace(queries).where(some, weights @ values, math.nan)→weights @ values⟧
    0 in place of NaN, with weights | ⟦xp.where(some, weights @ values, math.nan)→weights @ values⟧
    self not left out | rows ⟦!= position→== rows⟧
    sum over queries | similarity, axis=-⟦1→2⟧,
    weights do not sum to 1 | similarity⟦ / xp.where(some, total, xp.ones_like(total))→⟧
    Gaussian underflows | if ⟦kernel in (kernels.gaussian, _far_gaussian)→False⟧:
    K(u²) | distance = ⟦unchecked_distance→kernels.unchecked_squared_distance⟧
    h not squared | unchecked_gaussian_score(queries, keys, h⟦→**0.5⟧)
    the metric transposed | ⟦.mT→⟧
    the keys not moved | queries @ moved, keys⟦ @ moved→⟧
    no mask in the metric | keys @ moved, values⟦, mask=mask→⟧
    the combination made to sum to 1 | h] ⟦→/ sum(combination[i] for i in range(len(combination))) ⟧
    coefficients made positive | ⟦combination[h]→abs(combination[h])⟧ * output
    one bandwidth for all heads | bandwidth=bandwidths[⟦h→0⟧, ...]
    mask dropped, heads | bandwidths[h, ...]⟦, mask=mask→⟧
    last head lost | for h in range(combination.shape[0]⟦→ - 1⟧)
    heads in reverse | enumerate(⟦outputs→list(outputs)[::-1]⟧)
kernel/regression | torch |
        kernel/test_regression.py::test_a_query_without_neighbour_spoils_no_gradient
    NaN before the average, so that gradients are NaN | some, total, ⟦xp.ones_like(total)→math.nan⟧
kernel/regression | numpy | kernel/test_regression_far.py
    NaN far from the data |
        if ⟦not far and is_concretely_true(xp.any(xp.isnan(weights[..., :1])))→False⟧:
    the mask lost far from the data | from_nearest(queries, keys, h, ⟦mask→None⟧)
kernel/regression | jax |
        kernel/test_regression_far.py::test_near_queries_beside_a_far_one_are_what_they_are_alone
    NaN far from the data, JAX | and ⟦is_concretely_true(xp.any(xp.isnan(output) & some))→False⟧
kernel/regression | torch | fast/test_fast_gaussian.py
    mask lost in the fused kernel | if kernel is kernels.gaussian⟦ and mask is None→⟧:
torch/regression | torch,jax | models/test_layers.py::test_layers_equal_the_function |
        models/test_layers.py::test_layers_take_a_mask
    log h for h | return self.log_bandwidth⟦.exp()→⟧\n
torch/regression | torch,jax | models/test_layers.py::test_multi_head_layers_equal_the_loop
    the heads' sum for their mean | ⟦1 / len(start)→1.0⟧
torch/regression | torch,jax | models/test_layers.py::test_metric_layers_equal_the_loop
    metric transposed | metric=self.metric⟦→.mT⟧,
attention/pooling | numpy
    mask dropped | keys, values, ⟦mask=mask, →⟧return
    no scale | layer.query⟦→ * layer.query.shape[-1] ** 0.5⟧,
    a mean, no attention | .head_hidden, layer.head_out, ⟦pooled→values.mean(-2, keepdims=True)⟧
    the head before the average | ⟦perceptron(layer.head_hidden, layer.head_out, pooled)
        →(perceptron(layer.head_hidden, layer.head_out, values) * weights.mT)
        .sum(-2, keepdims=True)⟧
    the head reads the values' network | layer.⟦value_out→head_out⟧, embedded
kernel/non_local_means | numpy
    the border twice | mode="⟦reflect→symmetric⟧"
    a patch read by columns | (width, width))⟦→.mT⟧
    the sum over a patch | patches(image, width)⟦ / width→⟧
    exp(−d²/h²) | bandwidth=bandwidth⟦→ / 2**0.5⟧
    pixels ask, not patches | ⟦p, p→image.reshape(-1, 1), image.reshape(-1, 1)⟧,
kernel/gaussian_process | numpy
    twice as narrow | np.exp(-⟦0.5 * distance**2→(distance**2)⟧)
    a rough function | np.exp(-0.5 * ⟦distance**2→np.abs(distance)⟧)
    multiplied by the length scale | (x[..., :, None] - z[..., None, :]) ⟦/→*⟧ scale[..., None, None
    x and z exchanged | (x⟦[..., :, None] - z[..., None, :]→[..., None, :] - z[..., :, None]⟧) /
    one length scale for all | scale⟦[..., None, None]→.ravel()[0]⟧
    no jitter, draws | covariance(x, x, length_scale)⟦ + JITTER * np.eye(x.shape[-1])→⟧
    the other triangle | np.⟦linalg.cholesky(matrix)→swapaxes(np.linalg.cholesky(matrix), -1, -2)⟧ @
    the covariance for its root | (⟦np.linalg.cholesky(matrix)→matrix⟧ @ normal)[..., 0]
    the same draw for all functions | rng.standard_normal((⟦*x.shape→x.shape[-1]⟧, 1))
    even draws | rng.⟦standard_normal((*x.shape, 1))→uniform(-(3**0.5), 3**0.5, (*x.shape, 1))⟧
    the variance of the noise | max(noise⟦**2→⟧, JITTER)
    noise 0 is singular | ⟦max(noise**2, JITTER)→noise**2⟧
    large jitter | max(noise**2, ⟦JITTER→1e-3⟧)
    the covariance of the keys | between = covariance(queries, keys, ⟦length_scale→1.0⟧)
    the noise is in the variance | 1 ⟦→+ noise**2 ⟧- np.sum(between * np.swapaxes(solved[..., 1:], -
    a deviation for a variance |
        ⟦1 - np.sum(between * np.swapaxes(solved[..., 1:], -1, -2), axis=-1)
        →np.sqrt(np.abs(1 - np.sum(between * np.swapaxes(solved[..., 1:], -1, -2), axis=-1)))⟧
""")
