"""A state of fixed size: pieces of a sequence, decays that forget all, keys that come again."""

import backends
import numpy as np
import pytest
from contracts.table import state_loop

from attnbook.linear_attention import affine_scan, chunked, recurrent, weights

BACKENDS = ("numpy", "strict", "torch", "jax-jit")
N, D, P = 7, 5, 3


def in_fours(q, k, v, **how):
    return chunked(q, k, v, chunk=4, **how)


@pytest.fixture
def tokens(rng):
    """Queries, keys of length 1, values, a decay that forgets all in one place, and rates."""
    q, k, v = (rng.normal(size=(N, width)) for width in (D, D, P))
    decay = rng.uniform(0.3, 1, N)
    decay[4] = 0
    return q, k / np.linalg.norm(k, axis=-1, keepdims=True), v, decay, rng.uniform(0, 1, N)


def assert_close(out, expected):
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", [recurrent, in_fours])
def test_a_piece_goes_on_where_the_other_stopped(backend, tokens, rng, form):
    """An empty piece is one as well."""
    names, state = ("q", "k", "v", "decay", "beta"), rng.normal(size=(D, P))
    given = dict(zip(names, tokens, strict=True))
    expected, last = state_loop(**given, state=state)
    for end in (0, 3):
        outputs, now = [], state
        for part in (slice(0, end), slice(end, N)):
            one = {name: a[part] for name, a in given.items()}
            output, now = backend.call(form, **one, state=now)
            outputs.append(output)
        assert_close(np.concatenate(outputs), expected)
        assert_close(now, last)


@pytest.mark.parametrize("form", [recurrent, chunked, in_fours, affine_scan])
def test_products_of_decays_may_vanish(backend, rng, form):
    """0 forgets exactly, products below the smallest number are 0, and nothing is NaN."""
    q, k, v = (np.abs(rng.normal(size=(8, width))) for width in (D, D, P))
    decay = np.array([1, 1e-200, 1e-200, 0, 1, 1e-300, 1, 1])
    expected, last = state_loop(q=q, k=k, v=v, decay=decay)
    outputs, state = backend.call(form, q, k, v, decay=decay)
    assert_close(outputs, expected)
    assert_close(state, last)
    within = backend.call(weights, q, k, decay=decay)
    assert_close(within @ v, expected)
    assert within[2, 0] == 0  # 1e-400
    assert np.all(within[3:, :3] == 0)


def test_delta_forgets_what_is_overwritten(backend):
    """A key that comes again with β = 1 answers with its last value alone."""
    k, v = np.array([[1.0, 0], [0, 1], [1, 0]]), np.array([[5.0], [3], [7]])
    outputs, state = backend.call(recurrent, k, k, v, beta=np.ones(3))
    np.testing.assert_array_equal(outputs, [[5], [3], [7]])
    np.testing.assert_array_equal(state, [[7], [3]])
    np.testing.assert_array_equal(backend.call(weights, k, k, beta=np.ones(3))[2], [0, 0, 1])


@pytest.mark.parametrize("form", [recurrent, in_fours, affine_scan])
def test_slopes_where_a_decay_is_0(tokens, rng, form):
    """Every argument's gradient is the one of the weights."""
    backend, direction = backends.load_or_skip("torch"), rng.normal(size=(N, P))

    def along(form, q, k, v, decay, beta):
        found = form(q, k, v, decay=decay, beta=beta)
        output = found[0] if isinstance(found, tuple) else found
        return (output * backend.array(direction)).sum()

    by_weights = lambda q, k, v, **how: weights(q, k, **how) @ v  # noqa: E731
    slopes, expected = (
        backend.gradient(lambda *a, f=f: along(f, *a), *tokens) for f in (form, by_weights)
    )
    for slope, other in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(slope, other, rtol=0, atol=1e-10)
        assert np.abs(slope).max() > 0.1


@pytest.mark.parametrize("form", [recurrent, chunked])
def test_the_state_of_half_precision_is_float32s(tokens, form):
    backend = backends.load_or_skip("torch")
    given = [backend.cast(backend.array(a), "bfloat16") for a in tokens[:3]]
    outputs, state = form(*given)
    assert (backend.dtype(outputs), backend.dtype(state)) == ("bfloat16", "float32")


@pytest.mark.parametrize("form", [recurrent, chunked, affine_scan])
def test_no_token_changes_nothing(backend, form):
    outputs, state = backend.call(form, np.ones((2, 0, D)), np.ones((0, D)), np.ones((0, P)))
    assert outputs.shape == (2, 0, P)
    np.testing.assert_array_equal(state, np.zeros((2, D, P)))


def test_a_chunk_is_an_integer(tokens):
    for wrong in (0, 2.5):
        with pytest.raises(ValueError, match=f"chunk: got {wrong}, expected an integer, 1 or more"):
            chunked(*tokens[:3], chunk=wrong)
