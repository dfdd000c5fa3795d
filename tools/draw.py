"""Draw every drawing anew where it is stored, after a change of attnbook_course.drawings.

python tools/draw.py        the pictures of the landing page, and the outputs in chapters/*.ipynb

A notebook's other cells are not executed for it: such a cell is one call of the module.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from check_environment import ROOT
from nbformat import NotebookNode

from attnbook_course import drawings
from attnbook_course.drawings import Drawing

LANDING = {
    "ladder": drawings.ladder,
    "sentence": drawings.sentence,
    "average-in-steps": drawings.average_in_steps,
}  # the files in images/ that the landing page shows


def drawn(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, Drawing]]:
    """The output of each cell that is a call of attnbook_course.drawings, and what it is today."""
    for cell in notebook.cells:
        call = cell.source.strip()
        if cell.cell_type != "code" or not call.startswith("drawings."):
            continue
        (statement,) = ast.parse(call).body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            drawing = eval(call, {"drawings": drawings})
            yield from ((out, drawing) for out in cell.outputs if "data" in out)


def stored(drawing: Drawing) -> dict[str, str]:
    """What a notebook keeps of a drawing."""
    return {"image/svg+xml": drawing.svg, "text/plain": repr(drawing)}


def refresh(path: Path) -> int:
    """Bring one notebook's drawings up to date; how many were not."""
    notebook, changed = nbformat.read(path, as_version=nbformat.NO_CONVERT), 0
    for output, drawing in drawn(notebook):
        if dict(output.data) != stored(drawing):
            output.data, changed = NotebookNode(stored(drawing)), changed + 1
    if changed:
        path.write_text(nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n", "utf-8")
    return changed


def main() -> int:
    """The command; returns its exit status."""
    for name, draw in LANDING.items():
        (ROOT / f"images/{name}.svg").write_text(draw().svg + "\n", "utf-8")
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        if changed := refresh(path):
            print(f"{path.relative_to(ROOT).as_posix()}: {changed} drawn anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
