"""What a check says, and how it compares an answer with the right one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import numpy as np

Function = Callable[..., Any]
MOST_WORDS = 2000  # characters of a message, whatever the answer was


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: right, wrong with its likely cause, or not written yet.

    Attributes:
        status: which of the three.
        message: what is said, in at most MOST_WORDS characters.
        earned: the share of the points that a wrong answer has, from 0 to 1.
        cause: the end of the message that says which mistake it looks like; empty if none is known.
    """

    status: Literal["right", "wrong", "not yet"]
    message: str
    earned: float = 0.0
    cause: str = ""

    def __post_init__(self) -> None:
        if len(self.message) > MOST_WORDS:
            object.__setattr__(self, "message", f"{self.message[: MOST_WORDS - 2]} …")

    def __repr__(self) -> str:
        return {"right": "✓ ", "wrong": "✗ ", "not yet": "… "}[self.status] + self.message


class Wrong(Exception):
    """Raised inside a check at the first thing that is wrong.

    Args:
        text: what is wrong.
        cause: which mistake it looks like, where that is known.
        earned: the share of the points that the answer has all the same.
    """

    def __init__(self, text: str, cause: str = "", *, earned: float = 0.0) -> None:
        super().__init__(f"{text} {cause}" if cause else text)
        self.text, self.cause, self.earned = text, cause, earned

    def after(self, text: str) -> Wrong:
        """The same, after this sentence."""
        return Wrong(f"{text} {self.text[:1].upper()}{self.text[1:]}", self.cause)


class NotYet(Exception):
    """Raised inside a check where the reader has not begun; its text says what to do."""


def check(test: Callable[[Function], str]) -> Callable[[Function], Verdict]:
    """Make a check of a test, which gives its praise or raises Wrong; a script's is printed."""

    @wraps(test)
    def run(function: Function) -> Verdict:
        name = test.__name__
        try:
            with np.errstate(all="ignore"):  # 0/0 in an answer is the check's to name
                found = Verdict("right", f"{name}: {test(function)}")
        except Wrong as wrong:
            found = Verdict("wrong", f"{name}: {wrong}", wrong.earned, wrong.cause)
        except NotYet as idle:
            found = Verdict("not yet", f"{name}: {idle}")
        except Exception as error:
            found = Verdict("wrong", f"{name}: your function {describe_error(error)}")
            if not_written(error):
                words = "not written yet. Replace the raise line and run the cell."
                found = Verdict("not yet", f"{name}: {words}")
        if _of_a_script(function):  # which shows no value by itself
            print(found)
        return found

    return run


def _of_a_script(function: Function) -> bool:
    """Whether it is of a file that Python runs, or of python -c; notebooks have neither."""
    main = vars(sys.modules["__main__"])
    is_script = "__file__" in main or sys.argv[:1] == ["-c"]
    return is_script and getattr(function, "__globals__", None) is main


def not_written(error: Exception) -> bool:
    """Whether a stub raised it; with a text it is a library's, for what that cannot do."""
    return isinstance(error, NotImplementedError) and not error.args


def describe_error(error: Exception) -> str:
    """That a function stops with this error, in one line, and for which arguments."""
    text = next(iter(str(error).strip().splitlines()), "")
    case = next(iter(getattr(error, "__notes__", [])), "")
    return f"stops with {type(error).__name__}{text and f': {text}'}{case and f' ({case})'}"


