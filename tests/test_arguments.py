"""Bad input: every error names the argument, what came and what was expected."""

import re

import numpy as np
import pytest

from attnbook import (
    attend,
    causal_mask,
    kernels,
    leave_one_out,
    nadaraya_watson,
    padding_mask,
    scores,
    softmax,
)

Q, K, V = np.ones((3, 2)), np.ones((7, 2)), np.ones((7, 5))
ANY = np.ones(2)
NEW = object()


def nw(q=Q, k=K, v=V, **how):
    return nadaraya_watson, (q, k, v), how


def loo(k=K, v=V, **how):
    return leave_one_out, (k, v), how


def att(q=Q, k=K, v=V, **how):
    return attend, (q, k, v), how


SHAPES = {  # seen from the shapes and dtypes alone: also under jax.jit
    "1-D queries": (nw(q=np.ones(3)), "queries: got shape (3,), expected (..., m, d): write queries[:, None]"),
    "1-D keys": (nw(k=np.ones(7)), "keys: got shape (7,), expected (..., n, d): write keys[:, None]"),
    "1-D values": (nw(v=np.ones(7)), "values: got shape (7,), expected (..., n, p): write values[:, None]"),
    "0-D queries": (nw(q=np.ones(())), "queries: got shape (), expected (..., m, d)"),
    "1-D keys, leave-one-out": (loo(k=np.ones(7)), "keys: got shape (7,), expected (..., n, d)"),
    "1-D values, leave-one-out": (loo(v=np.ones(7)), "values: got shape (7,)"),
    "1-D keys, attend": (att(k=np.ones(7)), "keys: got shape (7,), expected (..., n, d)"),
    "1-D q": ((scores.dot, (np.ones(2), K), {}), "q: got shape (2,), expected (..., m, d)"),
    "1-D k": ((scores.scaled_dot, (Q, np.ones(2)), {}), "k: got shape (2,), expected (..., n, d)"),
    "1-D k, distance": ((kernels.distance, (Q, np.ones(2)), {}), "keys: got shape (2,)"),
    "0-D scores": ((softmax, (np.ones(()),), {}), "scores: got shape (), expected (..., n)"),
    "coordinates": (nw(k=np.ones((7, 5))), "keys: got 5 coordinates, expected 2 as in queries"),
    "coordinates, dot": ((scores.dot, (Q, np.ones((7, 5))), {}), "k: got 5 coordinates, expected 2 as in q"),
    "coordinates, Gaussian": (
        (scores.gaussian_score, (Q, np.ones((7, 1))), {}),
        "k: got 1 coordinates, expected 2 as in q",
    ),
    "no coordinates": (nw(Q[:, :0], K[:, :0]), "keys: got no coordinates, expected at least one"),
    "no coordinates, attend": (att(Q[:, :0], K[:, :0]), "keys: got no coordinates, expected at least one"),
    "rows": (nw(v=np.ones((11, 5))), "values: got 11 rows, expected 7, one a key"),
    "rows, attend": (att(v=np.ones((1, 5))), "values: got 1 rows, expected 7, one a key"),
    "rows, leave-one-out": (loo(v=np.ones((11, 5))), "values: got 11 rows, expected 7, one a key"),
    "no keys": (nw(k=K[:0], v=V[:0]), "keys: got no rows, expected at least one"),
    "no keys, leave-one-out": (loo(k=K[:0], v=V[:0]), "keys: got no rows, expected at least one"),
    "leading axes": (
        att(q=np.ones((11, 3, 2)), k=np.ones((13, 7, 2))),
        "queries, keys, values: got shapes queries (11, 3, 2), keys (13, 7, 2), values (7, 5), "
        "expected leading axes that broadcast",
    ),
    "integer queries": (nw(q=np.ones((3, 2), int)), "queries: got dtype"),
    "integer keys": (nw(k=np.ones((7, 2), int)), "keys: got dtype"),
    "integer values": (att(v=np.ones((7, 5), int)), "int64, expected a floating one"),
    "integer keys, leave-one-out": (loo(k=np.ones((7, 2), int)), "int64, expected a floating one"),
    "integer u": ((kernels.gaussian, (np.ones(3, int),), {}), "u: got dtype"),
    "integer u, boxcar": ((kernels.boxcar, (np.ones(3, int),), {}), "u: got dtype"),
    "integer u, triangular": ((kernels.triangular, (np.ones(3, int),), {}), "u: got dtype"),
    "integer u, Epanechnikov": ((kernels.epanechnikov, (np.ones(3, int),), {}), "u: got dtype"),
    "integer q": ((scores.dot, (np.ones((3, 2), int), K), {}), "q: got dtype"),
    "integer scores": ((softmax, (np.ones(3, int),), {}), "scores: got dtype"),
    "two dtypes": (nw(k=np.ones((7, 2), np.float32)), "float64 as in queries"),
    "two dtypes, values": (att(v=np.ones((7, 5), np.float32)), "float64 as in queries"),
    "two dtypes, dot": ((scores.dot, (Q, np.ones((7, 2), np.float32)), {}), "float64 as in q"),
    "mask of numbers": (nw(mask=np.ones((3, 7))), "expected bool, True = may attend"),
    "mask of integers": (att(mask=np.ones((3, 7), int)), "expected bool, True = may attend"),
    "mask of numbers, softmax": ((softmax, (np.ones(7), np.ones(7)), {}), "expected bool"),
    "mask the wrong way round": (nw(mask=np.ones((7, 3), bool)), "mask: got shape (7, 3), expected one that fits (3, 7)"),
    "mask of other length": (att(mask=np.ones(5, bool)), "mask: got shape (5,), expected one that fits (3, 7)"),
    "mask of too many rows": (att(q=Q[:1], mask=np.ones((3, 7), bool)), "mask: got shape (3, 7), expected one that fits (1, 7)"),
    "0-D mask": (att(mask=np.ones((), bool)), "mask: got shape (), expected one that fits (3, 7)"),
    "mask of other batch": (
        nw(q=np.ones((11, 3, 2)), mask=np.ones((13, 3, 7), bool)),
        "mask: got shape (13, 3, 7), expected one that fits (11, 3, 7)",
    ),
    "mask, softmax": ((softmax, (np.ones(7), np.ones(5, bool)), {}), "mask: got shape (5,), expected one that fits (7,)"),
    "kernel by name": (nw(kernel="gaussian"), "kernel: got 'gaussian', expected a function such as attnbook.kernels.gaussian"),
    "no kernel": (loo(kernel=None), "kernel: got None, expected a function such as attnbook.kernels.gaussian"),
    "score by name": (att(score="dot"), "score: got 'dot', expected a function such as attnbook.scores"),
    "bandwidth 0": (nw(bandwidth=0), "bandwidth: got 0.0, expected a number above 0"),
    "bandwidth below 0": (loo(bandwidth=-0.5), "bandwidth: got -0.5, expected a number above 0"),
    "bandwidth NaN": (nw(bandwidth=np.nan), "bandwidth: got nan, expected a number above 0"),
    "bandwidth inf": (nw(bandwidth=np.inf), "bandwidth: got inf, expected a number above 0"),
    "bandwidth NumPy 0": (nw(bandwidth=np.float64(0)), "bandwidth: got 0.0, expected a number above 0"),
    "bandwidth string": (nw(bandwidth="0.5"), "bandwidth: got '0.5', expected a number above 0, or 2 of them, one a coordinate"),
    "bandwidth None": (loo(bandwidth=None), "bandwidth: got None, expected a number above 0"),
    "bandwidth complex": (nw(bandwidth=1j), "bandwidth: got 1j, expected a number above 0"),
    "bandwidth words": (nw(bandwidth=["a", "b"]), "bandwidth: got ['a', 'b'], expected a number above 0"),
    "bandwidth list too long": (nw(bandwidth=[1.0, 1.0, 1.0]), "bandwidth: got shape (3,), expected a number above 0, or 2 of them"),
    "bandwidth list too short": (loo(bandwidth=[1.0]), "bandwidth: got shape (1,), expected a number above 0, or 2 of them"),
    "bandwidth too long": (nw(bandwidth=np.ones(5)), "bandwidth: got shape (5,), expected a number above 0, or 2 of them"),
    "bandwidth one a key": (nw(bandwidth=np.ones((7, 1))), "bandwidth: got shape (7, 1), expected a number above 0"),
    "bandwidth, score": ((scores.gaussian_score, (Q, K, 0.0), {}), "bandwidth: got 0.0, expected a number above 0"),
    "bandwidth, distance": ((kernels.distance, (Q, K, np.ones(5)), {}), "bandwidth: got shape (5,)"),
    "causal below 0": ((lambda like: causal_mask(-1, like), (ANY,), {}), "n: got -1, expected an integer, 0 or more"),
    "causal half": ((lambda like: causal_mask(2.5, like), (ANY,), {}), "n: got 2.5, expected an integer, 0 or more"),
    "padding below 0": ((padding_mask, (np.array([0]), -1), {}), "n: got -1, expected an integer, 0 or more"),
    "padding lengths": ((padding_mask, (np.array([1.0]), 3), {}), "lengths: got dtype"),
    "padding booleans": ((padding_mask, (np.array([True]), 3), {}), "lengths: got dtype"),
}  # fmt: skip

