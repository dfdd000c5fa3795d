"""Put every drawing, as it is today, where it is stored.

python tools/draw.py        the pictures of the landing page, and the outputs in chapters/*.ipynb

A notebook's other cells are not executed for it: such a cell is one call of the module.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from check_environment import ROOT
from nbformat import NotebookNode

from attnbook_course import drawings

LANDING: dict[str, Callable[[], drawings.Drawing]] = {
    "sentence": drawings.sentence,
    "average-in-steps": drawings.average_in_steps,
}


def drawn(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, dict[str, str]]]:
    """The output of each cell that is a call of attnbook_course.drawings, and what it is today."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.startswith("drawings."):
            drawing = eval(cell.source, {"drawings": drawings})
            data = {"image/svg+xml": drawing.svg, "text/plain": repr(drawing)}
            yield from ((output, data) for output in cell.outputs if "data" in output)


def refresh(path: Path) -> None:
    """Bring one notebook's drawings up to date."""
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    for output, data in drawn(notebook):
        output.data = NotebookNode(data)
    path.write_text(nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n", "utf-8")


if __name__ == "__main__":
    for name, draw in LANDING.items():
        (ROOT / f"images/{name}.svg").write_text(draw().svg + "\n", "utf-8")
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        refresh(path)
