"""Neighbouring code cells tagged ``torch`` and ``jax`` become tabs of sphinx-design.

They are synchronised with the tab-sets of the prose, whose ``:sync:`` keys are the same two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_design.shared import create_component

NAMES = {"torch": "PyTorch", "jax": "JAX"}


def backend_of(node: nodes.Node) -> str:
    """The back end that a code cell is tagged with; empty for none."""
    if isinstance(node, nodes.container) and node.get("nb_element") == "cell_code":
        return next((name for name in NAMES if f"tag_{name}" in node["classes"]), "")
    return ""


def runs(parent: nodes.Element) -> Iterator[list[nodes.Node]]:
    """Runs of neighbouring tagged cells; torch, jax, torch, jax are two runs, not one."""
    run: list[nodes.Node] = []
    for child in parent.children:
        backend, before = backend_of(child), [backend_of(cell) for cell in run]
        if run and (not backend or (backend in before[:-1] and backend != before[-1])):
            yield run
            run = []
        if backend:
            run.append(child)
    if run:
        yield run


def tab_set(run: Sequence[nodes.Node]) -> nodes.container:
    """The cells of a run as sphinx-design's directives would have them, PyTorch first."""
    result = create_component("tab-set", classes=["sd-tab-set"])
    for backend, name in NAMES.items():
        cells = [cell for cell in run if backend_of(cell) == backend]
        if cells:
            label = nodes.rubric("", name, classes=["sd-tab-label"])
            label["sync_id"], label["sync_group"] = backend, "tab"
            content = create_component("tab-content", classes=["sd-tab-content"], children=cells)
            result += create_component("tab-item", children=[label, content])
    return result


class BackendTabs(SphinxPostTransform):
    """Put the cells into tabs."""

    default_priority = 190  # before sphinx-design rewrites its tab-sets at 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the document in place."""
        cells = [cell for cell in self.document.findall(nodes.container) if backend_of(cell)]
        for parent in {id(cell.parent): cell.parent for cell in cells}.values():
            for run in list(runs(parent)):
                place = parent.index(run[0])
                for cell in run:
                    parent.remove(cell)
                parent.insert(place, tab_set(run))


def setup(app: Sphinx) -> None:
    """Register the transform."""
    app.add_post_transform(BackendTabs)
