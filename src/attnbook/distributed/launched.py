"""What the launchers of both back ends share: a folder through which workers and caller speak."""

import json
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnbook.distributed.sources import source_of

WORKER = "worker.py"  # what errors call the text of the function
TEXT = """from __future__ import annotations
{source}

if __name__ == "__main__":
    from attnbook.{backend}.launch import work

    work({name})
"""


def worker_text(function: Callable[..., Any], backend: str) -> str:
    """The program of a worker. Annotations are not evaluated: they may name what is not there."""
    return TEXT.format(source=source_of(function), backend=backend, name=function.__name__)


def pickled(arguments: dict[str, Any]) -> bytes:
    """Arguments as they are sent to the workers; a ValueError for what pickle does not take."""
    try:
        return pickle.dumps(arguments)
    except Exception as error:
        raise ValueError(
            f"arguments: got {', '.join(arguments)}, expected what pickle takes: {error}"
        ) from None


def python_path() -> str:
    """Where workers find what this process can import."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


def report(folder: Path, rank: int, error: BaseException) -> None:
    """Write a worker's error to a file, without the frame of the launcher that caught it."""
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, trace)).strip()
    text = text.replace(str(folder) + os.sep, "")
    told = {"time": time.time(), "rank": rank, "text": text}
    (folder / f"told-{rank}").write_text(json.dumps(told), encoding="utf-8")
    (folder / f"told-{rank}").rename(folder / f"error-{rank}")


def first_error(folder: Path, world: int) -> str | None:
    """The error of the worker that failed first, if one has told of it."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("error-*")]
    if not found:
        return None
    first = min(found, key=lambda error: error["time"])
    return f"rank {first['rank']} of {world} failed:\n{first['text']}"


def show_printed(folder: Path, world: int) -> None:
    """Print what the workers have printed, rank by rank."""
    for printed in (folder / f"printed-{rank}" for rank in range(world)):
        if printed.exists():
            print(printed.read_text(encoding="utf-8", errors="replace"), end="")