def expect(
    got: np.ndarray,
    expected: Any,
    where: str,
    causes: Iterable[tuple[Any, str] | tuple[Any, str, float]] = (),
    *,
    tolerance: float = 1e-5,
    secret: bool = False,
    earned: float = 0.0,
    but_for_a_factor: tuple[str, float] | None = None,
) -> None:
    """Wrong unless got equals expected; if it equals a known wrong answer, with that one's cause.

    Args:
        got: the reader's answer.
        expected: the right one; NaN equals NaN.
        where: the case, as in "at u = 0.5".
        causes: wrong answers, what leads to each, and where it has points the share of them. Some
            may have another shape than the right one, such as a sum along another axis.
        tolerance: relative to the largest expected value; generous enough for float32.
        secret: do not say what was expected, where that would give a derivation away.
        earned: the share of the points that any wrong answer has here, for the cases before.
        but_for_a_factor: what is said of a multiple of the right answer, and its share.
    """
    expected = np.asarray(expected, dtype=float)
    got = one_number(got, where) if expected.ndim == 0 else got
    scale = tolerance * max(1e-12, float(np.nanmax(np.abs(expected), initial=0)))

    def same(a: Any) -> Any:
        return np.isclose(got, a, rtol=0, atol=scale, equal_nan=True)

    has_shape = got.shape == expected.shape
    if has_shape:
        if np.all(same(expected)):
            return
        at = tuple(int(i) for i in np.argwhere(~same(expected))[0])
        if got.size > 1:
            where = f"{where.rstrip(',')}, in entry {list(at)}, counted from 0,"
        given, wanted = _apart(got[at], expected[at])
        if secret:
            wanted = f"a {'larger' if got[at] < expected[at] else 'smaller'} number"
    else:
        given, wanted = shape_of(got), str(expected.shape) if got.ndim else shape_of(expected)
    words = f"{where} you give {given}, expected {wanted}."
    for wrong, cause, *share in causes:
        if np.shape(wrong) in ((), got.shape) and np.all(same(wrong)):
            raise Wrong(words, cause, earned=max(earned, *share, 0))
    if not has_shape:
        turned = got.ndim > 1 and got.shape == expected.shape[::-1]
        raise Wrong(words, "Is it transposed?" * turned, earned=earned)
    if but_for_a_factor is not None and _is_multiple(got, expected, tolerance):
        cause, part = but_for_a_factor
        raise Wrong(words, cause, earned=max(earned, part))
    raise Wrong(words, _along_another_axis(got, expected), earned=earned)


def _along_another_axis(got: np.ndarray, expected: np.ndarray) -> str:
    """That these weights sum to 1 along another axis than the right ones, if they do."""
    own, right = _axes_of_shares(got), _axes_of_shares(expected)
    if not own or not right or own & right:
        return ""
    return f"Your weights sum to 1 along axis {min(own)}; they should along axis {min(right)}."


def _axes_of_shares(array: np.ndarray) -> set[int]:
    """The axes along which it sums to 1, wherever it is a number."""
    sums = [array.sum(axis) for axis in range(array.ndim)]
    ones = [np.isclose(one, 1, atol=1e-4) for one in sums]
    found = enumerate(zip(sums, ones, strict=True))
    return {axis for axis, (s, one) in found if np.any(one) and np.all(one | np.isnan(s))}


def _is_multiple(got: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether it is the expected array times one number above 0, and not of one number only."""
    along = float(np.sum(got * expected)) / max(1e-300, float(np.sum(expected**2)))
    scale = tolerance * abs(along) * float(np.max(np.abs(expected), initial=0))
    several = np.count_nonzero(expected) > 1
    return bool(several and along > 0 and np.all(np.abs(got - along * expected) <= scale))


def one_number(got: np.ndarray, where: str, hint: str = "") -> np.ndarray:
    """An answer of one number, as an array of shape (); Wrong if there are more, or none."""
    if got.size != 1:
        raise Wrong(f"{where} you give {shape_of(got)}, expected one number.", hint)
    return got.reshape(())


def shape_of(array: np.ndarray) -> str:
    """Its shape, in words where () would say little."""
    return f"shape {array.shape}" if array.ndim else "one number"


def show(value: float, digits: int = 4) -> str:
    """A number, short; a whole one as it is."""
    whole = abs(value) < 1e7 and value == round(value)
    text = f"{value + 0.0:.0f}" if whole else f"{value:.{digits}g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def _apart(a: float, b: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    digits = next((n for n in range(4, 10) if show(a, n) != show(b, n)), 10)
    return show(a, digits), show(b, digits)
