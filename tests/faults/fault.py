"""What a fault is, and how a table of them is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

CHANGE = re.compile("⟦(.*?)→(.*?)⟧", re.DOTALL)


@dataclass(frozen=True)
class Fault:
    """A bug to plant: where, the text as it is, as it would be wrong, and that in words."""

    module: str
    original: str
    changed: str
    words: str
    backends: str
    tests: tuple[str, ...]  # that must see it; none: those of its module


def faults(table: str) -> list[Fault]:
    r"""The faults of a table: a module, its back ends and the tests that see them; then one a line.

        module | back ends | test | test
            words | what stands before ⟦as it is→as it would be wrong⟧ what stands behind

    Without tests they are those of the module. \n is the end of a line of the module. A line that
    begins with eight spaces belongs to the one before.
    """
    found, module, backends, tests = [], "", "", [""]
    for line in table.replace("|\n        ", "| ").replace("\n        ", "").split("\n"):
        if line.startswith("    "):
            words, change = line.strip().replace(r"\n", "\n").split(" | ", maxsplit=1)
            original, changed = (CHANGE.sub(part, change) for part in (r"\1", r"\2"))
            found.append(Fault(module, original, changed, words, backends, tuple(tests)))
        elif line:
            module, backends, *tests = line.split(" | ")
    return found