VALUES = {  # seen from the values: not where a transformation hides them
    "NaN query": (nw(q=np.array([[1.0, np.nan]])), "queries: got 1 entries of 2 that are NaN or infinite, expected finite numbers"),
    "infinite key": (nw(k=np.full((7, 2), np.inf)), "keys: got 14 entries of 14 that are NaN or infinite"),
    "NaN value": (loo(v=np.full((7, 5), np.nan)), "values: got 35 entries of 35 that are NaN or infinite"),
    "NaN key, leave-one-out": (loo(k=np.full((7, 2), np.nan)), "keys: got 14 entries of 14"),
    "bandwidth array 0": (nw(bandwidth=np.array([1.0, 0.0])), "expected a number above 0, or 2 of them, one a coordinate"),
    "bandwidth array below 0": (loo(bandwidth=np.array(-1.0)), "expected a number above 0"),
    "bandwidth array NaN": (nw(bandwidth=np.array([1.0, np.nan])), "bandwidth: got"),
    "bandwidth list below 0": (nw(bandwidth=[1.0, -1.0]), "bandwidth: got"),
    "padding too long": ((padding_mask, (np.array([1, 5]), 3), {}), "lengths: got"),
    "padding below 0": ((padding_mask, (np.array([-1]), 3), {}), "expected integers from 0 to n = 3"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), SHAPES.values(), ids=SHAPES)
