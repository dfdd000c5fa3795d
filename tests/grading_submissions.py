"""A class for the grader: right, wrong, unlucky and hostile notebooks, with the points of each.

Every submission is the notebook of the right answers, or of wrong ones, with some cells changed.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PLAN = {
    "title": "Homework 0: <b>tests</b> & more",
    "after": "1b",
    "chapters": ["01"],
    "seconds": 60,
    "minutes": 10,
    "explanations": "read",
    "points": dict.fromkeys(("ex-parabola", "ex-neighbours", "ex-half"), 1)
    | dict.fromkeys(("ex-weights", "ex-slope", "ex-far-query"), 2)
    | {"ex-explain-valley": 3},
    "held_out": {"ho-power-kernel": 4, "ho-many-inputs": 3},
}
CHECKED = [
    *("ex-parabola", "ex-neighbours", "ex-half", "ex-weights", "ex-slope", "ex-far-query"),
    *("ho-power-kernel", "ho-many-inputs"),
]
# The right answers, by another hand than the book's; and some wrong ones.
RIGHT = {
    "ex-parabola": """
def epanechnikov(u):
    inside = np.abs(u) < 1
    return np.where(inside, 3 * (1 - u * u) / 4, 0)
""",
    "ex-neighbours": """
def effective_neighbours(weights):
    squares = np.square(weights)
    return np.reciprocal(np.sum(squares, axis=1))
""",
}
WRONG = {
    "ex-parabola": "def epanechnikov(u):\n    return np.maximum(0, 1 - u)",
    "ex-neighbours": "def effective_neighbours(weights):\n    return 1 / (weights**2).sum(0)",
    "ex-half": "def data_for_half_the_error():\n    return 2.0",
    "ex-weights": "def gaussian_weights(distances, bandwidth):\n"
    "    k = np.exp(-distances**2 / (2 * bandwidth**2))\n    return k / k.sum()",
    "ex-slope": "def bandwidth_gradient(query, keys, values, bandwidth):\n    return wieghts",
    "ho-power-kernel": "def power_kernel(u):\n    return 0.75 * np.maximum(0, 1 - u**2)",
    "ho-many-inputs": "def data_for_less_error():\n    return 4.0",
}
EVERY = [1, 1, 1, 2, 2, 2, 4, 3]
NOTHING = [0] * 8


def without(*labels: str) -> list[int]:
    """All points but those of these exercises."""
    return [0 if label in labels else points for label, points in zip(CHECKED, EVERY, strict=True)]


PATCHED = """
from attnbook_course.checks.verdict import Verdict
import attnbook_course.checks.ch01 as chapter, attnbook_course.checks.verdict as verdict
import attnbook_course.checks.call as call
for name in dir(chapter):
    setattr(chapter, name, lambda f: Verdict("right", "yes"))
verdict.expect = lambda *x, **y: None
np.isclose = lambda *a, **k: np.True_
np.all = lambda *a, **k: True
def bandwidth_gradient(*a):
    return 0.0
checks.ch01.bandwidth_gradient(bandwidth_gradient)
"""
SYSTEM = """
import os, pathlib, subprocess, urllib.request
found = []
for what in ("touch {folder}/PWNED", "rm -rf {folder}/submissions", "echo $HOME"):
    try:
        found.append(os.system(what))
    except OSError as error:
        found.append(error)
own = "{folder}/key/homework.json", "{folder}/key/held_out/ch01.py"
for path in (*own, "/etc/passwd", "/proc/1/environ"):
    try:
        text = open(path).read()
        found.append("clean" if "environ" in path and "hunter2" not in text else "READ")
    except OSError as error:
        found.append(type(error).__name__)
try:
    urllib.request.urlopen("http://127.0.0.1:9", timeout=1)
    found.append("REACHED")
except OSError:
    found.append("no network")
def epanechnikov(u):
    return np.where(u < 1, 0.75 * (1 - u * u), 0)
"""
SAY = """
def data_for_half_the_error():
    raise NameError(" | ".join(str(one)[:40] for one in found))
"""
FORGED = """
import os, struct, json
def bandwidth_gradient(*a):
    for head in ({"shapes": [[10**12]]}, {"shapes": [[1]], "verdict": "right"}, [1], {"shapes": [["x"]]}):
        data = json.dumps(head).encode()
        for fd in range(3, 20):
            try:
                os.write(fd, struct.pack(">I", len(data)) + data)
            except OSError:
                pass
    return 0.0
"""
PICKLE = """
class Evil:
    def __reduce__(self):
        return __import__("os").system, ("touch {folder}/PWNED",)
    def __array__(self, *a, **k):
        return np.array([Evil()], dtype=object)
    def __eq__(self, other):
        return True
    __hash__ = None
