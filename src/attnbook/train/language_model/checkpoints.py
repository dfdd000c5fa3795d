"""Checkpoints of a training in a folder: complete or not there, and none lost to a failed write.

A checkpoint of step 40 is the folder `step-40`. It is written as `writing-step-40`; its contents,
with the size and the CRC-32 of every file, come last into `contents.json`; then it is renamed. A
process may be killed at any moment: what is called `step-40` is complete, and what is cut short
afterwards does not fit its contents. The complete checkpoint before it is kept.

The CRC-32 finds what was damaged, and not what was forged: whoever can write into the folder can
compute it anew. Reading a checkpoint runs nothing that stands in it, but its numbers are believed:
go on only from folders that you, or people whom you trust, have written.
"""

import errno
import importlib
import json
import os
import shutil
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONTENTS = "contents.json"
CHUNK = 2**22  # bytes that are read at once
WAIT = 60  # seconds that a run waits for another one in its folder
Say = Callable[[str], None]


def say(message: str) -> None:
    """A line on stderr."""
    print(message, file=sys.stderr, flush=True)


def step_of(folder: Path) -> int | None:
    """The step of a checkpoint's folder, None for another name.

    Args:
        folder: such as step-40.
    """
    kind, _, number = folder.name.partition("-")
    return int(number) if kind == "step" and number.isdecimal() else None


def of_steps(folder: str | Path) -> list[Path]:
    """The folders step-N of a folder, complete or damaged, the newest first.

    Args:
        folder: need not be there.
    """
    there = Path(folder).iterdir() if Path(folder).is_dir() else iter(())
    steps = [found for found in there if found.is_dir() and step_of(found) is not None]
    return sorted(steps, key=lambda found: step_of(found) or 0, reverse=True)


def unfinished(folder: str | Path) -> list[Path]:
    """The folders that a process was writing when it ended.

    Args:
        folder: need not be there.
    """
    return sorted(Path(folder).glob("writing-step-*"))


def seal(folder: str | Path, settings: dict[str, Any]) -> None:
    """Write down what a checkpoint holds: the last file of it.

    Args:
        folder: of the checkpoint, with all its other files.
        settings: what JSON can hold; `read` gives it back.

    Raises:
        OSError: no room, no permission.
    """
    names = [found for found in sorted(Path(folder).rglob("*")) if found.is_file()]
    files = {str(name.relative_to(folder)): list(_measure(name)) for name in names}
    text = json.dumps({"settings": settings, "files": files}, indent=1)
    with open(Path(folder) / CONTENTS, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read(folder: str | Path) -> dict[str, Any]:
    """The settings with which a checkpoint was sealed, if it is complete.

    Args:
        folder: of the checkpoint.

    Raises:
        ValueError: it is damaged; what differs is named.
    """
    try:
        contents = json.loads((Path(folder) / CONTENTS).read_text(encoding="utf-8"))
        settings, files = contents["settings"], contents["files"]
        if not isinstance(settings, dict):
            got = type(settings).__name__
            raise ValueError(f"got a {got} as settings in {CONTENTS}, expected an object")
        for name, (expected_size, expected_check) in files.items():
            size, check = _measure(Path(folder) / name)
            if size != expected_size:
                raise ValueError(f"got {size} bytes in {name}, expected {expected_size}")
            if check != expected_check:
                raise ValueError(f"got {check} as CRC-32 in {name}, expected {expected_check}")
    except FileNotFoundError as error:
        raise ValueError(f"{folder}: expected {Path(str(error.filename)).name} in it") from None
    except (OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{folder}: got {error}, expected a complete checkpoint") from None
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    return read_settings(folder)


def read_settings(folder: str | Path) -> dict[str, Any]:
    """The settings of a checkpoint that `read` has found complete; its files are not read again.

    Args:
        folder: of the checkpoint.
    """
    contents = json.loads((Path(folder) / CONTENTS).read_text(encoding="utf-8"))
    settings: dict[str, Any] = contents["settings"]
    return settings


def newest(folder: str | Path, say: Say = say) -> Path | None:
    """The newest complete checkpoint; a word on each that is passed over.

    Args:
        folder: of the checkpoints; need not be there.
        say: is given each word; the default writes it to stderr.
    """
    for left in unfinished(folder):
        say(f"checkpoint: {left} was never finished, passed over")
    for found in of_steps(folder):
        try:
            read(found)
        except ValueError as error:
            say(f"checkpoint: passed over, damaged: {error}")
        else:
            return found
    return None


@contextmanager
def lock(folder: str | Path, wait: float = WAIT, say: Say = say) -> Iterator[None]:
    """Keep other runs of this machine out of a folder; the system ends that when the process ends.

    Another run may be about to end, such as one whose launcher was killed: it is waited for.

    Args:
        folder: of the checkpoints.
        wait: seconds that another run is waited for.
        say: is given a word about that.

    Raises:
        OSError: no such folder, no permission, another run that goes on.
    """
    if sys.platform == "win32":
        yield
        return
    handle, end = os.open(folder, os.O_RDONLY), time.monotonic() + wait
    try:
        if not _try_lock(handle):
            say(f"checkpoint: another run has {folder}, waiting for its end")
        while not _try_lock(handle):
            if time.monotonic() > end:
                raise BlockingIOError(errno.EWOULDBLOCK, "Another run has it")
            time.sleep(0.1)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    """Whether an open folder is locked for us, as far as its file system has locks."""
    fcntl: Any = importlib.import_module("fcntl")  # which Windows has not
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def prepare(folder: str | Path, step: int) -> Path:
    """An empty folder in which the checkpoint of a step is to be written.

    Args:
        folder: of the checkpoints; is made if it is not there.
        step: from 1.

    Raises:
        OSError: no room, no permission.
    """
    for left in unfinished(folder):
        shutil.rmtree(left)
    writing = Path(folder) / f"writing-step-{step}"
    writing.mkdir(parents=True)
    return writing


def publish(writing: str | Path, settings: dict[str, Any], *, keep: int | None = None) -> Path:
    """Seal what was written, give it its name, and remove what is older than the last one.

    Args:
        writing: what `prepare` gave, filled.
        settings: as in `seal`.
        keep: the step of the complete checkpoint before this one; older ones are removed. With
            None nothing is.

    Raises:
        OSError: no room, no permission; all that was complete still is.
    """
    writing = Path(writing)
    seal(writing, settings)
    complete = writing.with_name(writing.name.removeprefix("writing-"))
    if complete.exists():  # it was damaged, and passed over
        shutil.rmtree(complete)
    writing.rename(complete)
    _flush(complete.parent)
    for found in of_steps(complete.parent) if keep is not None else []:
        if (step_of(found) or 0) < (keep or 0):
            shutil.rmtree(found)
    return complete


def _measure(file: Path) -> tuple[int, int]:
    """Bytes and CRC-32 of a file."""
    size = check = 0
    with open(file, "rb") as opened:
        while part := opened.read(CHUNK):
            size, check = size + len(part), zlib.crc32(part, check)
    return size, check


def _flush(folder: Path) -> None:
    """Let a new name outlive a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
