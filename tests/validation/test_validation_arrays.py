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
from attnbook.attention import heads
from attnbook.kernel import gaussian_process, regression
from attnbook.layers import norms

Q, K, V = np.ones((3, 2)), np.ones((7, 2)), np.ones((7, 5))
ANY = np.ones(2)
NEW = object()


def nw(q=Q, k=K, v=V, **how):
    return nadaraya_watson, (q, k, v), how


def loo(k=K, v=V, **how):
    return leave_one_out, (k, v), how


def att(q=Q, k=K, v=V, **how):
    return attend, (q, k, v), how


WIDE, W = np.ones((7, 5)), np.ones((2, 5))
W_Q, W_K, W_V = np.ones((13, 2)), np.ones((13, 5)), np.ones(13)


def gen(q=Q, k=WIDE, weight=W):
    return scores.general, (q, k, weight), {}


def add(w_q=W_Q, w_k=W_K, v=W_V, k=WIDE):
    return scores.additive, (Q, k, w_q, w_k, v), {}


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
    "1-D queries, distance": ((kernels.distance, (np.ones(2), K), {}), "queries: got shape (2,), expected (..., m, d)"),
    "0-D scores": ((softmax, (np.ones(()),), {}), "scores: got shape (), expected (..., n)"),
    "coordinates": (nw(k=np.ones((7, 5))), "keys: got 5 coordinates, expected 2 as in queries"),
    "coordinates, dot": ((scores.dot, (Q, np.ones((7, 5))), {}), "k: got 5 coordinates, expected 2 as in q"),
    "coordinates, Gaussian": (
        (scores.gaussian_score, (Q, np.ones((7, 1))), {}),
        "k: got 1 coordinates, expected 2 as in q",
    ),
    "coordinates, cosine": ((scores.cosine, (Q, np.ones((7, 5))), {}), "k: got 5 coordinates, expected 2 as in q"),
    "1-D q, general": (gen(q=np.ones(2)), "q: got shape (2,), expected (..., m, d)"),
    "1-D k, additive": (add(k=np.ones(5)), "k: got shape (5,), expected (..., n, d)"),
    "no coordinates, general": (gen(k=np.ones((7, 0))), "k: got no coordinates, expected at least one"),
    "leading axes, general": (gen(q=np.ones((11, 3, 2)), k=np.ones((13, 7, 5))), "q, k: got shapes q (11, 3, 2), k (13, 7, 5)"),
    "weight transposed": (gen(weight=np.ones((5, 2))), "weight: got shape (5, 2), expected (2, 5)"),
    "weight of one axis": (gen(weight=np.ones(5)), "weight: got shape (5,), expected (2, 5)"),
    "weight of three axes": (gen(weight=np.ones((1, 2, 5))), "weight: got shape (1, 2, 5), expected (2, 5)"),
    "weight of integers": (gen(weight=np.ones((2, 5), int)), "weight: got dtype"),
    "w_q transposed": (add(w_q=np.ones((2, 13))), "w_q: got shape (2, 13), expected (r, 2)"),
    "w_k of other length": (add(w_k=np.ones((11, 5))), "w_k: got shape (11, 5), expected (13, 5)"),
    "v of other length": (add(v=np.ones(11)), "v: got shape (11,), expected (13,)"),
    "v as a column": (add(v=np.ones((13, 1))), "v: got shape (13, 1), expected (13,)"),
    "no coordinates": (nw(Q[:, :0], K[:, :0]), "keys: got no coordinates, expected at least one"),
    "no coordinates, attend": (att(Q[:, :0], K[:, :0]), "keys: got no coordinates, expected at least one"),
    "rows": (nw(v=np.ones((11, 5))), "values: got 11 rows, expected 7, one per key"),
    "rows, attend": (att(v=np.ones((1, 5))), "values: got 1 rows, expected 7, one per key"),
    "rows, leave-one-out": (loo(v=np.ones((11, 5))), "values: got 11 rows, expected 7, one per key"),
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
    "integer q, cosine": ((scores.cosine, (np.ones((3, 2), int), K), {}), "q: got dtype"),
    "two dtypes, additive": (add(k=np.ones((7, 5), np.float32)), "float64 as in q"),
    "integer scores": ((softmax, (np.ones(3, int),), {}), "scores: got dtype"),
    "two dtypes": (nw(k=np.ones((7, 2), np.float32)), "float64 as in queries"),
    "two dtypes, values": (att(v=np.ones((7, 5), np.float32)), "float64 as in queries"),
    "two dtypes, dot": ((scores.dot, (Q, np.ones((7, 2), np.float32)), {}), "float64 as in q"),
    "mask of numbers": (nw(mask=np.ones((3, 7))), "expected bool, True = may attend"),
    "mask of integers": (att(mask=np.ones((3, 7), int)), "expected bool, True = may attend"),
    "mask of numbers, softmax": ((softmax, (np.ones(7), np.ones(7)), {}), "expected bool"),
    "mask the wrong way round": (nw(mask=np.ones((7, 3), bool)), "mask: got shape (7, 3), expected one that fits (3, 7)"),
    "mask the wrong way round, boxcar": (
        nw(kernel=kernels.boxcar, mask=np.ones((7, 3), bool)),
        "mask: got shape (7, 3), expected one that fits (3, 7)",
    ),
    "mask of numbers, boxcar": (nw(kernel=kernels.boxcar, mask=np.ones((3, 7))), "expected bool, True = may attend"),
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
    "bandwidth string": (nw(bandwidth="0.5"), "bandwidth: got '0.5', expected a number above 0, or 2 of them, one per coordinate"),
    "bandwidth None": (loo(bandwidth=None), "bandwidth: got None, expected a number above 0"),
    "bandwidth complex": (nw(bandwidth=1j), "bandwidth: got 1j, expected a number above 0"),
    "bandwidth True": (nw(bandwidth=True), "bandwidth: got True, expected a number above 0, or 2 of them"),
    "bandwidth list of truths": (loo(bandwidth=[True, 1.0]), "bandwidth: got [True, 1.0], expected a number above 0"),
    "bandwidth array of truths": (nw(bandwidth=np.array([True, True])), "bool, expected a number above 0, or 2 of them"),
    "bandwidth complex array": (nw(bandwidth=np.array([1j, 1.0])), "complex128, expected a number above 0, or 2 of them"),
    "bandwidth words": (nw(bandwidth=["a", "b"]), "bandwidth: got ['a', 'b'], expected a number above 0"),
    "bandwidth list too long": (nw(bandwidth=[1.0, 1.0, 1.0]), "bandwidth: got shape (3,), expected a number above 0, or 2 of them"),
    "bandwidth list too short": (loo(bandwidth=[1.0]), "bandwidth: got shape (1,), expected a number above 0, or 2 of them"),
    "bandwidth too long": (nw(bandwidth=np.ones(5)), "bandwidth: got shape (5,), expected a number above 0, or 2 of them"),
    "bandwidth one per key": (nw(bandwidth=np.ones((7, 1))), "bandwidth: got shape (7, 1), expected a number above 0"),
    "bandwidth, score": ((scores.gaussian_score, (Q, K, 0.0), {}), "bandwidth: got 0.0, expected a number above 0"),
    "bandwidth, distance": ((kernels.distance, (Q, K, np.ones(5)), {}), "bandwidth: got shape (5,)"),
    "causal below 0": ((lambda like: causal_mask(-1, like), (ANY,), {}), "n: got -1, expected an integer, 0 or more"),
    "causal True": ((lambda like: causal_mask(True, like), (ANY,), {}), "n: got True, expected an integer, 0 or more"),
    "heads True": ((lambda x: heads.split_heads(x, True), (K,), {}), "num_heads: got True, expected an integer, 1 or more"),
    "eps None": ((lambda x: norms.layer_norm(x, eps=None), (K,), {}), "eps: got None, expected a number above 0"),
    "eps string": ((lambda x: norms.rms_norm(x, eps="1e-5"), (K,), {}), "eps: got '1e-5', expected a number above 0"),
    "eps infinite": ((lambda x: norms.layer_norm(x, eps=np.inf), (K,), {}), "eps: got inf, expected a number above 0"),
    "causal half": ((lambda like: causal_mask(2.5, like), (ANY,), {}), "n: got 2.5, expected an integer, 0 or more"),
    "padding below 0": ((padding_mask, (np.array([0]), -1), {}), "n: got -1, expected an integer, 0 or more"),
    "padding lengths": ((padding_mask, (np.array([1.0]), 3), {}), "lengths: got dtype"),
    "padding booleans": ((padding_mask, (np.array([True]), 3), {}), "lengths: got dtype"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), SHAPES.values(), ids=SHAPES)
