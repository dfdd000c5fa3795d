"""Bad input that only the values show, which a transformation may hide."""

import re

import numpy as np
import pytest
from test_validation_arrays import K, Q, V, loo, nw

from attnbook import nadaraya_watson, padding_mask
from attnbook._validation import tokens as check_tokens
from attnbook.attention import positions
from attnbook.kernel.regression import multi_head


def heads_of(**how):
    return multi_head, (Q, K, V), {"bandwidths": np.array([1.0, 2.0])} | how


VALUES = {  # seen from the values: not where a transformation hides them
    "NaN query": (nw(q=np.array([[1.0, np.nan]])), "queries: got 1 entries of 2 that are NaN or infinite, expected finite numbers"),
    "infinite key": (nw(k=np.full((7, 2), np.inf)), "keys: got 14 entries of 14 that are NaN or infinite"),
    "NaN value": (loo(v=np.full((7, 5), np.nan)), "values: got 35 entries of 35 that are NaN or infinite"),
    "NaN value, at queries": (nw(v=np.full((7, 5), np.nan)), "values: got 35 entries of 35 that are NaN or infinite"),
    "NaN key, leave-one-out": (loo(k=np.full((7, 2), np.nan)), "keys: got 14 entries of 14"),
    "bandwidth array 0": (nw(bandwidth=np.array([1.0, 0.0])), "expected a number above 0, or 2 of them, one per coordinate"),
    "bandwidth array below 0": (loo(bandwidth=np.array(-1.0)), "expected a number above 0"),
    "bandwidth array NaN": (nw(bandwidth=np.array([1.0, np.nan])), "bandwidth: got"),
    "bandwidth list below 0": (nw(bandwidth=[1.0, -1.0]), "bandwidth: got"),
    "NaN combination": (heads_of(combination=np.array([1.0, np.nan])), "combination: got 1 entries of 2 that are NaN or infinite"),
    "NaN position": ((positions.rotary, (np.ones((3, 2)), np.array([0, np.nan, 2])), {}), "positions: got"),
    "infinite position": ((positions.rotary, (np.ones((3, 2)), np.array([0, np.inf, 2])), {}), "expected finite numbers"),
    "padding too long": ((padding_mask, (np.array([1, 5]), 3), {}), "lengths: got"),
    "padding below 0": ((padding_mask, (np.array([-1]), 3), {}), "expected integers from 0 to n = 3"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), VALUES.values(), ids=VALUES)
def test_wrong_values(backend, call, message):
    if backend.name == "jax-jit":
        pytest.skip("under jax.jit the values are not known")
    function, args, how = call
    with pytest.raises(ValueError, match=re.escape(message)):
        backend.call(function, *args, **how)


def test_tokens(backend):
    """From 0 to the size of the vocabulary less one; under jax.jit only the dtype is seen."""

    def check(tokens):
        check_tokens.check_tokens(11, tokens=tokens)
        return tokens

    good = np.array([[0, 10], [3, 7]])
    np.testing.assert_array_equal(backend.call(check, good), good)
    wrong = {"0 to 11": [0, 11], "-1 to 3": [3, -1]} if backend.name != "jax-jit" else {}
    for got, numbers in wrong.items():
        with pytest.raises(ValueError, match=f"tokens: got {got}, expected 0 to 10"):
            backend.call(check, np.array(numbers))
    with pytest.raises(ValueError, match=r"tokens: got dtype .*, expected integers of shape"):
        backend.call(check, np.array([0.0, 1.0]))


def test_values_hidden_by_jit_give_nan_and_not_an_error():
    """A bandwidth below 0 inside jax.jit cannot be seen; NaN data stay NaN."""
    import backends

    if "jax-jit" not in backends.chosen():
        pytest.skip("jax-jit is not among the back ends of this run")
    backend = backends.load("jax-jit")
    out = backend.call(nadaraya_watson, np.full((3, 2), np.nan), K, V)
    assert np.isnan(out).all()
