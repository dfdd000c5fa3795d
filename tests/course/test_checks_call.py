"""How a check reads answers of any form, and what it says of those it cannot read."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from attnbook_course.checks import ch01
from attnbook_course.checks.call import call, call_pair, to_numpy
from attnbook_course.checks.verdict import Wrong, check, expect, show


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "does it end with return"),
        ("2.378", "a str, expected numbers"),
        (np.maximum, "parentheses of a call"),
        ([[1.0, 2.0], [3.0]], "parts differ in length"),
        ([1.0, None], "None in the place of a number"),
        (np.asarray([1 + 1j]), "complex"),
        ({"a": 1}, "a dict, expected numbers"),
    ],
)
def test_what_is_no_array_of_numbers(answer, words):
    with pytest.raises(Wrong, match=words):
        to_numpy(answer)


def test_an_error_names_the_arguments():
    def broken(u):
        return u[7]

    message = ch01.epanechnikov(broken).message
    assert message.endswith("out of bounds for axis 0 with size 2 (u of shape (2, 2))")
    with pytest.raises(ZeroDivisionError) as found:
        call_pair(lambda keys, h: 1 / 0, np.ones((24, 3)), 0.7)
    assert found.value.__notes__ == ["keys of shape (24, 3), h = 0.7"]


@pytest.mark.parametrize("missing", [{"torch"}, {"jax.numpy"}, {"torch", "jax.numpy"}])
def test_an_answer_is_tried_in_the_libraries_that_are_there(monkeypatch, missing):
    """One that refuses everything meets the arrays of each."""
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    seen = []

    def refuse(a):
        seen.append(type(a).__module__.partition(".")[0])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        call(refuse, np.ones(3))
    tried = {"torch": ["torch", "torch"], "jax.numpy": ["jaxlib"]}  # torch in both precisions
    there = [name for library, names in tried.items() if library not in missing for name in names]
    assert seen == ["numpy", *there]


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_each_library_gets_its_own_copy_of_the_arguments(library):
    given, seen = (np.asarray([1.0, 2.0, 3.0]), np.asarray(4.0)), []

    def spoil(a, b):
        seen.append((type(a).__module__.split(".")[0], float(a.sum()), float(b)))
        if hasattr(a, "at"):  # JAX's arrays stay as they are
            assert library == "jax"
            return a + b
        a *= 0
        b -= 1
        if not seen[-1][0] == library:
            raise TypeError("another library's array")
        return a

    call(spoil, *given)
    assert [what for what in seen if what[1:] != (6.0, 4.0)] == []
    assert seen[-1][0].startswith(library)
    assert given[0].tolist() == [1, 2, 3] and given[1] == 4


SQUARE, WIDE = [[1, 2], [3, 4]], np.ones((2, 3))


def told(got, expected, **options):
    @check
    def name(function):
        expect(np.asarray(got, dtype=float), expected, "here,", **options)
        return "yes"

    return name(None).message.removeprefix("name: ")


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        (SQUARE, [[1, 2], [3, 5]], "in entry [1, 1], counted from 0, you give 4, expected 5."),
        ([1, np.nan], [1, 2], "in entry [1], counted from 0, you give nan, expected 2."),
        (-0.41, 0.18, "you give −0.41, expected 0.18."),
        ([1.0], [2.0], "you give 1, expected 2."),
        (10.00001, 10.0003, "you give 10, expected 10.0003."),
        ([1, 2], 3, "you give shape (2,), expected one number."),
        (3, [1, 2], "you give one number, expected shape (2,)."),
        (WIDE, WIDE.T, "you give shape (2, 3), expected (3, 2). Is it transposed?"),
    ],
)
def test_the_first_entry_that_differs_is_named(got, expected, message):
    assert told(got, expected) == f"here, {message}"


def test_an_answer_along_another_axis_hears_it():
    cause = "You sum over the queries."
    said = told([4.0, 6.0, 5.0], [3.0, 7.0], causes=[([4.0, 6.0, 5.0], cause)])
    assert (
        said == f"here, you give shape (3,), expected (2,). {cause}"
    )  # also where its shape is another
    rows = np.asarray([[0.2, 0.8], [0.5, 0.5], [np.nan, np.nan]])
    said = told([[0.2, 0.3], [0.5, 0.1], [0.3, 0.6]], rows)
    assert said.endswith(
        "expected 0.8. Your weights sum to 1 along axis 0; they should along axis 1."
    )
    assert "axis" not in told([[0.2, 0.7], [0.5, 0.1], [0.4, 0.6]], rows)
    assert "axis" not in told([[0.3, 0.7], [0.5, 0.5], [0.4, 0.6]], rows)


def test_a_multiple_of_the_right_answer_hears_that_it_is_one():
    given = {"but_for_a_factor": ("The shape is right.", 0.5), "secret": True}
    words = "you give 2, expected a smaller number. The shape is right."
    assert told([2.0, 4.0], [1.0, 2.0], **given).endswith(words)
    for got, expected in (([2.0, 5.0], [1.0, 2.0]), ([-1.0, -2.0], [1.0, 2.0]), (3.0, 1.0)):
        assert "The shape is right." not in told(got, expected, **given)
    assert "The shape is right." not in told([2.0, np.nan], [1.0, 2.0], **given)


def test_a_secret_is_kept():
    assert told(1.0, 2.0, secret=True) == "here, you give 1, expected a larger number."
    assert told(3.0, 2.0, secret=True) == "here, you give 3, expected a smaller number."


def test_short_numbers():
    shown = " ".join(map(show, (-0.0, 74496.0, -2.0, 1e9, 0.123456, np.inf)))
    assert shown == "0 74496 −2 1e+09 0.1235 inf"
