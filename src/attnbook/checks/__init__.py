"""Checks for the exercises, one module a chapter.

A check takes the reader's function, tries it on cases with a known answer and stops at the first
thing that is wrong, with its likely cause. It gives back a Verdict, which a notebook shows.
"""

from attnbook.checks import ch01, ch02, ch03, ch04, ch05, ch06, ch07, ch08, ch09
from attnbook.checks.trial import trial
from attnbook.checks.verdict import Verdict

__all__ = [
    "Verdict",
    "ch01",
    "ch02",
    "ch03",
    "ch04",
    "ch05",
    "ch06",
    "ch07",
    "ch08",
    "ch09",
    "trial",
]
