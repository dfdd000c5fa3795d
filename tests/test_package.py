"""The package as a whole: imports, docstrings, annotations."""

import inspect
import re
import typing
from types import UnionType

import numpy as np
import pytest
from jaxtyping import jaxtyped
from processes import run_python

import attnbook
from attnbook import (
    arguments,
    attention,
    convert,
    datasets,
    devices,
    kernels,
    regression,
    scores,
    training,
)

PUBLIC = {
    f"{module.__name__}.{name}": function
    for module in (attention, convert, datasets, devices, kernels, regression, scores, training)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__ and not name.startswith("_")
}
# formulas with a paper behind them
SOURCED = {
    "attnbook.attention.attend",
    "attnbook.kernels.gaussian",
    "attnbook.kernels.epanechnikov",
    "attnbook.regression.nadaraya_watson",
    "attnbook.regression.in_metric",
    "attnbook.regression.leave_one_out",
    "attnbook.scores.dot",
    "attnbook.scores.scaled_dot",
    "attnbook.scores.general",
    "attnbook.scores.cosine",
    "attnbook.scores.additive",
    "attnbook.datasets.engel",
    "attnbook.datasets.digits",
}
# used inside the package; public by spelling only
INNER = {"attnbook.attention.widen", "attnbook.regression.kernel_weights"}


def test_importing_attnbook_imports_no_back_end():
    printed = run_python(
        "import sys, attnbook, attnbook.datasets, attnbook.devices, attnbook.convert\n"
        "print({'torch', 'jax', 'equinox', 'statsmodels', 'sklearn'} & set(sys.modules))"
    )
    assert printed.strip() == "set()"


@pytest.mark.parametrize("other", ["torch", "jax"])
def test_numpy_needs_no_back_end_at_all(other):
    run_python(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name.split('.')[0] == {other!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import numpy as np, attnbook\n"
        "x = np.ones((3, 2))\n"
        "assert (attnbook.nadaraya_watson(x, x, x) == 1).all()\n"
        "assert (attnbook.attend(x, x, x, mask=attnbook.causal_mask(3, x)) == 1).all()"
    )


def test_version_and_names():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", attnbook.__version__)
    assert attnbook.__all__ == sorted(attnbook.__all__)
    for name in attnbook.__all__:
        assert hasattr(attnbook, name)


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - INNER))
def test_docstring(name):
    """A sentence; Args for every argument, in order; Returns where something comes back."""
    function = PUBLIC[name]
    text = inspect.getdoc(function)
    assert text
    first = text.split("\n\n")[0]
    assert first.endswith((".", "]")), "the first paragraph is a sentence"
    parameters = list(inspect.signature(function).parameters)
    documented = re.findall(r"^    (\w+): ", _section(text, "Args"), flags=re.MULTILINE)
    if len(parameters) > 1 or documented:
        assert documented == parameters
    if name.split(".")[1] in ("attention", "kernels", "regression", "scores"):
        assert _section(text, "Returns")
    assert ("Source: " in text) == (name in SOURCED)


def _section(text, title):
    found = re.search(rf"^{title}:\n((?:    .*\n|\n)*)", text + "\n", flags=re.MULTILINE)
    return found.group(1) if found else ""


Q, K, V, H, U = np.ones((11, 3, 2)), np.ones((7, 2)), np.ones((7, 5)), np.ones(2), np.ones((3, 7))
BOTH = {"return_weights": True}
CALLS = [
    (attention.softmax, (U,), {}),
    (attention.softmax, (U, np.ones(7, bool)), {}),
    (attention.attend, (Q, K, V), {}),
    (attention.attend, (Q, K, V), {"mask": np.ones((3, 7), bool)}),
    (attention.causal_mask, (5, K), {}),
    (attention.padding_mask, (np.array([[1, 2]]), 5), {}),
    (regression.nadaraya_watson, (Q, K, V), {"bandwidth": H}),
    (regression.leave_one_out, (K, V), {"bandwidth": H}),
    (kernels.gaussian, (U,), {}),
    (kernels.boxcar, (U,), {}),
    (kernels.triangular, (U,), {}),
    (kernels.epanechnikov, (U,), {}),
    (kernels.distance, (Q[0], K, H), {}),
    (kernels.squared_distance, (Q[0], K, H), {}),
    (scores.dot, (Q[0], K), {}),
    (scores.scaled_dot, (Q[0], K), {}),
    (scores.gaussian_score, (Q[0], K, H), {}),
    (scores.general, (Q[0], np.ones((7, 5)), np.ones((2, 5))), {}),
    (scores.cosine, (Q[0], K), {}),
    (scores.additive, (Q[0], np.ones((7, 5)), np.ones((13, 2)), np.ones((13, 5)), np.ones(13)), {}),
    (regression.multi_head, (Q, K, V), {"bandwidths": np.ones((3, 2)), "combination": np.ones(3)}),
    (datasets.digit_comparisons, (11,), {"length": 13}),
    (datasets.curve, (U,), {}),
    (datasets.noise_level, (U,), {}),
    (datasets.heteroskedastic, (13,), {}),
    (datasets.engel, (), {}),
]


@pytest.mark.parametrize(("function", "args", "how"), CALLS, ids=[c[0].__name__ for c in CALLS])
def test_annotations_are_true(function, args, how):
    """The shapes in the signature hold, each letter meaning one size throughout a call."""
    hints = typing.get_type_hints(function)
    bound = inspect.signature(function).bind(*args, **how).arguments
    out = function(*args, **how)
    with jaxtyped("context"):
        for name, value in {**bound, "return": out}.items():
            assert fits(value, hints[name]), f"{name}: {np.shape(value)} is no {hints[name]}"


def test_annotations_are_checked():
    """The check above can fail."""
    hints = typing.get_type_hints(scores.dot)
    with jaxtyped("context"):
        assert fits(np.ones((3, 2)), hints["q"])
        assert not fits(np.ones((7, 5)), hints["k"])
        assert not fits(np.ones((7, 2), int), hints["k"])


def fits(value, hint):
    """isinstance for the hints used here: jaxtyping's, unions and tuples of them, and Any."""
    if hint is typing.Any or hint in (int, bool) or typing.get_origin(hint) is typing.Callable:
        return True
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        return any(fits(value, option) for option in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return all(map(fits, value, typing.get_args(hint)))
    return isinstance(value, hint)


def test_py_typed_is_shipped():
    from importlib.resources import files

    assert files("attnbook").joinpath("py.typed").is_file()


def test_known_true_does_not_look_where_it_cannot():
    """Concrete conditions count; hidden ones do not."""
    assert arguments.known_true(np.array(True))
    assert not arguments.known_true(np.array(False))
