"""A class of right, wrong and hostile notebooks, graded for real in bubblewrap."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
import sandboxes
from once import once

from attnbook_course.checks.grading import command

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = "0123"
IMPORTS = "import numpy as np\nfrom attnbook_course import checks"
PARABOLA = "def epanechnikov(u):\n    return 0.75 * np.maximum(0, 1 - u**2)"
HALF = "def half_distance(bandwidth):\n    "
RIGHT = [
    IMPORTS,
    PARABOLA,
    f"{HALF}return bandwidth * (2 * np.log(2)) ** 0.5",
    "def power_kernel(u):\n    return u",
]
CHECKED = "checks.ch01.epanechnikov(epanechnikov)"
SECRETS = """
import os, socket
found = []
for path in {paths}:
    try:
        open(path).read()
        found.append("READ " + path)
    except OSError:
        pass
for path in ("{folder}/PWNED", "/usr/new", "/new"):
    os.system("touch " + path)
    try:
        open(path, "w")
        found.append("WRITTEN " + path)
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
    found.append("CONNECTED")
except OSError:
    pass
found += [name for name in os.environ if "SECRET" in name]
"""
TELL = f"{HALF}raise NameError(f'found {{found}}')"
PATCHED = """
import attnbook_course.checks.ch01 as chapter, attnbook_course.checks.verdict as verdict
chapter.epanechnikov = lambda f: verdict.Verdict("right", "yes")
verdict.expect = lambda *x, **y: None
np.isclose = lambda *a, **k: np.True_
def epanechnikov(u):
    return u
"""
FORGED = """
import json, os, struct
def epanechnikov(u):
    for words in ({"shapes": [[10**12]]}, {"shapes": [["x"]]}, [1]):
        data = json.dumps(words).encode()
        for pipe in range(3, 20):
            try:
                os.write(pipe, struct.pack(">I", len(data)) + data)
            except OSError:
                pass
    return 0.0
"""
FULL = """
try:
    for i in range(100):
        open(f"/tmp/{i}", "wb").write(bytes(10**7))
except OSError as error:
    found = error.strerror
"""
# name: the cell that is changed, or put before it, and a part of what the student hears of it
HOSTILE = {
    "loop in function": (f"{HALF}while True:\n        pass", "no answer in time"),
    "loop in cell": (f"{HALF}return 2\nwhile True: pass", "its cell does not end within 8 s"),
    "fork bomb": (f"import os\n{HALF}while True:\n        os.fork()", "more than 16 processes"),
    "exits": (f"import os\n{HALF}os._exit(0)", "its process ended"),
    "syntax error": ("def half_distance(bandwidth)\n", "its cell stops: SyntaxError"),
    "memory": (f"{HALF}return np.ones((200_000, 200_000))", "stops with MemoryError"),
    "huge array": (f"{HALF}return np.zeros(10**7)", "too large to compare"),
    "full disk": (f"{FULL}{TELL}", "No space left on device"),
}


def saved(path: Path, cells: list[str], questions: str = QUESTIONS) -> None:
    own = {"attnbook": {"homework": "hw0", "questions": questions}}
    code = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
    question = {"cell_type": "markdown", "source": "## 4. Why? (3 points)\n\n</details>"}
    why = {"cell_type": "markdown", "source": "Because it is."}
    path.write_text(
        json.dumps({"metadata": own, "cells": [*code, question, why]}), encoding="utf-8"
    )


def task(label: str, points: float, kind: str, function: str, check: str) -> dict:
    return {
        "label": label,
        "title": "Why?" if kind == "explained" else f"<b>{label}</b>",
        "points": points,
        "kind": kind,
        "function": function,
        "check": check,
    }


TASKS = [
    task("ex-parabola", 1, "published", "epanechnikov", "ch01.epanechnikov"),
    task("ex-half-distance", 2, "published", "half_distance", "ch01.half_distance"),
    task("ho-power-kernel", 4, "held out", "power_kernel", "ch01"),
    task("ex-why", 3, "explained", "", ""),
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The folder, and the rows of grades.csv by student."""
    sandboxes.bubblewrap()
    return once(tmp_path_factory, "class", grade_class)


