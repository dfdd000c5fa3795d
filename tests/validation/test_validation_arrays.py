"""Bad input: every error names the argument, what came and what was expected."""

import re
from functools import partial

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


def ones(*shape, dtype=float):
    return np.ones(shape, dtype)


whole, truths, single = (partial(ones, dtype=dtype) for dtype in (int, bool, np.float32))
Q, K, V = ones(3, 2), ones(7, 2), ones(7, 5)
W, W_Q, W_K, W_V = ones(2, 5), ones(13, 2), ones(13, 5), ones(13)
NEW = object()
DISTANCES = (kernels.distance, kernels.squared_distance)
BOXCAR = kernels.boxcar
KERNELS = (kernels.gaussian, BOXCAR, kernels.triangular, kernels.epanechnikov)


def of(function, *args, **how):
    return function, args, how


def nw(q=Q, k=K, v=V, **how):
    return nadaraya_watson, (q, k, v), how


def loo(k=K, v=V, **how):
    return leave_one_out, (k, v), how


def att(q=Q, k=K, v=V, **how):
    return attend, (q, k, v), how


def gen(q=Q, k=V, weight=W):
    return scores.general, (q, k, weight), {}


def add(w_q=W_Q, w_k=W_K, v=W_V, k=V):
    return scores.additive, (Q, k, w_q, w_k, v), {}


def causal(n):
    return partial(causal_mask, n), (ones(2),), {}


