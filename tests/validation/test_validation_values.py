"""Bad input that only the values show, which a transformation may hide."""

import re

import backends
import numpy as np
import pytest
from test_validation_arrays import K, Q, V, loo, nw, of

from attnbook import nadaraya_watson, padding_mask
from attnbook.attention import positions
from attnbook.kernel.regression import multi_head

NAN = np.array([1.0, np.nan])
VALUES = [  # seen from the values: not where a transformation hides them
    (
        nw(q=NAN[None]),
        "queries: got 1 entries of 2 that are NaN or infinite, expected finite numbers",
    ),
    (nw(k=np.full((7, 2), np.inf)), "keys: got 14 entries of 14 that are NaN or infinite"),
    (loo(k=np.full((7, 2), np.nan)), "keys: got 14 entries of 14"),
    (loo(v=np.full((7, 5), np.nan)), "values: got 35 entries of 35 that are NaN or infinite"),
    (nw(v=np.full((7, 5), np.nan)), "values: got 35 entries of 35 that are NaN or infinite"),
    (
        nw(bandwidth=np.array([1.0, 0.0])),
        "expected a number above 0, or 2 of them, one per coordinate",
    ),
    (loo(bandwidth=np.array(-1.0)), "expected a number above 0"),
    (nw(bandwidth=NAN), "bandwidth: got"),
    (nw(bandwidth=[1.0, -1.0]), "bandwidth: got"),
    (
        of(multi_head, Q, K, V, bandwidths=np.ones(2), combination=NAN),
        "combination: got 1 entries of 2 that are NaN or infinite",
    ),
    (of(positions.rotary, Q, np.array([0, np.nan, 2])), "positions: got"),
    (of(positions.rotary, Q, np.array([0, np.inf, 2])), "expected finite numbers"),
    (of(padding_mask, np.array([1, 5]), 3), "lengths: got"),
    (of(padding_mask, np.array([-1]), 3), "expected integers from 0 to n = 3"),
]


@pytest.mark.parametrize(("call", "message"), VALUES)
def test_wrong_values(backend, call, message):
    if backend.name == "jax-jit":
        pytest.skip("under jax.jit the values are not known")
    function, args, how = call
    with pytest.raises(ValueError, match=re.escape(message)):
        backend.call(function, *args, **how)


def test_values_hidden_by_jit_give_nan_and_not_an_error():
    """A bandwidth below 0 inside jax.jit cannot be seen; NaN data stay NaN."""
    backend = backends.load_or_skip("jax-jit")
    out = backend.call(nadaraya_watson, np.full((3, 2), np.nan), K, V)
    assert np.isnan(out).all()
