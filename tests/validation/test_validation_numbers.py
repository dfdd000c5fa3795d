"""How many, how wide, how much: as Python's own numbers, or an error that names the argument."""

import math
import re
from functools import partial

import numpy as np
import pytest

from attnbook._validation import numbers, options

INTEGERS = [  # a check, what it takes, what it refuses besides what is no integer, and the words
    (numbers.integer, (-3, 0, np.int64(7)), (1.7,), "an integer"),
    (numbers.positive_int, (1, 3, np.int64(3), np.uint8(3)), (0, -3), "an integer, 1 or more"),
    (numbers.nonnegative_int, (0, np.int64(0), 7), (-1, -3), "an integer, 0 or more"),
    (partial(numbers.nonnegative_int, least=1), (1, np.int64(1), 8), (0,), "an integer, 1 or more"),
    (
        partial(numbers.nonnegative_int, least=5),
        (5, np.int64(5), 12),
        (4,),
        "an integer, 5 or more",
    ),
    (partial(numbers.int_between, 1, 3), (1, 2, np.int8(3)), (0, 4, -1), "1 to 3"),
    (numbers.even_width, (2, 10, np.int64(4)), (-2,), "an integer, 1 or more"),
    (numbers.even, (2, 22, np.int64(4)), (0, -2), "an integer, 1 or more"),
]


@pytest.mark.parametrize(("check", "good", "wrong", "expected"), INTEGERS)
def test_an_integer(check, good, wrong, expected):
    for given in good:
        out = check(width=given)
        assert type(out) is int
        assert out == given
    for given in (*wrong, float(good[0]), str(good[0]), "x", None, True, False):
        with pytest.raises(ValueError, match=f"^width: got {given!r}, expected {expected}$"):
            check(width=given)


def test_pairs_and_halves_are_an_even_width():
    for wrong in (0, 1, 3, 11):
        with pytest.raises(ValueError, match=f"d: got a width of {wrong}, expected an even one"):
            numbers.even_width(d=wrong)
    for odd in (1, 3, 21):
        with pytest.raises(ValueError, match=f"width: got {odd}, expected an even number"):
            numbers.even(width=odd)


def test_parts_of_a_width():
    for count, each in ((1, 12), (3, 4), (12, 1), (np.int64(4), 3)):
        out = numbers.divided(12, heads=count)
        assert type(out) is int
        assert out == each
    for wrong in (5, 24):
        message = f"heads: got {wrong}, expected a divisor of 12, the width"
        with pytest.raises(ValueError, match=message):
            numbers.divided(12, heads=wrong)
    for wrong in (0, -3, 3.0, "3", None, True):
        with pytest.raises(ValueError, match=f"heads: got {wrong!r}, expected an integer"):
            numbers.divided(12, heads=wrong)


def test_a_choice():
    for names in (("pre", "post"), ("gelu", "relu", "swiglu")):
        for name in names:
            assert options.one_of(names, kind=name) == name
    for wrong in ("Pre", "", None, 0, "pre, post"):
        with pytest.raises(ValueError, match=f"norm: got {wrong!r}, expected 'pre' or 'post'$"):
            options.one_of(("pre", "post"), norm=wrong)
    with pytest.raises(ValueError, match=r"kind: got 'd', expected 'a', 'b' or 'c'$"):
        options.one_of(("a", "b", "c"), kind="d")


NO_NUMBERS = ("0.5", True, False, np.True_, 1j, [0.5], np.array([0.5]), math.nan, math.inf)
AMOUNTS = [  # a check, what it takes besides 0.5, what it refuses, and the words
    (numbers.positive, (1, np.int64(1), 7), (None, 0, -1, -math.inf), "a number above 0"),
    (numbers.positive_or_none, (1, None), (0, -1, -math.inf), "a number above 0, or None"),
    (numbers.nonnegative, (0, 1, np.int64(1), 7), (None, -0.1, -1e-9), "0 or more"),
    (numbers.probability, (0, 0.0, 0.999), (None, -0.1, 1, 1.0, 7), "a share from 0 to below 1"),
    (numbers.fraction, (0.25,), (None, 0, 1, -0.1, 50), "a share above 0 and below 1"),
]


@pytest.mark.parametrize(("check", "good", "wrong", "expected"), AMOUNTS)
def test_how_much_is_a_finite_real_number(check, good, wrong, expected):
    """None and a string are told as a wrong number is."""
    for given in (*good, 0.5, np.float32(0.5), np.float64(0.5)):
        out = check(much=given)
        assert out == given
        assert type(out) is (type(given) if check is numbers.positive_or_none else float)
    for given in (*wrong, *NO_NUMBERS):
        message = re.escape(f"much: got {given!r}, expected {expected}")
        with pytest.raises(ValueError, match=f"^{message}$"):
            check(much=given)


def test_a_real_number():
    for given, expected in (3, 3), (np.float32(0.5), 0.5), (np.array(2.0), 2), (-np.inf, -np.inf):
        out = numbers.real(given)
        assert type(out) is float
        assert out == expected
    for wrong in (None, "3", b"3", True, np.True_, 1j, [1.0], np.array([1.0])):
        assert numbers.real(wrong) is None
        assert not numbers.is_such(wrong, lambda x: True)
    assert np.isnan(numbers.real(np.nan))
    assert numbers.is_such(np.nan, math.isnan)


def test_a_flag():
    for given in (True, False, np.True_, np.False_):
        out = options.flag(bias=given)
        assert type(out) is bool
        assert out == given
    for wrong in ("no", 1, 0, None, np.array([True])):
        with pytest.raises(ValueError, match=r"bias: got .*, expected True or False$"):
            options.flag(bias=wrong)
