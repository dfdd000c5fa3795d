"""Each chapter as plain Markdown beside its page, and llms.txt, which lists them for assistants.

They are made of the notebook's cells, in which labels, citations and numbers are words already:
code in fences, what it printed below, a figure as what it shows. Solutions are left out, because
an assistant that is asked for a hint should not have read them; llms.txt says so.
The form of llms.txt, and of the links to it, is that of https://llmstxt.org.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import yaml
from nbformat import NotebookNode
from sphinx.application import Sphinx

from attnbook_course.weaving.freshness import read_stored
from attnbook_course.weaving.notebook import is_setup
from attnbook_course.weaving.stills import PLACE

CHAPTERS = "chapters/"
REWRITTEN = (  # of what weaving makes for notebooks
    (re.compile(r"<details>\n<summary>Solution.*?</details>\n*", re.DOTALL), ""),
    (re.compile(r"<details>\n<summary>(.*?)</summary>"), r"**\1**"),
    (re.compile(r"</details>"), ""),
    (re.compile(r"\]\(([\w/.-]+)\.(?:ipynb|md)\b(#)?(?:cell-id=)?"), r"](\1.html\2"),
    (re.compile(r"\[([^\[\]]*)\]\(\.\./((?:experiments|examples|src)/[^)]*)\)"), r"\1 (`\2`)"),
)


def printed(cell: NotebookNode) -> Iterator[str]:
    """What a cell printed, and its figures in words."""
    shown = (cell.metadata.get("mystnb") or {}).get("image", {}).get("alt")
    for output in cell.outputs:
        data = output.get("data", {})
        live = PLACE.search(data.get("text/html", ""))
        if live:
            yield f"*A live figure, on the page: {unescape(live['title'])}*"
        elif shown and any(kind.startswith("image/") for kind in data):
            yield f"*Figure: {shown}*"
        elif text := (output.get("text") or data.get("text/plain", "")).rstrip():
            yield f"```text\n{text}\n```"


def plain(notebook: NotebookNode) -> str:
    """A notebook as Markdown; its links lead to pages of the site."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and not is_setup(cell):
            parts += [f"```python\n{cell.source}\n```", *printed(cell)]
        elif cell.cell_type == "markdown":
            text = cell.source
            for written, here in REWRITTEN:
                text = written.sub(here, text)
            parts.append(re.sub(r"\n{3,}", "\n\n", text.strip()))
    return "\n\n".join(filter(None, parts)) + "\n"


def link(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Say in a page's head where llms.txt is, and a chapter's own Markdown."""
    to = {"describedby": context["pathto"]("llms.txt", resource=True)}
    if page.startswith(CHAPTERS):
        to["alternate"] = f"{page.rpartition('/')[2]}.md"
    context["plain"] = "\n".join(
        f'<link rel="{kind}" type="text/markdown" href="{place}" />' for kind, place in to.items()
    )


def write(app: Sphinx, error: Exception | None) -> None:
    """The chapters, and the list of them by the parts of the book; other pages may be skipped."""
    if error or app.builder.format != "html":
        return
    site, titles, about = Path(app.outdir), app.env.titles, app.env.metadata
    parts: dict[str, list[tuple[str, str, str]]] = {}
    for part in yaml.safe_load(Path(app.confdir, "_toc.yml").read_text("utf-8"))["parts"]:
        for page in (entry["file"].removesuffix(".md") for entry in part["chapters"]):
            is_chapter = page.startswith(CHAPTERS)
            if is_chapter and (stored := read_stored(Path(app.srcdir) / f"{page}.ipynb")):
                (site / f"{page}.md").write_text(plain(stored), "utf-8")
            place = f"{app.config.html_baseurl}{page}.{'md' if is_chapter else 'html'}"
            line = titles[page].astext(), place, about[page].get("description", "")
            parts.setdefault(part["caption"] if is_chapter else "Optional", []).append(line)
    told = {"project": app.config.project, "parts": parts, **about[app.config.root_doc]}
    (site / "llms.txt").write_text(app.builder.templates.render("llms.txt", told), "utf-8")


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", link)
    app.connect("build-finished", write)
