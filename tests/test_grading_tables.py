"""The roster, whose file is whose, the tables for Moodle and Canvas, and points that a person gives."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
import sandboxes

from attnbook.checks import __main__ as checks_command
from attnbook.checks.grading import command, feedback, grade, student, tables
from attnbook.checks.grading.grade import Report, Result
from attnbook.checks.grading.homework import BadHomework, read_homework
from attnbook.checks.grading.roster import BadRoster, Person, handed_in, matched, read_roster
from attnbook.checks.verdict import Verdict

MOODLE = """First name,Surname,ID number,Institution,Email address
Ada,Lovelace,0042,Uni,ada@uni.example
Émile,Borel,0043,Uni,emile@uni.example
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Old homework (11)
    Points Possible,,,,,10
"Lovelace, Ada",7,0042,ada,S1,9
"Borel, Émile",8,0043,emile,S1,8
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def homework_file(folder: Path, **changes) -> Path:
    task = {"label": "ex-parabola", "title": "The parabola", "points": 1, "kind": "published"}
    task |= {"function": "epanechnikov", "check": "ch01.epanechnikov"}
    read = {"label": "ex-why", "title": "Why?", "points": 3, "kind": "explained"}
    read |= {"function": "", "check": "", "answer": "Because."}
    found = {"name": "hw1", "title": "Homework 1", "seed": 1, "seconds": 20, "minutes": 1}
    found |= {"completion": False, "exercises": [task, read]} | changes
    return write(folder / "homework.json", json.dumps(found))


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("text", [MOODLE, MOODLE.replace("Surname", "Last name")])
def test_a_table_of_moodle(tmp_path, text):
    ada, emile = read_roster(write(tmp_path / "roster.csv", "\ufeff" + text))
    assert (ada.name, emile.name) == ("Ada Lovelace", "Émile Borel")
    assert ada.column("ID number") == "0042"
    assert ada.column("Last name") == "Lovelace"
    assert ada.column("Section") == ""


def test_a_table_of_canvas(tmp_path):
    ada, emile = read_roster(write(tmp_path / "roster.csv", CANVAS))
    assert (ada.name, emile.name) == ("Lovelace, Ada", "Borel, Émile")
    assert ada.column("SIS Login ID") == "ada"


def test_a_name_a_line(tmp_path):
    people = read_roster(write(tmp_path / "roster.txt", "Ada Lovelace\n\nLovelace, Ada B.\n"))
    assert [one.name for one in people] == ["Ada Lovelace", "Lovelace, Ada B."]
    assert people[0].column("Last name") == people[0].column("Student") == "Ada Lovelace"


def test_a_roster_of_nobody_is_refused(tmp_path):
    with pytest.raises(BadRoster, match=r"roster\.txt: nobody is in it; expected a name a line"):
        read_roster(write(tmp_path / "roster.txt", "\n"))
    with pytest.raises(BadRoster, match="expected a text file in UTF-8"):
        read_roster(tmp_path / "missing.txt")


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (MOODLE, "Ada Lovelace_12345_assignsubmission_file_"),
        (MOODLE, "Ada Lovelace_12345_assignsubmission_file"),
        (MOODLE, "ada"),
        (MOODLE, "ADA@uni.example"),
        (MOODLE, "0042"),
        (MOODLE, "Lovelace, Ada"),
        (CANVAS, "lovelaceada_7_123_hw1"),
        (CANVAS, "lovelaceada_LATE_7_123_hw1-1"),
        (CANVAS, "ada"),
    ],
)
def test_whose_file_is_whose(tmp_path, table, name):
    ada, emile = people = read_roster(write(tmp_path / "roster.csv", table))
    given, strangers = matched({name: [Path("hw1.ipynb")]}, people)
    assert given == [(ada, [Path("hw1.ipynb")]), (emile, None)]
    assert strangers == []


def test_what_is_nobody_s_or_two_students_keeps_its_own_name():
    people = [Person("Ada B"), Person("Ada  b."), Person("Emile")]
    given, strangers = matched({"ada b": [Path("1")], "Zoe": [Path("2")]}, people)
    assert strangers == ["ada b", "Zoe"]
    assert given[2:] == [
        (people[2], None),
        (Person("ada b"), [Path("1")]),
        (Person("Zoe"), [Path("2")]),
    ]


