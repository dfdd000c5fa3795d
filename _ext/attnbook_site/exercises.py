"""Each exercise is one card; ``{exercise-overview}`` lists the exercises of all chapters,
``{documented-checks}`` documents the modules of their checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_design.shared import create_component
from sphinx_exercise.nodes import is_exercise_node, is_solution_node

from attnbook_course import checks
from attnbook_course.checks.exercises import Exercise, exercises

logger = logging.getLogger(__name__)

TOLD = "told-in-"  # begins the class of an exercise that names the section which explains it
NOT_YET = "… "  # begins what a check says of a stub: for the notebook, where its cell has run


def name_builds(app: Sphinx, tree: nodes.document) -> None:
    """Call a build after its chapter, whose number its label has: "Build 8" of build-8-train."""
    for build in tree.findall(is_exercise_node):
        if "build" in build["classes"]:
            build["title"] = f"Build {build['label'].split('-')[1]}"
            build[0][0] = nodes.Text(build["title"])


class ExerciseCards(SphinxPostTransform):
    """Put exercise, cell, hint and solution, which stand one after the other, into one card."""

    default_priority = 195  # titles are resolved; sphinx-design has still to fold hint and solution
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        sections = {
            one for section in self.document.findall(nodes.section) for one in section["ids"]
        }
        for exercise in self.document.findall(is_exercise_node):
            for told in exercise["classes"]:
                if told.startswith(TOLD) and told.removeprefix(TOLD) not in sections:
                    logger.warning("%s is the id of no section", told, location=exercise)
        for solution in list(self.document.findall(is_solution_node)):
            parent, end = solution.parent, solution.parent.index(solution)
            before = [i for i in range(end) if is_exercise_node(parent[i])]
            if not before:
                raise ValueError(f"{self.env.docname}: a solution stands before any exercise")
            parts = [*parent[before[-1] : end], folded(solution)]
            card = nodes.container("", *parts, classes=["exercise-card"])
            parent[before[-1] : end + 1] = [card]
            for output in list(card.findall(nodes.literal_block)):
                if output.astext().startswith(NOT_YET):
                    output.parent.remove(output)


def folded(solution: nodes.Element) -> nodes.container:
    """A solution that folds as its hint does; its card says of which exercise it is."""
    title = nodes.rubric("", "Solution", ids=solution["ids"])
    return create_component(
        "dropdown",
        children=[title, *solution[1:]],
        container_classes=["solution"],
        title_classes=[],
        body_classes=[],
        has_title=True,
        opened=False,
        icon=None,
        chevron="right-down",
    )


def lines(chapter: Path, own: list[Exercise]) -> Iterator[str]:
    """A chapter's list, in Markdown."""
    yield f"## Chapter {int(chapter.name[:2])}"
    yield ""
    minutes = sum(e.minutes for e in own)
    builds = sum(e.is_build for e in own)
    count = f"{'the build and ' if builds else ''}{len(own) - builds} exercises"
    yield f"{{doc}}`/chapters/{chapter.stem}`: {count}, {minutes} minutes."
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
    """The scripts that keep what the reader does, talk about answers, and give and take files."""
    body = context.get("body", "")
    if 'class="exercise' in body or " runs cell-" in body or "progress-file" in body:
        app.add_js_file("progress.js", priority=910)
    if 'class="exercise-card' in body:
        app.add_js_file("answers.js", priority=925)
    if 'class="exercise build' in body or "progress-file" in body:
        app.add_js_file("files.js", priority=930)


def setup(app: Sphinx) -> None:
    """Register the cards and the directives."""
    app.add_post_transform(ExerciseCards)
    app.add_directive("exercise-overview", ExerciseOverview)
    app.add_directive("documented-checks", DocumentedChecks)
    app.connect("doctree-read", name_builds, priority=400)  # before sphinx-exercise takes titles
    app.connect("html-page-context", note_pages)
