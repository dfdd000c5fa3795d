"""A check of mended code says what changed, and where."""

from __future__ import annotations

import numpy as np
import pytest

from attnbook_course.checks.repair import define, repaired
from attnbook_course.checks.verdict import Wrong, check

BROKEN = '''
def average(weights, values):
    """The weighted average, from weights of any sum."""
    total = weights.max()
    parts = weights * values
    return parts.sum() / total
'''


FAULT = "weights.max()"


def test_average(function):
    if not np.isclose(function(np.array([1.0, 3.0]), np.array([0.0, 4.0])), 3):
        raise Wrong("for weights 1 and 3 it is not 3.", "The sum divides.")
    return "Weights are shares of their sum."


@check
def mended_average(function):
    return repaired(function, BROKEN, fault=f"total = {FAULT}", test=test_average)


test_average.__test__ = False


@pytest.mark.parametrize(
    ("old", "new", "status", "heard"),
    [
        ("", "", "not yet", "nothing has changed yet"),
        ("    parts", "    # a remark\n    parts", "not yet", "nothing has changed yet"),
        (FAULT, "weights.sum()", "right", "you found the line. Weights are shares"),
        (FAULT, "float(weights.sum())", "right", "you found the line."),
        (FAULT, "weights.min()", "wrong", "the faulty line, but it is not right yet. For"),
        ("weights * values", "values * values", "wrong", "in another line than you changed. For"),
        ("/ total", "/ weights.sum()", "wrong", "the faulty line still stands"),
        (
            "weights.max()\n    parts = weights * values",
            "weights.sum()\n    parts = values * weights",
            "right",
            "(You also changed “parts = weights * values”, which was right.)",
        ),
    ],
)
def test_each_change_hears_its_own_verdict(old, new, status, heard):
    verdict = mended_average(define(BROKEN.replace(old, new, 1), "average"))
    assert verdict.status == status, verdict
    assert heard in verdict.message
    assert ("For weights" in verdict.message) == (verdict.cause == "The sum divides.")


def test_without_a_source_the_answers_decide():
    names = {}
    exec(BROKEN.replace("max", "sum"), names)
    assert mended_average(names["average"]).status == "right"
    exec(BROKEN, names)
    assert mended_average(names["average"]).message.endswith("it is not 3. The sum divides.")
