"""What a function makes on the way lies where its arguments do, whatever the default device is."""

import backends
import numpy as np
import pytest
import reference

from attnbook import attend, causal_mask, kernels, leave_one_out, nadaraya_watson, padding_mask
from attnbook.attention import positions

torch = backends.load_or_skip("torch").xp


@pytest.fixture(autouse=True)
def elsewhere():
    """New tensors go to a device that holds no numbers."""
    with torch.device("meta"):
        assert torch.ones(3).is_meta
        yield


@pytest.fixture
def sample(rng):
    return [torch.from_numpy(rng.normal(size=shape)) for shape in ((7, 2), (7, 2), (7, 5))]


def test_masks(sample):
    expected = np.tril(np.ones((7, 7), dtype=bool))
    np.testing.assert_array_equal(causal_mask(7, like=sample[0]).numpy(), expected)
    lengths = torch.from_numpy(np.array([1, 3]))
    expected = [[[True, False, False]], [[True, True, True]]]
    np.testing.assert_array_equal(padding_mask(lengths, 3).numpy(), expected)


def test_averages(sample, small_blocks):
    arrays = [a.numpy() for a in sample]
    mask = causal_mask(7, like=sample[0])
    for out, right in (
        (attend(*sample, mask=mask), reference.attend(*arrays, mask=mask.numpy())[0]),
        (
            nadaraya_watson(*sample, bandwidth=[0.6, 1.9]),
            reference.nadaraya_watson(*arrays, bandwidth=[0.6, 1.9])[0],
        ),
    ):
        np.testing.assert_allclose(out.numpy(), right, rtol=1e-11)


@pytest.mark.parametrize("name", ["gaussian", "epanechnikov"])
def test_leave_one_out(sample, small_blocks, name):
    _, k, v = sample
    expected, _ = reference.nadaraya_watson(
        *(a.numpy() for a in (k, k, v)), name, 1.9, ~np.eye(7, dtype=bool)
    )
    out = leave_one_out(k, v, kernel=getattr(kernels, name), bandwidth=1.9)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-11)


def test_rotary(rng):
    x, where = rng.normal(size=(7, 6)), np.array([0, 1, 2, 5, 3, 40, 11])
    out = positions.rotary(torch.from_numpy(x), torch.from_numpy(where))
    np.testing.assert_allclose(out.numpy(), positions.rotary(x, where), rtol=1e-12, atol=1e-13)
