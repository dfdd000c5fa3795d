"""Kernel regression in a metric: the loop, the ways back to one bandwidth, and bad metrics."""

import numpy as np
import pytest
import reference

from attnbook import nadaraya_watson
from attnbook.kernel.regression import in_metric


def sample(rng):
    return [rng.normal(size=shape) for shape in ((11, 3, 2), (7, 2), (7, 5))]


def test_equals_the_loop(backend, rng):
    q, k, v = sample(rng)
    mask = rng.random((3, 7)) < 0.7
    metric = rng.normal(size=(13, 2))

    def score(a, b):
        moved = [sum(row[c] * (a[c] - b[c]) for c in range(2)) for row in metric.tolist()]
        return -sum(one**2 for one in moved) / 2

    expected, _ = reference.attend(q, k, v, score=score, mask=mask)
    out = backend.call(in_metric, q, k, v, metric=metric, mask=mask)
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-12)


def test_a_diagonal_is_a_bandwidth_a_coordinate(backend, rng):
    q, k, v = sample(rng)
    h = np.array([0.7, 1.3])
    out = backend.call(in_metric, q, k, v, metric=np.diag(1 / h))
    np.testing.assert_allclose(out, nadaraya_watson(q, k, v, bandwidth=h), rtol=1e-10)


@pytest.mark.parametrize("shape", [(2, 3), (2,), (1, 2, 2)])
def test_a_metric_that_does_not_fit(backend, rng, shape):
    with pytest.raises(ValueError, match=r"metric: got shape .*, expected \(r, 2\)"):
        backend.call(in_metric, *sample(rng), metric=np.ones(shape))


def test_points_that_do_not_fit_are_named_before_they_are_moved(backend, rng):
    q, k, v = sample(rng)
    with pytest.raises(ValueError, match="keys: got 1 coordinates, expected 2 as in queries"):
        backend.call(in_metric, q, k[:, :1], v, metric=np.eye(2))
    with pytest.raises(TypeError, match="queries: got a list, expected a NumPy, PyTorch or JAX"):
        in_metric(q.tolist(), *map(backend.array, (k, v)), metric=backend.array(np.eye(2)))
