"""What code ran on: the page's at its foot, a stored measurement's at the end of its caption."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

MEASURED = re.compile(r"(\d{4}-\d\d-\d\d) (.+ logical cores; .+)\s*")


def on(day: str, machine: str) -> str:
    """A day and a machine in words."""
    then = date.fromisoformat(day)
    return f"on {then.day} {then:%B %Y}, on {machine}"


class MeasuredOn(SphinxPostTransform):
    """Where a cell prints day and machine above its figure, the caption says them."""

    default_priority = 50  # MyST-NB has chosen the outputs
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        for printed in list(self.document.findall(nodes.literal_block)):
            found = MEASURED.fullmatch(printed.astext())
            caption = next(iter(printed.parent.findall(nodes.caption)), None)
            if found and caption is not None:
                caption += nodes.inline("", f" Measured {on(*found.groups())}.")
                printed.parent.remove(printed)


def note_execution(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Tell the footer's template what the page's code ran on; nothing for a page without code."""
    notebook = Path(app.srcdir) / f"{page}.ipynb"
    if notebook.is_file():
        ran = json.loads(notebook.read_text("utf-8"))["metadata"].get("ran")
        if ran:
            context["ran"] = on(ran["date"], ran["machine"])


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.add_post_transform(MeasuredOn)
    app.connect("html-page-context", note_execution)
