"""What a layer may start from: numbers, and what is refused."""

import numpy as np
import pytest

from attnbook import starting


@pytest.mark.parametrize(
    ("function", "given", "shape"),
    [
        (starting.bandwidth, 2, ()),
        (starting.bandwidth, [1, 2.5], (2,)),
        (starting.bandwidth, np.array([1.0, 2.0], np.float32), (2,)),
        (starting.bandwidths, [1, 2.5], (2,)),
        (starting.bandwidths, ((1, 2), (3, 4), (5, 6.5)), (3, 2)),
        (starting.metric, [[0, -1]], (1, 2)),
        (starting.metric, np.eye(3), (3, 3)),
    ],
)
def test_numbers_come_as_float64(function, given, shape):
    out = function(given)
    assert out.dtype == np.float64
    assert out.shape == shape
    np.testing.assert_array_equal(out, given)


def test_a_size_is_a_python_integer():
    for given in (1, 3, np.int64(3), np.uint8(3)):
        out = starting.size(width=given)
        assert type(out) is int
        assert out == given
    for wrong in (0, -3, 2.0, "3", None):
        with pytest.raises(ValueError, match=f"width: got {wrong!r}, expected an integer"):
            starting.size(width=wrong)


BAD = {
    "bandwidth": [0.0, -1.0, np.nan, np.inf, "wide", None, [], [[1.0]], [1.0, 0.0]],
    "bandwidths": [1.0, [], [0.0, 1.0], [1.0, np.inf], [[[1.0]]], "ab", None, [[1.0], [1.0, 2.0]]],
    "metric": [1.0, [1.0], [[]], [[np.nan]], [[np.inf, 1.0]], "ab", [[1.0], [1.0, 2.0]]],
}  # fmt: skip
EXPECTED = {
    "bandwidth": "bandwidth: got .*, expected a number above 0",
    "bandwidths": "bandwidths: got .*, expected numbers above 0, one a head",
    "metric": "metric: got .*, expected a matrix",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_starts(name):
    for start in BAD[name]:
        with pytest.raises(ValueError, match=EXPECTED[name]):
            getattr(starting, name)(start)
