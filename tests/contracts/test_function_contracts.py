"""What every public function of arrays owes, from its row: oracle, parity, properties, refusals."""

import importlib
import inspect
import pkgutil
import re

import backends
import numpy as np
import pytest
from contracts.table import CAST, DATA, LIBRARIES, ROWS, SHOWN_BESIDE, SIZES, takes_a_layer

import attnbook

EPS = np.finfo("float64").eps
ROOMS = ("attention", "exact", "generate", "kernel", "layers", "linear_attention")


def public_names():
    """By the last module: what has a docstring of its arguments, and what attnbook itself gives."""
    found = {n: getattr(attnbook, n) for n in attnbook.__all__}
    found = {n: f for n, f in found.items() if not inspect.ismodule(f)}
    modules = [importlib.import_module("attnbook.models.losses")]
    for room in ROOMS:
        package = importlib.import_module(f"attnbook.{room}")
        inside = pkgutil.iter_modules(package.__path__, f"attnbook.{room}.")
        modules += [importlib.import_module(module.name) for module in inside]
    for module in modules:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            told = re.search("Args:|Raises:", function.__doc__ or "") or module.__name__.endswith(
                "activations"
            )
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if told and own and function not in found.values() and not takes_a_layer(function):
                found[f"{module.__name__.rsplit('.', 1)[-1]}.{name}"] = function
    return set(found)


def test_every_public_name_has_a_row():
    rows = {name.split(",")[0] for name in ROWS} | set(SHOWN_BESIDE)
    assert public_names() - rows == set()


def cases(*libraries, holds=""):
    return [
        pytest.param(library, row, id=f"{library}-{row.name}")
        for row in ROWS.values()
        for library in libraries
        if library in row.libraries and holds in [*row.holds.split(), ""]
    ]


def call(library, row, arrays):
    return backends.load_or_skip(library).call(row.call, **arrays, **row.fixed)


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


def assert_close(found, expected, row, dtype="float64"):
    """Within the roundings of the row: units of the dtype, of numbers as large as the largest."""
    for ours, right in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert ours.shape == np.shape(right)
        if np.asarray(right).dtype == bool:
            assert ours.dtype == bool
            np.testing.assert_array_equal(ours, right)
            continue
        assert ours.dtype == dtype
        size = max(1.0, np.max(np.abs(right), where=np.isfinite(right), initial=0.0))
        room = row.roundings * np.finfo(dtype).eps * size
        np.testing.assert_allclose(ours, right, rtol=0, atol=room)


@pytest.mark.parametrize(("library", "row"), cases(*LIBRARIES))
def test_equals_the_oracle(library, row):
    """In float64, in each library, its own arrays back; under jax.jit compiled once a row."""
    arrays = row.arrays()
    assert_close(call(library, row, arrays), row.oracle(**arrays), row)


@pytest.mark.parametrize(("library", "row"), cases("numpy", "strict", "torch"))
def test_keeps_single_precision(library, row):
    """Parameters may stay in float64."""
    if not row.floating() or row.name.startswith(("sampling", "speculative", "gaussian_process")):
        pytest.skip("always float64")
    arrays = row.arrays()
    for name in row.floating():
        if row.parsed[name].kind not in CAST:
            arrays[name] = arrays[name].astype("float32")
    expected = row.oracle(
        **{n: a.astype("float64") if a.dtype == "f4" else a for n, a in arrays.items()}
    )
    assert_close(call(library, row, arrays), expected, row, "float32")


HALF = [("numpy", "float16"), ("torch", "float16"), ("torch", "bfloat16")]


@pytest.mark.parametrize(("library", "dtype"), HALF)
@pytest.mark.parametrize(
    "row", [pytest.param(r, id=r.name) for r in ROWS.values() if "half" in r.holds]
)
def test_half_precision_is_computed_in_float32(library, dtype, row):
    """What is wrong in the end is one rounding of the result, and that of a weight."""
    backend = backends.load_or_skip(library)
    given = {
        n: backend.cast(backend.array(a), dtype) if n in row.floating() else backend.array(a)
        for n, a in row.arrays().items()
    }
    wide = {n: backend.cast(a, "float64") if n in row.floating() else a for n, a in given.items()}
    expected = as_tuple(row.oracle(**{n: backend.numpy(a) for n, a in wide.items()}))
    found = as_tuple(row.call(**given, **row.fixed))
    eps = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    for place, (ours, right) in enumerate(zip(found, expected, strict=True)):
        assert place or backend.dtype(ours) == dtype
        ours = backend.numpy(backend.cast(ours, "float64"))
        np.testing.assert_allclose(ours, right, rtol=0, atol=2 * eps * max(1, np.abs(right).max()))


