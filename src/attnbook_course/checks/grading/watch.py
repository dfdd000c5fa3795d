"""What a student's process does, as the kernel counts it: threads, files, memory at its peak.

Its own tools would say what its code wants them to say; the kernel is asked from outside.
"""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path

MOST_THREADS = 256 + 8 * (os.cpu_count() or 1)  # PyTorch and JAX have some for each processor
MOST_FILES = 10_000
OWN_COUNT = (5, 14)  # of Linux; before, a user's processes in and out of the sandbox are counted


def threads_to_bound(kind: str) -> int:
    """The worker's own bound of its threads; 0 where it would count the lecturer's processes."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    counts_its_own = found is not None and (int(found[1]), int(found[2])) >= OWN_COUNT
    return MOST_THREADS if kind != "none" and counts_its_own else 0


class Watch:
    """Looks at a process from outside.

    Args:
        process: the number of the process, or of the bubblewrap that started it.
        room: a folder that is in the sandbox alone; empty without one.
    """

    def __init__(self, process: int, room: str) -> None:
        self.process, self.room = process, room
        self.sees_memory, self.sees_files = self.forget_peak(), self._files() is not None

    def excess(self) -> str:
        """What the process has too much of, in words; empty if nothing."""
        with suppress(OSError):
            if len(os.listdir(f"/proc/{self._worker()}/task")) > MOST_THREADS:
                return f"it started more than {MOST_THREADS} threads"
            files = self._files()
            if files is None and self.sees_files:
                return "it hid its files"
            if files is not None and files > MOST_FILES:
                return f"it wrote more than {MOST_FILES} files"
        return ""

    def _files(self) -> int | None:
        """How many files lie in its room; None where that is not to be seen."""
        if not self.room:
            return None
        try:
            state = os.statvfs(f"/proc/{self._worker()}/root{self.room}")
        except PermissionError:
            return None
        return state.f_files - state.f_ffree

    def forget_peak(self) -> bool:
        """Let the peak of the memory begin anew; whether that can be done here."""
        try:
            Path(f"/proc/{self._worker()}/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            return False
        return True

    def memory(self, *, peak: bool = False) -> int:
        """The bytes of memory that it holds, or held at most since forget_peak; 0 if it is gone."""
        with suppress(OSError):
            text = Path(f"/proc/{self._worker()}/status").read_text("utf-8", "replace")
            found = re.search(rf"^{'VmHWM' if peak else 'VmRSS'}:\s+(\d+) kB", text, re.MULTILINE)
            return int(found[1]) << 10 if found else 0
        return 0

    def _worker(self) -> int:
        """The student's own process: the last of the chain that bubblewrap makes."""
        last = self.process
        with suppress(OSError):
            while below := Path(f"/proc/{last}/task/{last}/children").read_text("ascii").split():
                last = int(below[0])
        return last
