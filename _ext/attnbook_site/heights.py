"""Each section says how high it is on a phone, before the phone lays it out (content.css).

tools/section_heights.py measured the heights in heights.json; a section that it has not seen says
nothing, and is laid out with the page.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

STORED = Path(__file__).with_name("heights.json")
NAMES = ("--narrow", "--wide")  # windows up to 480 and up to 600 pixels


def with_heights(body: str, heights: dict[str, list[int]]) -> str:
    """The page with its sections' heights."""
    for section, sides in heights.items():
        style = "; ".join(f"{name}: {height}px" for name, height in zip(NAMES, sides, strict=True))
        opening = re.compile(rf'<section(?=[^>]* id="{re.escape(section)}")(?![^>]* style=)')
        body = opening.sub(f'<section style="{style}"', body, count=1)
    return body


@cache
def stored_heights() -> dict[str, dict[str, list[int]]]:
    """The sections' heights, page by page."""
    heights: dict[str, dict[str, list[int]]] = json.loads(STORED.read_text("utf-8"))
    return heights


def say_heights(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The heights of one page's sections."""
    found = stored_heights().get(page)
    if found and "body" in context:
        context["body"] = with_heights(context["body"], found)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", say_heights, priority=992)  # the body is complete
