"""A box for comments below each chapter, by giscus: off until pyproject.toml names where they live.

    [tool.attnbook.comments]  # giscus.app says the two numbers
    repository = "owner/name"
    repository-number = "R_…"
    category = "Announcements"
    category-number = "DIC_…"

Even then a page asks no other host until the reader presses the button (static/comments.js).
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

KINDS = {
    "repository": r"[\w-]+/[\w.-]+",
    "repository-number": r"R_[\w-]+",
    "category": r"\S.*",
    "category-number": r"DIC_[\w-]+",
}
BOX = """
<section class="comments screen-only" id="comments"><h2>Comments</h2>
<p><button type="button" class="run-button"{data}>Show the comments</button>
They lie on GitHub, and giscus.app fetches them. Until you press, neither is asked.</p></section>
"""


def read_comments(root: Path) -> dict[str, str]:
    """Where the comments live; empty where there are none."""
    file = root / "pyproject.toml"
    table = tomllib.loads(file.read_text("utf-8")).get("tool", {}) if file.is_file() else {}
    found: dict[str, str] = table.get("attnbook", {}).get("comments", {})
    if found and set(found) != set(KINDS):
        raise ExtensionError(
            f"pyproject.toml, tool.attnbook.comments: got {', '.join(found)}, "
            f"expected {', '.join(KINDS)}"
        )
    for name, value in found.items():
        if not re.fullmatch(KINDS[name], str(value)):
            raise ExtensionError(
                f"pyproject.toml, tool.attnbook.comments: {name}: got {value!r}, expected "
                f"what matches {KINDS[name]}"
            )
    return found


def note(app: Sphinx, config: Config) -> None:
    """Another place writes the pages again."""
    config.attnbook_comments = read_comments(Path(app.confdir))


def add(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The button, below a chapter."""
    where: dict[str, str] = app.config.attnbook_comments
    if where and page.startswith("chapters/"):
        data = "".join(f' data-{name}="{escape(value)}"' for name, value in where.items())
        context["body"] += BOX.format(data=data)
        app.add_js_file("comments.js", loading_method="defer", priority=910)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.add_config_value("attnbook_comments", {}, "html")
    app.connect("config-inited", note)
    app.connect("html-page-context", add)
