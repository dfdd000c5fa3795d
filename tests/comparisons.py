"""What a check holds as data: does each wrong value that it knows hear its own cause?"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import pytest

from attnbook_course.checks import verdict
from attnbook_course.checks.verdict import Wrong, expect


@dataclass(frozen=True)
class Comparison:
    """What a check gave to `expect`, and the lines that led there."""

    lines: tuple[int, ...]
    expected: Any
    where: str
    causes: list[tuple[Any, str] | tuple[Any, str, float]]
    options: dict[str, Any]

    def heard(self, wrong: Any) -> Wrong | None:
        """What is raised for this answer; None if it is as good as the right one."""
        answer = np.asarray(wrong, dtype=float)  # a number stands for an array of it
        answer = answer if answer.ndim else np.full(np.shape(self.expected), answer)
        try:
            expect(answer, self.expected, self.where, self.causes, **self.options)
        except Wrong as said:
            return said
        return None

    def reached(self) -> Iterator[tuple[tuple[Any, ...], bool]]:
        """Each cause's place and words, and whether its own wrong value is told them."""
        for place, (wrong, words, *share) in enumerate(self.causes):
            said = self.heard(wrong)
            told = said if said is not None and said.cause == words else None
            assert all(0 < part <= 1 and (told is None or told.earned >= part) for part in share)
            yield (*self.lines, place, re.sub(r"[−\d.]+", "#", words)), told is not None


def causes_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, check: Any, tried: Callable[[], object]
) -> list[tuple[Any, ...]]:
    """Causes that are named for no wrong value: an earlier one hides them, or they are right.

    Two mistakes that are alike in one case of an exercise need only differ in another.

    Args:
        monkeypatch: records what the check gives to `expect`.
        check: it must find `expect` among the names of its own module.
        tried: calls the check, with a right answer and with those on which a cause may depend.
    """
    found = []

    def kept(
        got: Any, expected: Any, where: str, causes: Iterable[Any] = (), **options: Any
    ) -> None:
        stack, causes = traceback.walk_stack(sys._getframe(1)), list(causes)
        own = takewhile(lambda at: at[0].f_code.co_filename != verdict.__file__, stack)
        lines = tuple(line for _, line in own)
        found.append(Comparison(lines, expected, where, causes, options))
        expect(got, expected, where, causes, **options)

    monkeypatch.setitem(inspect.unwrap(check).__globals__, "expect", kept)
    tried()
    named: dict[tuple[Any, ...], bool] = {}
    for comparison in found:
        for cause, reached in comparison.reached():
            named[cause] = named.get(cause, False) or reached
    return [cause for cause, reached in named.items() if not reached]
