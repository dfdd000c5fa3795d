"""What takes long to make is made by one of the processes in which tests run, for all of them."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

Made = TypeVar("Made")
SECONDS = 900


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """What make gives for a new folder; with pytest-xdist, the same for every process."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return make(factory.mktemp(name))
    folder = factory.getbasetemp().parent / name
    result = folder.with_suffix(".pickle")
    try:
        folder.mkdir()
    except FileExistsError:
        return _waited_for(result)
    made: object = None
    try:
        made = make(folder)
    except BaseException as error:
        made = Failed(repr(error))
        raise
    finally:
        part = result.with_suffix(".part")
        part.write_bytes(pickle.dumps(made))
        part.rename(result)
    return made


class Failed(str):
    """Why another process could not make it."""


def _waited_for(result: Path) -> Any:
    until = time.monotonic() + SECONDS
    while not result.exists():
        assert time.monotonic() < until, f"no {result.name} after {SECONDS} s"
        time.sleep(0.1)
    made = pickle.loads(result.read_bytes())
    assert not isinstance(made, Failed), f"another process could not make it: {made}"
    return made
