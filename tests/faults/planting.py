"""What a fault is, and how a list of them is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A bug to plant: where, the text as it is, as it would be wrong, and that in words."""

    module: str
    original: str
    changed: str
    words: str
    backends: str = "numpy"
    tests: tuple[str, ...] = ()


def fault(module: str, words: str, original: str, changed: str, **how: object) -> Fault:
    return Fault(module, original, changed, words, **how)  # type: ignore[arg-type]
