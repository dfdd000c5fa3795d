"""A first look at an answer that only the lecturer's check can judge."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import Function, Verdict, check, shape_of, show

SHOWN = 6


def trial(function: Function, *arguments: Any) -> Verdict:
    """What a function gives for these arguments; whether that is right, homework says later."""
    given: list[np.ndarray] = []

    def first_look(own: Function) -> str:
        given.append(call(own, *arguments))
        return ""

    first_look.__name__ = getattr(function, "__name__", "your function")
    verdict = check(first_look)(function)
    if not given:
        return verdict
    numbers = ", ".join(show(one) for one in given[0].ravel()[:SHOWN])
    more = ", …" if given[0].size > SHOWN else ""
    form = "" if given[0].ndim == 0 else f", of shape {shape_of(given[0]).removeprefix('shape ')}"
    words = f"it gives {numbers}{more}{form}. Your lecturer's check says whether that is right."
    return Verdict("not yet", f"{first_look.__name__}: {words}")
