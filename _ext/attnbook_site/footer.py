"""The foot of a page: on which day and machine, and with which libraries, its code ran."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def note_execution(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Tell the footer's template what the page's code ran on; nothing for a page without code."""
    notebook = Path(app.srcdir) / f"{page}.ipynb"
    if notebook.is_file():
        ran = json.loads(notebook.read_text("utf-8"))["metadata"].get("ran")
        if ran:
            day = date.fromisoformat(ran["date"])
            context["ran"] = f"on {day.day} {day:%B %Y}, on {ran['machine']}"


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", note_execution)