APART = "queries (11, 3, 2), keys (13, 7, 2), values (7, 5), expected leading axes that broadcast"
SHAPES = {  # the error, and the calls: seen from shapes and dtypes alone, also under jax.jit
    "queries: got shape (3,), expected (..., m, d): write queries[:, None]": [nw(q=ones(3))],
    "keys: got shape (7,), expected (..., n, d): write keys[:, None]": [nw(k=ones(7))],
    "values: got shape (7,), expected (..., n, p): write values[:, None]": [nw(v=ones(7))],
    "queries: got shape (), expected (..., m, d)": [nw(q=ones())],
    "keys: got shape (7,), expected (..., n, d)": [loo(k=ones(7)), att(k=ones(7))],
    "values: got shape (7,)": [loo(v=ones(7))],
    "q: got shape (2,), expected (..., m, d)": [of(scores.dot, ones(2), K), gen(q=ones(2))],
    "k: got shape (2,), expected (..., n, d)": [of(scores.scaled_dot, Q, ones(2))],
    "keys: got shape (2,), expected (..., n, d)": [of(one, Q, ones(2)) for one in DISTANCES],
    "queries: got shape (2,), expected (..., m, d)": [of(one, ones(2), K) for one in DISTANCES],
    "keys: got 1 coordinates, expected 2 as in queries": [
        att(k=ones(7, 1)),
        *(of(one, Q, V[:, :1]) for one in DISTANCES),
    ],
    "scores: got shape (), expected (..., n)": [of(softmax, ones())],
    "keys: got 5 coordinates, expected 2 as in queries": [nw(k=ones(7, 5))],
    "k: got 5 coordinates, expected 2 as in q": [
        of(scores.dot, Q, ones(7, 5)),
        of(scores.cosine, Q, ones(7, 5)),
    ],
    "k: got 1 coordinates, expected 2 as in q": [of(scores.gaussian_score, Q, ones(7, 1))],
    "k: got shape (5,), expected (..., n, d)": [add(k=ones(5))],
    "k: got no coordinates, expected at least one": [gen(k=ones(7, 0))],
    "q, k: got shapes q (11, 3, 2), k (13, 7, 5), expected leading axes that broadcast": [
        gen(q=ones(11, 3, 2), k=ones(13, 7, 5))
    ],
    "weight: got shape (5, 2), expected (2, 5)": [gen(weight=ones(5, 2))],
    "weight: got shape (5,), expected (2, 5)": [gen(weight=ones(5))],
    "weight: got shape (1, 2, 5), expected (2, 5)": [gen(weight=ones(1, 2, 5))],
    "weight: got dtype": [gen(weight=whole(2, 5))],
    "w_q: got shape (2, 13), expected (r, 2)": [add(w_q=ones(2, 13))],
    "w_k: got shape (11, 5), expected (13, 5)": [add(w_k=ones(11, 5))],
    "v: got shape (11,), expected (13,)": [add(v=ones(11))],
    "v: got shape (13, 1), expected (13,)": [add(v=ones(13, 1))],
    "keys: got no coordinates, expected at least one": [
        nw(Q[:, :0], K[:, :0]),
        att(Q[:, :0], K[:, :0]),
    ],
    "values: got 11 rows, expected 7, one per key": [nw(v=ones(11, 5)), loo(v=ones(11, 5))],
    "values: got 1 rows, expected 7, one per key": [att(v=ones(1, 5))],
    "values: got 5 rows, expected 7, one per key": [att(v=V[:5])],
    "keys: got no rows, expected at least one": [nw(k=K[:0], v=V[:0]), loo(k=K[:0], v=V[:0])],
    f"queries, keys, values: got shapes {APART}": [att(q=ones(11, 3, 2), k=ones(13, 7, 2))],
    "queries: got dtype": [nw(q=whole(3, 2))],
    "keys: got dtype": [nw(k=whole(7, 2))],
    "int64, expected a floating one": [att(v=whole(7, 5)), loo(k=whole(7, 2))],
    "u: got dtype": [of(kernel, whole(3)) for kernel in KERNELS],
    "q: got dtype": [of(scores.dot, whole(3, 2), K), of(scores.cosine, whole(3, 2), K)],
    "float64 as in q": [add(k=single(7, 5)), of(scores.dot, Q, single(7, 2))],
    "scores: got dtype": [of(softmax, whole(3))],
    "float64 as in queries": [nw(k=single(7, 2)), att(v=single(7, 5))],
    "expected bool, True = may attend": [
        nw(mask=ones(3, 7)),
        att(mask=whole(3, 7)),
        nw(kernel=BOXCAR, mask=ones(3, 7)),
    ],
    "expected bool": [of(softmax, ones(7), ones(7))],
    "mask: got shape (7, 3), expected one that fits (3, 7)": [
        att(mask=truths(7, 3)),
        nw(mask=truths(7, 3)),
        nw(kernel=BOXCAR, mask=truths(7, 3)),
    ],
    "mask: got shape (5,), expected one that fits (3, 7)": [att(mask=truths(5))],
    "mask: got shape (3, 7), expected one that fits (1, 7)": [att(q=Q[:1], mask=truths(3, 7))],
    "mask: got shape (), expected one that fits (3, 7)": [att(mask=truths())],
    "mask: got shape (13, 3, 7), expected one that fits (11, 3, 7)": [
        nw(q=ones(11, 3, 2), mask=truths(13, 3, 7))
    ],
    "mask: got shape (5,), expected one that fits (7,)": [of(softmax, ones(7), truths(5))],
    "kernel: got 'gaussian', expected a function such as attnbook.kernels.gaussian": [
        nw(kernel="gaussian")
    ],
    "kernel: got None, expected a function such as attnbook.kernels.gaussian": [loo(kernel=None)],
    "score: got 'dot', expected a function such as attnbook.scores": [att(score="dot")],
    "bool, expected a number above 0, or 2 of them": [nw(bandwidth=np.array([True, True]))],
    "complex128, expected a number above 0, or 2 of them": [nw(bandwidth=np.array([1j, 1.0]))],
    "bandwidth: got shape (5,)": [of(kernels.distance, Q, K, ones(5))],
    "bandwidth: got 0.0, expected a number above 0": [of(scores.gaussian_score, Q, K, 0.0)],
    "n: got -1, expected an integer, 0 or more": [of(padding_mask, np.array([0]), -1), causal(-1)],
    "n: got True, expected an integer, 0 or more": [causal(True)],
    "num_heads: got True, expected an integer, 1 or more": [
        of(partial(heads.split_heads, num_heads=True), K)
    ],
    "eps: got None, expected a number above 0": [of(partial(norms.layer_norm, eps=None), K)],
    "eps: got '1e-5', expected a number above 0": [of(partial(norms.rms_norm, eps="1e-5"), K)],
    "eps: got inf, expected a number above 0": [of(partial(norms.layer_norm, eps=np.inf), K)],
    "n: got 2.5, expected an integer, 0 or more": [causal(2.5)],
    "lengths: got dtype": [
        of(padding_mask, np.array([1.0]), 3),
        of(padding_mask, np.array([True]), 3),
    ],
}


