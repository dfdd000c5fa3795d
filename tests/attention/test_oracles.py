"""Against other people's code: statsmodels, SciPy, scikit-learn."""

import warnings

import numpy as np
import pytest

from attnbook import attend, datasets, kernels, leave_one_out, nadaraya_watson, scores, softmax

statsmodels = pytest.importorskip("statsmodels.nonparametric.kernel_regression")


def kernel_reg(x, y, bandwidth):
    """statsmodels' Nadaraya–Watson ("local constant") estimator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.15: about a generator unused here
        return statsmodels.KernelReg(
            y[:, 0], x, "c" * x.shape[1], reg_type="lc", bw=bandwidth, ckertype="gaussian"
        )


def curve(rng, n, d):
    x = rng.uniform(-3, 3, size=(n, d))
    return x, np.sin(x).sum(1, keepdims=True) + 0.1 * rng.normal(size=(n, 1))


@pytest.mark.parametrize(("d", "bandwidth"), [(1, [0.4]), (3, [0.5, 0.9, 1.7])])
def test_kernelreg(backend, rng, d, bandwidth):
    """Nadaraya–Watson with a Gaussian kernel, one bandwidth per coordinate, in float64."""
    x, y = curve(rng, 101, d)
    queries = rng.uniform(-3, 3, size=(37, d))
    expected = kernel_reg(x, y, bandwidth).fit(queries)[0]
    out = backend.call(nadaraya_watson, queries, x, y, bandwidth=np.array(bandwidth))
    np.testing.assert_allclose(out[:, 0], expected, rtol=0, atol=1e-8)


def test_kernelreg_on_engels_data(backend):
    income, food = datasets.engel()
    queries = np.linspace(400, 2500, 29)[:, None]
    expected = kernel_reg(income, food, [120.0]).fit(queries)[0]
    out = backend.call(nadaraya_watson, queries, income, food, bandwidth=120.0)
    np.testing.assert_allclose(out[:, 0], expected, rtol=0, atol=1e-8)


def test_leave_one_out_gives_kernelregs_cross_validation(rng):
    """statsmodels minimises the mean squared leave-one-out error; at its h ours is the same."""
    x, y = curve(rng, 53, 1)
    model = kernel_reg(x, y, [0.4])
    expected = model.cv_loo(np.array([0.4]), model._est_loc_constant)
    error = np.mean((y - leave_one_out(x, y, bandwidth=0.4)) ** 2)
    assert error == pytest.approx(float(np.squeeze(expected)), abs=1e-10)


def test_scipys_softmax(backend, rng):
    special = pytest.importorskip("scipy.special")
    rows = 10 * rng.normal(size=(3, 7))
    np.testing.assert_allclose(
        backend.call(softmax, rows), special.softmax(rows, axis=-1), rtol=1e-12
    )


def test_radius_neighbours_are_the_boxcar(backend, rng):
    neighbors = pytest.importorskip("sklearn.neighbors")
    x, y = curve(rng, 101, 2)
    queries = rng.uniform(-2, 2, size=(37, 2))
    expected = neighbors.RadiusNeighborsRegressor(radius=1.3).fit(x, y).predict(queries)
    out = backend.call(nadaraya_watson, queries, x, y, kernel=kernels.boxcar, bandwidth=1.3)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_distance_weighted_neighbours_are_the_triangular_kernel(rng):
    """A nearest-neighbour regressor with all keys as neighbours and the weights max(0, 1 − u/h)."""
    neighbors = pytest.importorskip("sklearn.neighbors")
    x, y = curve(rng, 101, 2)
    queries = rng.uniform(-2, 2, size=(37, 2))
    model = neighbors.KNeighborsRegressor(101, weights=lambda r: np.maximum(0, 1 - r / 1.3))
    expected = model.fit(x, y).predict(queries)
    out = nadaraya_watson(queries, x, y, kernel=kernels.triangular, bandwidth=1.3)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_pairwise_kernels(backend, rng):
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    q, k = rng.normal(size=(3, 5)), rng.normal(size=(7, 5))
    gaussian = backend.call(lambda q, k: kernels.gaussian(kernels.distance(q, k, 0.8)), q, k)
    expected = pairwise.rbf_kernel(q, k, gamma=1 / (2 * 0.8**2))
    np.testing.assert_allclose(gaussian, expected, rtol=1e-10)
    np.testing.assert_allclose(
        backend.call(scores.dot, q, k), pairwise.linear_kernel(q, k), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        backend.call(kernels.distance, q, k), pairwise.euclidean_distances(q, k), rtol=1e-10
    )


@pytest.mark.parametrize("masked", [False, True])
def test_torchs_attention(backend, rng, masked):
    torch = pytest.importorskip("torch")
    sdpa = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (rng.normal(size=(2, 11, *s)) for s in ((3, 2), (7, 2), (7, 5)))
    mask = np.arange(7) <= np.arange(3)[:, None] if masked else None
    tensors = map(torch.from_numpy, (q, k, v))
    expected = sdpa(*tensors, attn_mask=None if mask is None else torch.from_numpy(mask)).numpy()
    np.testing.assert_allclose(backend.call(attend, q, k, v, mask=mask), expected, rtol=1e-12)
