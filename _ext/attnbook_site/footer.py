"""The foot of a page: on which day and machine, and with which libraries, its code ran."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def day(iso: str) -> str:
    """A date such as 2026-11-21 as "21 November 2026"."""
    found = date.fromisoformat(iso)
    return f"{found.day} {found:%B %Y}"


def stored(notebook: Path) -> str:
    """What an executed notebook says of its last execution; empty if it says nothing."""
    ran = json.loads(notebook.read_text(encoding="utf-8")).get("metadata", {}).get("ran")
    return f"on {day(ran['date'])}, on {ran['machine']}" if ran else ""


def note_execution(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Tell the footer's template what the page's code ran on; nothing for a page without code."""
    notebook = Path(app.srcdir) / f"{page}.ipynb"
    if notebook.is_file():
        context["ran"] = stored(notebook)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", note_execution)
