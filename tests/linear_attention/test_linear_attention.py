"""A state of fixed size: token by token, in chunks, by its weights, by a scan, and by a loop."""

import functools

import backends
import numpy as np
import pytest

from attnbook import linear_attention
from attnbook.linear_attention import affine_scan, chunked, recurrent, weights

load = functools.cache(backends.load_or_skip)
KINDS = {"sum": (), "decay": ("decay",), "delta": ("beta",), "gated delta": ("decay", "beta")}
N, D, P = 7, 5, 3
SPACING = {"float16": 2**-10, "bfloat16": 2**-7}  # of the numbers from 1 to 2


def loop(q, k, v, decay=None, beta=None, state=None):
    """One sequence by the definition."""
    s = np.zeros((q.shape[-1], v.shape[-1])) if state is None else np.array(state)
    outputs = []
    for t in range(len(q)):
        s = s if decay is None else decay[t] * s
        u = v[t] if beta is None else beta[t] * (v[t] - s.T @ k[t])
        s = s + np.outer(k[t], u)
        outputs.append(s.T @ q[t])
    return np.array(outputs), s


@pytest.fixture
def tokens(rng):
    """Queries, keys of length 1, values, and a decay that forgets all in one place."""
    q, k, v = (rng.normal(size=(N, width)) for width in (D, D, P))
    decay = rng.uniform(0.3, 1, N)
    decay[4] = 0
    return q, k / np.linalg.norm(k, axis=-1, keepdims=True), v, decay, rng.uniform(0, 1, N)


# JAX uncompiled compiles every operation alone: it has one case, the rest is under jit
@pytest.fixture(params=["numpy", "strict", "torch", "jax-jit"])
def library(request):
    return load(request.param)


@pytest.fixture(params=["torch", "jax-jit"])
def compiled(request):
    return load(request.param)


def rates(tokens, kind):
    return {name: tokens[3 if name == "decay" else 4] for name in KINDS[kind]}


def in_fours(q, k, v, **how):
    return chunked(q, k, v, chunk=4, **how)


def by_weights(q, k, v, **how):
    return weights(q, k, **how) @ v


def assert_close(out, expected, tolerance=1e-12):
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def assert_forms_equal_the_loop(library, qkv, how):
    expected, last = loop(*qkv, **how)
    for form in (recurrent, chunked, in_fours, affine_scan):
        outputs, state = library.call(form, *qkv, **how)
        assert_close(outputs, expected)
        assert_close(state, last)
    return expected


@pytest.mark.parametrize(
    ("library", "kind"),
    [(name, kind) for name in ("numpy", "strict", "torch", "jax-jit") for kind in KINDS]
    + [("jax", "gated delta")],
    indirect=["library"],
)
def test_every_form_equals_the_loop(library, tokens, kind):
    """Outputs and last states; one chunk, chunks that leave a rest, weights, a scan."""
    qkv, how = tokens[:3], rates(tokens, kind)
    expected = assert_forms_equal_the_loop(library, qkv, how)
    assert_close(library.call(by_weights, *qkv, **how), expected)


@pytest.mark.parametrize("form", [recurrent, in_fours])
def test_a_piece_goes_on_where_the_other_stopped(library, tokens, rng, form):
    q, k, v, decay, beta = tokens
    state = rng.normal(size=(D, P))
    expected, last = loop(q, k, v, decay, beta, state)
    for end in (0, 3, N):  # an empty piece is one as well
        outputs, now = [], state
        for part in (slice(0, end), slice(end, N)):
            one = (a[part] for a in (q, k, v))
            output, now = library.call(form, *one, decay=decay[part], beta=beta[part], state=now)
            outputs.append(output)
        assert_close(np.concatenate(outputs), expected)
        assert_close(now, last)


def test_leading_axes_broadcast(library, rng):
    """Queries for each of two rows, keys for each of three heads, rates for both or for one."""
    q, k, v = (rng.normal(size=s) for s in ((2, 1, 6, D), (3, 6, D), (6, P)))
    decay, beta = rng.uniform(0.2, 1, size=(2, 1, 6)), rng.uniform(0, 0.3, size=6)
    state = rng.normal(size=(3, D, P))
    given = {"decay": decay, "beta": beta}
    whole = [
        [loop(q[i, 0], k[j], v, decay[i, 0], beta, state[j]) for j in range(3)] for i in (0, 1)
    ]
    for form in (recurrent, in_fours):
        outputs, last = library.call(form, q, k, v, **given, state=state)
        assert_close(outputs, np.array([[one[0] for one in row] for row in whole]))
        assert_close(last, np.array([[one[1] for one in row] for row in whole]))
    first = [[loop(q[i, 0], k[j], v, decay[i, 0], beta)[0] for j in range(3)] for i in (0, 1)]
    assert_close(library.call(affine_scan, q, k, v, **given)[0], np.array(first))
    assert_close(library.call(by_weights, q, k, v, **given), np.array(first))
    assert library.call(weights, q, k[0]).shape == (2, 1, 6, 6)
    assert library.call(weights, q[0], k[0], decay=decay).shape == (2, 1, 6, 6)