def test_wrong_shapes_and_settings(backend, call, message):
    function, args, how = call
    with pytest.raises(ValueError, match=re.escape(message)):
        backend.call(function, *args, **how)


@pytest.mark.parametrize(("call", "message"), VALUES.values(), ids=VALUES)
def test_wrong_values(backend, call, message):
    if backend.name == "jax-jit":
        pytest.skip("under jax.jit the values are not known")
    function, args, how = call
    with pytest.raises(ValueError, match=re.escape(message)):
        backend.call(function, *args, **how)


@pytest.mark.parametrize("function", [attend, nadaraya_watson])
@pytest.mark.parametrize("odd", ["queries", "keys", "values", "mask"])
def test_mixed_kinds(backend, function, odd):
    """One argument from another library: NumPy's, or the referee's where NumPy is the library."""
    other = (
        np.asarray if backend.name != "numpy" else pytest.importorskip("array_api_strict").asarray
    )
    arrays = {"queries": Q, "keys": K, "values": V, "mask": np.ones((3, 7), dtype=bool)}
    arrays = {n: other(a) if n == odd else backend.array(a) for n, a in arrays.items()}
    with pytest.raises(TypeError, match=r"got arrays of .*, expected one library"):
        function(arrays["queries"], arrays["keys"], arrays["values"], mask=arrays["mask"])


def test_mixed_kinds_elsewhere(backend):
    other = (
        np.asarray if backend.name != "numpy" else pytest.importorskip("array_api_strict").asarray
    )
    q, k, v = map(backend.array, (Q, K, V))
    for name in ("dot", "scaled_dot", "gaussian_score"):
        with pytest.raises(TypeError, match="q, k: got arrays of"):
            getattr(scores, name)(q, other(K))
    with pytest.raises(TypeError, match="keys, values: got arrays of"):
        leave_one_out(k, other(V))
    with pytest.raises(TypeError, match="bandwidth: got arrays of"):
        nadaraya_watson(q, k, v, bandwidth=other(np.ones(2)))
    with pytest.raises(TypeError, match="scores, mask: got arrays of"):
        softmax(q, other(np.ones((3, 2), dtype=bool)))


@pytest.mark.parametrize(
    "odd", [[[1.0, 2.0]], 1.0, None, "abc"], ids=["list", "number", "None", "string"]
)
def test_what_is_no_array(backend, odd):
    q, k, v = map(backend.array, (Q, K, V))
    kind = type(odd).__name__
    for name, call in {
        "queries": lambda: nadaraya_watson(odd, k, v),
        "keys": lambda: attend(q, odd, v),
        "values": lambda: leave_one_out(k, odd),
        "mask": lambda: attend(q, k, v, mask=odd if odd is not None else NEW),
        "q": lambda: scores.dot(odd, k),
        "k": lambda: scores.gaussian_score(q, odd),
        "u": lambda: kernels.gaussian(odd),
        "scores": lambda: softmax(odd),
        "like": lambda: causal_mask(3, like=odd),
        "lengths": lambda: padding_mask(odd, 3),
    }.items():
        came = "object" if name == "mask" and odd is None else kind
        with pytest.raises(
            TypeError, match=f"{name}: got a {came}, expected a NumPy, PyTorch or JAX"
        ):
            call()


def test_values_hidden_by_jit_give_nan_and_not_an_error():
    """A bandwidth below 0 inside jax.jit cannot be seen; NaN data stay NaN."""
    import backends

    if "jax-jit" not in backends.chosen():
        pytest.skip("jax-jit is not among the back ends of this run")
    backend = backends.load("jax-jit")
    out = backend.call(nadaraya_watson, np.full((3, 2), np.nan), K, V)
    assert np.isnan(out).all()
