"""What a fault is, and how a list of them is written."""

from __future__ import annotations

from dataclasses import dataclass

OWN = ""  # the tests of the faults' own module


@dataclass(frozen=True)
class Fault:
    """A bug to plant: where, the text as it is, as it would be wrong, and that in words."""

    module: str
    original: str
    changed: str
    words: str
    backends: str
    tests: tuple[str, ...]  # that must see it; none: those of its module


def faults(
    module: str, backends: str, tests: str, *changes: tuple[str, str, str]
) -> tuple[Fault, ...]:
    """Faults of a module that the same tests see: each in words, as it is, as it would be wrong."""
    seen_by = tuple(tests.split())
    return tuple(
        Fault(module, original, changed, words, backends, seen_by)
        for words, original, changed in changes
    )
