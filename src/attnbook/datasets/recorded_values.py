"""Values that a reader's machine computes where it can, and reads where it cannot."""

import json
import os
import warnings
from collections.abc import Callable
from datetime import date
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from attnbook import devices
from attnbook.datasets.stored_results import results

NEAR = 0.02  # of the largest number of an array: another processor rounds differently
DIGITS = 6  # of what is stored


def recorded(name: str, *, live: bool) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """A decorator for functions without arguments that need a file which not everybody has.

    With the file the function runs. If what it gives is close to what it gave when it was recorded,
    the recorded value is given back, so that every processor prints the same; if not, its own
    value, with a warning. Without the file the recorded value stands in.

    Args:
        name: of the results in attnbook/datasets/results.
        live: whether the file is there, so that functions run.

    Returns:
        A decorator. With ATTNBOOK_RECORD=1 in the environment the function writes its value.

    Raises:
        ValueError: a function that was never recorded, without the file.
    """

    def decorate(function: Callable[[], Any]) -> Callable[[], Any]:
        @wraps(function)
        def recorded_function() -> Any:
            key = function.__name__
            if live and os.environ.get("ATTNBOOK_RECORD"):
                _write(name, key, _plain(function()))
            stored = results(name)["found"]
            if not live:
                if key not in stored:
                    raise ValueError(f"{key}: got a function that was not recorded in {name}.json")
                return _arrays(stored[key])
            found = _plain(function())  # of the same types as what is read
            if different := _difference(key, found, stored.get(key)):
                warnings.warn(f"{different}; shown is what came now", stacklevel=2)
                return _arrays(found)
            return _arrays(stored[key])

        return recorded_function

    return decorate


def _write(name: str, key: str, found: Any) -> None:
    path = Path(str(files("attnbook").joinpath("datasets", "results", f"{name}.json")))
    known = json.loads(path.read_text(encoding="utf-8"))["found"] if path.exists() else {}
    made = {"date": date.today().isoformat(), "machine": devices.describe()}
    text = json.dumps(made | {"found": known | {key: found}}, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """As JSON holds it: arrays as lists, floats with six digits."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return _plain(np.asarray(value).tolist())


def _arrays(value: Any) -> Any:
    """What JSON held, with lists of numbers as arrays again."""
    if isinstance(value, dict):
        return {key: _arrays(part) for key, part in value.items()}
    return np.array(value) if isinstance(value, list) and not _has_text(value) else value


def _has_text(value: list[Any]) -> bool:
    return any(
        _has_text(v) if isinstance(v, list) else not isinstance(v, float | int) for v in value
    )


def _difference(key: str, found: Any, stored: Any) -> str:
    """Which part of a value is not close to the recorded one, in words; nothing where all are."""
    if isinstance(stored, dict) and isinstance(found, dict) and set(found) == set(stored):
        parts = (_difference(f"{key}[{name!r}]", found[name], stored[name]) for name in stored)
        return next(filter(None, parts), "")
    now, then = _arrays(found), _arrays(stored)
    if all(isinstance(one, float | int | np.ndarray) for one in (now, then)):
        allowed = NEAR * np.max(np.abs(then), where=np.isfinite(then), initial=0.0)
        if np.shape(now) == np.shape(then) and np.allclose(
            now, then, rtol=0, atol=allowed, equal_nan=True
        ):
            return ""
    return "" if found == stored else f"{key}: got {now!r}, recorded was {then!r}"
