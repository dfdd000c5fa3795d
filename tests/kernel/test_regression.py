"""Kernel regression where the contract's random numbers do not reach: no neighbour, far away, in chunks."""

import tracemalloc

import backends
import numpy as np
import pytest
from reference import sample

from attnbook import kernels, leave_one_out, nadaraya_watson

BACKENDS = ("numpy", "strict", "torch", "jax-jit")


def column(*numbers, dtype=float):
    return np.array(numbers, dtype=dtype)[:, None]


@pytest.mark.parametrize("name", ["gaussian", "boxcar", "triangular", "epanechnikov"])
def test_no_neighbour_is_nan_and_no_warning(backend, name):
    """Only the first query has a key within one bandwidth, or one that the mask allows."""
    q, k, v = column(0, 10, -10), column(0, 0.5, -0.5), column(1, 1, 1)
    mask = np.array([[True] * 3, [name != "gaussian"] * 3, [False] * 3])
    how = {"kernel": getattr(kernels, name), "mask": mask}
    output, weights = backend.call(nadaraya_watson, q, k, v, **how, return_weights=True)
    assert np.isnan(weights[1:]).all()
    for out in (output, backend.call(nadaraya_watson, q, k, v, **how)):
        np.testing.assert_allclose(out, [[1], [np.nan], [np.nan]], rtol=1e-15)
    lonely = backend.call(leave_one_out, column(1), column(2), kernel=how["kernel"])
    np.testing.assert_array_equal(lonely, [[np.nan]])


@pytest.mark.parametrize("name", ["gaussian", "triangular"])
def test_a_query_without_neighbour_spoils_no_gradient(differentiable, name):
    """The lost query's NaN is dropped from the loss: what is left has an ordinary gradient."""
    kernel = getattr(kernels, name)
    q, k, v = column(0.2, 50, 0.4), column(0, 0.5), column(1, 2)
    mask = differentiable.array(np.array([[True, True], [False, False], [True, True]]))

    def loss(q, k, v, h, mask=mask):
        out = nadaraya_watson(q, k, v, kernel=kernel, bandwidth=h, mask=mask)
        return differentiable.xp.where(out == out, out, differentiable.xp.zeros_like(out)).sum()

    spoilt = differentiable.gradient(loss, q, k, v, np.array([0.9]))
    kept = lambda q, k, v, h: loss(q, k, v, h, None)  # noqa: E731
    clean = differentiable.gradient(kept, q[[0, 2]], k, v, np.array([0.9]))
    np.testing.assert_array_equal(spoilt[0][1], 0)
    np.testing.assert_allclose(spoilt[0][[0, 2]], clean[0], rtol=0, atol=1e-14)
    for a, b in zip(spoilt[1:], clean[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6, 1e15])
def test_far_from_all_data_float32_gives_the_nearest_value(backend, distance, weights):
    """The Gaussian weights underflow; their ratio does not."""
    q = column(1 + distance, -distance, 1 + 2 * distance, dtype=np.float32)
    apart = max(1.0, distance / 1e4)  # so that the keys stay apart in float32
    k, v = np.float32(apart) * column(0, 1, dtype=np.float32), column(3, 5, dtype=np.float32)
    out = backend.call(nadaraya_watson, q, k, v, bandwidth=1e-2, return_weights=weights)
    out = out[0] if weights else out
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, [[5], [3], [5]])


