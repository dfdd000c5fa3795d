"""What a score or a kernel that somebody hands in may give."""

import numpy as np
import pytest
from backends import chosen
from library import Library

from attnbook import attend, leave_one_out, nadaraya_watson

Q, K, V = np.ones((3, 2)), np.ones((7, 2)), np.arange(14.0).reshape(7, 2)


def scores_like(change):
    return lambda q, k: change(q @ k.mT)


BAD_SCORES = {
    "a row for all queries": (lambda s: s[:1, :], r"score: gave shape \(1, 7\), expected \(\.\.\., 3, 7\)"),
    "transposed": (lambda s: s.mT, r"score: gave shape \(7, 3\), expected \(\.\.\., 3, 7\)"),
    "one a query": (lambda s: s[:, 0], r"score: gave shape \(3,\), expected \(\.\.\., 3, 7\)"),
    "truths": (lambda s: s > 0, r"score: gave dtype .*bool, expected a floating one"),
}  # fmt: skip


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", BAD_SCORES)
def test_bad_scores(backend, name, weights):
    change, message = BAD_SCORES[name]
    with pytest.raises(ValueError, match=message):
        backend.call(attend, Q, K, V, score=scores_like(change), return_weights=weights)


@pytest.mark.parametrize("given", [0.5, [[1.0] * 7] * 3, None])
def test_a_score_that_gives_no_array(backend, given):
    message = f"score: got a {type(given).__name__}, expected a NumPy, PyTorch or JAX array"
    with pytest.raises(TypeError, match=message):
        backend.call(attend, Q, K, V, score=lambda q, k: given)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_score_of_another_library(name):
    if name not in chosen():
        pytest.skip(f"{name} is not among the back ends of this run")
    backend = Library(name).backend
    with pytest.raises(TypeError, match=r"queries, score: got arrays of .*, expected one library"):
        backend.call(attend, Q, K, V, score=lambda q, k: np.ones((3, 7)))


def test_a_score_of_other_axes_is_let_in(backend):
    """Leading axes that only the scores have, such as a bias a head."""
    bias = np.arange(5 * 3 * 7.0).reshape(5, 3, 7)
    out = backend.call(
        lambda q, k, v, b: attend(q, k, v, score=lambda q, k: q @ k.mT + b), Q, K, V, bias
    )
    assert out.shape == (5, 3, 2)


def test_bad_scores_beside_dropout():
    library = Library("torch")
    layer, x = library.make("MultiHeadAttention", 6, 2, dropout=0.5), np.ones((5, 6))
    with pytest.raises(
        ValueError, match=r"score: gave shape \(2, 1, 5\), expected \(\.\.\., 5, 5\)"
    ):
        library.call(layer, x, score=scores_like(lambda s: s[..., :1, :]), seed=1)


BAD_KERNELS = {
    "a number for all": (lambda u: u.sum(), r"kernel: gave shape \(\), expected \(3, 7\)"),
    "a row for all": (lambda u: u[:1, :], r"kernel: gave shape \(1, 7\), expected \(3, 7\)"),
    "one a query": (lambda u: u[:, :1], r"kernel: gave shape \(3, 1\), expected \(3, 7\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_bad_kernels(backend, name):
    kernel, message = BAD_KERNELS[name]
    if backend.name == "strict" and name == "a number for all":
        pytest.skip("its arrays have no sum")
    with pytest.raises(ValueError, match=message):
        backend.call(nadaraya_watson, Q, K, V, kernel=kernel)


def test_a_kernel_that_gives_no_array(backend):
    with pytest.raises(TypeError, match="kernel: got a float, expected a NumPy, PyTorch or JAX"):
        backend.call(leave_one_out, K, V, kernel=lambda u: 1.0)
