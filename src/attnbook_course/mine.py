"""What the reader has built, which later chapters use in place of the book's.

It stands in mine.py, in the working directory: plain Python, to be read, run and edited by hand. A
check that finds a build right keeps it there.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import os
import sys
import textwrap
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from attnbook_course.browser import names
from attnbook_course.builds import BUILDS

Function = Callable[..., Any]
FILE = Path(os.environ.get("ATTNBOOK_MINE", "mine.py"))  # elsewhere where pages are made
HEAD = '"""What I have built with attnbook: mine.use("attention") finds it here."""\n'
TAIL = Path(__file__).with_name("writer_tail.py")
MARK = "# --- All below attnbook has written"  # files.js has it, too
MOST = 5_000_000  # bytes of a file of progress
LIBRARIES = ("attnbook", "numpy", "math", "torch", "torch.nn.functional", "jax", "jax.numpy")


def use(name: str) -> Function:
    """The reader's own function of this name, from mine.py, or else the book's; says which.

    Raises:
        ValueError: no chapter builds a function of this name.
    """
    _check(name)
    try:
        built = vars(_run(_parted(FILE.read_text("utf-8"))[0]))
    except FileNotFoundError:
        built = {}
    except Exception as error:  # whatever a file edited by hand may raise
        print(f"{_described(error)}. Until that is mended, {name} is the book's.")
        return BUILDS[name].function
    block = built.get("block")
    if callable(block) and block is not BUILDS["block"].function:  # there by other names, too
        built |= dict.fromkeys([one for one in built if built[one] is block], _trainable(block))
    own = built.get(name)
    if not callable(own) or own is BUILDS[name].function:  # which what is built may import
        # two lines, which fit a phone
        print(f"{name}: the book's.\nBuild your own in chapter {BUILDS[name].chapter}.")
        return BUILDS[name].function
    print(f"{name}: yours, from {FILE}.")
    return _for_numpy_too(own, is_pair=BUILDS[name].is_pair)


def keep(function: Function) -> str:
    """Write a build into mine.py, in place of an older one, and say so in a sentence.

    With it goes what it reads of the notebook: imports, functions, single numbers and texts.

    Raises:
        ValueError: no chapter builds a function of this name, mine.py is broken, or the function
            needs what cannot be written there.
        OSError: there is no source to be read, or no file to be written.
    """
    _check(function.__name__)
    imports, sources = _needed(function)
    text, end = _parted(FILE.read_text("utf-8") if FILE.is_file() else HEAD)
    known = _known(text)
    for name, source in sources.items():
        if name not in BUILDS and name in known and not _same(known[name], source):
            left = (one for one in known if one not in sources)
            users = [one for one in left if name in names(ast.unparse(known[one]))[1]]
            if users:
                raise ValueError(
                    f"{users[0]} in {FILE} uses another {name}: give this one a name of its own"
                )
        text = _with_source(text, name, source)
    text = _with_imports(text, imports)
    try:
        _run(text)
    except Exception as error:
        raise ValueError(_described(error)) from None
    _write(text, end)
    return f"Kept in {FILE}."


def finish() -> None:
    """Make mine.py a program: at its end goes, once, what trains the GPT that stands there.

    Raises:
        ValueError: mine.py is broken, or has a name of its own that the end has, too.
        OSError: there is no file to be written.
    """
    text, end = _parted(FILE.read_text("utf-8") if FILE.is_file() else HEAD)
    known = _known(text)
    if not end:
        _write(text, tail())
    left = [name for name in ("block", "logits", "train", "generate") if name not in known]
    if left:
        print(f"Until you build them, these are the book's: {', '.join(left)}.")
    print(f"python {FILE} text.txt trains your GPT on any text, and lets it write.")


def take(file: str | Path) -> None:
    """Write mine.py as a browser has it, from the file that the website's page Exercises gives.

    Another mine.py that is here is kept beside it, under a name that is printed.

    Raises:
        ValueError: it is no such file, nothing is built in it, or its mine.py is no Python.
        OSError: there is no such file, or none to be written.
    """
    own, end = _parted(_of_progress(Path(file)))
    built = [name for name in _known(own, f"{file}, mine.py") if name in BUILDS]
    before, before_end = _parted(FILE.read_text("utf-8")) if FILE.is_file() else ("", "")
    if own.strip() == before.strip():
        print(f"{FILE} is the same already.")
        return
    if before.strip():
        aside = _free(FILE.with_stem(f"{FILE.stem}-before"))
        aside.write_bytes(FILE.read_bytes())
        print(f"The {FILE} that was here is kept in {aside}.")
    _write(own, end or before_end)
    print(f"{FILE} has from {file}: {', '.join(built) or 'no function of a build'}.")


def _of_progress(file: Path) -> str:
    """The text of mine.py in a file of progress."""
    expected = "expected attnbook-progress.json, which the website's page Exercises gives"
    if (size := file.stat().st_size) > MOST:
        raise ValueError(f"file: got {file} of {size / 1e6:.1f} MB, {expected}")
    try:
        found = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"file: got {file}, which is no JSON ({error}), {expected}") from None
    if not isinstance(found, dict) or found.get("attnbook") != 1:
        raise ValueError(f"file: got {file}, which is another JSON, {expected}")
    match found.get("mine"):
        case str(text):
            return text
        case None:
            raise ValueError(f"file: in {file} nothing is built, so it has no mine.py")
        case other:
            raise ValueError(f"file: in {file} mine is {other!r:.60}, expected the text of mine.py")


def _free(path: Path) -> Path:
    """This path, or the next with a number that no file has."""
    others = (path.with_stem(f"{path.stem}-{i}") for i in itertools.count(2))
    return next(one for one in itertools.chain([path], others) if not one.exists())


def tail() -> str:
    """What finish writes, which pages write, too."""
    return "".join(_parted(TAIL.read_text("utf-8"))[1])


def _parted(text: str) -> tuple[str, str]:
    """What the reader has, and the end that finish has written, if it has."""
    own, mark, end = text.partition(f"\n{MARK}")
    return own.rstrip("\n") + "\n", f"{mark}{end}".lstrip("\n")


def _write(text: str, end: str) -> None:
    """Both parts of mine.py, if they can stand in one module."""
    for name in _known(text):
        if name in names(end)[0] and name not in BUILDS:
            raise ValueError(f"{name} is a name of the end of {FILE}: call yours something else")
    FILE.write_text(f"{text.rstrip()}\n\n\n{end}" if end else text, "utf-8")


def _known(text: str, called: object = FILE) -> dict[str, ast.stmt]:
    """The statements that define a module's names."""
    try:
        return {name: node for node in ast.parse(text).body for name in _sets(node)}
    except SyntaxError as error:
        raise ValueError(f"{called}, line {error.lineno}: {error.msg}; mend it first") from None


