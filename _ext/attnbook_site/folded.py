"""Folded cells say what they hold: a check its first line, "Checked: loop, PyTorch, JAX"."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

CODE = "Code"


def title_of(code: str) -> str:
    """What stands on a folded cell: its first line, if that is a comment, else "Code"."""
    comment = re.match(r"# *((?:Checked|Set-up): .+)", code)
    return comment[1] if comment else CODE


class FoldedTitles(SphinxPostTransform):
    """Give each folded cell its title."""

    default_priority = 198  # before MyST-NB folds the cells at 199
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        for cell in self.document.findall(nodes.container):
            if cell.get("hide_mode"):
                code = next(iter(cell.findall(nodes.literal_block)), None)
                title = title_of(code.astext()) if code is not None else CODE
                cell["prompt_show"] = cell["prompt_hide"] = title


def visit_folded(writer: HTML5Translator, node: HideCodeCellNode) -> None:
    """Open a folded cell; unlike MyST-NB's, its name for screen readers is the title."""
    title = escape(node["prompt_show"])
    kind = title.partition(":")[0].lower()  # by which content.css tells code, checked and set-up
    classes = " ".join([f"holds-{kind}", *node["classes"]])
    writer.body.append(f'<details class="admonition hide {classes}">\n')
    writer.body.append(f'<summary><p class="admonition-title">{title}</p></summary>\n')


def setup(app: Sphinx) -> None:
    """Register the transform, and the page's own folded cell."""
    app.add_node(HideCodeCellNode, override=True, html=(visit_folded, depart_HideCellInput))
    app.add_post_transform(FoldedTitles)