def test_near_queries_beside_a_far_one_are_what_they_are_alone(backend, rng):
    """Each row subtracts its own least distance; a masked key is not the nearest."""
    q, k, v = sample(rng)
    far = np.concatenate([q, [[1e6, 1e6], [1e6, 1e6]]])
    mask = np.ones((5, 7), bool)
    nearest = np.argsort(k.sum(-1))  # the last in the direction of (1, 1)
    mask[4, nearest[-1]] = False
    out = backend.call(nadaraya_watson, far, k, v, bandwidth=0.01, mask=mask)
    alone = backend.call(nadaraya_watson, q, k, v, bandwidth=0.01)
    np.testing.assert_allclose(out[:3], alone, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(out[3:], v[nearest[[-1, -2]]])


def test_keys_at_one_place_share(backend):
    out = backend.call(nadaraya_watson, column(1e6), column(1, 1, 0), column(3, 5, 100))
    np.testing.assert_array_equal(out, [[4]])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_does_not_overflow(half):
    """Distance 500 squared is beyond float16."""
    backend = backends.load_or_skip("torch")
    arrays = column(0, 500), column(0, 400), column(3, 5)
    q, k, v = (backend.cast(backend.array(a), half) for a in arrays)
    for out, expected in (
        (nadaraya_watson(q, k, v), [[3], [5]]),
        (leave_one_out(k, v), [[5], [3]]),
    ):
        assert backend.dtype(out) == half
        np.testing.assert_array_equal(backend.numpy(backend.cast(out, "float32")), expected)


def test_no_queries_and_no_columns(backend, rng):
    assert backend.call(nadaraya_watson, *sample(rng, m=0)).shape == (0, 5)
    assert backend.call(nadaraya_watson, *sample(rng, p=0)).shape == (3, 0)


# in chunks of queries


EACH = [(name, kernel) for name in ("numpy", "torch") for kernel in ("gaussian", "epanechnikov")]


@pytest.mark.parametrize(("name", "kernel"), [*EACH, ("jax", "epanechnikov")])
def test_chunks_equal_one_average(rng, name, kernel):
    """Predictions, and leave-one-out with its gradient, against weights that all exist."""
    backend, kernel = backends.load_or_skip(name), getattr(kernels, kernel)
    q, k, v = rng.normal(size=(1501, 2)), rng.normal(size=(1501, 2)), rng.normal(size=(1501, 2))
    mask = rng.random((1501, 1501)) < 0.5
    how = {"kernel": kernel, "bandwidth": 1.5}
    for more in ({}, {"mask": mask}):
        out = backend.call(nadaraya_watson, q, k, v, **how, **more)
        whole = nadaraya_watson(q, k, v, **how, **more, return_weights=True)[0]
        np.testing.assert_allclose(out, whole, rtol=0, atol=1e-11)
    others = ~np.eye(1501, dtype=bool)
    out = backend.call(leave_one_out, k, v, **how)
    whole = nadaraya_watson(k, k, v, **how, mask=others, return_weights=True)[0]
    np.testing.assert_allclose(out, whole, rtol=0, atol=1e-11)
    if name == "numpy":
        return
    loss = lambda k, v, h: (leave_one_out(k, v, kernel=kernel, bandwidth=h) ** 2).sum()  # noqa: E731
    hidden = backend.array(others)

    def all_at_once(k, v, h):
        given = {"kernel": kernel, "bandwidth": h, "mask": hidden, "return_weights": True}
        return (nadaraya_watson(k, k, v, **given)[0] ** 2).sum()

    arrays = k, v, np.array([1.5, 1.3])
    for ours, right in zip(
        *(backend.gradient(f, *arrays) for f in (loss, all_at_once)), strict=True
    ):
        size = max(1.0, np.abs(right).max())
        np.testing.assert_allclose(ours, right, rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("function", ["predictions", "leave-one-out"])
def test_no_array_of_all_weights(rng, function):
    """NumPy's peak is far below the (n, n) weights, which return_weights does make."""
    x, y = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 1))
    calls = {
        "predictions": lambda: nadaraya_watson(x, x, y),
        "leave-one-out": lambda: leave_one_out(x, y, kernel=kernels.epanechnikov),
    }
    weights = 4000 * 4000 * 8
    assert peak(calls[function]) < weights / 8
    assert peak(lambda: nadaraya_watson(x, x, y, return_weights=True)) > weights


def peak(call):
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_jax_and_torch_make_none_either(rng):
    """Backward too: no array in the traced program, no tensor in PyTorch's, is as large."""
    n = 3001
    jax = backends.load_or_skip("jax").jax
    x = jax.numpy.ones((n, 1))
    loss = lambda x, y: leave_one_out(x, y).sum()  # noqa: E731
    program = str(jax.make_jaxpr(jax.grad(loss, argnums=(0, 1)))(x, x))
    assert f"{n},{n}]" not in program
    weights = jax.make_jaxpr(lambda x: nadaraya_watson(x, x, x, return_weights=True))(x)
    assert f"{n},{n}]" in str(weights)
    torch = backends.load_or_skip("torch").xp
    from largest_tensor import LargestTensor  # where there is PyTorch

    x = torch.ones(n, 1, dtype=torch.float64, requires_grad=True)
    with LargestTensor() as seen:
        leave_one_out(x, x).sum().backward()
    assert seen.entries < n * n / 4