def test_wrong_shapes_and_settings(backend, call, message):
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
    for name in ("dot", "scaled_dot", "gaussian_score", "cosine"):
        with pytest.raises(TypeError, match="q, k: got arrays of"):
            getattr(scores, name)(q, other(K))
    with pytest.raises(TypeError, match="q, weight: got arrays of"):
        scores.general(q, k, other(np.ones((2, 2))))
    with pytest.raises(TypeError, match="q, v: got arrays of"):
        scores.additive(q, k, q, q, other(np.ones(3)))
    with pytest.raises(TypeError, match="keys, values: got arrays of"):
        leave_one_out(k, other(V))
    with pytest.raises(TypeError, match="bandwidth: got arrays of"):
        nadaraya_watson(q, k, v, bandwidth=other(np.ones(2)))
    with pytest.raises(TypeError, match="scores, mask: got arrays of"):
        softmax(q, other(np.ones((3, 2), dtype=bool)))


def test_masked_arrays_are_no_arrays():
    """Their mask would be lost: hand it in as one."""
    hidden = np.ma.masked_array(K, K > 0)
    for call in (
        lambda: nadaraya_watson(Q, hidden, V),
        lambda: attend(Q, hidden, V),
        lambda: leave_one_out(hidden, V),
        lambda: gaussian_process.covariance(K[0], hidden[0], 1.0),
    ):
        with pytest.raises(TypeError, match=r"(keys|z): got a MaskedArray, expected a NumPy"):
            call()


