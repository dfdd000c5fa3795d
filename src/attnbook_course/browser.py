"""A chapter's cells in the reader's browser: which must run before one, and what it shows.

A cell needs the last cell before it that binds a name which it reads, and those since that change
the name's object in place. The first cell of a chapter imports for all: of it whatever can be
imported is. The website finds with this what runs under Pyodide, and Pyodide runs it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import difflib
import io
import linecache
import symtable
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Shown = dict[str, str]
OTHER_NAME = "there is no function {}; your {} has {}: is it that? Keep the name asked for"


@dataclass
class Cell:
    """A code cell.

    Args:
        code: as the chapter has it.
        lacks: what it cannot have in the browser, such as PyTorch; without any it runs.
        needs: the places of the cells that must run before it, in their order.
    """

    code: str
    lacks: frozenset[str] = frozenset()
    needs: list[int] = field(default_factory=list)


@cache
def names(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that some code sets, and those that it reads before it has surely set them.

    What its functions read counts where they are defined.
    """
    tree = ast.parse(code)
    bound, _ = _symbols(tree)
    return bound, frozenset(_read_first(tree.body, set()))


def _read_first(statements: Sequence[ast.stmt], known: set[str]) -> set[str]:
    """What statements read that is not known before; what they surely set is known afterwards."""
    read = set[str]()
    for statement in statements:
        match statement:
            case ast.For(target=target, iter=values, body=body, orelse=after):
                each = ast.Assign([target], values, lineno=0)  # there may be none, so then forget
                read |= _read_first([each, *body], known.copy()) | _read_first(after, known.copy())
            case ast.With(items=items, body=body):
                entered = [
                    ast.Assign([item.optional_vars], item.context_expr, lineno=0)
                    if item.optional_vars
                    else ast.Expr(item.context_expr)
                    for item in items
                ]
                read |= _read_first([*entered, *body], known)
            case ast.If(test=test, body=body, orelse=otherwise):
                one, other = known.copy(), known.copy()
                read |= _read_first([ast.Expr(test), *body], one)
                read |= _read_first(otherwise, other)
                known |= one & other
            case _:
                bound, seen = _symbols(statement)
                itself = bound if isinstance(statement, ast.FunctionDef) else set()
                read |= seen - known - itself
                if not isinstance(statement, ast.While | ast.Try | ast.Match):
                    known |= bound
    return read


def _symbols(node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """The names that some code sets, and all that it reads, in its functions too."""
    module = symtable.symtable(ast.unparse(_Generators().visit(deepcopy(node))), "cell", "exec")
    bound = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {
        symbol.get_name()
        for table in _tables(module)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is module or symbol.is_global())
    }
    read |= bound & {root_name(n.target) for n in ast.walk(node) if isinstance(n, ast.AugAssign)}
    return frozenset(bound), frozenset(read)


class _Generators(ast.NodeTransformer):
    """Comprehensions as generators: since Python 3.12 symtable takes their variables for ours."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp  # noqa: N815

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value]), node.generators)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for inner in table.get_children():
        yield from _tables(inner)


@cache
def changed(code: str) -> frozenset[str]:
    """Names whose objects some code may change: their entries, attributes, a generator's state.

    A method that stands alone, as axes.plot(x), is taken for a change, and so is any use of rng.
    A function that stands alone, as show(x), is not changed by it.
    """
    found = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case (
                ast.Subscript(ctx=ast.Store() | ast.Del())
                | ast.Attribute(ctx=ast.Store() | ast.Del())
            ):
                found.add(root_name(node))
            case ast.Expr(value=ast.Call(func=ast.Attribute() as method)):
                found.add(root_name(method))
            case ast.Name(id="rng"):
                found.add("rng")
    return frozenset(found - {""})


def root_name(node: ast.AST) -> str:
    """The name at which a[i].b begins; nothing where it begins otherwise."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@cache
def asked_for(code: str) -> str:
    """The name of the function that a check gets at the end of a cell; nothing without one."""
    match ast.parse(code).body:
        case [*_, ast.Expr(ast.Call(ast.Attribute() as check, [ast.Name(name), *_]))]:
            return name if root_name(check) == "checks" else ""
    return ""


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


