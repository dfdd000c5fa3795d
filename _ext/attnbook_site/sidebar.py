"""The list of pages says how long each chapter takes; static/reading.js says how much is left.

The minutes are those of the chapter's own opening box.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

TAKES = re.compile(r"\*\*It takes\*\* about (\d+) minutes")


def minutes_of(env: BuildEnvironment) -> dict[str, int]:
    """How long each page takes; Sphinx keeps it with the environment for the next build."""
    minutes: dict[str, int] = vars(env).setdefault("attnbook_minutes", {})
    return minutes


def note_minutes(app: Sphinx, docname: str, source: list[str]) -> None:
    """Remember what a page says of its length."""
    if found := TAKES.search(source[0]):
        minutes_of(app.env)[docname] = int(found[1])


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Pages that another process has read."""
    minutes_of(env).update(minutes_of(other))


def with_minutes(entries: str, minutes: dict[str, tuple[str, int]]) -> str:
    """The list of pages, with minutes beside each entry that has an address here."""

    def beside(found: re.Match[str]) -> str:
        page, number = minutes.get(found[2], ("", 0))
        if not page:
            return found[0]
        words = f'<span class="page-minutes" data-page="{escape(page)}" data-minutes="{number}">'
        return f"{found[1]}{words}{number} min</span>"

    return re.sub(r'(<a [^>]*href="([^"]*)"[^>]*>.*?</a>)', beside, entries, flags=re.DOTALL)


def show_minutes(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Let the theme's list of pages say how long each takes."""
    make = context.get("generate_toctree_html")
    if make is None:
        return
    known = minutes_of(app.env)
    here = {
        "#" if name == page else context["pathto"](name): (Path(name).stem, number)
        for name, number in known.items()
        if name in app.env.found_docs
    }

    def make_with_minutes(kind: str, **options: Any) -> Any:
        made = make(kind=kind, **options)
        return with_minutes(str(made), here) if kind == "sidebar" else made

    context["generate_toctree_html"] = make_with_minutes
    context["page_name"] = Path(page).stem if page in known else ""


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    app.connect("source-read", note_minutes)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", show_minutes, priority=950)
