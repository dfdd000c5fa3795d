#!/usr/bin/env python3
"""The house on a page: the package's rooms, and which imports which, drawn from the imports.

python tools/house.py           prints what belongs into MAINTAINING.md
python tools/house.py --write   writes it there
"""

from __future__ import annotations

import ast
import graphlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "attnbook"
PAGE = ROOT / "MAINTAINING.md"
BEGIN, END = "<!-- house: drawn by tools/house.py -->", "<!-- /house -->"


def module_of(file: Path) -> str:
    """attnbook.attention.heads of src/attnbook/attention/heads.py."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in sorted(SOURCE.rglob("*.py"))}


def imported_by(module: str) -> set[str]:
    """The modules of the package that one imports, wherever in it the import stands."""
    imported = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{name.name}" for name in node.names}
            imported |= (below & MODULES.keys()) or {node.module or ""}
    return (imported & MODULES.keys()) - {module}


def room_of(module: str) -> str:
    """attention of attnbook.attention.heads; the other package is one room; attnbook is none."""
    package, _, inside = module.partition(".")
    return inside.partition(".")[0] if package == "attnbook" else package


def rooms() -> dict[str, list[str]]:
    """Each room, and those that it imports from, in alphabetical order."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        used = found.setdefault(room_of(module), set())
        used |= {room_of(other) for other in imported_by(module)} - {room_of(module), ""}
    return {room: sorted(found[room]) for room in sorted(found) if room}


def shortest(graph: dict[str, list[str]]) -> dict[str, list[str]]:
    """The arrows that no chain of others stands for."""
    below: dict[str, set[str]] = {}
    for room in graphlib.TopologicalSorter(graph).static_order():
        below[room] = set().union(graph[room], *(below[used] for used in graph[room]))
    through = {room: set().union(*(below[other] for other in graph[room])) for room in graph}
    return {room: [u for u in graph[room] if u not in through[room]] for room in graph}


def house() -> str:
    """A drawing, an arrow from who imports to what is imported, and a line for each room."""
    graph = rooms()
    arrows = [f"  {a} --> {b}" for a, used in shortest(graph).items() for b in used]
    lines = ["```mermaid", "flowchart TB", *arrows, "```", "", "| room | what is in it |"]
    lines.append("| --- | --- |")
    for room in reversed(list(graphlib.TopologicalSorter(graph).static_order())):
        module = room if room in MODULES else f"attnbook.{room}"
        file = MODULES[module]
        said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        within = [name.removeprefix(f"{module}.") for name in MODULES]
        inside = {name.partition(".")[0] for name in within if name not in MODULES}
        names = f"<br>`{' '.join(sorted(inside))}`" if inside else ""
        lines.append(f"| `{room}` | {said.splitlines()[0]}{names} |")
    return "\n".join([BEGIN, "", *lines, "", END])


def main() -> int:
    """Print the house, or write it into its page."""
    if "--write" not in sys.argv[1:]:
        print(house())
        return 0
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + house() + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