@pytest.mark.parametrize(
    ("call", "message"), [(call, message) for message, calls in SHAPES.items() for call in calls]
)
def test_wrong_shapes_and_settings(backend, call, message):
    function, args, how = call
    with pytest.raises(ValueError, match=re.escape(message)):
        backend.call(function, *args, **how)


@pytest.mark.parametrize("call", [nw, loo])
def test_wrong_bandwidths(backend, call):
    for bandwidth, got in (
        *((0, "0.0"), (np.float64(0), "0.0"), (-0.5, "-0.5"), (np.nan, "nan"), (np.inf, "inf")),
        *(("0.5", "'0.5'"), (None, "None"), (1j, "1j"), (True, "True")),
        *(([True, 1.0], "[True, 1.0]"), (["a", "b"], "['a', 'b']")),
        *(([1.0] * 3, "shape (3,)"), ([1.0], "shape (1,)")),
        *((ones(5), "shape (5,)"), (ones(7, 1), "shape (7, 1)")),
    ):
        function, args, how = call(bandwidth=bandwidth)
        many = "a number above 0, or 2 of them, one per coordinate"
        message = f"bandwidth: got {got}, expected {many}"
        with pytest.raises(ValueError, match=re.escape(message)):
            backend.call(function, *args, **how)


@pytest.fixture
def other(backend):
    """Makes arrays of another library: NumPy's, or the referee's where NumPy is the library."""
    if backend.name != "numpy":
        return np.asarray
    return pytest.importorskip("array_api_strict").asarray


@pytest.mark.parametrize("function", [attend, nadaraya_watson])
@pytest.mark.parametrize("odd", ["queries", "keys", "values", "mask"])
def test_mixed_kinds(backend, other, function, odd):
    arrays = {"queries": Q, "keys": K, "values": V, "mask": truths(3, 7)}
    arrays = {n: other(a) if n == odd else backend.array(a) for n, a in arrays.items()}
    with pytest.raises(TypeError, match=r"got arrays of .*, expected one library"):
        function(arrays["queries"], arrays["keys"], arrays["values"], mask=arrays["mask"])


def test_mixed_kinds_elsewhere(backend, other):
    q, k, v = map(backend.array, (Q, K, V))
    for name in ("dot", "scaled_dot", "gaussian_score", "cosine"):
        with pytest.raises(TypeError, match="q, k: got arrays of"):
            getattr(scores, name)(q, other(K))
    with pytest.raises(TypeError, match="q, weight: got arrays of"):
        scores.general(q, k, other(ones(2, 2)))
    with pytest.raises(TypeError, match="q, v: got arrays of"):
        scores.additive(q, k, q, q, other(ones(3)))
    with pytest.raises(TypeError, match="keys, values: got arrays of"):
        leave_one_out(k, other(V))
    with pytest.raises(TypeError, match="bandwidth: got arrays of"):
        nadaraya_watson(q, k, v, bandwidth=other(ones(2)))
    with pytest.raises(TypeError, match="scores, mask: got arrays of"):
        softmax(q, other(truths(3, 2)))


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
        attend(*arrays, mask=truths(3, 7))


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
        message = f"{name}: got a {came}, expected a NumPy, PyTorch or JAX"
        with pytest.raises(TypeError, match=message):
            call()


def test_a_parameter_of_another_library_is_named_with_what_it_is_for():
    """By the names under which the caller gave them."""
    torch = pytest.importorskip("torch")
    x, three = ones(2, 3), torch.ones(3, dtype=torch.float64)
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
