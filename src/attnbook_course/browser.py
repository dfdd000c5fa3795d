"""A chapter's cells in the reader's browser: which must run before one, and what it shows.

A cell needs the last cell before it that binds a name which it reads, and those since that change
the name's object in place. The first cell of a chapter imports for all: of it whatever can be
imported is. The website finds with this what runs under Pyodide, and Pyodide runs it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import linecache
import symtable
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Shown = dict[str, str]


@dataclass
class Cell:
    """A code cell.

    Args:
        code: as the chapter has it.
        lacks: what it cannot have in the browser, such as PyTorch; nothing if it runs there.
        needs: the places of the cells that must run before it, in their order.
    """

    code: str
    lacks: str = ""
    needs: list[int] = field(default_factory=list)


@cache
def names(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that some code sets, and those that it reads, in its functions too."""
    module = symtable.symtable(code, "cell", "exec")
    bound = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {
        symbol.get_name()
        for table in _tables(module)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is module or symbol.is_global())
    }
    return frozenset(bound), frozenset(read)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


@cache
def changed(code: str) -> frozenset[str]:
    """Names whose objects some code may change: their entries, attributes, a generator's state.

    A call that stands alone, as axes.plot(x), is taken for a change, and so is any use of rng.
    """
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(root_name(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found.add(root_name(node.value.func))
        elif isinstance(node, ast.Name) and node.id == "rng":
            found.add("rng")
    return frozenset(found - {""})


def root_name(node: ast.AST) -> str:
    """The name at which a[i].b begins; nothing where it begins otherwise."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def import_by_import(code: str) -> Iterator[str]:
    """The statements of a first cell; of an import each name by itself."""
    for statement in ast.parse(code).body:
        if isinstance(statement, ast.Import):
            yield from (ast.unparse(ast.Import([alias])) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield ast.unparse(ast.ImportFrom(statement.module, [alias], statement.level))
        else:
            yield ast.unparse(statement)


def find_needs(cells: Sequence[Cell], lacks: Callable[[str], str]) -> None:
    """Give every cell what it needs, and what it lacks itself or through those.

    Args:
        cells: of a chapter, in their order.
        lacks: what a statement lacks by its imports alone, or nothing.
    """
    if not cells:
        return
    lacking: dict[str, str] = {}  # of a name that cannot be had, what it lacks
    binds: dict[str, list[int]] = {}  # of a name, who bound it last and who changed it since
    for statement in import_by_import(cells[0].code):
        bound, read = names(statement)
        why = lacks(statement) or _first(lacking[name] for name in sorted(read & lacking.keys()))
        for name in bound:
            if why:
                lacking[name] = why
            else:
                binds[name] = [0]
    for i, cell in enumerate(cells[1:], 1):
        bound, read = names(cell.code)
        needed = {0}.union(*({j, *cells[j].needs} for name in read for j in binds.get(name, ())))
        cell.needs = sorted(needed)
        cell.lacks = lacks(cell.code) or _first(
            [lacking[name] for name in sorted(read & lacking.keys())]
            + [cells[j].lacks for j in cell.needs]
        )
        for name in bound:
            binds[name] = [i]
            lacking.pop(name, None)
            if cell.lacks:
                lacking[name] = cell.lacks
        for name in (changed(cell.code) & binds.keys()) - bound:
            binds[name] = [*binds[name], i]


def _first(reasons: Any) -> str:
    return next(filter(None, reasons), "")


class Page:
    """A chapter's cells and their namespace, of which any can run, also changed.

    Args:
        cells: code and lacks of each, in their order.
    """

    def __init__(self, cells: Sequence[dict[str, str]]) -> None:
        self.cells = [Cell(cell["code"], cell["lacks"]) for cell in cells]
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.set_up = list(import_by_import(cells[0]["code"]))
        self.ran: set[int] = set()

    def before(self, place: int, code: str) -> list[int]:
        """The cells that have not run, and must before this code can in this place."""
        cells = [Cell(cell.code) for cell in self.cells[: place + 1]]
        cells[place].code = code
        find_needs(cells, lambda statement: "")
        may = (j for j in cells[place].needs if j and not self.cells[j].lacks)
        return [j for j in may if j not in self.ran]

    def wanted(self, codes: Sequence[str]) -> list[str]:
        """The names of the first cell that some code reads, and those that these need."""
        wanted = {name for code in codes for name in names(code)[1]}
        found: set[str] = set()
        for statement in reversed(self.set_up):
            bound, read = names(statement)
            if bound & wanted:
                found |= bound
                wanted |= read
        return sorted(found)

    def prepare(self, wanted: Sequence[str]) -> None:
        """Of the first cell what sets these names, and what asks nothing but them, each once.

        What cannot be had here is left out.
        """
        left = []
        for statement in self.set_up:
            bound, read = names(statement)
            there = self.namespace.keys() | vars(builtins).keys()
            if bound & set(wanted) or (not bound and read <= there):
                with contextlib.suppress(ModuleNotFoundError, NameError):
                    exec(compile(statement, "<set-up>", "exec"), self.namespace)
            else:
                left.append(statement)
        self.set_up = left

    def run(self, place: int, code: str) -> list[Shown]:
        """Run some code in a cell's place.

        Returns:
            What it shows, in its order: {"kind": "text", "html", "svg" or "error", "content": …}.
            An error says which module was missing, if one was.
        """
        shown: list[Shown] = []
        file = f"<cell {place}>"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        with _Output(shown):
            self._run(code, file, shown)
        self.ran.add(place)
        return shown

    def _run(self, code: str, file: str, shown: list[Shown]) -> None:
        try:
            tree = ast.parse(code, file)
            ends = bool(tree.body) and isinstance(tree.body[-1], ast.Expr)
            last: Any = tree.body.pop() if ends else None
            exec(compile(tree, file, "exec"), self.namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), file, "eval"), self.namespace)
                if value is not None and not code.rstrip().endswith(";"):
                    shown += _represented(value)
        except BaseException as error:  # whatever a reader's code does
            missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
            shown.append({"kind": "error", "content": _said(error, file), "missing": missing})
        shown += _figures()


class _Output(io.TextIOBase):
    """What is printed becomes the last text that is shown, or one more."""

    def __init__(self, shown: list[Shown]) -> None:
        self.shown, self.before = shown, (sys.stdout, sys.stderr)

    def write(self, text: str) -> int:
        """Add to what is shown."""
        if self.shown and self.shown[-1]["kind"] == "text":
            self.shown[-1]["content"] += text
        else:
            self.shown.append({"kind": "text", "content": text})
        return len(text)

    def __enter__(self) -> _Output:
        sys.stdout = sys.stderr = self
        return self

    def __exit__(self, *error: object) -> None:
        sys.stdout, sys.stderr = self.before


def _represented(value: Any) -> list[Shown]:
    """A value as a notebook shows it."""
    some = value[0] if isinstance(value, list | tuple) and value else value
    if type(some).__module__.startswith("matplotlib"):
        return []  # what was drawn shows itself
    for kind in ("html", "svg"):
        method = getattr(value, f"_repr_{kind}_", None)
        if method is not None and not isinstance(value, type):
            return [{"kind": kind, "content": method()}]
    return [{"kind": "text", "content": f"{value!r}\n"}]


def _figures() -> list[Shown]:
    """The figures that are open, which are closed then."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    plt, shown = sys.modules["matplotlib.pyplot"], list[Shown]()
    for number in plt.get_fignums():
        file = io.StringIO()
        plt.figure(number).savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        shown.append({"kind": "svg", "content": file.getvalue()})
    plt.close("all")
    return shown


def _said(error: BaseException, file: str) -> str:
    """An error's own words, and the lines of the cell that led to it."""
    at = [
        (frame.lineno, frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file
    ]
    if isinstance(error, SyntaxError) and error.filename == file:
        at.append((error.lineno, (error.text or "").strip()))
    said = [f"line {number}: {line}" for number, line in at]
    said.append("".join(traceback.format_exception_only(error)).strip().splitlines()[-1])
    if isinstance(error, ModuleNotFoundError):
        said.append("What is not in this browser is in the notebook.")
    if isinstance(error, NameError) and error.name:
        said.append(f"No cell above that runs in this browser sets {error.name}.")
    return "\n".join(said)