def grade_class(folder: Path) -> tuple[Path, dict[str, dict[str, str]]]:
    import socket

    key, handed_in = folder / "key", folder / "in"
    (key / "held_out").mkdir(parents=True)
    shutil.copy(ROOT / "homework" / "held_out" / "ch01.py", key / "held_out")
    found = {"name": "hw0", "title": "Homework 0", "seed": 5, "seconds": 8, "minutes": 2}
    found |= {"completion": False, "questions": QUESTIONS, "exercises": TASKS}
    (key / "homework.json").write_text(json.dumps(found), encoding="utf-8")
    handed_in.mkdir()
    listener = socket.create_server(("127.0.0.1", 0))
    paths = [str(key / "homework.json"), str(key / "held_out" / "ch01.py"), "/etc/passwd"]
    port = listener.getsockname()[1]
    secrets = SECRETS.format(
        paths=[*paths, str(handed_in / "right.ipynb")], folder=folder, port=port
    )
    saved(handed_in / "right.ipynb", RIGHT)
    saved(handed_in / "spy.ipynb", [*RIGHT[:2], f"{secrets}{TELL}"])
    saved(handed_in / "loud.ipynb", [*RIGHT[:2], f"print('x' * 10**8)\n{RIGHT[2]}"])
    saved(handed_in / "patched.ipynb", [IMPORTS, f"{PATCHED}{CHECKED}", *RIGHT[2:]])
    saved(handed_in / "forged.ipynb", [IMPORTS, FORGED, RIGHT[2]])
    saved(handed_in / "other class.ipynb", RIGHT, "4567")
    for name, (cell, _) in HOSTILE.items():
        saved(handed_in / f"{name}.ipynb", [*RIGHT[:2], cell])
    (handed_in / "broken.ipynb").write_text("{", encoding="utf-8")
    (handed_in / "link.ipynb").symlink_to(key / "homework.json")
    (folder / "roster.csv").write_text("right\nnever came\n", encoding="utf-8")
    arguments = [str(handed_in), "--set", str(key / "homework.json"), "--csv"]
    arguments += [str(folder / "grades.csv"), "--feedback", str(folder / "feedback")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SECRET_OF_THE_LECTURER", "hunter2")
        assert command.main([*arguments, "--roster", str(folder / "roster.csv")]) == 0
    listener.close()
    with (folder / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return folder, {row["student"]: row for row in csv.DictReader(file)}


def page(graded, name: str) -> str:
    return (graded[0] / "feedback" / f"{name}.html").read_text("utf-8")


def test_right_answers_have_their_points_and_wrong_ones_none(graded):
    row = graded[1]["right"]
    assert [row[one["label"]] for one in TASKS] == ["1", "2", "0", "to read"]
    assert (row["points"], row["of"], row["complete"]) == ("3", "10", "no")
    assert graded[1]["loud"]["ex-half-distance"] == "2"  # what a notebook prints goes nowhere
    assert graded[1]["never came"]["notes"] == "nothing was handed in"


def test_a_patched_check_and_a_forged_answer_have_no_points(graded):
    assert graded[1]["patched"]["ex-parabola"] == graded[1]["forged"]["ex-parabola"] == "0"
    assert graded[1]["patched"]["ex-half-distance"] == "2"


def test_nothing_secret_is_read_nothing_is_written_and_there_is_no_network(graded):
    assert "NameError: found []" in page(graded, "spy")
    own = {"key", "in", "roster.csv", "feedback", "grades.csv", "grades-to-read.csv"}
    assert {path.name for path in graded[0].iterdir()} == own


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_not_end_or_takes_too_much_is_ended_and_costs_one_exercise(graded, name):
    assert HOSTILE[name][1] in page(graded, name)
    assert (graded[1][name]["ex-parabola"], graded[1][name]["ex-half-distance"]) == ("1", "0")


def test_what_cannot_be_graded_has_no_points_but_words(graded):
    for name, words in (
        ("broken", "is not a notebook as Jupyter saves it"),
        ("link", "is a link or no plain file"),
        ("other class", "this notebook asks other questions than your class's hw0"),
    ):
        assert words in graded[1][name]["notes"]
        assert (graded[1][name]["points"], graded[1][name]["complete"]) == ("", "no")


def test_a_page_escapes_what_it_shows(graded):
    assert "&lt;b&gt;ex-parabola&lt;/b&gt;" in page(graded, "right")
    assert "your lecturer has still to read 1 answer worth 3 points" in page(graded, "right")
