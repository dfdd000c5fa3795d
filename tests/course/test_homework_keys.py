"""A key judges the notebooks that were made with it, and no others."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import make_homework
import pytest
import sandboxes
from once import once

from attnbook_course.checks.grading import command

ROOT = Path(__file__).resolve().parents[2]


def homework(out: Path, seed: int, *more: str) -> int:
    """The exit status of `make homework`."""
    return make_homework.main(["--seed", str(seed), "--out", str(out), *more])


def files(folder: Path) -> dict[Path, bytes]:
    found = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {path: path.read_bytes() for path in found if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The first set for two classes, by seed, and the first class's second."""
    return once(tmp_path_factory, "keys", make_both)


def make_both(folder: Path) -> dict[int, Path]:
    assert homework(folder / "7", 7, "hw1", "hw2") == homework(folder / "8", 8, "hw1") == 0
    return {seed: folder / str(seed) for seed in (7, 8)}


def test_the_key_of_another_seed_is_not_lost_without_a_word(tmp_path, capsys):
    assert homework(tmp_path, 7, "hw2") == 0
    before = files(tmp_path)
    assert homework(tmp_path, 7, "hw2") == 0  # the same seed as often as one likes
    assert files(tmp_path) == before
    assert homework(tmp_path, 8, "hw1", "hw2") == 1
    assert files(tmp_path) == before  # and no set before it
    said = capsys.readouterr().err
    assert "hw2/homework.json: got seed 8, but this is the key of seed 7, and the note" in said
    assert f"Do: move {tmp_path} elsewhere to keep it, or add REPLACE=1 (--replace) to" in said
    assert homework(tmp_path, 8, "--replace", "hw2") == 0
    assert files(tmp_path) != before
    assert homework(tmp_path, 7, "--replace", "hw2") == 0
    assert files(tmp_path) == before  # to grade the first class after all


def solved(made: Path, name: str = "hw1") -> dict:
    """A student's notebook whose answers are right, as the key has them."""
    return json.loads((made / "lecturer" / name / f"{name}.ipynb").read_text("utf-8"))


def grade(tmp_path: Path, key: Path, **class_: dict) -> int:
    """The exit status of `make grade` for these notebooks."""
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for name, notebook in class_.items():
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    arguments = [str(folder), "--set", str(key / "lecturer" / "hw1" / "homework.json")]
    table, pages = tmp_path / "grades.csv", tmp_path / "feedback"
    arguments += ["--sandbox", "none", "--csv", str(table), "--feedback", str(pages)]
    return command.main(arguments)


@sandboxes.posix
def test_the_key_of_another_class_grades_nobody(tmp_path, made, capsys):
    """Seed 7's notebooks, of which the key of seed 8 says that right answers are wrong."""
    assert grade(tmp_path, made[8], ada=solved(made[7]), bob=solved(made[7], "hw2")) == 2
    said = capsys.readouterr().out
    assert "hw1/homework.json: no notebook asks the questions of this key" in said
    assert "make it again: make homework SEED=… REPLACE=1" in said
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@sandboxes.posix
def test_a_notebook_without_a_fingerprint_is_graded_and_noted(tmp_path, made):
    old = solved(made[7])
    del old["metadata"]["attnbook"]["questions"]
    notes = {"cells": [{"cell_type": "code", "source": "def plot(): pass"}]}
    assert grade(tmp_path, made[8], old=old, other=solved(made[7]), notes=notes) == 0
    with (tmp_path / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        found = {row["student"]: row for row in csv.DictReader(file)}
    assert float(found["old"]["points"]) < 17
    assert "the notebook has no fingerprint of the questions" in found["old"]["notes"]
    assert "nothing in the notebook answers an exercise of hw1" in found["notes"]["notes"]
    assert found["notes"]["points"] == ""  # and no 0
    assert found["other"]["points"] == ""