@pytest.mark.parametrize(
    "row", [r for _, r in (c.values for c in cases("torch", holds="slopes"))], ids=lambda r: r.name
)
def test_slopes(row):
    """PyTorch's are those of finite differences, and JAX's, compiled, are PyTorch's."""
    torch, arrays = backends.load_or_skip("torch"), row.arrays()
    names = row.floating()

    def total(backend, *moving, direction):
        given = {n: backend.array(a) for n, a in arrays.items() if n not in names}
        found = row.call(**dict(zip(names, moving, strict=True)), **given, **row.fixed)
        return sum(
            (a * backend.array(w)).sum() for a, w in zip(as_tuple(found), direction, strict=True)
        )

    rng = np.random.default_rng(1)
    direction = [rng.normal(size=np.shape(a)) for a in as_tuple(row.oracle(**arrays))]
    leaves = [arrays[n] for n in names]
    slopes = torch.gradient(lambda *a: total(torch, *a, direction=direction), *leaves)
    plain = backends.load("numpy")
    step = 1e-5
    for i, slope in enumerate(slopes):
        turn = rng.normal(size=leaves[i].shape)
        ahead, behind = (
            total(
                plain,
                *(a + s * turn if j == i else a for j, a in enumerate(leaves)),
                direction=direction,
            )
            for s in (step, -step)
        )
        expected = (ahead - behind) / (2 * step)
        # the rounding of two totals over the step, and the step's square times a third derivative
        assert abs(np.sum(slope * turn) - expected) <= 1e-6 * (1 + abs(expected)), names[i]
        assert np.isfinite(slope).all()
    assert any(np.any(slope != 0) for slope in slopes)
    jax = backends.load_or_skip("jax-jit")
    of_jax = jax.gradient(lambda *a: total(jax, *a, direction=direction), *leaves)
    for ours, right in zip(of_jax, slopes, strict=True):
        size = max(1.0, np.abs(right).max())
        np.testing.assert_allclose(ours, right, rtol=0, atol=8 * row.roundings * EPS * size)


@pytest.mark.parametrize(("library", "row"), cases("numpy", "torch", holds="sums"))
def test_rows_of_weights_sum_to_one(library, row):
    weights = as_tuple(call(library, row, row.arrays()))[-1]
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=0, atol=16 * SIZES["n"] * EPS)


def along(row, axis_letter):
    """The arrays that have the letter among their axes, and at which place from the end."""
    for name, domain in row.parsed.items():
        for place, letter in enumerate(reversed(domain.shape), 1):
            if letter == axis_letter:
                yield name, -place


@pytest.mark.parametrize(("library", "row"), cases("numpy", "torch", "jax-jit", holds="causal"))
def test_no_later_token_counts_at_all(library, row):
    """Exactly the same outputs of earlier tokens; the later ones are others."""
    before, arrays = row.arrays(), row.arrays()
    rng = np.random.default_rng(2)
    for name, axis in along(row, "n"):
        later = np.moveaxis(arrays[name], axis, 0)
        later[4:] = rng.uniform(0.1, 0.9, later[4:].shape)
    one, other = (as_tuple(call(library, row, a))[0] for a in (before, arrays))
    np.testing.assert_array_equal(one[..., :4, :], other[..., :4, :])
    assert (one[..., 4:, :] != other[..., 4:, :]).any(-1).all()


@pytest.mark.parametrize(("library", "row"), cases("numpy", "torch", holds="keys"))
def test_the_order_of_keys_does_not_matter(library, row):
    order = np.random.default_rng(3).permutation(SIZES["n"])
    arrays, moved = row.arrays(), row.arrays()
    for name, axis in along(row, "n"):
        moved[name] = np.take(moved[name], order, axis)
    assert_close(call(library, row, moved), call(library, row, arrays), row)


@pytest.mark.parametrize(("library", "row"), cases("numpy", holds="tokens"))
def test_the_order_of_tokens_is_that_of_the_outputs(library, row):
    letter = "m" if row.name.startswith("norms") else "n"
    order = np.random.default_rng(3).permutation(SIZES[letter])
    arrays, moved = row.arrays(), row.arrays()
    for name, axis in along(row, letter):
        moved[name] = np.take(moved[name], order, axis)
    expected = np.take(as_tuple(call(library, row, arrays))[0], order, -2)
    assert_close(as_tuple(call(library, row, moved))[0], expected, row)


