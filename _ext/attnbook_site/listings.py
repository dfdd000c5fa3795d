"""Long lines of code and prints can be broken on a phone, and go on below their own beginning.

So Python's structure stays to be seen; static/content.css has the rest. Prints in columns, and
matrices, stay as they are. What is copied is the code: nothing but ``span`` and ``wbr`` is added.
Names, operators and brackets need no colour, and so no ``span``: half of a chapter's elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

SHORT = 30  # characters that fit any phone
COLUMNS = re.compile(r"\S {2,}[^\s#]|\A *\[\[")
TAG = re.compile(r"<[^>]*>")
PLAIN = re.compile(r'<span class="(?:[nopw]|n[bcfn])">([^<]*)</span>')
OPENING = re.compile(r"[(\[]</span>")


class Listing(HtmlFormatter[str]):
    """Each long line in a ``span`` that knows its indent."""

    def wrap(self, source: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """All lines between the box's own tags."""
        lines = [line for _, line in source]
        texts = [TAG.sub("", line) for line in lines]
        if not COLUMNS.search("".join(texts)):
            lines = [
                long(*pair) if len(pair[1]) > SHORT else pair[0]
                for pair in zip(lines, texts, strict=True)
            ]
        yield from super().wrap((1, PLAIN.sub(r"\1", line)) for line in lines)  # type: ignore[no-untyped-call]


def long(line: str, text: str) -> str:
    """A line of HTML, which is this text, in its span; best broken where a bracket opens."""
    indent = len(text) - len(text.lstrip(" "))
    style = f' style="--indent: {indent}ch"' if indent else ""
    broken = OPENING.sub(r"\g<0><wbr>", line)
    return f'<span class="long"{style}>{broken}</span>'


def setup(app: Sphinx) -> None:
    """All code of the site is written so."""
    PygmentsBridge.html_formatter = Listing  # type: ignore[assignment]
