"""What holds for every input: Hypothesis looks for one where it does not."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnbook import attend, kernels, nadaraya_watson, scores

# the same examples in every run, and no clock that fails a test
settings.register_profile("attnbook", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("attnbook")

finite = functools.partial(st.floats, allow_nan=False, allow_subnormal=False, width=64)

AVERAGES = {
    "attend": attend,
    "attend, Gaussian": functools.partial(attend, score=scores.gaussian_score),
    "nadaraya_watson": nadaraya_watson,
    "nadaraya_watson, Epanechnikov": functools.partial(
        nadaraya_watson, kernel=kernels.epanechnikov, bandwidth=2.0
    ),
}
average = pytest.mark.parametrize("name", AVERAGES)
# JAX compiles anew for every shape: there the sizes stay what they are in all other tests
SIZES = {"numpy": (0, 11), "strict": (0, 11), "torch": (0, 11), "jax": None, "jax-jit": None}


@st.composite
def inputs(draw, name, *, span=10.0, square=False):
    """Queries, keys, values and a mask, any sizes from a few rows up."""
    sizes = SIZES[name]
    m, n, d, p = (
        (3, 7, 2, 5) if sizes is None else [draw(st.integers(1, sizes[1])) for _ in range(4)]
    )
    m = n if square else m
    shapes = (m, d), (n, d), (n, p)
    q, k, v = (
        draw(hnp.arrays(np.float64, shape, elements=finite(-span, span))) for shape in shapes
    )
    return q, k, v, draw(hnp.arrays(bool, (m, n)))


def call(backend, name, *args, **kwargs):
    return backend.call(AVERAGES[name], *args, **kwargs)


@average
def test_weights_are_shares_and_predictions_lie_among_the_values(backend, name):
    """Weights ≥ 0 that sum to 1; an empty row: 0 for attend, NaN for nadaraya_watson."""

    @given(inputs(backend.name))
    def check(sample):
        q, k, v, mask = sample
        output, weights = call(backend, name, q, k, v, mask=mask, return_weights=True)
        empty = ~mask.any(-1)
        if name.startswith("attend"):
            assert np.all(weights[empty] == 0)
            assert np.all(output[empty] == 0)
        else:
            empty = np.isnan(weights).any(-1)
            assert np.all(empty[~mask.any(-1)])
            assert np.isnan(weights[empty]).all()
            assert np.isnan(output[empty]).all()
        weights, output, mask = weights[~empty], output[~empty], mask[~empty]
        assert np.all(weights >= 0)
        assert np.all(weights[~mask] == 0)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)
        room = 1e-12 * (1 + np.abs(v).max())
        for row, allowed in zip(output, mask, strict=True):
            assert np.all(row >= v[allowed].min(0) - room)
            assert np.all(row <= v[allowed].max(0) + room)

    check()


@average
def test_the_order_of_queries_and_of_keys(backend, name):
    """Queries permuted: the output is permuted. Keys, values and mask permuted: nothing happens."""

    @given(inputs(backend.name), st.randoms(use_true_random=False))
    def check(sample, random):
        q, k, v, mask = sample
        rows, columns = (random.sample(range(len(a)), len(a)) for a in (q, k))
        before = call(backend, name, q, k, v, mask=mask)
        after = call(backend, name, q[rows], k, v, mask=mask[rows])
        np.testing.assert_allclose(after, before[rows], rtol=1e-11, atol=1e-11)
        after = call(backend, name, q, k[columns], v[columns], mask=mask[:, columns])
        np.testing.assert_allclose(after, before, rtol=1e-11, atol=1e-11)

    check()


@average
def test_the_future_does_not_count_at_all(backend, name):
    """Under a causal mask, a change of later keys and values moves earlier outputs by exactly 0."""

    @given(inputs(backend.name, square=True), finite(-1e6, 1e6), finite(-1e6, 1e6))
    def check(sample, key, value):
        q, k, v, _ = sample
        n = len(k)
        q = q[:n] if len(q) >= n else np.concatenate([q, k[len(q) :]])
        mask = np.tril(np.ones((n, n), dtype=bool))
        before = call(backend, name, q, k, v, mask=mask)
        k2, v2 = k.copy(), v.copy()
        k2[n // 2 :], v2[n // 2 :] = key, value
        after = call(backend, name, q, k2, v2, mask=mask)
        np.testing.assert_array_equal(after[: n // 2], before[: n // 2])

    check()


@average
def test_padding_does_not_count_at_all(backend, name):
    """What stands in masked rows of keys and values moves the output by exactly 0."""

    @given(inputs(backend.name), finite(-1e6, 1e6), finite(-1e6, 1e6))
    def check(sample, key, value):
        q, k, v, _ = sample
        mask = np.arange(len(k)) < (len(k) + 1) // 2
        before = call(backend, name, q, k, v, mask=mask)
        k2, v2 = k.copy(), v.copy()
        k2[~mask], v2[~mask] = key, value
        np.testing.assert_array_equal(call(backend, name, q, k2, v2, mask=mask), before)
        cut = call(backend, name, q, k[mask], v[mask])
        np.testing.assert_allclose(before, cut, rtol=1e-12, atol=1e-12)

    check()


@pytest.mark.parametrize("kernel", ["gaussian", "triangular"])
def test_units_do_not_matter(backend, kernel):
    """Queries, keys and bandwidth in other units, from another origin: the same prediction."""

    function = functools.partial(nadaraya_watson, kernel=getattr(kernels, kernel))

    @given(inputs(backend.name), finite(0.5, 4), finite(-100, 100), finite(0.01, 100))
    def check(sample, h, shift, scale):
        q, k, v, _ = sample
        before = backend.call(function, q, k, v, bandwidth=np.array(h))
        moved = ((q + shift) * scale, (k + shift) * scale)
        after = backend.call(function, *moved, v, bandwidth=np.array(h * scale))
        edge = np.isnan(before) ^ np.isnan(after)  # at u = 1 to the last digit
        assert (
            not edge.any()
            or np.isclose(kernels.distance(q, k, h).min(-1)[edge.any(-1)], 1, rtol=1e-9).all()
        )
        far = np.abs(kernels.distance(q, k, h) - 1).min() > 1e-9
        if far or kernel == "gaussian":
            np.testing.assert_allclose(after, before, rtol=1e-7, atol=1e-7)

    check()


@average
def test_predictions_follow_the_values(backend, name):
    """An average is linear in the values: a v + b gives a f + b."""

    @given(inputs(backend.name), finite(-9, 9), finite(-9, 9))
    def check(sample, a, b):
        q, k, v, _ = sample
        before, after = call(backend, name, q, k, v), call(backend, name, q, k, a * v + b)
        np.testing.assert_allclose(after, a * before + b, rtol=1e-10, atol=1e-10)

    check()


@average
def test_large_inputs_do_not_overflow(backend, name):
    """Coordinates up to 1e30, scores up to 1e60: finite, and among the values."""

    @given(inputs(backend.name, span=1e30))
    def check(sample):
        q, k, v, _ = sample
        output = call(backend, name, q, k, np.clip(v, -9, 9))
        some = ~np.isnan(output)
        assert np.all(np.abs(output[some]) <= 9 + 1e-12)
        if "Epanechnikov" not in name:
            assert some.all()

    check()


@average
def test_memory_layout_does_not_matter(backend, name):
    """Transposed, reversed and strided views give what their copies give."""

    @given(inputs(backend.name))
    def check(sample):
        q, k, v, mask = sample
        before = call(backend, name, q, k, v, mask=mask)
        views = [np.asfortranarray(q), np.repeat(k, 2, axis=0)[::2], v[::-1].copy()[::-1]]
        if backend.name == "torch":
            views = [
                backend.xp.from_numpy(q.T.copy()).mT,
                backend.xp.from_numpy(np.repeat(k, 2, axis=0))[::2],
                backend.xp.from_numpy(np.stack([v, v], -1))[..., 0],
            ]
            assert not views[1].is_contiguous() or len(k) == 1
            after = AVERAGES[name](*views, mask=backend.array(mask)).numpy()
        elif backend.name == "numpy":
            after = AVERAGES[name](*views, mask=mask)
        else:
            return
        np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-13)

    if backend.name in ("numpy", "torch"):
        check()
    else:
        pytest.skip(f"an array of {backend.name} has no memory layout that a caller sees")
