"""The exercises of all chapters: ``{exercise-overview}`` lists them, ``{documented-checks}``
documents the modules of their checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attnbook_course import checks
from attnbook_course.checks.exercises import Exercise, exercises


def lines(chapter: Path, own: list[Exercise]) -> Iterator[str]:
    """A chapter's list, in Markdown."""
    yield f"## Chapter {int(chapter.name[:2])}"
    yield ""
    minutes = sum(e.minutes for e in own)
    yield f"{{doc}}`/chapters/{chapter.stem}`: {len(own)} exercises, {minutes} minutes."
    yield ""
    for e in own:
        yield f"- {{ref}}`{e.name} <{e.label}>` · {e.level}, {e.minutes} minutes, {e.kinds}"
    yield ""


class ExerciseOverview(SphinxDirective):
    """Every exercise of every chapter, with level, minutes and kind, as the chapters have them."""

    def run(self) -> list[nodes.Node]:
        """Read the chapters, and let MyST make the lists."""
        text: list[str] = []
        for chapter in sorted((Path(self.env.srcdir) / "chapters").glob("[0-9]*.md")):
            self.env.note_dependency(str(chapter))
            own = list(exercises(chapter))
            if own:
                text += lines(chapter, own)
        found = nodes.Element()
        self.state.nested_parse(StringList(text, "chapters"), self.content_offset, found)
        return found.children


class DocumentedChecks(SphinxDirective):
    """What each check of each chapter asks for, from its docstring."""

    def run(self) -> list[nodes.Node]:
        """Let autodoc read every module."""
        for module in Path(checks.__file__).parent.glob("*.py"):
            self.env.note_dependency(str(module))  # a folder would count as changed each time
        text = ["```{eval-rst}"]
        for chapter in checks.CHAPTERS:
            text += [f".. automodule:: attnbook_course.checks.{chapter}", "   :members:", ""]
        found = nodes.Element()
        self.state.nested_parse(StringList([*text, "```"], "checks"), self.content_offset, found)
        return found.children


def note_pages(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Pages that have or list exercises load the script that keeps the reader's progress."""
    if 'class="exercise' in context.get("body", "") or page == "appendices/exercises":
        app.add_js_file("progress.js", loading_method="defer", priority=910)


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("exercise-overview", ExerciseOverview)
    app.add_directive("documented-checks", DocumentedChecks)
    app.connect("html-page-context", note_pages)
