"""Runs one student's notebook and asks its functions, as the grader wants. Started in a sandbox.

python -m attnbook_course.checks.grading.worker THREADS

Requests come in on one pipe and answers go out on another. The held-out checks, what a check
expects and the grades are never here. What the student's code changes, it changes here alone.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import pickle
import re
import struct
import sys
import types
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np

from attnbook_course.checks import call
from attnbook_course.checks.grading.pipe import MOST_BYTES, packed
from attnbook_course.checks.verdict import Wrong

# all that a Remote may be asked for
HOWS = {name: one for name, one in vars(call).items() if name.startswith(("call", "refuse_"))}
GIGABYTES = 4
MOST_FILE = 64 << 20
CHECKS = re.compile(r"checks(\.|$)")


def run(source: str, number: int, known: dict[str, Any]) -> str:
    """Run a cell without its check; what went wrong, in one line."""
    filename = f"<cell {number}>"
    try:
        source, tree = _parsed(source)
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        tree.body = [node for node in tree.body if not _is_check(node)]
        exec(compile(tree, filename, "exec"), known)
    except BaseException as error:
        return _in_one_line(error)
    return ""


def _parsed(source: str) -> tuple[str, ast.Module]:
    """The cell's code; where it is none, without the lines that are IPython's."""
    try:
        return source, ast.parse(source, "this cell")
    except SyntaxError:
        lines = source.split("\n")
        if re.match(r"\s*%%(?!time|capture)", source):
            lines = []  # another language's
        own = "\n".join("" if re.match(r"\s*[%!]|.*\?\s*$", line) else line for line in lines)
        return own, ast.parse(own, "this cell")


def _is_check(node: ast.stmt) -> bool:
    """Whether it does no more than call a check, which the grader does itself."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    return bool(CHECKS.match(ast.unparse(node.value.func)))


def _in_one_line(error: BaseException) -> str:
    with suppress(BaseException):
        text = next(iter(str(error).strip().splitlines()), "")
        return f"{type(error).__name__}{text and f': {text}'}"[:300]
    return "an error that cannot be printed"


def ask(how: str, function: Any, arguments: tuple[Any, ...]) -> bytes:
    """The message with the function's answer, or with what went wrong."""
    if not callable(function):
        return packed({"error": "missing"})
    try:
        answer = HOWS[how](function, *arguments)
        arrays = answer if isinstance(answer, tuple) else (answer,)
        if sum(array.nbytes for array in arrays) > MOST_BYTES:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise Wrong(f"your function returns an array of shape {shapes}, too large to compare")
        return packed({}, arrays)
    except Wrong as wrong:
        return packed({"error": "Wrong", "text": str(wrong)})
    except BaseException as error:
        return packed(_described(error))


def _described(error: BaseException) -> dict[str, Any]:
    """An error in words, so that the grader can say of it what it would say here."""
    with suppress(BaseException):
        return {
            "error": type(error).__name__[:80],
            "text": str(error)[:1000],
            "bare": not error.args,
            "notes": [str(note)[:300] for note in getattr(error, "__notes__", [])[:1]],
        }
    return {"error": "Exception", "text": "an error that cannot be printed"}


def source_of(function: Any) -> bytes:
    """The message with a function's source, or with none."""
    with suppress(BaseException):
        return packed({"source": inspect.getsource(function)[:20000]})
    return packed({"source": None})


def limit(threads: int) -> None:
    """Bound memory, files, open files and, above 0, threads and processes; never a core file."""
    import resource  # not on Windows, where nothing is graded

    memory = GIGABYTES << 30
    bounds = [("AS", memory), ("FSIZE", MOST_FILE), ("CORE", 0), ("NOFILE", 256)]
    bounds += [("NPROC", threads)] if threads else []
    for name, bound in bounds:
        with suppress(ValueError, OSError):  # macOS knows no bound of the address space
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (bound, bound))


def away_from_the_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Requests and answers, on other numbers: what a student prints or reads goes nowhere."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return requests, answers


def namespace() -> dict[str, Any]:
    """The names of a fresh notebook, as a module, so that dataclasses and pickle find it."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__["display"] = lambda *_, **__: None
    return module.__dict__


def respond(request: tuple[Any, ...], known: dict[str, Any]) -> bytes:
    """The message that answers a request, for the notebook's names."""
    kind = request[0]
    if kind == "run":
        return packed({"problem": run(request[1], request[2], known)})
    if kind == "source":
        return source_of(known.get(request[1]))
    _, how, name, arguments = request
    return ask(how, known.get(name), arguments)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    known = namespace()
    read, write = requests.read, answers.write
    pending = packed({"ready": True})
    while True:
        write(pending)
        answers.flush()
        if len(head := read(4)) < 4:
            os._exit(0)
        # from the grader, which a student's code cannot write to
        request = pickle.loads(read(struct.unpack(">I", head)[0]))
        pending = respond(request, known)


if __name__ == "__main__":
    pipes = away_from_the_pipes()
    limit(int(sys.argv[1]))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    serve(*pipes)