def test_products_of_decays_may_vanish(library, rng):
    """0 forgets exactly, products below the smallest number are 0, and nothing is NaN."""
    q, k, v = (np.abs(rng.normal(size=(8, width))) for width in (D, D, P))
    decay = np.array([1, 1e-200, 1e-200, 0, 1, 1e-300, 1, 1])
    within = library.call(weights, q, k, decay=decay)
    products = np.ones((8, 8))
    for i, j in np.ndindex(8, 8):
        products[i, j] = np.prod(decay[j + 1 : i + 1]) if j <= i else 0
    # q and k are positive: a sum of D products is right to (D + 1) roundings, two sums to twice that
    bound = 2 * (D + 2) * np.finfo(float).eps / 2
    np.testing.assert_allclose(within, (q @ k.T) * products, rtol=bound, atol=0)
    assert within[2, 0] == 0  # 1e-400
    assert np.all(within[3:, :3] == 0)
    assert_forms_equal_the_loop(library, (q, k, v), {"decay": decay})


def test_delta_forgets_what_is_overwritten(library):
    """A key that comes again with β = 1 answers with its last value alone."""
    k = np.array([[1.0, 0], [0, 1], [1, 0]])
    v = np.array([[5.0], [3], [7]])
    outputs, state = library.call(recurrent, k, k, v, beta=np.ones(3))
    np.testing.assert_array_equal(outputs, [[5], [3], [7]])
    np.testing.assert_array_equal(state, [[7], [3]])
    np.testing.assert_array_equal(library.call(weights, k, k, beta=np.ones(3))[2], [0, 0, 1])


@pytest.mark.parametrize("form", [recurrent, in_fours, affine_scan])
def test_slopes_against_the_other_form(compiled, tokens, rng, form):
    """Every argument's gradient is the one of the weights, also where a decay is 0."""
    given = tokens[:5]
    direction = rng.normal(size=(N, P))

    def along(q, k, v, decay, beta, *, form=form):
        found = form(q, k, v, decay=decay, beta=beta)
        output = found[0] if isinstance(found, tuple) else found
        return (output * compiled.array(direction)).sum()

    slopes = compiled.gradient(along, *given)
    expected = compiled.gradient(lambda *a: along(*a, form=by_weights), *given)
    for name, slope, other in zip(("q", "k", "v", "decay", "beta"), slopes, expected, strict=True):
        assert_close(slope, other, 1e-10)
        assert np.abs(slope).max() > 0.1, name


def test_slopes_against_finite_differences(compiled, tokens, rng):
    given, direction = tokens[:5], rng.normal(size=(N, P))

    def along(q, k, v, decay, beta):
        return (in_fours(q, k, v, decay=decay, beta=beta)[0] * direction).sum()

    towards = compiled.array(direction)
    slopes = compiled.gradient(
        lambda q, k, v, a, b: (in_fours(q, k, v, decay=a, beta=b)[0] * towards).sum(), *given
    )
    step = 1e-6
    for number, slope in enumerate(slopes):
        turn = rng.normal(size=slope.shape)
        ahead, behind = (
            along(*(a + s * turn if i == number else a for i, a in enumerate(given)))
            for s in (step, -step)
        )
        assert_close((ahead - behind) / (2 * step), np.sum(slope * turn), 1e-6)


@pytest.mark.parametrize("form", [recurrent, in_fours])
def test_half_precision_is_computed_in_float32(library, tokens, form):
    qkv, how = tokens[:3], rates(tokens, "gated delta")
    for dtype in library.half:
        arrays = [library.cast(library.array(a), dtype) for a in (*qkv, *how.values())]
        outputs, state = form(*arrays[:3], **dict(zip(how, arrays[3:], strict=True)))
        assert library.dtype(outputs) == dtype
        assert library.dtype(state) == "float32"
        wide = [library.cast(a, "float32") for a in arrays]
        expected, last = form(*wide[:3], **dict(zip(how, wide[3:], strict=True)))
        # Two programs: float32 may differ by some units of roundoff, after which the numbers of
        # half precision on both sides of a border are one spacing apart.
        few = 16 * float(np.finfo(np.float32).eps)
        found, right = (
            library.numpy(library.cast(a, "float32"))
            for a in (outputs, library.cast(expected, dtype))
        )
        np.testing.assert_allclose(found, right, rtol=SPACING[dtype], atol=few)
        np.testing.assert_allclose(library.numpy(state), library.numpy(last), rtol=few, atol=few)


