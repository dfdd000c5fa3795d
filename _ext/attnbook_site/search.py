"""The search: its index, section by section, which static/search.js reads.

Each entry is a section, an entry of the index of terms, or a function of the package: with its
place, its title, its text with each formula once, and the names in its code. A page whose front
matter says ``search: unfolded`` or ``search: titles`` has only that. The index is a script, so that
the search also works from a folder, without a server. It is packed: less than half as long.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment import BuildEnvironment
from sphinx_design.dropdown import dropdown_main

from .maths import display_source, katex
from .memory import memory

INDEX = Path("_static", "search-index.js")
OPENING, END = 'searchIndex("', '");\n'
MATHML = re.compile(r"<math\b.*?</math>", re.DOTALL)
NAMES = re.compile(r"[A-Za-z_]\w{2,}")
BLANKS = re.compile(r"\s+")
Entry = tuple[str, str, str, str]  # anchor, title, text, names in code


def in_brackets(text: str) -> str:
    """A part of a formula that has to stay together."""
    return text if len(text) < 2 or text.isalnum() else f"({text})"


def line(element: ElementTree.Element) -> str:
    """A formula's MathML as a line of text: w_i, x^2, a/b, √x."""
    kind = element.tag.rpartition("}")[2]
    parts = [line(child) for child in element]
    if kind in ("msub", "munder"):
        return f"{parts[0]}_{in_brackets(parts[1])}"
    if kind == "msup":
        return f"{parts[0]}^{in_brackets(parts[1])}" if parts[1] != "⊤" else f"{parts[0]}ᵀ"
    if kind in ("msubsup", "munderover"):
        return f"{parts[0]}_{in_brackets(parts[1])}^{in_brackets(parts[2])}"
    if kind == "mover":
        return parts[0] + {"^": "\u0302", "ˉ": "\u0304", "~": "\u0303"}.get(parts[1], "")
    if kind == "mfrac":
        return "/".join(map(in_brackets, parts))
    if kind == "msqrt":
        return f"√{in_brackets(''.join(parts))}"
    between = " " if kind in ("mtable", "mtr") else ""
    return (element.text or "").replace("\u2061", " ") + between.join(parts)


def formula(app: Sphinx, node: nodes.Element) -> str:
    """A formula as a line of text; its source, where KaTeX refuses it."""
    display = isinstance(node, nodes.math_block)
    tex = display_source(node.astext(), node.get("nowrap", False)) if display else node.astext()
    try:
        html = katex(Path(app.confdir)).render(tex, display)
        return line(ElementTree.fromstring(MATHML.findall(html)[0])) + node.get("mark", "")
    except (ValueError, IndexError, ElementTree.ParseError):
        return tex


def is_folded(node: nodes.Node) -> bool:
    """Whether a reader has to open it."""
    return isinstance(node, dropdown_main)


def anchor_of(node: nodes.Element) -> str:
    """The name of the place where its head stands, if it has one."""
    head = node[0]
    return head["ids"][0] if isinstance(head, nodes.Element) and head["ids"] else ""


class Reader:
    """What can be found on a page: all of it, only what is "unfolded", or only its "titles"."""

    def __init__(self, app: Sphinx, depth: str = "") -> None:
        self.app, self.depth = app, depth
        self.entries: list[tuple[str, str, list[str], list[str]]] = []

    def open(self, anchor: str, title: str) -> None:
        """What follows belongs to this place."""
        self.entries.append((anchor, title, [], []))

    def text(self, node: nodes.Node) -> str:
        """A node's words."""
        if isinstance(node, nodes.math | nodes.math_block):
            return formula(self.app, node)
        if isinstance(node, nodes.Text):
            return node.astext()
        if isinstance(node, nodes.raw | nodes.comment | nodes.system_message):
            return ""
        return "".join(map(self.text, node.children))

    def read(self, node: nodes.Node) -> None:
        """Sort a node's words into entries."""
        if isinstance(node, nodes.section) and (
            (title := node.first_child_matching_class(nodes.title)) is not None
        ):
            self.open(node["ids"][0], self.text(node[title]))
            outer = len(self.entries) - 1
            for child in node.children:
                if not isinstance(child, nodes.title):
                    self.read(child)
                    self.entries.append(self.entries[outer])
        elif self.depth == "titles" or (is_folded(node) and self.depth == "unfolded"):
            pass
        elif isinstance(node, nodes.literal_block):
            self.entries[-1][3].extend(NAMES.findall(node.astext()))
        elif isinstance(node, nodes.definition_list_item | addnodes.desc) and anchor_of(node):
            around, anchor = self.entries[-1], anchor_of(node)
            self.open(anchor, anchor if isinstance(node, addnodes.desc) else self.text(node[0]))
            self.entries[-1][2].append(self.text(node[1]))
            self.entries.append(around)
        elif isinstance(node, nodes.TextElement):
            self.entries[-1][2].append(self.text(node))
        elif not isinstance(node, nodes.raw | nodes.comment | nodes.Text):
            for child in node.children:
                self.read(child)

    def found(self) -> Iterator[Entry]:
        """The entries, each once."""
        for anchor, title, text, names in {id(e): e for e in self.entries}.values():
            words = BLANKS.sub(" ", " ".join(text)).strip()
            rest = (name for name in dict.fromkeys(names) if name not in words)
            yield anchor, title, words, " ".join(rest)


def collect(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Read a page that is being written."""
    if tree is not None and app.builder.format == "html":
        reader = Reader(app, app.env.metadata[page].get("search", ""))
        for section in tree.children:
            if isinstance(section, nodes.section):
                reader.read(section)
        title = BLANKS.sub(" ", re.sub(r"<[^>]+>", "", context.get("title", "")))
        memory(app).search[page] = [title, list(reader.found())]


def packed(index: dict[str, Any]) -> str:
    """The index as a script."""
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    return OPENING + b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii") + END


def unpacked(script: str) -> dict[str, Any]:
    """The index that a script holds, as search.js reads it."""
    found: dict[str, Any] = json.loads(
        zlib.decompress(b64decode(script.removeprefix(OPENING).removesuffix(END)))
    )
    return found


def stored(app: Sphinx) -> dict[str, Any]:
    """The index of the build before; nothing, if it is not there or not packed."""
    file = Path(app.outdir) / INDEX
    script = file.read_text("utf-8") if file.is_file() else ""
    return unpacked(script) if script.startswith(OPENING) else {}


def missing(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> set[str]:
    """Every page, if the index is not there."""
    if app.builder.format != "html" or stored(app):
        return set()
    return env.found_docs - added


def begin(app: Sphinx) -> None:
    """Sphinx's own index has whole pages, and every formula twice: do without it."""
    memory(app).search = {}
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.builder.search = False


def page_of_results(app: Sphinx) -> list[Any]:
    """The page that shows what was found; Sphinx makes it with its own index alone."""
    return [("search", {"title": "Search"}, "search.html")]


def write(app: Sphinx, error: Exception | None) -> None:
    """Bring the index up to date: pages that were written, and none that is gone."""
    if error or app.builder.format != "html" or not memory(app).search:
        return
    index = stored(app) | memory(app).search
    pages = {page: index[page] for page in sorted(app.env.found_docs) if page in index}
    (Path(app.outdir) / INDEX).write_text(packed(pages), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    app.connect("builder-inited", begin)
    app.connect("env-get-outdated", missing)
    app.connect("html-collect-pages", page_of_results)
    app.connect("html-page-context", collect)
    app.connect("build-finished", write, priority=400)  # while KaTeX still runs
