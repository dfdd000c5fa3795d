"""What the parts of the extension remember from one step of a build to a later one."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from sphinx.application import Sphinx


class Memory:
    """One build's; each part sets its own before it reads it."""

    began: float  # the time
    sheets: list[str]  # the style sheets of a page, in their order
    search: dict[str, list[Any]]  # each page that was written: its title and its entries


MEMORIES: WeakKeyDictionary[Sphinx, Memory] = WeakKeyDictionary()


def memory(app: Sphinx) -> Memory:
    """The memory of a build."""
    return MEMORIES.setdefault(app, Memory())