def test_two_files_of_one_student_come_together(tmp_path):
    for name in ("ada.ipynb", "Ada.txt", "0042.ipynb"):
        write(tmp_path / name, "{}")
    (tmp_path / "folder" / ".ipynb_checkpoints").mkdir(parents=True)
    write(tmp_path / "folder" / ".ipynb_checkpoints" / "hw1-checkpoint.ipynb", "{}")
    found = handed_in(tmp_path)
    assert found == {
        "0042": [tmp_path / "0042.ipynb"],
        "ada": [tmp_path / "ada.ipynb"],
        "folder": [],
    }
    ada = Person("Ada", {"ID number": "0042"})
    assert matched(found, [ada])[0][0] == (ada, [tmp_path / "0042.ipynb", tmp_path / "ada.ipynb"])


def report(name: str, points: float | None) -> Report:
    right, later = Verdict("right", "epanechnikov: yes."), Verdict("not yet", "later")
    results = {"ex-parabola": Result(right, 1), "ex-why": Result(later, points)}
    return Report(name, results, explanations={"ex-why": "=1+1\nbecause"})


@pytest.fixture
def graded(tmp_path):
    homework = read_homework(homework_file(tmp_path))
    ada, emile = read_roster(write(tmp_path / "roster.csv", MOODLE))
    gone = Report("gone", problem="a link", results={})
    class_ = [
        (ada, report(ada.name, 2.5)),
        (emile, report(emile.name, None)),
        (Person("gone"), gone),
    ]
    return homework, class_


def test_the_tables(tmp_path, graded):
    homework, class_ = graded
    tables.write_tables(tmp_path / "grades.csv", homework, class_)
    assert rows(tmp_path / "grades.csv") == [
        ["student", "ex-parabola", "ex-why", "points", "of", "complete", "notes"],
        ["Ada Lovelace", "1", "2.5", "3.5", "4", "yes", ""],
        ["Émile Borel", "1", "to read", "1", "4", "no", ""],
        ["gone", "", "", "", "4", "no", "a link"],
    ]
    assert rows(tmp_path / "grades-moodle.csv") == [
        ["First name", "Last name", "ID number", "Email address", "Homework 1", "Homework 1 (feedback)"],
        ["Ada", "Lovelace", "0042", "ada@uni.example", "3.5", "✓ epanechnikov: yes. | … later"],
    ]  # fmt: skip
    assert rows(tmp_path / "grades-canvas.csv") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 1"],
        ["Points Possible", "", "", "", "", "4"],
        ["Ada Lovelace", "", "", "", "", "3.5"],
    ]


def test_points_that_a_person_enters_are_kept(tmp_path, graded):
    homework, class_ = graded
    path = tmp_path / "grades-to-read.csv"
    assert tables.read_marks(path, homework) == {}
    assert tables.write_to_read(path, homework, class_) == 1
    assert rows(path)[1:] == [
        ["Ada Lovelace", "ex-why", "'=1+1\nbecause", "2.5"],
        ["Émile Borel", "ex-why", "'=1+1\nbecause", ""],
    ]
    text = path.read_text("utf-8").rstrip().removesuffix(",") + ',"1,5"\n'
    marks = tables.read_marks(write(path, text), homework)
    assert marks == {("Ada Lovelace", "ex-why"): 2.5, ("Émile Borel", "ex-why"): 1.5}
    command._enter(class_[1][1], marks)
    assert class_[1][1].total == 2.5
    assert class_[1][1].complete


@pytest.mark.parametrize("points", ["four", "3.5", "-1", "nan"])
def test_points_that_cannot_be_are_refused(tmp_path, graded, points):
    path = write(tmp_path / "read.csv", f"student,exercise,answer,points\nAda,ex-why,,{points}\n")
    with pytest.raises(
        tables.BadMarks, match=r"Ada, ex-why: got '.*', expected points from 0 to 3"
    ):
        tables.read_marks(path, graded[0])


@pytest.mark.parametrize("name", ["=SUM(A1)", "+1", "-1", "@a", "\tx"])
def test_no_cell_is_a_formula_and_a_name_comes_back(name):
    assert tables._safe(name) == f"'{name}"
    assert tables._plain(tables._safe(name)) == name
    assert tables._plain("'quoted") == "'quoted"


