"""Back-end tabs: PyTorch and JAX side by side in the source, one block with two tabs on the page.

In the page's HTML the two stand one after another, each under its name. static/site.js makes tabs
of them, so that without JavaScript, and in print, both can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

NAMES = {"torch": "PyTorch", "jax": "JAX"}


class backend_block(nodes.General, nodes.Element):  # noqa: N801  (docutils names its nodes so)
    """One block with a panel for each back end."""


class backend_panel(nodes.General, nodes.Element):  # noqa: N801
    """What one back end shows; ``backend`` says which."""


def backend_of(node: nodes.Node) -> str | None:
    """The back end that a code cell is tagged with, if it is."""
    if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
        return next((b for b in NAMES if f"tag_{b}" in node["classes"]), None)
    return None


def runs(parent: nodes.Element) -> Iterator[list[nodes.Node]]:
    """Runs of neighbouring tagged cells; torch, jax, torch, jax are two runs, not one."""
    run: list[nodes.Node] = []
    for child in parent.children:
        backend = backend_of(child)
        closed = [backend_of(cell) for cell in run]
        if backend and run and backend in closed and backend != closed[-1]:
            yield run
            run = []
        if backend:
            run.append(child)
        elif run and not isinstance(child, nodes.comment):
            yield run
            run = []
    if run:
        yield run


def block(panels: Mapping[str, Sequence[nodes.Node]], number: int) -> backend_block:
    """A block from each back end's content."""
    result = backend_block("")
    for backend, content in panels.items():
        panel = backend_panel("", *content, backend=backend, ids=[f"backend-{number}-{backend}"])
        panel["single"] = len(panels) == 1
        result += panel
    return result


def panels_of_cells(run: list[nodes.Node]) -> dict[str, list[nodes.Node]]:
    """The cells of a run by back end, PyTorch first."""
    found = {b: [cell for cell in run if backend_of(cell) == b] for b in NAMES}
    return {backend: cells for backend, cells in found.items() if cells}


def panels_of_tab_set(tab_set: nodes.Element) -> dict[str, Sequence[nodes.Node]]:
    """The content of a tab-set by its ``:sync:`` keys; empty if these are not back ends."""
    items = [c for c in tab_set.children if isinstance(c, nodes.container)]
    labels = (item[0] for item in items)
    keys = [label.get("sync_id") for label in labels if isinstance(label, nodes.Element)]
    if not items or not set(keys) <= set(NAMES):
        return {}
    return {key: item[1].children for key, item in zip(keys, items, strict=True)}


class BackendTabs(SphinxPostTransform):
    """Put cells and tab-sets of back ends into blocks."""

    default_priority = 190  # before sphinx-design rewrites its tab-sets at 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        numbers = count(1)
        for tab_set in list(self.document.findall(nodes.container)):
            if tab_set.get("design_component") != "tab-set":
                continue
            panels = panels_of_tab_set(tab_set)
            if panels:
                tab_set.replace_self(block(panels, next(numbers)))
        cells = [cell for cell in self.document.findall(nodes.container) if backend_of(cell)]
        parents = {id(cell.parent): cell.parent for cell in cells}
        for parent in parents.values():
            for run in list(runs(parent)):
                place = parent.index(run[0])
                for cell in run:
                    parent.remove(cell)
                parent.insert(place, block(panels_of_cells(run), next(numbers)))


def visit_block(writer: HTML5Translator, node: backend_block) -> None:
    """Open the block."""
    single = " backend-single" if len(node.children) == 1 else ""
    writer.body.append(f'<div class="backend-block{single}">\n')


def visit_panel(writer: HTML5Translator, node: backend_panel) -> None:
    """Open a panel, with the name that becomes its tab."""
    backend, name = node["backend"], node["ids"][0]
    writer.body.append(f'<div class="backend-panel" data-backend="{backend}" id="{name}">\n')
    writer.body.append(f'<p class="backend-name" id="{name}-name">{NAMES[backend]}</p>\n')


def depart(writer: HTML5Translator, node: nodes.Element) -> None:
    """Close a block or a panel."""
    writer.body.append("</div>\n")


def setup(app: Sphinx) -> None:
    """Register the nodes and the transform."""
    app.add_node(backend_block, html=(visit_block, depart))
    app.add_node(backend_panel, html=(visit_panel, depart))
    app.add_post_transform(BackendTabs)
