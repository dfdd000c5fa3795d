"""A student's process: started with the notebook's cells, asked for answers within a time."""

from __future__ import annotations

import builtins
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook_course.checks.call import TOO_MUCH
from attnbook_course.checks.grading.pipe import Garbled, Message, printable, received
from attnbook_course.checks.grading.sandbox import Kind, started
from attnbook_course.checks.grading.watch import Watch, threads_to_bound
from attnbook_course.checks.remote import Remote
from attnbook_course.checks.verdict import Wrong

WORKER = [sys.executable, "-P", "-m", "attnbook_course.checks.grading.worker"]
START_SECONDS = 60.0  # for Python itself, on a busy machine
LOOK_SECONDS = 0.25  # between two looks at what the process does
MOST_HELD = 20_000_000  # bytes more at the peak than before
UNSURE = 10_000_000  # by which the kernel's account may be off


class Lost(BaseException):
    """The student's process gives no answer. No check catches it."""


class TooLong(Lost):
    """It did not answer in time."""


class Gone(Lost):
    """It ended, or said what no honest process says."""


class TooMuch(Gone):
    """It was ended, since it had too much of something."""


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
        self._watch: Watch | None = None

    def ask(self, how: str, name: str, arguments: tuple[Any, ...]) -> Message:
        """The answer of the notebook's function of this name.

        Raises:
            Lost: there is none.
        """
        return self._asked(("ask", how, name, arguments))

    def ask_within_memory(self, name: str, arguments: tuple[Any, ...]) -> Message:
        """As ask for call_with_memory_limit, and the kernel says what is held.

        Raises:
            Wrong: more than MOST_HELD at once, or nothing can see how much.
        """
        # First other numbers of the same shapes: what a library compiles or loads is there then.
        self.ask("call", name, tuple(_reversed(one) for one in arguments))
        watch = self._watch
        assert watch is not None
        can_be_seen, before = watch.forget_peak(), watch.memory()
        answer = self.ask("call_with_memory_limit", name, arguments)
        held = watch.memory(peak=True) - before
        if watch.sees_memory and (not can_be_seen or held < -UNSURE):
            raise Wrong("nothing can see what your function holds: leave the process as it is")
        if can_be_seen and not answer[0].get("error") and held > MOST_HELD + UNSURE:
            raise Wrong(TOO_MUCH.format(held / 1e6))
        return answer

    def source(self, name: str) -> str | None:
        """The source of the notebook's function of this name."""
        source = self._asked(("source", name))[0].get("source")
        return printable(source) if isinstance(source, str) else None

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
        process, self._process, self._watch = self._process, None, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError):
                    pipe.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Student:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="attnbook-", ignore_cleanup_errors=True)
        words = [*WORKER, str(threads_to_bound(self.kind))]
        self._process = started(self.kind, words, self._folder.name)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        self._read(time.monotonic() + START_SECONDS)
        self._watch = Watch(self._process.pid, "/tmp" if self.kind != "none" else "")

    def _asked(self, request: tuple[Any, ...]) -> Message:
        self.start()
        try:
            return self._answer(request, self.seconds)
        except Lost:
            self.stop()
            raise

    def _answer(self, request: tuple[Any, ...], seconds: float) -> Message:
        until = min(time.monotonic() + seconds, self.until)
        data = pickle.dumps(request)
        self._write(struct.pack(">I", len(data)) + data, until)
        answer = self._read(until)
        self._look()
        return answer

    def _look(self) -> None:
        """Raise TooMuch where the process has too much of something."""
        if self._watch is not None and (excess := self._watch.excess()):
            raise TooMuch(excess)

    def _write(self, data: bytes, until: float) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        pipe, left = self._process.stdin.fileno(), memoryview(data)
        while left:
            self._wait(pipe, until, to_write=True)
            try:
                left = left[os.write(pipe, left[: 1 << 16]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise Gone("its process ended") from None

    def _read(self, until: float) -> Message:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()

        def exactly(size: int) -> bytes:
            parts, left = [], size
            while left:
                self._wait(pipe, until, to_write=False)
                try:
                    part = os.read(pipe, min(1 << 20, left))
                except BlockingIOError:
                    continue
                if not part:
                    raise Gone("its process ended")
                parts.append(part)
                left -= len(part)
            return b"".join(parts)

        try:
            return received(exactly)
        except Garbled:
            raise Gone("its answer cannot be read") from None

    def _wait(self, pipe: int, until: float, *, to_write: bool) -> None:
        sides: tuple[list[int], list[int]] = ([], [pipe]) if to_write else ([pipe], [])
        while (left := until - time.monotonic()) > 0:
            if any(select.select(*sides, [], min(left, LOOK_SECONDS))):
                return
            self._look()
        self.timeouts += 1
        raise TooLong


@dataclass
class Asked(Remote):
    """A function of a student's notebook, for a check."""

    student: Student
    name: str

    def ask(self, how: str, arguments: tuple[Any, ...]) -> Any:
        """The answer; raises what the function raised, under its name."""
        if how == "call_with_memory_limit":
            words, arrays = self.student.ask_within_memory(self.name, arguments)
        else:
            words, arrays = self.student.ask(how, self.name, arguments)
        kind, text = words.get("error"), printable(words.get("text", ""))[:2000]
        if kind is None:
            return self._answer(how, arrays)
        if kind == "missing":
            raise Wrong(f"there is no function {self.name} in the notebook")
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
        source = self.student.source(self.name)
        if source is None:
            raise OSError(f"there is no source of {self.name}")
        return source

    def _answer(self, how: str, arrays: list[np.ndarray]) -> Any:
        wanted = 2 if how == "call_pair" else 1
        if len(arrays) != wanted:
            self.student.stop()
            raise Gone("its answer cannot be read")
        return (arrays[0], arrays[1]) if wanted == 2 else arrays[0]


def _reversed(argument: Any) -> Any:
    """Other numbers of the same shape, which belong together as they did."""
    return argument[::-1].copy() if isinstance(argument, np.ndarray) and argument.ndim else argument


def _error(name: str, text: str) -> Exception:
    """An error of this name that prints this text; also of Python's own class of this name."""
    own = getattr(builtins, name, None)
    base = own if isinstance(own, type) and issubclass(own, Exception) else Exception
    kind = type(name, (base,), {"__str__": lambda _: text, "__init__": lambda *_: None})
    made: Exception = kind(text)
    return made