def test_a_numpy_mask_beside_jax_arrays_is_named():
    jnp = pytest.importorskip("jax.numpy")
    arrays = map(jnp.asarray, (Q, K, V))
    message = "queries, mask: got arrays of jax, numpy, expected one library"
    with pytest.raises(TypeError, match=message):
        attend(*arrays, mask=np.ones((3, 7), dtype=bool))


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
        "weight": lambda: scores.general(q, k, odd),
        "w_q": lambda: scores.additive(q, k, odd, q, q[:, 0]),
        "v": lambda: scores.additive(q, k, q, q, odd),
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


def test_a_parameter_of_another_library_is_named_with_what_it_is_for():
    """By the names under which the caller gave them."""
    torch = pytest.importorskip("torch")
    x, three = np.ones((2, 3)), torch.ones(3, dtype=torch.float64)
    square = torch.ones((3, 3), dtype=torch.float64)
    calls = {
        "x, weight": lambda: norms.layer_norm(x, three),
        "x, bias": lambda: norms.layer_norm(x, None, three),
        "x, w_q": lambda: heads.self_attention(x, square, square, square),
        "q, weight": lambda: scores.general(x, x, square),
        "queries, metric": lambda: regression.in_metric(x, x, x, metric=square),
    }
    for names, call in calls.items():
        with pytest.raises(TypeError, match=f"{names}: got arrays of numpy, torch, expected one"):
            call()