# kernels of one's own

BAD_KERNELS = {
    "a row for all": (lambda u: u[:1, :], r"kernel: gave shape \(1, 7\), expected \(3, 7\)"),
    "one per query": (lambda u: u[:, :1], r"kernel: gave shape \(3, 1\), expected \(3, 7\)"),
    "no array": (lambda u: 1.0, "kernel: got a float, expected a NumPy, PyTorch or JAX"),
}


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_bad_kernels(backend, rng, name):
    kernel, message = BAD_KERNELS[name]
    with pytest.raises((ValueError, TypeError), match=message):
        backend.call(nadaraya_watson, *sample(rng), kernel=kernel)


VALUES_OF_KERNELS = {
    "negative": (lambda u: u * 0 - 1, r"-1.0 at u = \d.0, expected finite numbers, 0 or more"),
    "changes sign": (lambda u: 1 - u * u, "-3.0 at u = 2.0, expected finite"),
    "infinite at 0": (lambda u: 1 / u, "inf at u = 0.0, expected finite"),
}


@pytest.mark.parametrize("name", VALUES_OF_KERNELS)
def test_values_that_no_kernel_has(name):
    kernel, message = VALUES_OF_KERNELS[name]
    q, k, v = column(0, 1), column(0, 2, 1), np.ones((3, 1))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=f"^kernel: gave {message}"):
        nadaraya_watson(q, k, v, kernel=kernel)


def test_a_kernel_may_give_anything_where_the_mask_says_no(backend):
    """1/u is infinite at a key itself, which leave-one-out leaves out."""
    with np.errstate(all="ignore"):
        out = backend.call(leave_one_out, column(0, 1, 3), column(1, 2, 4), kernel=lambda u: 1 / u)
    np.testing.assert_allclose(out, [[2.5], [2.0], [1.6]], rtol=1e-14)


def test_a_kernel_is_a_function(rng):
    with pytest.raises(ValueError, match="kernel: got 'gaussian', expected a function such as"):
        nadaraya_watson(*sample(rng), kernel="gaussian")


NOT_FINITE = {"queries": np.nan, "keys": np.inf, "values": np.nan}


@pytest.mark.parametrize("name", NOT_FINITE)
def test_data_are_finite(rng, name):
    given = dict(zip(("queries", "keys", "values"), sample(rng), strict=True))
    given[name][0, 0] = NOT_FINITE[name]
    message = f"{name}: got 1 entries of .* that are NaN or infinite, expected finite"
    with pytest.raises(ValueError, match=message):
        nadaraya_watson(**given)
    empty = given | {"keys": given["keys"][:0], "values": given["values"][:0]}
    with pytest.raises(ValueError, match="keys: got no rows, expected at least one"):
        nadaraya_watson(**empty | {"queries": np.ones((3, 2))})


@pytest.mark.parametrize("spread", [0.0, 100.0, 1e5])
def test_the_fused_kernel_and_the_formula_agree(torch, rng, spread):
    """Also in two clouds far from their mean, where the expanded square loses digits or is left."""
    q, k = (rng.normal(size=(n, 3)) + spread * rng.choice([-1, 1], (n, 1)) for n in (11, 257))
    q, k = map(torch.from_numpy, (q, k))
    v, h = torch.from_numpy(rng.normal(size=(257, 2))), torch.tensor([0.5, 1.0, 2.0]).double()
    fused = nadaraya_watson(q, k, v, bandwidth=h)
    formula, _ = nadaraya_watson(q, k, v, bandwidth=h, return_weights=True)
    # a score's error is that of squares up to 10⁶, a few of them: an average moves by as much
    np.testing.assert_allclose(fused, formula, rtol=0, atol=16 * 1e6 * 2.0**-53 * 5)
    narrow = (a.bfloat16() for a in (q, k, v))
    assert nadaraya_watson(*narrow, bandwidth=3.0).dtype == torch.bfloat16
    assert nadaraya_watson(q[:0], k, v, bandwidth=h).shape == (0, 2)