def test_float32_stays(library, tokens):
    q, k, v, decay, beta = (a.astype(np.float32) for a in tokens)
    for form in (recurrent, in_fours, affine_scan):
        outputs, state = library.call(form, q, k, v, decay=decay, beta=beta)
        assert outputs.dtype == state.dtype == np.float32
        assert_close(outputs, loop(*map(np.float64, (q, k, v, decay, beta)))[0], 1e-4)


@pytest.mark.parametrize("form", [recurrent, chunked, affine_scan])
def test_no_token_changes_nothing(library, form):
    outputs, state = library.call(form, np.ones((2, 0, D)), np.ones((0, D)), np.ones((0, P)))
    assert outputs.shape == (2, 0, P)
    np.testing.assert_array_equal(state, np.zeros((2, D, P)))


Q, K, V = np.ones((2, 4, 3)), np.ones((2, 4, 3)), np.ones((2, 4, 5))
COLUMN = np.ones((4, 1))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"q": np.ones(3)}, r"q: got shape \(3,\), expected \(..., n, d\)"),
        ({"v": np.ones(4)}, r"v: got shape \(4,\), expected \(..., n, p\)"),
        ({"k": np.ones((2, 4, 2))}, "k: got 2 coordinates, expected 3 as in q"),
        ({"k": np.ones((2, 5, 3))}, "k: got 5 rows, expected 4 as in q, one per token"),
        ({"v": np.ones((2, 5, 5))}, "v: got 5 rows, expected 4 as in q, one per token"),
        ({"k": np.ones((3, 4, 3))}, r"got shapes q \(2, 4, 3\), k \(3, 4, 3\).* that broadcast"),
        ({"decay": COLUMN}, r"decay: got shape \(4, 1\), expected \(..., n\), so \(..., 4\)"),
        ({"beta": np.ones(())}, r"beta: got shape \(\), expected \(..., n\), so \(..., 4\)"),
        ({"beta": np.ones((3, 4))}, r"beta \(3, 4\), expected leading axes that broadcast"),
        ({"state": np.ones((5, 3))}, r"state: got shape \(5, 3\), expected .*so \(..., 3, 5\)"),
        ({"state": np.ones(3)}, r"state: got shape \(3,\), expected"),
        ({"decay": np.ones(4, np.float32)}, "decay: got dtype float32, expected float64"),
        ({"state": np.ones((3, 5), int)}, "state: got dtype int64, expected float64"),
        ({"q": np.ones((2, 4, 3), int)}, "q: got dtype int64, expected a floating one"),
        ({"chunk": 0}, "chunk: got 0, expected an integer, 1 or more"),
        ({"chunk": 2.0}, "chunk: got 2.0, expected an integer, 1 or more"),
    ],
)
def test_bad_input(given, words):
    arguments = {"q": Q, "k": K, "v": V} | given
    with pytest.raises(ValueError, match=words):
        chunked(**arguments)
    others = [] if "chunk" in given else [recurrent]
    others += [] if {"chunk", "state"} & set(given) else [affine_scan]
    for form in others:
        with pytest.raises(ValueError, match=words):
            form(**arguments)
    if affine_scan in others and "v" not in given:
        del arguments["v"]
        with pytest.raises(ValueError, match=words):
            weights(**arguments)


def test_libraries_are_not_mixed():
    torch = pytest.importorskip("torch")
    for name, array in (("v", V), ("decay", np.ones(4)), ("state", np.ones((3, 5)))):
        given = {"q": Q, "k": K, "v": V} | {name: torch.from_numpy(array)}
        with pytest.raises(TypeError, match=r"got arrays of .*, expected one library"):
            linear_attention.recurrent(**given)
    with pytest.raises(TypeError, match="q: got a list"):
        weights([[1.0]], np.ones((1, 1)))


@pytest.mark.parametrize("form", [recurrent, chunked, affine_scan])
def test_vmap_is_the_batch(form, rng):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(rng.normal(size=(2, 5, 4)))
    found = torch.func.vmap(lambda one: form(one, one, one)[0])(x)
    torch.testing.assert_close(found, form(x, x, x)[0])


def test_autocast_rounds_no_state():
    torch = pytest.importorskip("torch")
    q = torch.randn(70, 4, generator=torch.manual_seed(0))
    beta = torch.full((70,), 0.3)
    forms = recurrent, chunked, affine_scan
    expected = [form(q, q, q, beta=beta)[0] for form in forms]
    table = weights(q, q, beta=beta)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = [form(q, q, q, beta=beta)[0] for form in forms]
        same_table = weights(q, q, beta=beta)
    for ours, right in zip([*found, same_table], [*expected, table], strict=True):
        assert torch.equal(ours, right)
