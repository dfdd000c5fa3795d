"""The book's drawings: each an SVG in the colours of the theme.

What queries, keys, values, weights and outputs are is told by five colours, the same in all. A dot
is a weight, and its area says how large. Most drawings are files beside this one, edited by hand;
those whose numbers are computed are functions.
"""

from pathlib import Path

from attnbook_course.drawings.averages import weighted_average
from attnbook_course.drawings.canvas import Canvas, Drawing
from attnbook_course.drawings.in_steps import average_in_steps
from attnbook_course.drawings.ladder import RUNGS, Rung, rung
from attnbook_course.drawings.words_read import sentence

__all__ = [
    "RUNGS",
    "Canvas",
    "Drawing",
    "Rung",
    "average_in_steps",
    "names",
    "rung",
    "sentence",
    "show",
    "weighted_average",
]
FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The drawings that are files."""
    return sorted(file.stem for file in FOLDER.glob("*.svg"))


def show(name: str) -> Drawing:
    """A drawing that is a file.

    Args:
        name: of the file, without its ending.

    Raises:
        ValueError: no drawing has this name.
    """
    if name not in names():
        raise ValueError(f"name: got {name!r}, expected one of {', '.join(names())}")
    return Drawing(name, (FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