def test_no_name_leaves_the_folder_of_the_pages(tmp_path, graded):
    names = ["../up", "/etc/passwd", "..", ".hidden", "a/b", "A_b", "a_B", "n" * 300, "Ünal"]
    reports = [report(name, None) for name in names]
    pages = feedback.write_feedback(tmp_path / "pages", graded[0], reports)
    assert len({str(page).casefold() for page in pages}) == len(names)
    assert sorted(pages) == sorted((tmp_path / "pages").iterdir())
    assert {page.parent for page in pages} == {tmp_path / "pages"}
    assert not [page for page in pages if page.name.startswith(".")]
    text = pages[-1].read_text("utf-8")
    assert "<strong>1 of 4 points</strong> so far; 1 more to be read by your lecturer" in text
    assert "3 points, to be read" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exercises": 3}, "expected a homework.json as 'make homework' writes it"),
        ({"exercises": [{"label": "a"}]}, "expected a homework.json as 'make homework' writes it"),
        ({"color": "red"}, "expected a homework.json as 'make homework' writes it"),
    ],
)
def test_a_homework_that_is_none(tmp_path, changes, words):
    with pytest.raises(BadHomework, match=words):
        read_homework(homework_file(tmp_path, **changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"check": "ch01.nothing"}, "attnbook.checks has no check 'ch01.nothing'"),
        ({"check": "os.system"}, "attnbook.checks has no check 'os.system'"),
        (
            {"kind": "other"},
            "ex-parabola is 'other', expected one of published, held out, explained",
        ),
        ({"kind": "held out", "check": "ch01"}, "expected the held-out checks there"),
    ],
)
def test_an_exercise_that_nothing_can_judge(tmp_path, change, words):
    first = json.loads(homework_file(tmp_path).read_text("utf-8"))["exercises"][0]
    with pytest.raises(BadHomework, match=words):
        read_homework(homework_file(tmp_path, exercises=[first | change]))


def test_a_held_out_module_without_the_check(tmp_path):
    (tmp_path / "held_out").mkdir()
    write(tmp_path / "held_out" / "ch01.py", "def checks(seed):\n    return {'ho-other': 1}\n")
    first = json.loads(homework_file(tmp_path).read_text("utf-8"))["exercises"][0]
    first |= {"kind": "held out", "check": "ch01"}
    with pytest.raises(BadHomework, match=r"ch01\.py: no check of ex-parabola; it has ho-other"):
        read_homework(homework_file(tmp_path, exercises=[first]))


NOTEBOOK = {
    "metadata": {"attnbook": {"homework": "hw2"}},
    "cells": [
        {"cell_type": "code", "source": ["import numpy as np\n", "raise SystemExit"]},
        {"cell_type": "code", "source": "def epanechnikov(u):\n    return 0.75 * np.maximum(0, 1 - u**2)"},
        {"cell_type": "markdown", "id": "ex-why-explanation", "source": "Because it is."},
    ],
}  # fmt: skip


@sandboxes.posix
def test_the_whole_command_without_a_sandbox(tmp_path, capsys):
    homework = homework_file(tmp_path, completion=True)
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "ada.ipynb", json.dumps(NOTEBOOK))
    arguments = ["grade", str(tmp_path / "in"), "--set", str(homework), "--sandbox", "none"]
    assert checks_command.main([*arguments, "--csv", str(tmp_path / "out" / "grades.csv")]) == 0
    (row,) = rows(tmp_path / "out" / "grades.csv")[1:]
    note = "the notebook is of hw2; ex-parabola: the check in the notebook was changed"
    assert row == ["ada", "1", "3", "4", "4", "yes", note]
    assert "1 students in" in capsys.readouterr().out


@sandboxes.posix
def test_a_process_that_does_not_start_is_no_student_s_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(student, "WORKER", [sys.executable, "-c", "raise SystemExit"])
    path = write(tmp_path / "ada.ipynb", json.dumps(NOTEBOOK))
    report = grade.graded("ada", [path], read_homework(homework_file(tmp_path)), "none")
    assert report.problem == "the sandbox did not start; your lecturer grades you again"
    assert report.results == {}
    assert not report.complete


@sandboxes.posix
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "none.json"], "none.json: there is no such file. 'make homework SEED=…'"),
        (["--roster", "none.txt"], "none.txt: expected a text file in UTF-8"),
        (["missing"], "missing: expected a folder with the notebooks"),
    ],
)
def test_what_cannot_be_graded_at_all(tmp_path, monkeypatch, capsys, more, words):
    monkeypatch.chdir(tmp_path)
    homework = homework_file(tmp_path)
    folder = [] if more == ["missing"] else [str(tmp_path)]
    arguments = [*folder, "--sandbox", "none", "--set", str(homework), *more]
    assert command.main(arguments) == 2
    assert words in capsys.readouterr().out


def test_a_folder_that_students_could_see_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "probed", lambda kind: "bwrap")
    monkeypatch.setattr(command, "shown", lambda path: path.name == "homework.json")
    assert command.main([str(tmp_path), "--set", str(homework_file(tmp_path))]) == 2
    assert "the sandbox shows this folder to the students' code" in capsys.readouterr().out
