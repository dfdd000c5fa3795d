"""What the search knows: every section of the book, term, exercise and function, as text.

Each page leaves its places beside its doctree, so that a page that is not written again keeps
them; at the end they go into one file. static/search.js loads it when a search begins, and
MiniSearch ranks. Left out are code, what it printed, how exercises are done, hints and solutions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx_exercise.nodes import is_exercise_enumerable_node, is_exercise_node, is_solution_node

from .maths import katex

# How much a hit counts, by the beginning of its page's name: the book before what goes with it.
WEIGHTS = {
    "chapters/": 1.0,
    "appendices/terms": 1.0,
    "index": 0.6,
    "appendices/api": 0.3,
    "": 0.5,
}
LISTS = ("appendices/cards", "appendices/exam", "appendices/exercises")  # of what is elsewhere
ASIDE = 0.3  # of an exercise and a summary
TERMS, WORDS = "appendices/terms", "appendices/search.yml"
UNREAD = (nodes.literal_block, nodes.math_block, nodes.raw, nodes.comment, nodes.label)
LINES = (nodes.paragraph, nodes.caption, nodes.row)
LEADS = re.compile(r"\.\./(chapters/.+)\.html(#.+)")


def formula(part: ElementTree.Element) -> str:
    """A formula of MathML as one word of HTML: x<sub>i</sub>, √d, a/b."""
    inner = [formula(one) for one in part if not one.tag.endswith("annotation")]
    match part.tag.rpartition("}")[2]:
        case "msub" | "munder":
            return "{}<sub>{}</sub>".format(*inner)
        case "msup" | "mover":
            return "{}<sup>{}</sup>".format(*inner)
        case "msubsup" | "munderover":
            return "{}<sub>{}</sub><sup>{}</sup>".format(*inner)
        case "mfrac":
            return "/".join(one if len(one) == 1 else f"({one})" for one in inner)
        case "msqrt":
            return f"√{''.join(inner)}"
    return escape("".join((part.text or "").split()), quote=False) + "".join(inner)


@cache
def word(tex: str, root: Path) -> str:
    """A formula of TeX as one word."""
    try:
        html = katex(root).render(tex, False)
    except ValueError:
        return ""  # the page's writer warns of it
    html = html[html.index("<math") : html.index("</math>") + len("</math>")]
    return formula(ElementTree.fromstring(html))


def line(node: nodes.Node, root: Path) -> str:
    """What a reader sees of a node, as HTML with no tags but those of formulas."""
    if isinstance(node, nodes.math):
        return word(node.astext(), root) + node.get("mark", "")
    if isinstance(node, nodes.Text):
        return escape(node.astext(), quote=False)
    if isinstance(node, UNREAD):
        return ""
    between = " · " if isinstance(node, nodes.row) else ""
    return between.join(filter(None, (line(child, root) for child in node.children)))


def is_place(node: nodes.Node) -> bool:
    """Whether the search leads to it: a section, an exercise, a term, a function."""
    if isinstance(node, nodes.section):
        return not (is_exercise_node(node.parent) or is_solution_node(node.parent))
    if isinstance(node, nodes.definition_list_item | addnodes.desc):
        named = node.children[0]
        return isinstance(named, nodes.Element) and bool(named["ids"])
    return bool(is_exercise_node(node))


def lines(place: nodes.Element, root: Path) -> Iterator[str]:
    """The paragraphs, captions and rows of a place, without those of the places inside it."""
    for child in place.children:
        if isinstance(child, LINES):
            yield " ".join(line(child, root).split())
        elif isinstance(child, nodes.Element) and not is_place(child):
            yield from lines(child, root)


def places(app: Sphinx, page: str, tree: nodes.document) -> Iterator[dict[str, Any]]:
    """What the search knows of a page, place by place."""
    root, numbers = Path(app.confdir), app.env.toc_secnumbers.get(page, {})
    weight = next(weight for start, weight in WEIGHTS.items() if page.startswith(start))
    for node in tree.findall(is_place):
        assert isinstance(node, nodes.Element) and isinstance(node[0], nodes.Element)
        title, text, counts = line(node[0], root), list(lines(node, root)), weight
        ids = [*node["ids"], *node[0]["ids"]]
        at = f"#{ids[0]}"
        if is_exercise_enumerable_node(node):
            title, counts = f"Exercise {title.strip()}", ASIDE
        elif isinstance(node, addnodes.desc):
            title, text = ids[0], text[:1]
        elif isinstance(node, nodes.section):
            if title == "References" and page != "appendices/references":
                continue
            if title in ("Exercises", "Summary"):
                text, counts = text if title == "Summary" else [], ASIDE
            at = "" if node.parent is tree else at
            title = ".".join(map(str, numbers.get(at, ()))) + f" {title}"
        yield {"at": page + at, "title": title.strip(), "weight": counts, "text": text}


def store(app: Sphinx, page: str) -> Path:
    """Where a page's places are kept from build to build."""
    return Path(app.doctreedir, f"{page}.search.json")


def read(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Keep what the search knows of a page, and of each term the section that explains it."""
    if app.builder.format != "html":
        return
    for term in tree.findall(nodes.term) if page == TERMS else ():
        term["ids"] = [nodes.make_id(f"term-{term.astext()}")]  # an address of its own
    found = list(places(app, page, tree)) if page not in LISTS else []
    explained: dict[str, list[str]] = {}
    if page == TERMS:
        for item in tree.findall(nodes.definition_list_item):
            for link in item.findall(nodes.reference):
                if leads := LEADS.fullmatch(link.get("refuri", "")):
                    explained.setdefault("".join(leads.groups()), []).append(item[0].astext())
                    break
    store(app, page).parent.mkdir(parents=True, exist_ok=True)
    store(app, page).write_text(json.dumps([found, explained]), "utf-8")


def write(app: Sphinx, error: Exception | None) -> None:
    """One file of all places, each with the other words that lead there."""
    if error or app.builder.format != "html":
        return
    kept = {page: json.loads(store(app, page).read_text("utf-8")) for page in app.env.found_docs}
    found = {place["at"]: place for one, _ in kept.values() for place in one}
    words, also = Path(app.confdir, WORDS), [at for _, one in kept.values() for at in one.items()]
    if words.is_file():
        for page, sections in yaml.safe_load(words.read_text("utf-8")).items():
            also += [
                (page if name == "all" else f"{page}#{name}", [sections[name]]) for name in sections
            ]
    for at, names in also:
        if at not in found:
            raise ExtensionError(f"{WORDS} names {at}, and the book has no such section")
        found[at]["also"] = ", ".join([*names, *filter(None, [found[at].get("also")])])
    for place in found.values():
        page = place["at"].partition("#")[0]
        place["page"] = found[page]["title"] if page in found else ""
    target = Path(app.outdir, "_static", "search_places.js")  # a script: it loads from a disk, too
    known = json.dumps(list(found.values()), ensure_ascii=False, separators=(",", ":"))
    target.write_text(f"self.attnbookPlaces = {known};\n", "utf-8")


def configure(app: Sphinx, config: Config) -> None:
    """The page of results has our template."""
    config.html_additional_pages["search"] = "search.html"


def replace(app: Sphinx) -> None:
    """In place of Sphinx's own search, whose index knows pages only."""
    app.builder.search = False  # type: ignore[attr-defined]
    app.add_js_file("search.js", priority=905)


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    app.connect("config-inited", configure)
    app.connect("builder-inited", replace)
    app.connect("doctree-resolved", read)
    app.connect("build-finished", write)