def gaussian_weights(distances, bandwidth):
    return Evil()
"""
TORCH = """
import torch
def gaussian_weights(distances, bandwidth):
    return torch.softmax(-(torch.as_tensor(distances) ** 2) / (2 * bandwidth**2), -1)
"""
MEMORY = """
def gaussian_weights(distances, bandwidth):
    return np.ones((200_000, 200_000))
"""
PRINTS = """
print("x" * 10**8)
def data_for_half_the_error():
    print("y" * 10**7)
    return 2 ** 1.25
"""
FORKS = """
import os, threading
def gaussian_weights(distances, bandwidth):
    while True:
        os.fork()
"""
THREADS = """
import threading
def spin():
    while True:
        pass
for _ in range(3):
    threading.Thread(target=spin).start()
def data_for_half_the_error():
    return 2 ** 1.25
"""
LIBRARIES = """
import json, struct, pickle, inspect
json.dumps = lambda *a, **k: '{"shapes": []}'
struct.pack = lambda *a: b"0000"
def bandwidth_gradient(*a):
    return 0.0
"""
COUNTS = """
calls = 0
def epanechnikov(u):
    global calls
    calls += 1
    return 0.75 * np.maximum(0, 1 - u**2) + (calls > 2)
"""
FULL_DISK = """
try:
    for i in range(10_000):
        open(f"/tmp/{i}", "wb").write(bytes(10**7))
except OSError as error:
    full = error.strerror
def data_for_half_the_error():
    raise NameError(full)
"""
SEGFAULT = """
import ctypes
def gaussian_weights(distances, bandwidth):
    ctypes.string_at(0)
"""
MAGICS = """%matplotlib inline
!pip install something
data_for_half_the_error?
display("shown")
def data_for_half_the_error():
    return 2 ** 1.25
%timeit 1
"""
DEEP = "def predict(queries, keys, values, bandwidth):\n    return " + "(" * 150 + "1" + ")" * 150
STRANGE = """
class Strange(NameError):
    def __str__(self):
        return "\\x1b[2J\\ud800<script>alert(1)</script>"
Strange.__name__ = "<b>"
def epanechnikov(u):
    raise Strange
