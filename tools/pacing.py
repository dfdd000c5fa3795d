"""How a chapter reads: how much of its visible code is checks, and how many cells show something.

python tools/pacing.py           a line for each chapter
python tools/pacing.py -v        with the cells that show nothing and the lines that are too long

Counted before the exercises, over the cells that are not folded (`hide-cell`, `hide-input`), not
the first, which imports, and no exercise. Overhead is asserts, loop twins, imports and seeds; a
print is bookkeeping if it shows no value that was computed. Minutes are an estimate for text and
figures: 130 words a minute, as for a text with formulas, one minute for a displayed formula and 40
seconds for a figure or a table.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
FOLDED = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
SEEDS = {"default_rng", "manual_seed", "PRNGKey", "set_default_dtype"}
LONGEST = 78  # characters of a line that fits beside both side bars at 1440 px
MOST_OVERHEAD, LEAST_SHOWING = 0.15, 0.70
MOST_WORDS = {"01": 2098, "02": 2249, "03": 2248, "05": 2250, "06": 2062}
# conditions of claims on hardware and rivals, for which experts asked
MOST_WORDS |= {"04": 2150, "07": 3060, "08": 3060, "10": 3100, "11": 3320, "12": 3260, "13": 3250}
MOST_WORDS_ELSEWHERE = 3000


@dataclass(frozen=True)
class Pacing:
    """One chapter's figures."""

    chapter: str
    words: int  # of the prose before the exercises
    minutes: int  # to read text and figures
    cells: int  # that are visible
    silent: list[str]  # the first line of each visible cell without an output
    lines: int  # of visible code
    overhead: list[str]  # those that are checks or set-up
    long: list[str]

    @property
    def overhead_share(self) -> float:
        """Overhead among the visible lines of code."""
        return len(self.overhead) / self.lines

    @property
    def showing_share(self) -> float:
        """Cells with an output among the visible ones."""
        return 1 - len(self.silent) / self.cells


def is_overhead(node: ast.stmt) -> bool:
    """Whether a statement checks, imports, seeds, or is a loop twin."""
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom):
        return True
    called = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    names = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in called}
    if any(name.startswith("assert_") or name.endswith("_loop") for name in names):
        return True
    if isinstance(node, ast.FunctionDef):
        return node.name.endswith("_loop")
    if isinstance(node, ast.Expr) and names == {"print"}:
        return not any(isinstance(n, ast.Name) and n.id != "print" for n in ast.walk(node))
    return isinstance(node, ast.Assign | ast.Expr) and bool(names & SEEDS)


def overhead_lines(code: str) -> Iterator[int]:
    """Numbers, from 1, of the lines that are overhead."""

    def visit(statements: Sequence[ast.stmt]) -> Iterator[int]:
        for node in statements:
            if is_overhead(node) and not isinstance(node, ast.For | ast.With | ast.If):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
            else:
                yield from visit([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])

    plain = re.sub(r"^(\s*)[%!]", r"\1# ", code, flags=re.MULTILINE)
    yield from visit(ast.parse(plain).body)


def is_code(line: str) -> bool:
    """Whether a line of a cell is more than space or a comment."""
    return bool(line.strip()) and not line.strip().startswith("#")


def before_exercises(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells above the heading of the exercises."""
    found = []
    for cell in notebook.cells:
        head, exercises, _ = cell.source.partition("## Exercises")
        if cell.cell_type == "markdown" and exercises:
            found.append(nbformat.from_dict({**cell, "source": head}))
            break
        found.append(cell)
    return found


def count_words(cells: Sequence[NotebookNode]) -> int:
    """Words of the prose, without formulas, addresses, and the options of directives."""
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"\$\$.*?\$\$(?: *\(eq-[^)]*\))?", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]*\$", " x ", text)
    text = re.sub(r"^(?:`{3,}|:{3,}).*$|^:[\w-]+:.*$|^\([\w-]+\)=$", " ", text, flags=re.MULTILINE)
    text = re.sub(r"\{[\w:-]+\}`([^`<]*)(?:<[^`]*)?`", r"\1", text)
    return len(re.findall(r"[A-Za-z][A-Za-z'’–-]*", text))


def count_minutes(cells: Sequence[NotebookNode]) -> int:
    """How long text and figures take, to five minutes."""
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    formulas = len(re.findall(r"^\$\$$.*?^\$\$", prose, re.MULTILINE | re.DOTALL))
    pictures = sum("hide-input" in c.metadata.get("tags", ()) for c in cells)
    return 5 * round((count_words(cells) / 130 + formulas + pictures * 40 / 60) / 5)


def measure(chapter: Path) -> Pacing:
    """The figures of one chapter, from its source and the outputs of its notebook."""
    source = before_exercises(jupytext.read(chapter))
    woven = nbformat.read(chapter.with_suffix(".ipynb"), 4)
    outputs = {cell.source.strip(): cell.outputs for cell in woven.cells if "outputs" in cell}
    code = [cell for cell in source if cell.cell_type == "code"][1:]
    visible = [c for c in code if not FOLDED & set(c.metadata.get("tags", ()))]
    lines, overhead, silent = [], [], []
    for cell in visible:
        numbers = set(overhead_lines(cell.source))
        for number, line in enumerate(cell.source.splitlines(), 1):
            if is_code(line):
                lines.append(line)
                overhead += [line] if number in numbers else []
        if not outputs.get(cell.source.strip()):
            silent.append(next(filter(is_code, cell.source.splitlines()), ""))
    long = [line for line in lines if len(line) > LONGEST]
    return Pacing(
        chapter=chapter.stem,
        words=count_words(source),
        minutes=count_minutes(source),
        cells=len(visible),
        silent=silent,
        lines=len(lines),
        overhead=overhead,
        long=long,
    )


def most_words(chapter: str) -> int:
    """How long the prose of a chapter may be."""
    return MOST_WORDS.get(chapter[:2], MOST_WORDS_ELSEWHERE)


def chapters(root: Path = ROOT) -> list[Path]:
    """The chapters' sources."""
    return sorted((root / "chapters").glob("[0-9]*.md"))


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures."""
    print(f"{'chapter':26} words  minutes  cells  showing  code lines  overhead  too long")
    for chapter in chapters():
        p = measure(chapter)
        print(
            f"{p.chapter:26} {p.words:5} {p.minutes:8} {p.cells:6} {p.showing_share:8.0%}"
            f" {p.lines:11} {p.overhead_share:9.0%} {len(p.long):9}"
        )
        if "-v" in arguments:
            for kind in ("silent", "overhead", "long"):
                print("".join(f"    {kind}: {line.strip()}\n" for line in getattr(p, kind)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
