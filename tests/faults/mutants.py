"""Mutants: a source with one small change that somebody might have made, by rule and not by hand."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
COMPARISONS: dict[type, tuple[type, ...]] = {  # the border, and the other way round
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
NAMES = {"max": "min", "any": "all", "sin": "cos", "zeros_like": "ones_like"}
NAMES |= {other: name for name, other in NAMES.items()}


@dataclass(frozen=True)
class Mutant:
    """Where it is, the statement as it was and as it is, and the whole source with it."""

    function: str
    line: int
    was: str
    now: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a source, in the order of its lines."""
    tree = ast.parse(source)
    for place in _places(tree, "", tree):
        statement, node = place.statement, place.node
        for other in _changes(node, place.field):
            was = _headline(statement)
            place.put(other)
            now = _headline(other if node is statement else statement)
            mutated = ast.unparse(ast.fix_missing_locations(tree))
            place.put(node)
            yield Mutant(place.function, node.lineno, was, now, mutated)


@dataclass
class _Place:
    """A node, and where in its parent it is."""

    parent: ast.AST
    field: str
    index: int | None
    node: Any
    statement: ast.AST
    function: str

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(parent: ast.AST, function: str, statement: ast.AST) -> Iterator[_Place]:
    """Every node that is computed with: no annotation, no text, nothing that an error says."""
    if isinstance(parent, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{parent.name}".lstrip(".")
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list", "ctx", "op", "ops"):
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or isinstance(node, ast.Raise | ast.Import):
                continue
            own = node if isinstance(node, ast.stmt) else statement
            where = index if isinstance(value, list) else None
            if hasattr(node, "lineno"):
                yield _Place(parent, field, where, node, own, function)
            yield from _places(node, function, own)


def _changes(node: Any, field: str) -> Iterator[ast.AST]:
    """What a node might have been instead."""
    match node:
        case ast.BinOp() | ast.AugAssign() if type(node.op) in ARITHMETIC:
            yield _like(node, op=ARITHMETIC[type(node.op)]())
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for other in COMPARISONS[type(op)]:
                    yield _like(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])
        case ast.BoolOp():
            yield _like(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield from (ast.Constant(node.value + step) for step in (1, -1))
        case ast.Constant(value=float()):
            others = (0.0, 1.1 * node.value) if node.value else (1.0,)
            yield from map(ast.Constant, others)
        case ast.Return(value=ast.expr()):
            yield _like(node, value=ast.Constant(None))
        case ast.Expr(value=ast.Call()):
            yield ast.Pass(lineno=node.lineno)
        case ast.Attribute(attr=name) if name in NAMES:
            yield _like(node, attr=NAMES[name])
        case ast.Name(id=name) if name in NAMES and field == "func":
            yield _like(node, id=NAMES[name])
        case ast.Call():
            for i in range(len(node.keywords)):
                yield _like(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])
        case ast.Break():
            yield ast.Continue(lineno=node.lineno)
        case ast.Continue():
            yield ast.Break(lineno=node.lineno)
    if field == "test" and not isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp):
        yield ast.UnaryOp(ast.Not(), node)


def _like(node: Any, **changed: Any) -> Any:
    other = copy.copy(node)
    for name, value in changed.items():
        setattr(other, name, value)
    return other


def _headline(statement: Any) -> str:
    """A statement without what it encloses, and without annotations."""
    changed: dict[str, Any] = {"body": [ast.Pass()]} if hasattr(statement, "body") else {}
    for name in ("orelse", "handlers", "finalbody", "decorator_list"):
        if hasattr(statement, name):
            changed[name] = []
    if isinstance(statement, ast.Try):
        changed["finalbody"] = [ast.Pass()]
    if isinstance(statement, ast.FunctionDef):
        changed |= {"args": copy.deepcopy(statement.args), "returns": None}
        for argument in ast.walk(changed["args"]):
            if isinstance(argument, ast.arg):
                argument.annotation = None
    whole = ast.unparse(ast.fix_missing_locations(_like(statement, **changed)))
    return whole.removesuffix("\n    pass")
