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
            try:
                _compare(key, found, stored.get(key))
            except ValueError as different:
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
    if isinstance(value, list) and not _has_text(value):
        return np.array(value)
    return value


def _has_text(value: Any) -> bool:
    return any(
        _has_text(v) if isinstance(v, list) else not isinstance(v, float | int) for v in value
    )


def _compare(key: str, found: Any, stored: Any) -> None:
    """Raise unless a value is close to the recorded one, part by part."""
    if found == stored:
        return
    if isinstance(stored, dict):
        if not isinstance(found, dict) or set(found) != set(stored):
            raise ValueError(f"{key}: got {found!r}, recorded was a dict of {', '.join(stored)}")
        for part in stored:
            _compare(f"{key}[{part!r}]", found[part], stored[part])
        return
    now, then = _arrays(found), _arrays(stored)
    numbers = not any(value is None or isinstance(value, list | str) for value in (now, then))
    if not numbers or np.shape(now) != np.shape(then):
        raise ValueError(f"{key}: got {found!r}, recorded was {stored!r}")
    allowed = NEAR * np.max(np.abs(then), where=np.isfinite(then), initial=0.0)
    if not np.allclose(now, then, rtol=0, atol=allowed, equal_nan=True):
        raise ValueError(
            f"{key}: got {now}, recorded was {then}, expected a distance of {allowed:.2g} at most"
        )