def _check(name: str) -> None:
    if name not in BUILDS:
        raise ValueError(f"name: got {name!r}, expected one of {', '.join(BUILDS)}")


def _run(text: str) -> ModuleType:
    """The module that this text makes, without the files by which Python remembers modules."""
    module = ModuleType("mine")
    module.__file__ = str(FILE.resolve())
    exec(compile(text, module.__file__, "exec"), vars(module))
    sys.modules["mine"] = module
    return module


def _described(error: Exception) -> str:
    """An error of mine.py with its line."""
    if isinstance(error, SyntaxError):
        return f"{FILE}, line {error.lineno}: SyntaxError: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(FILE.resolve())]
    where = f"{FILE}, line {lines[-1]}" if lines else f"{FILE}"
    return f"{where}: {type(error).__name__}: {error}"


def _trainable(block: Function) -> Function:
    """The block, which takes PyTorch's tensors and many rows of them; browsers lack PyTorch."""
    ways: list[Function] = []

    def of_torch() -> list[Function]:
        if not ways and "torch" in sys.modules:
            from attnbook_course.trainable import for_tensors

            ways.append(for_tensors(block))
        return ways or [block]

    of_torch()

    @wraps(block)
    def adapted(*arguments: Any, **named: Any) -> Any:
        return of_torch()[0](*arguments, **named)

    return adapted


