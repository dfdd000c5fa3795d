"""How many, how wide, how much: as Python's own numbers, or an error that names the argument."""

import math
import re

import numpy as np
import pytest

from attnbook._validation import numbers, options


def test_a_size_is_a_python_integer():
    for given in (1, 3, np.int64(3), np.uint8(3)):
        out = numbers.positive_int(width=given)
        assert type(out) is int
        assert out == given
    for wrong in (0, -3, 2.0, "3", None, True):
        with pytest.raises(
            ValueError, match=f"width: got {wrong!r}, expected an integer, 1 or more"
        ):
            numbers.positive_int(width=wrong)


def test_a_count_has_the_bound_that_its_error_names():
    for least in (0, 1, 5):
        for given in (least, np.int64(least), least + 7):
            out = numbers.nonnegative_int(rows=given, least=least)
            assert type(out) is int
            assert out == given
        for wrong in (least - 1, -3, float(least), str(least), None, True, False):
            message = f"^rows: got {wrong!r}, expected an integer, {least} or more$"
            with pytest.raises(ValueError, match=message):
                numbers.nonnegative_int(rows=wrong, least=least)
    assert numbers.nonnegative_int(rows=0) == 0


def test_pairs_are_an_even_width():
    for given in (2, 10, np.int64(4)):
        out = numbers.even_width(d=given)
        assert type(out) is int
        assert out == given
    for wrong in (0, 1, 3, 11):
        with pytest.raises(ValueError, match=f"d: got a width of {wrong}, expected an even one"):
            numbers.even_width(d=wrong)
    for wrong in (-2, 2.0, "2", None):
        with pytest.raises(ValueError, match=f"d: got {wrong!r}, expected an integer, 1 or more"):
            numbers.even_width(d=wrong)


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


def test_a_share():
    for given in (0, 0.0, 0.3, np.float32(0.5), 0.999):
        out = numbers.probability(dropout=given)
        assert type(out) is float
        assert out == given
    for wrong in (1, 1.0, -0.1, 7, np.inf, np.nan, None, "0.5", True, False):
        with pytest.raises(ValueError, match=f"dropout: got {wrong!r}, expected a share from 0 to"):
            numbers.probability(dropout=wrong)


def test_a_choice():
    for names in (("pre", "post"), ("gelu", "relu", "swiglu")):
        for name in names:
            assert options.one_of(names, kind=name) == name
    for wrong in ("Pre", "", None, 0, "pre, post"):
        with pytest.raises(ValueError, match=f"norm: got {wrong!r}, expected 'pre' or 'post'$"):
            options.one_of(("pre", "post"), norm=wrong)
    with pytest.raises(ValueError, match=r"kind: got 'd', expected 'a', 'b' or 'c'$"):
        options.one_of(("a", "b", "c"), kind="d")


NO_NUMBERS = (None, "0.5", True, np.True_, 1j, [0.5], np.array([0.5]))


def test_how_much_is_a_finite_real_number():
    """None and a string are told as a wrong number is."""
    checks = {
        numbers.positive: ("a number above 0", (0, -1, math.nan, math.inf, -math.inf)),
        numbers.nonnegative: ("0 or more", (-1e-9, math.nan, math.inf)),
        numbers.positive_or_none: ("a number above 0, or None", (0, -1, math.nan, math.inf)),
        numbers.probability: ("a share from 0 to below 1", (-0.1, 1, math.nan, math.inf)),
    }
    for check, (expected, wrong) in checks.items():
        for given in (*wrong, *NO_NUMBERS):
            if check is numbers.positive_or_none and given is None:
                assert check(much=None) is None
                continue
            message = re.escape(f"much: got {given!r}, expected {expected}")
            with pytest.raises(ValueError, match=f"^{message}$"):
                check(much=given)
        for given in (0.5, np.float32(0.5), np.float64(0.5)):
            assert check(much=given) == 0.5
    for given in (1, np.int64(1), np.float32(1)):
        for check in (numbers.positive, numbers.nonnegative):
            out = check(much=given)
            assert type(out) is float
            assert out == 1
    assert numbers.nonnegative(much=0) == 0


def test_a_real_number():
    for given, expected in (
        (3, 3.0),
        (np.float32(0.5), 0.5),
        (np.array(2.0), 2.0),
        (-np.inf, -np.inf),
    ):
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


def test_an_integer_of_either_sign():
    for given in (-3, 0, np.int64(7)):
        out = numbers.integer(start=given)
        assert type(out) is int
        assert out == given
    for wrong in (1.7, "x", None, True):
        with pytest.raises(ValueError, match=f"start: got {wrong!r}, expected an integer$"):
            numbers.integer(start=wrong)


def test_an_integer_between_bounds():
    assert [numbers.int_between(1, 3, end=n) for n in (1, 2, np.int8(3))] == [1, 2, 3]
    for wrong in (0, 4, -1, 1.0, "2", None, True):
        with pytest.raises(ValueError, match=f"end: got {wrong!r}, expected 1 to 3$"):
            numbers.int_between(1, 3, end=wrong)


def test_an_amount_and_a_limit_are_finite():
    for given in (0, 0.3, np.float32(0.5), 7):
        assert numbers.nonnegative(noise=given) == given
    for wrong in (-0.1, np.inf, np.nan, None, "1", True):
        with pytest.raises(ValueError, match=f"noise: got {wrong!r}, expected 0 or more$"):
            numbers.nonnegative(noise=wrong)
    assert numbers.positive_or_none(clip=None) is None
    for wrong in (0, np.inf, np.nan, "1", True):
        with pytest.raises(
            ValueError, match=f"clip: got {wrong!r}, expected a number above 0, or None"
        ):
            numbers.positive_or_none(clip=wrong)


def test_a_part():
    assert numbers.fraction(held_out=0.25) == 0.25
    for wrong in (0, 1, -0.1, 50, np.nan, None, "x", True):
        with pytest.raises(
            ValueError, match=f"held_out: got {wrong!r}, expected a share above 0 and"
        ):
            numbers.fraction(held_out=wrong)
