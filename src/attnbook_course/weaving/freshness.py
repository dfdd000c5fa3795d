"""What a stored notebook says about its chapter: outputs to keep, and whether it is stale."""

import copy
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from attnbook_course.weaving.notebook import RAN, code_cells, is_setup, text_of
from attnbook_course.weaving.stills import put_stills


def read_stored(path: Path) -> NotebookNode | None:
    """The notebook on disk, None where there is none or it is no notebook."""
    try:
        return nbformat.read(path, as_version=4)
    except (FileNotFoundError, nbformat.reader.NotJSONError, nbformat.ValidationError):
        return None


def same_code(one: NotebookNode, other: NotebookNode) -> bool:
    """Whether the code cells agree in source and tags, in order."""
    return _code(one) == _code(other)


def is_executed(notebook: NotebookNode) -> bool:
    """Whether every code cell has run, once, from the first to the last."""
    counts = [cell.execution_count for cell in code_cells(notebook)]
    return counts == list(range(1, len(counts) + 1))


def keep_outputs(new: NotebookNode, stored: NotebookNode) -> None:
    """Give the newly woven cells the outputs that are stored for them, and what they ran on."""
    if RAN in stored.metadata:
        new.metadata[RAN] = copy.deepcopy(stored.metadata[RAN])
    for cell, old in zip(code_cells(new), code_cells(stored), strict=True):
        cell.outputs = copy.deepcopy(old.outputs)
        cell.execution_count = old.execution_count


def stills_beside(path: Path) -> Path:
    """The folder with the pictures for a notebook's live figures."""
    return path.parent.parent / "images" / "stills"


def staleness(new: NotebookNode, path: Path) -> str:
    """Why the notebook on disk is not the woven one; empty when it is."""
    if not path.exists():
        return "is missing"
    stored = read_stored(path)
    if stored is None:
        return "is not a notebook"
    if not same_code(new, stored):
        return "is stale or edited by hand: its code cells differ from the chapter's"
    if not is_executed(stored):
        return "has cells that were not executed in order"
    new = copy.deepcopy(new)
    keep_outputs(new, stored)
    put_stills(new, stills_beside(path))
    if text_of(new) != path.read_text("utf-8"):
        return "is stale or edited by hand: its text or metadata differ from the chapter's"
    return ""


def _code(notebook: NotebookNode) -> list[tuple[str, list[str]]]:
    """What decides the outputs: each code cell's source and tags; of the set-up cell, its place."""
    return [
        ("" if is_setup(cell) else cell.source, cell.metadata.get("tags", []))
        for cell in code_cells(notebook)
    ]
