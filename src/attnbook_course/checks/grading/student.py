"""A student's process: started with the notebook's cells, asked for answers within a time."""

from __future__ import annotations

import builtins
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from attnbook_course.checks.grading.pipe import Garbled, Message, printable, received
from attnbook_course.checks.grading.sandbox import Kind, started
from attnbook_course.checks.remote import Remote
from attnbook_course.checks.verdict import Wrong

WORKER = [sys.executable, "-P", "-m", "attnbook_course.checks.grading.worker"]
MISSING = "there is no function"
START_SECONDS = 60.0  # for Python itself, on a busy machine
LOOK_SECONDS = 0.25  # between two looks at what the process does
MOST_PROCESSES = 16  # bubblewrap's two and the worker included
MOST_THREADS = 256 + 8 * (os.cpu_count() or 1)  # PyTorch and JAX have some for each processor


class Lost(BaseException):
    """The student's process gives no answer. No check catches it."""


class TooLong(Lost):
    """It did not answer in time."""


class Gone(Lost):
    """It ended, or said what no honest process says."""


class TooMuch(Gone):
    """It was ended, since it started too many processes."""


class NotStarted(Lost):
    """The worker did not start, which is no student's fault."""


class Student:
    """A process that has run a notebook's cells, and is started again after it is lost.

    Args:
        cells: the code cells, in order.
        kind: of sandbox.
        seconds: for a cell, and for an answer.
        in_all: seconds for the whole notebook.
    """

    def __init__(
        self, cells: list[str], kind: Kind, *, seconds: float, in_all: float = float("inf")
    ) -> None:
        self.cells, self.kind, self.seconds = cells, kind, seconds
        self.until = time.monotonic() + in_all
        self.problems: dict[int, str] = {}
        self.left_out: set[int] = set()
        self.timeouts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def ask(self, *request: Any) -> Message:
        """The answer to a request, as the worker's respond takes it.

        Raises:
            Lost: there is none.
        """
        self.start()
        try:
            return self._answer(request, self.seconds)
        except Lost:
            self.stop()
            raise

    def start(self) -> None:
        """Run the cells in order; one that does not end, or ends the process, once only.

        Raises:
            NotStarted: the process does not start at all.
            TooLong: the time for the whole notebook is over.
        """
        while self._process is None:
            at = -1
            try:
                self._open()
                for at, cell in enumerate(self.cells):
                    if at not in self.left_out:
                        words, _ = self._answer(("run", cell, at), self.seconds)
                        self.problems[at] = printable(words.get("problem", ""))[:300]
            except Lost as end:
                self.stop()
                if at < 0:
                    raise NotStarted("the sandbox did not start") from None
                if time.monotonic() > self.until:
                    raise
                self.left_out.add(at)
                does = f"does not end within {self.seconds:g} s"
                if isinstance(end, Gone):
                    does = f"ends the process{': ' * isinstance(end, TooMuch)}{end or ''}"
                self.problems[at] = does

    def stop(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    _opened(pipe).close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Student:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="attnbook-", ignore_cleanup_errors=True)
        words = [*WORKER, str(0 if self.kind == "none" else MOST_THREADS)]
        self._process = started(self.kind, words, self._folder.name)
        self._answer(None, START_SECONDS)

    def _answer(self, request: tuple[Any, ...] | None, seconds: float) -> Message:
        """The next message, after this request if there is one; the process ends if it is late."""
        process = self._process
        assert process is not None
        until = min(time.monotonic() + seconds, self.until)
        ended: list[Lost] = []
        answered = threading.Event()

        def look() -> None:
            while not answered.wait(LOOK_SECONDS):
                if too_many_below(process.pid):
                    ended.append(TooMuch(f"it started more than {MOST_PROCESSES} processes"))
                elif time.monotonic() > until:
                    self.timeouts += 1
                    ended.append(TooLong())
                if ended:
                    _end(process)
                    return

        looking = threading.Thread(target=look)
        looking.start()
        try:
            if request is not None:
                data = pickle.dumps(request)
                _opened(process.stdin).write(struct.pack(">I", len(data)) + data)
                _opened(process.stdin).flush()
            return received(lambda size: _exactly(_opened(process.stdout), size))
        except (OSError, EOFError):
            answered.set()
            looking.join()
            raise (ended or [Gone("its process ended")])[0] from None
        except Garbled:
            raise Gone("its answer cannot be read") from None
        finally:
            answered.set()
            looking.join()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _opened(pipe: Any) -> BinaryIO:
    assert pipe is not None
    opened: BinaryIO = pipe
    return opened


def _exactly(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


@dataclass
class Asked(Remote):
    """A function of a student's notebook, for a check."""

    student: Student
    name: str

    def ask(self, how: str, arguments: tuple[Any, ...]) -> Any:
        """The answer; raises what the function raised, under its name."""
        words, arrays = self.student.ask("ask", how, self.name, arguments)
        kind, text = words.get("error"), printable(words.get("text", ""))[:2000]
        if kind is None:
            return self._answer(how, arrays)
        if kind == "missing":
            raise Wrong(f"{MISSING} {self.name} in the notebook")
        if kind == "Wrong":
            raise Wrong(text)
        if kind == "NotImplementedError" and words.get("bare"):
            raise NotImplementedError
        error = _error(printable(kind)[:80], text)
        notes = words.get("notes")
        for note in notes[:1] if isinstance(notes, list) else []:
            error.add_note(printable(note)[:300])
        raise error

    def source(self) -> str:
        """The function's source, as the notebook has it."""
        source = self.student.ask("source", self.name)[0].get("source")
        if not isinstance(source, str):
            raise OSError(f"there is no source of {self.name}")
        return printable(source)

    def _answer(self, how: str, arrays: list[np.ndarray]) -> Any:
        wanted = 2 if how == "call_pair" else 1
        if len(arrays) != wanted:
            self.student.stop()
            raise Gone("its answer cannot be read")
        return (arrays[0], arrays[1]) if wanted == 2 else arrays[0]


def too_many_below(process: int) -> bool:
    """Whether more than MOST_PROCESSES run from this one downwards, as Linux counts them."""
    found = [process]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):  # it has ended
                found += map(int, children.read_text("ascii").split())
        if len(found) > MOST_PROCESSES:
            return True
    return False


def _error(name: str, text: str) -> Exception:
    """An error of this name that prints this text; also of Python's own class of this name."""
    own = getattr(builtins, name, None)
    base = own if isinstance(own, type) and issubclass(own, Exception) else Exception
    kind = type(name, (base,), {"__str__": lambda _: text, "__init__": lambda *_: None})
    made: Exception = kind(text)
    return made