def _for_numpy_too(own: Function, *, is_pair: bool) -> Function:
    """The function, which gets the arrays of its own library where it does not take NumPy's."""

    @wraps(own)
    def adapted(*arguments: Any, **named: Any) -> Any:
        try:
            return own(*arguments, **named)
        except (TypeError, AttributeError, RuntimeError):
            if not any(isinstance(one, np.ndarray) for one in arguments):
                raise
        from attnbook_course.checks import call  # which imports every check, and they this module

        given = inspect.signature(own).bind(*arguments, **named)
        return (call.call_pair if is_pair else call.call)(own, *given.args)

    return adapted


def _needed(function: Function) -> tuple[list[str], dict[str, str]]:
    """The imports that a function of the notebook needs, and the sources, its own the last."""
    known, left = function.__globals__, [function]
    imports: set[str] = set()
    sources: dict[str, str] = {}
    while left:
        one = left.pop()
        source = textwrap.dedent(inspect.getsource(one))
        if one.__name__ not in names(source)[0]:  # it was, before its cell changed
            raise ValueError(f"the cell that defined {one.__name__} has changed: define it anew")
        sources = {one.__name__: source} | sources
        for name in sorted(names(source)[1] & known.keys() - sources.keys()):
            value = known[name]
            if getattr(value, "__module__", "") == "__main__" and isinstance(
                value, FunctionType | type
            ):
                left.append(value)
            elif isinstance(value, int | float | str):
                sources = {name: f"{name} = {value!r}\n"} | sources
            elif getattr(value, "__module__", "") != "mine":
                imports.add(_import(name, value))
            elif name != value.__name__ and name not in BUILDS:  # mine.py has it, by its own name
                sources = {name: f"{name} = {value.__name__}\n"} | sources
    return sorted(imports), sources


def _import(name: str, value: Any) -> str:
    """The line that imports a value under this name."""
    if isinstance(value, ModuleType):
        return ast.unparse(ast.Import([_alias(value.__name__, name)]))
    own = getattr(value, "__name__", name)
    for module in (*LIBRARIES, getattr(value, "__module__", None)):
        if getattr(sys.modules.get(module or ""), own, None) is value:
            return ast.unparse(ast.ImportFrom(module, [_alias(own, name)], 0))
    raise ValueError(f"it reads {name} of the notebook: make that an argument, or set it inside")


def _alias(name: str, known_as: str) -> ast.alias:
    return ast.alias(name, None if name == known_as else known_as)


def _sets(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _same(node: ast.stmt, source: str) -> bool:
    return ast.unparse(node) == ast.unparse(ast.parse(source))


def _with_source(text: str, name: str, source: str) -> str:
    """The text in which this source defines the name, where an older one did or at the end."""
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if name in _sets(node):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            before, after = lines[: first - 1], lines[node.end_lineno :]
            return "".join([*before, f"{source.rstrip()}\n", *after])
    return f"{text.rstrip()}\n\n\n{source.rstrip()}\n"


def _with_imports(text: str, imports: list[str]) -> str:
    """The text with these imports, after its own and its docstring."""
    body, at = ast.parse(text).body, 0
    missing = [one for one in imports if one not in map(ast.unparse, body)]
    for i, node in enumerate(body):
        docstring = i == 0 and isinstance(node, ast.Expr)
        if not (docstring or isinstance(node, ast.Import | ast.ImportFrom)):
            break
        at = node.end_lineno or 0
    lines = text.splitlines()
    starts = bool(missing) and isinstance(body[0], ast.Expr) and at == body[0].end_lineno
    lines[at:at] = ["", *missing] if starts else missing
    return "\n".join(lines) + "\n"