def find_needs(cells: Sequence[Cell], lacks: Callable[[str], frozenset[str]]) -> None:
    """Give every cell what it needs, and what it lacks.

    That is what it imports or takes of the first cell's imports; only where this is all there, what
    the cells lack whose names it reads.

    Args:
        cells: of a chapter, in their order.
        lacks: what a statement lacks by its imports alone.
    """
    if not cells:
        return
    lacking: dict[str, frozenset[str]] = {}  # of a name that the first cell cannot have
    binds: dict[str, list[int]] = {}  # of a name, who bound it last and who changed it since
    for statement in import_by_import(cells[0].code):
        bound, read = names(statement)
        why = lacks(statement).union(*(lacking.get(name, ()) for name in read))
        lacking |= dict.fromkeys(bound, why)
        if not statement.startswith(("import ", "from ")):  # no call changes a module
            binds |= {name: [0] for name in bound}
    for i, cell in enumerate(cells[1:], 1):
        bound, read = names(cell.code)
        direct = {j for name in read for j in binds.get(name, ())}
        cell.needs = sorted({0, *direct}.union(*(cells[j].needs for j in direct)))
        own = lacks(cell.code).union(*(lacking.get(name, ()) for name in read))
        cell.lacks = own or frozenset().union(*(cells[j].lacks for j in direct))
        for name in bound:
            binds[name] = [i]
            lacking.pop(name, None)
        for name in (changed(cell.code) & read & binds.keys()) - bound:
            binds[name] = [*binds[name], i]


class Page:
    """A chapter's cells and their namespace, of which any can run, also changed.

    Args:
        cells: code and lacks of each, in their order.
    """

    def __init__(self, cells: Sequence[dict[str, Any]]) -> None:
        self.cells = [Cell(cell["code"], frozenset(cell["lacks"])) for cell in cells]
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.set_up = list(import_by_import(cells[0]["code"]))
        self.ran: set[int] = set()

    def before(self, place: int, code: str) -> list[int]:
        """The cells that have not run, and must before this code can in this place."""
        cells = [Cell(cell.code) for cell in self.cells[: place + 1]]
        cells[place].code = code
        find_needs(cells, lambda statement: frozenset())
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
        """Run some code in a cell's place; of an exercise what its check gets must be there anew.

        Returns:
            What it shows, in its order: {"kind": "text", "html", "svg" or "error", "content": …}.
            An error says which module was missing, if one was.
        """
        shown: list[Shown] = []
        file = f"<cell {place}>"
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        asked = asked_for(self.cells[place].code)
        before = self.namespace.pop(asked, None)
        with _Output(shown):
            self._run(code, file, shown, asked)
        if before is not None:
            self.namespace.setdefault(asked, before)  # which other cells read
        self.ran.add(place)
        return shown

    def _run(self, code: str, file: str, shown: list[Shown], asked: str) -> None:
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
            if isinstance(error, NameError) and error.name == asked:
                words = f"✗ {asked}: {_other_name(asked, code)}.\n"
                shown.append({"kind": "text", "content": words, "cause": ""})
            else:
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
    shown = {"kind": "text", "content": f"{value!r}\n"}
    cause = getattr(value, "cause", None)  # of a check's verdict, with which its words end
    return [shown | {"cause": cause} if isinstance(cause, str) else shown]


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


def _other_name(asked: str, code: str) -> str:
    """That a cell lacks the function asked for, and which it has instead."""
    there = [one.name for one in ast.parse(code).body if isinstance(one, ast.FunctionDef)]
    if asked in there:
        return f"{asked} is read above the line that defines it"
    close = difflib.get_close_matches(asked, there, 1) or there[-1:]
    return OTHER_NAME.format(asked, "cell", *close) if close else f"your cell has no def {asked}"


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
    if isinstance(error, SyntaxError) and error.filename == file:
        said[-1] = f"Python cannot read {said[-1]}"
    said.append("".join(traceback.format_exception_only(error)).strip().splitlines()[-1])
    if isinstance(error, ModuleNotFoundError):
        said.append("What is not in this browser is in the notebook.")
    if isinstance(error, NameError) and error.name:
        said.append(f"No cell above that runs in this browser sets {error.name}.")
    return "\n".join(said)