"""

HALF = "def data_for_half_the_error():\n    "
RIGHT_HALF = f"{HALF}return 2**1.25\n"
NEIGHBOURS = "def effective_neighbours(weights):\n    "
WEIGHTS = "def gaussian_weights(distances, bandwidth):\n    "
# name: what is changed in the right answers (None: the cell is deleted)
CHANGED: dict[str, dict[str, str | None]] = {
    "right": {},
    "loop in function": {"ex-weights": f"{WEIGHTS}while True:\n        pass"},
    "loop in cell": {"ex-half": f"{RIGHT_HALF}while True: pass"},
    "syntax error": {"ex-weights": WEIGHTS.replace(":", "") + "return distances"},
    "os system": {"ex-parabola": SYSTEM, "ex-half": SAY},
    "exits": {
        "ex-neighbours": f"import os\n{NEIGHBOURS}os._exit(0)",
        "ex-half": f"import sys\nsys.exit()\n{RIGHT_HALF}",
    },
    "memory": {"ex-weights": MEMORY, "ex-half": PRINTS},
    "pickle and pipes": {"ex-weights": PICKLE, "ex-slope": FORGED},
    "torch answer": {"ex-weights": TORCH},
    "fork bomb": {"ex-weights": FORKS},
    "sleeps": {"ex-half": f"import time\n{HALF}time.sleep(3600)"},
    "threads": {"ex-half": THREADS},
    "patched libraries": {"ex-slope": LIBRARIES},
    "counts its calls": {"ex-parabola": COUNTS},
    "text": {"ex-half": f"{HALF}return '2.378'"},
    "nan": {"ex-half": f"{HALF}return float('nan')"},
    "huge array": {"ex-half": f"{HALF}return np.zeros(10**7)"},
    "full disk": {"ex-half": FULL_DISK},
    "segmentation fault": {"ex-weights": SEGFAULT},
    "magics": {"ex-half": MAGICS},
    "deep brackets": {"ex-far-query": DEEP},
    "strange errors": {"ex-parabola": STRANGE},
    "deleted cell": {"ex-half": None},
    '=HYPERLINK("evil")': {},
    "<script>alert(1)<": {},
}
# A changed answer that is right all the same; the others have no points.
STILL_RIGHT = {
    "os system": "ex-parabola",
    "memory": "ex-half",
    "torch answer": "ex-weights",
    "threads": "ex-half",
    "magics": "ex-half",
}
# One of each kind of attack or accident; the others are variants of these.
FEW = [
    *("right", "loop in function", "syntax error", "os system", "exits", "memory"),
    *("pickle and pipes", "fork bomb", "patched libraries", "counts its calls", "huge array"),
    *("full disk", "deleted cell", "strange errors", '=HYPERLINK("evil")'),
    *("wrong", "untouched", "edited checks"),
]
LOOPS = ["loop in function", "loop in cell", "sleeps"]
HOLLOW = dict.fromkeys(WRONG, 'print("✓ right")')


def cell(notebook: Any, label: str) -> Any:
    return next(one for one in notebook["cells"] if one["id"] == label)


def changed(notebook: Any, changes: Mapping[str, str | None]) -> Any:
    """A copy of a notebook with these answers; the line with the check stays."""
    own = copy.deepcopy(notebook)
    for label, source in changes.items():
        if source is None:
            own["cells"].remove(cell(own, label))
        else:
            check = "".join(cell(own, label)["source"]).rstrip().splitlines()[-1]
            cell(own, label)["source"] = f"{source}\n\n{check}"
    return own


def write_class(
    folder: Path, student: Any, key: Any, outside: Path, chosen: list[str]
) -> dict[str, list[int]]:
    """Write those of the class into a folder; the points of each."""
    expected = write_everyone(folder, student, key, outside)
    for path in folder.iterdir():
        if path.name.removesuffix(".ipynb") not in chosen:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {name: expected[name] for name in chosen}


def write_everyone(folder: Path, student: Any, key: Any, outside: Path) -> dict[str, list[int]]:
    """Write the class into a folder; the points of those that can be graded."""
    right = changed(key, RIGHT)
    wrong = changed(student, WRONG)
    expected = {}
    for name, changes in CHANGED.items():
        expected[name] = without(*(one for one in changes if one != STILL_RIGHT.get(name)))
        told = {
            label: source and source.replace("{folder}", str(outside))
            for label, source in changes.items()
        }
        save(folder / f"{name}.ipynb", changed(right, told))
    save(folder / "wrong.ipynb", wrong)
    save(folder / "untouched.ipynb", student)
    save(folder / "book's solution.ipynb", key)
    edited = changed(wrong, {})
    for label, source in HOLLOW.items():
        kept = "".join(cell(edited, label)["source"]).rsplit("checks.", 1)[0]
        cell(edited, label)["source"] = f"{kept}\n{source}"
    save(folder / "edited checks.ipynb", edited)
    save(folder / "patched checks.ipynb", changed(wrong, {"ex-slope": PATCHED}))
    expected |= {"wrong": NOTHING, "untouched": NOTHING, "book's solution": EVERY}
    expected |= {"edited checks": NOTHING, "patched checks": NOTHING}
    own = folder / "in a folder"
    own.mkdir()
    save(own / "My homework (final) 2.ipynb", right)
    (own / "numpy.py").write_text("raise SystemExit", encoding="utf-8")
    loud = changed(right, {})
    cell(loud, "ex-half")["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["and again\n"] * 1_000_000}
    ]
    save(folder / "a million lines.ipynb", loud)
    return expected | {"in a folder": EVERY, "a million lines": EVERY}


def write_unreadable(folder: Path, key: Any, secret: Path) -> dict[str, str]:
    """Write what cannot be graded; a part of what each is told."""
    no_notebooks = {"broken": b'{"cells": [', "not utf-8": b"\xff\xfe{}", "nested": b"[" * 100_000}
    no_notebooks["old format"] = b'{"worksheets": [], "nbformat": 3}'
    for name, content in no_notebooks.items():
        (folder / f"{name}.ipynb").write_bytes(content)
    (folder / "link.ipynb").symlink_to(secret)
    (folder / "linked folder").symlink_to(secret.parent)
    with (folder / "200 megabytes.ipynb").open("wb") as file:
        file.truncate(200_000_000)
    some = {**key, "cells": [{"cell_type": "code", "source": ""}] * 3000}
    save(folder / "three thousand cells.ipynb", some)
    (folder / "empty folder").mkdir()
    (folder / "two notebooks").mkdir()
    for name in ("final", "final final"):
        save(folder / "two notebooks" / f"{name}.ipynb", key)
    return {
        **dict.fromkeys(no_notebooks, "is not a notebook"),
        "link": "is a link or no plain file",
        "linked folder": "is a link or no plain file",
        "200 megabytes": "has 200 MB, more than 31: clear its outputs",
        "three thousand cells": "has 3000 cells, more than 2000",
        "empty folder": "there is no notebook",
        "two notebooks": "several notebooks (final final.ipynb, final.ipynb)",
    }


def save(path: Path, notebook: Any) -> None:
    path.write_text(json.dumps(notebook), encoding="utf-8")
