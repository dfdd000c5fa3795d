"""Checks for the exercises, one module a chapter.

A check takes the reader's function, tries it on cases with a known answer and stops at the first
thing that is wrong, with its likely cause. A notebook shows its Verdict, a script prints it.
"""

from importlib import import_module
from importlib.resources import files

from attnbook_course.checks.trial import trial
from attnbook_course.checks.verdict import Verdict

CHAPTERS = sorted(
    file.name.removesuffix(".py")
    for file in files(__name__).iterdir()
    if file.name.startswith("ch") and file.name[2:4].isdigit()
)
for _chapter in CHAPTERS:  # checks.ch01, checks.ch02, …
    import_module(f"{__name__}.{_chapter}")

__all__ = ["CHAPTERS", "Verdict", "trial", *CHAPTERS]