# refusals, from the domains

NUMBERS = {
    "above 0": (0, -1.0, np.nan, np.inf),
    "0 or more": (-1.0, np.nan),
    "integer from 0": (-1, 2.5),
    "integer from 1": (0, -1, 2.5),
    "even": (3, 0),
    "odd": (2, 0, 2.5),
    "divisor of 12": (5, 0, 2.5),
}


def wrong_shapes(row, name):
    """Shapes that the domain of an argument, beside those before it, rules out."""
    domain, before = row.parsed[name], row.parsed.values()
    before = list(before)[: list(row.parsed).index(name)]
    sizes, own = domain.sizes(), len(domain.letters)
    for letter in domain.letters:
        if any(letter in other.shape for other in before):
            yield domain.sizes(**{letter: SIZES[letter] + 1})
    if own > 1 and domain.kind in DATA:
        yield sizes[-1:]
    if domain.kind == "parameter":
        yield (1, *sizes)
    if own and domain.kind in DATA and any(other.sizes()[:1] == (2,) for other in before):
        yield (5, 5, *sizes[-own:])  # beside leading axes (2, ...)


def wrong_arrays(row):
    """An argument, what is wrong with it, what the message says came, and the kind of error."""
    data = [name for name, domain in row.parsed.items() if domain.kind in DATA]
    for name, domain in row.parsed.items():
        good = row.arrays()[name]
        if domain.kind not in ("bandwidth", "rate"):
            yield name, good.tolist(), "list", TypeError
        for shape in wrong_shapes(row, name):
            yield name, np.resize(good, shape), "", ValueError
        if domain.kind in ("bool", "labels", "lengths"):
            yield name, good.astype(float), "float64", ValueError
        elif domain.kind in (*DATA, "parameter"):
            yield name, np.ones(good.shape, int), "int64", ValueError
        if name in data[1:]:
            yield name, good.astype("float32"), "float32", ValueError
        if domain.kind == "bandwidth":
            for wrong in NUMBERS["above 0"]:
                yield name, np.append(good[1:], wrong), "", ValueError
    for name, kind in row.numbers.items():
        for wrong in NUMBERS[kind]:
            yield name, wrong, "", ValueError


REFUSED = [
    pytest.param(row, *case, id=f"{row.name}-{case[0]}-{i}")
    for row in ROWS.values()
    if row.own_names and "," not in row.name
    for i, case in enumerate(wrong_arrays(row))
]


@pytest.mark.parametrize(("row", "name", "wrong", "came", "error"), REFUSED)
def test_what_is_outside_the_domain_is_refused(row, name, wrong, came, error):
    """By name, with what came and what was expected."""
    given = row.arrays() | dict(row.fixed) | {name: wrong}
    named = f"({name}|{row.instead.get(name, name)})"
    with pytest.raises(error, match=rf"\b{named}\b(.|\n)*: got (.|\n)*, expected ") as said:
        row.call(**given)
    assert came in str(said.value)


@pytest.mark.parametrize(
    "row",
    [
        r
        for r in ROWS.values()
        if len(r.parsed) > 1 and r.own_names and "," not in r.name and "torch" in r.libraries
    ],
    ids=lambda r: r.name,
)
def test_libraries_are_not_mixed(row):
    """One argument of PyTorch's beside NumPy's, each in its turn."""
    torch = backends.load_or_skip("torch")
    for name, array in row.arrays().items():
        given = row.arrays() | dict(row.fixed) | {name: torch.array(array)}
        with pytest.raises(TypeError, match=r"got arrays of .*, expected one library") as said:
            row.call(**given)
        assert re.search(rf"\b{name}\b", str(said.value)) or name == next(iter(row.parsed))


@pytest.mark.parametrize(
    "row",
    [r for r in ROWS.values() if r.own_names and "," not in r.name and "jax-jit" in r.libraries],
    ids=lambda r: r.name,
)
def test_shapes_are_refused_under_jit(row):
    """Where the numbers are not known, too."""
    jax = backends.load_or_skip("jax-jit")
    for name in row.parsed:
        named = f"({name}|{row.instead.get(name, name)})"
        for shape in wrong_shapes(row, name):
            wrong = row.arrays() | {name: np.resize(row.arrays()[name], shape)}
            with pytest.raises(ValueError, match=rf"\b{named}\b.*: got "):
                jax.call(row.call, **wrong, **row.fixed)
