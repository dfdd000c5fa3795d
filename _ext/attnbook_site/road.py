"""The road on the site: what is deeper folds, each page says its minutes, ``{road}`` lists them.

A section whose heading begins with "Deeper: " keeps its ids, its numbers and its place in the
contents; its text lies in a ``<details>`` whose summary is the heading. static/road.js remembers
where on the road a reader was.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from attnbook_course.road import DEEPER, ROAD, TOLD, minutes
from attnbook_course.weaving.book import INTERLUDE

ENTRY = re.compile(r"- (?P<page>[\w/-]+): (?P<text>\S.*)", re.DOTALL)


def mark_titles(app: Sphinx, document: nodes.document) -> None:
    """Set "Deeper:" apart in a page's headings and in its contents."""
    for title in [*document.findall(nodes.title), app.env.tocs[app.env.docname]]:
        for text in list(title.findall(nodes.Text)):
            if text.startswith(DEEPER):
                word = DEEPER.rstrip()
                mark = nodes.inline("", word, classes=["deeper-mark"])
                text.parent.replace(text, [mark, nodes.Text(text.removeprefix(word))])


def fold(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Fold what is deeper; the search has read it by now."""
    for section in list(tree.findall(nodes.section)):
        if app.builder.format == "html" and section[0].astext().startswith(DEEPER):
            body = nodes.container("", *section[1:], is_div=True, classes=["deeper-body"])
            start = nodes.raw("", '<details class="deeper"><summary>', format="html")
            middle = nodes.raw("", "</summary>", format="html")
            end = nodes.raw("", "</details>", format="html")
            section[:] = [start, section[0], middle, body, end]


def in_words(reading: int, building: int) -> str:
    """34 minutes, and 40 to build."""
    return f"{reading} minutes" + (f", and {building} to build" if building else "")


def in_hours(length: int) -> str:
    """1 hour and 20 minutes."""
    hours, rest = divmod(length, 60)
    return f"{hours} hour{'s' * (hours != 1)} and {rest} minute{'s' * (rest != 1)}"


def number_interlude(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """In a chapter without a number figures are I.1, I.2, as weaving has them; no other counts."""
    seen: Counter[str] = Counter()
    for page, kinds in env.toc_fignumbers.items():  # in the order of the book
        for kind, numbers in kinds.items():
            for name, number in numbers.items():
                if len(number) == 1 and page.startswith("chapters/"):
                    seen[kind] += 1
                    numbers[name] = cast(tuple[int, ...], (INTERLUDE, seen[kind]))
                elif len(number) == 1:
                    numbers[name] = (number[0] - seen[kind],)
    return []


class Road(SphinxDirective):
    """The pages of the road, each with its minutes and a line on what one has afterwards.

    A line of the body is ``- chapters/01-kernel-regression: You have …``
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """A list, and below it the sum."""
        found, reading, building = nodes.bullet_list(classes=["road"]), 0, 0
        for entry in re.split(r"\n(?=- )", "\n".join(self.content).strip()):
            match = ENTRY.fullmatch(entry)
            source = Path(self.env.srcdir) / f"{match['page'] if match else ''}.md"
            if match is None or not source.is_file():
                raise self.error(
                    f"a line of {{road}} is {entry!r}; expected '- chapters/name: what one has "
                    "then', with the name of a page"
                )
            self.env.note_dependency(str(source))
            time, name = minutes(source), Path(match["page"]).name
            reading, building = reading + time.road, building + time.build
            title, text = self.parsed(f"{{doc}}`/{match['page']}`"), self.parsed(match["text"])
            number = name[:2].lstrip("0") if name[0].isdigit() else ""
            title.insert(0, nodes.inline("", number, classes=["road-number"]))
            title += nodes.inline("", in_words(time.road, time.build), classes=["road-minutes"])
            classes = [] if name in TOLD else ["not-yet-retold"]
            found += nodes.list_item("", title, text, classes=classes)
        more = f", and {in_hours(building)} to build" if building else ""
        total = nodes.paragraph("", f"In all {in_hours(reading)}{more}.", classes=["road-total"])
        return [found, total]

    def parsed(self, text: str) -> nodes.Element:
        """A paragraph of Markdown."""
        found = nodes.Element()
        self.state.nested_parse(StringList([text], "road"), self.content_offset, found)
        (paragraph,) = found.children
        assert isinstance(paragraph, nodes.Element)
        return paragraph


def show(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Say a page's minutes below its title; pages on the road, and those that list it, remember."""
    folder, _, name = page.partition("/")
    body, is_on_road = context.get("body", ""), folder == "chapters" and name in ROAD
    if name in TOLD:
        time = minutes(Path(app.srcdir) / f"{page}.md")
        line = f"The road through this chapter: {in_words(time.road, time.build)}."
        if time.deeper:
            line += f" What is deeper takes {time.deeper} more."
        line = f'<p class="road-time">{line}</p>'
        context["body"] = body.replace("</h1>", f"</h1>\n{line}", 1)
    if is_on_road or '<ul class="road' in body:
        app.add_js_file("road.js", priority=905)


def setup(app: Sphinx) -> None:
    """Register the directive; Sphinx's own collectors come at 500, and the search reads there."""
    app.add_directive("road", Road)
    app.connect("env-get-updated", number_interlude, priority=900)
    app.connect("doctree-read", mark_titles, priority=700)
    app.connect("doctree-resolved", fold, priority=900)
    app.connect("html-page-context", show)
