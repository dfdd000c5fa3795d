"""The book's drawings stand in the page itself, not in files beside it.

So their labels are text, they take the colours of the theme, and whoever listens to a page hears
what a drawing shows. A drawing is known by ``data-drawing`` on its root; it has no ids, so that
many can stand on one page. A folded cell that only calls for one, ``drawings.show("block")``, goes:
the notebook has it.

Two of them move: one in steps (``data-steps``), and the sentence whose words can be touched
(``data-units``). They stand in a box with what static/moving.js needs, and only their pages load
that script. Without it, and on paper, they are drawings like the others.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = re.compile(r"\A(?:<\?xml.*?\?>\s*)?<svg [^>]*data-drawing=[^>]*>", re.DOTALL)
CALL = re.compile(r"drawings\.\w+\([^\n]*\)")
LABEL = re.compile(r'aria-label="[^"]*"')
STAGE = re.compile(r'data-steps="(\d+)" data-stage="([\d.]+)"')
FIRST = re.compile(r'data-step="1" data-name="([^"]*)"')
STEPS = (
    '<div class="moving moving-steps" role="group" aria-label="A drawing in {count} steps" '
    'style="--stage: {stage}"><div class="moving-stage">{drawing}</div>'
    '<div class="moving-controls"><button type="button" data-go="-1" aria-disabled="true">Back'
    '</button><span aria-live="polite">Step 1 of {count}: {first}</span>'
    '<button type="button" data-go="1">Next</button></div></div>'
)
WORDS = (
    '<div class="moving moving-words"><div class="moving-stage">{drawing}</div>'
    '<p class="moving-said" aria-live="polite"></p></div>'
)
FALLBACK = re.compile(r"var\((--drawing-\w+), #\w+\)")  # the page sets all of these


def inline(svg: str, alt: str) -> str | None:
    """A drawing as HTML, with what it shows in words; None for any other picture."""
    root = ROOT.match(svg)
    if root is None:
        return None
    words = f'aria-label="{escape(alt)}"'
    head = LABEL.sub(lambda _: words, root[0]) if alt else root[0]
    return boxed(FALLBACK.sub(r"var(\1)", head[head.index("<svg") :] + svg[root.end() :]))


def boxed(drawing: str) -> str:
    """A drawing that moves in its box; any other as it is."""
    head = drawing[: drawing.index(">")]
    if stage := STAGE.search(head):
        first = FIRST.search(drawing)
        name = first[1] if first else ""
        return STEPS.format(count=stage[1], stage=stage[2], drawing=drawing, first=name)
    return WORDS.format(drawing=drawing) if 'data-units="' in head else drawing


def without_code(image: nodes.image) -> None:
    """Take the folded call away from above a drawing."""
    cell = image.parent
    while cell is not None and cell.get("nb_element") != "cell_code":
        cell = cell.parent
    if cell is not None and cell.get("hide_mode") == "input":
        code = cell[0]
        source = isinstance(code, nodes.Element) and code.get("nb_element") == "cell_code_source"
        if source and CALL.fullmatch(code.astext().strip()):
            cell.remove(code)


class InlineDrawings(SphinxPostTransform):
    """Put each drawing in the place of its picture."""

    default_priority = 8  # before pictures are collected, copied and converted
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        for image in list(self.document.findall(nodes.image)):
            file = Path(self.env.srcdir) / image["uri"]
            if file.suffix == ".svg" and file.is_file():
                html = inline(file.read_text(encoding="utf-8"), image.get("alt", ""))
                if html:
                    without_code(image)
                    image.replace_self(nodes.raw("", html, format="html"))


def note_page(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """A page on which a drawing moves loads the script for it."""
    if '<div class="moving ' in context.get("body", ""):
        app.add_js_file("moving.js", priority=910)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.add_post_transform(InlineDrawings)
    app.connect("html-page-context", note_page)
