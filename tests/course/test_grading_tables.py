"""The roster, whose file is whose, the tables for Moodle and Canvas, and points that a person gives."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import json
import re
import sys
from pathlib import Path

import pytest
import sandboxes

from attnbook_course.checks import __main__ as checks_command
from attnbook_course.checks.grading import command, feedback, grade, student, tables
from attnbook_course.checks.grading.grade import Report, Result
from attnbook_course.checks.grading.homework import Task, read_homework
from attnbook_course.checks.grading.roster import BadRoster, Person, handed_in, matched, read_roster
from attnbook_course.checks.verdict import Verdict

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
    task = {
        "label": "ex-parabola",
        "title": "The parabola",
        "points": 1,
        "kind": "published",
        "function": "epanechnikov",
        "check": "ch01.epanechnikov",
    }
    read = {
        "label": "ex-why",
        "title": "Why?",
        "points": 3,
        "kind": "explained",
        "function": "",
        "check": "",
        "answer": "Because.",
    }
    found = {"name": "hw1", "title": "Homework 1", "seed": 1, "seconds": 20, "minutes": 1}
    found |= {"completion": False, "exercises": [task, read]} | changes
    return write(folder / "homework.json", json.dumps(found))


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def cells(*lines: str) -> list[list[str]]:
    return [line.split(",") for line in lines]


@pytest.mark.parametrize("text", [MOODLE.replace(",", ";"), MOODLE.replace("Surname", "Last name")])
def test_a_table_of_moodle(tmp_path, text):
    ada, emile = read_roster(write(tmp_path / "roster.csv", "\ufeff" + text))
    assert (ada.name, emile.name) == ("Ada Lovelace", "Émile Borel")
    assert ada.column("ID number") == "0042"
    assert ada.column("Last name") == "Lovelace"
    assert ada.column("Section") == ""


def test_a_roster_of_nobody_is_refused(tmp_path):
    with pytest.raises(BadRoster, match=r"roster\.txt: nobody is in it; expected a name a line"):
        read_roster(write(tmp_path / "roster.txt", "\n"))
    (tmp_path / "excel.csv").write_bytes("Émile\n".encode("cp1252"))
    with pytest.raises(BadRoster, match=r"excel.csv in another encoding, expected .* 'CSV UTF-8'"):
        read_roster(tmp_path / "excel.csv")


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (MOODLE, "Ada Lovelace_12345_assignsubmission_file_"),
        (MOODLE, "ADA@uni.example"),
        (MOODLE, "0042"),
        (MOODLE, "Lovelace, Ada"),
        (CANVAS, "lovelaceada_7_123_hw1"),
        (CANVAS, "lovelaceada_LATE_7_123_hw1-1"),
    ],
)
def test_whose_file_is_whose(tmp_path, table, name):
    ada, emile = people = read_roster(write(tmp_path / "roster.csv", table))
    given, strangers = matched({name: [Path("hw1.ipynb")]}, people)
    assert given == [(ada, [Path("hw1.ipynb")]), (emile, None)]
    assert strangers == []


def test_two_files_of_one_student_come_together(tmp_path):
    for name in ("ada.ipynb", "Ada.txt", "0042.ipynb"):
        write(tmp_path / name, "{}")
    (tmp_path / "folder" / ".ipynb_checkpoints").mkdir(parents=True)
    write(tmp_path / "folder" / ".ipynb_checkpoints" / "hw1-checkpoint.ipynb", "{}")
    found = handed_in(tmp_path)
    number, name = tmp_path / "0042.ipynb", tmp_path / "ada.ipynb"
    assert found == {"0042": [number], "ada": [name], "folder": []}
    ada = Person("Ada", {"ID number": "0042"})
    assert matched(found, [ada])[0][0] == (ada, [number, name])


def report(name: str, points: float | None) -> Report:
    right, later = Verdict("right", "epanechnikov: yes."), Verdict("not yet", "later")
    results = {"ex-parabola": Result(right, 1), "ex-why": Result(later, points)}
    return Report(name, results, explanations={"ex-why": "=1+1\nbecause"})


@pytest.fixture
def graded(tmp_path):
    homework = read_homework(homework_file(tmp_path))
    ada, emile = read_roster(write(tmp_path / "roster.csv", MOODLE))
    gone = Report("gone", problem="a link", results={})
    came = [(ada, report(ada.name, 2.5)), (emile, report(emile.name, None))]
    return homework, [*came, (Person("gone"), gone)]


def test_the_tables(tmp_path, graded):
    homework, class_ = graded
    tables.write_grades(tmp_path / "grades.csv", homework, class_)
    files = tables.write_tables(tmp_path / "grades.csv", homework, class_)
    assert files == [tmp_path / "grades-moodle.csv"]
    assert rows(tmp_path / "grades.csv") == cells(
        "student,ex-parabola,ex-why,points,of,complete,notes",
        "Ada Lovelace,1,2.5,3.5,4,yes,",
        "Émile Borel,1,to read,1,4,no,to be read: ex-why",
        "gone,,,,4,no,a link",
    )
    assert rows(tmp_path / "grades-moodle.csv") == cells(
        "First name,Last name,ID number,Email address,Homework 1",
        "Ada,Lovelace,0042,ada@uni.example,3.5",
    )


def test_each_table_is_for_those_whom_the_roster_knows(tmp_path, graded):
    homework, ((_, report_), *_) = graded
    for text, of in ((CANVAS, ["canvas"]), ("Ada\n", [])):
        (ada, *_) = read_roster(write(tmp_path / "roster", text))
        files = tables.write_tables(tmp_path / "grades.csv", homework, [(ada, report_)])
        assert files == [tmp_path / f"grades-{one}.csv" for one in of]
    assert rows(tmp_path / "grades-canvas.csv") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Homework 1"],
        ["Points Possible", "", "", "", "", "4"],
        ["Lovelace, Ada", "7", "0042", "ada", "S1", "3.5"],
    ]


@pytest.mark.parametrize("between", [",", ";", "\t"])  # as Excel saves it, by its language
def test_points_that_a_person_enters_are_kept(tmp_path, graded, between):
    homework, class_ = graded
    path = tmp_path / "grades-to-read.csv"
    assert tables.read_marks(path, homework) == {}
    assert tables.write_to_read(path, homework, class_, {}) == 1
    assert path.read_bytes().startswith(b"\xef\xbb\xbfstudent,")  # else Excel shows no é
    assert rows(path)[1:] == [
        ["Ada Lovelace", "ex-why", "Because.", "'=1+1\nbecause", "2.5", ""],
        ["Émile Borel", "ex-why", "Because.", "'=1+1\nbecause", "", ""],
    ]
    entered = rows(path)
    entered[2][4:] = "1,5", "-and so?"
    entered += [["Gone", "ex-why", "", "", "", "Where?"], [""] * 6]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=between).writerows(entered)
    marks = tables.read_marks(path, homework)
    ada, emile, gone = ((name, "ex-why") for name in ("Ada Lovelace", "Émile Borel", "Gone"))
    assert marks == {ada: (2.5, ""), emile: (1.5, "-and so?"), gone: (None, "Where?")}
    command._enter(class_[1][1], marks)
    assert class_[1][1].total == 2.5
    assert class_[1][1].complete
    said = str(class_[1][1].results["ex-why"].verdict)
    assert said == "✓ Your lecturer writes: -and so?"
    assert tables.write_to_read(path, homework, class_, marks) == 0
    assert tables.read_marks(path, homework) == marks  # also after another grading


HEAD = "student,exercise,answer,points,comment"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}\nAda,ex-why,,four,\n", "Ada, ex-why: got 'four', expected points from 0 to 3"),
        (f"{HEAD}\nAda,ex-why,,3.5,\n", "Ada, ex-why: got '3.5', expected points from 0 to 3"),
        (f"{HEAD}\nAda,ex-why,,nan,\n", "Ada, ex-why: got 'nan', expected points from 0 to 3"),
        (f"{HEAD}\nAda,why,,1,\n", "Ada, why: got 'why', expected an exercise of ex-why"),
        (f"{HEAD.replace('points', 'Punkte')}\nAda,ex-why,,1,\n", "no column points: got"),
        (f"{HEAD}\nÉmile,ex-why,,1,\n", "in another encoding .* Do: save it as 'CSV UTF-8'"),
    ],
)
def test_what_cannot_be_read_is_refused_and_left(tmp_path, graded, capsys, text, said):
    path = tmp_path / "grades-to-read.csv"
    path.write_bytes(entered := text.encode("cp1252"))
    arguments = [tmp_path, "--sandbox", "none", "--set", graded[0].folder / "homework.json"]
    assert command.main([*map(str, arguments), "--csv", str(tmp_path / "grades.csv")]) == 2
    assert re.search(said, capsys.readouterr().out)
    assert path.read_bytes() == entered


@pytest.mark.parametrize("name", ["=SUM(A1)", "\tx", "−1", " =1"])
def test_no_cell_is_a_formula_and_a_name_comes_back(name):
    assert tables._safe(name) == f"'{name}"
    assert tables._plain(tables._safe(name)) == name
    assert tables._plain("'quoted") == "'quoted"
    assert tables._safe("a\x1b[2J\ud800") == "a�[2J�"


def test_no_name_leaves_the_folder_of_the_pages(tmp_path, graded):
    names = ["../up", "..", ".hidden", "a/b", "A_b", "a_B", "n" * 300, "Ünal"]
    pages: list[Path] = []
    for name in names:
        feedback.write_page(tmp_path / "pages", graded[0], report(name, None), pages)
    assert len({str(page).casefold() for page in pages}) == len(names)
    assert sorted(pages) == sorted((tmp_path / "pages").iterdir())
    assert {page.parent for page in pages} == {tmp_path / "pages"}
    assert not [page for page in pages if page.name.startswith(".")]
    text = pages[-1].read_text("utf-8")
    later = "so far; your lecturer has still to read 1 answer worth 3 points"
    assert f"<strong>1 of 4 points {later}</strong>" in text
    assert "<p>… 3 points, not read yet</p>" in text


PARABOLA = "def epanechnikov(u):\n    return 0.75 * np.maximum(0, 1 - u**2)"
NOTEBOOK = {
    "metadata": {"attnbook": {"homework": "hw2"}},
    "cells": [
        {"cell_type": "code", "source": ["import numpy as np\n", "raise SystemExit"]},
        {"cell_type": "code", "source": PARABOLA},
        {
            "cell_type": "markdown",
            "metadata": {"attnbook": {"exercise": "ex-why"}},
            "source": "Because it is.",
        },
    ],
}


@sandboxes.posix
def test_whatever_a_notebook_holds_the_class_is_graded(tmp_path, monkeypatch):
    homework, folder, kept = homework_file(tmp_path), tmp_path / "in", command.graded
    (folder / "eve\x1b[2J").mkdir(parents=True)
    write(folder / "ada.ipynb", json.dumps(NOTEBOOK))
    words = {**NOTEBOOK["cells"][2], "source": "\x1b[2J\ud800\nbob" * 10_000}
    own = {"metadata": {"attnbook": {"homework": "\x1b[2J\ud800\nbob"}}, "cells": [words]}
    write(folder / "eve\x1b[2J" / "\x1b[31mhw.ipynb", json.dumps(own))
    write(folder / "last.ipynb", "")

    def graded(name, *of):
        if name == "last":
            raise RuntimeError("\x1b[2J\ud800")
        return kept(name, *of)

    monkeypatch.setattr(command, "graded", graded)
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", terminal)
    table = tmp_path / "out" / "grades.csv"
    arguments = ["grade", str(folder), "--set", str(homework), "--sandbox", "none"]
    assert checks_command.main([*arguments, "--csv", str(table)]) == 0
    found = {row[0]: row for row in rows(table)[1:]}
    words = "the notebook is of hw2; to be read: ex-why"
    assert found["ada"] == ["ada", "1", "to read", "1", "4", "no", words]
    assert found["last"][-1].startswith("the grader itself stopped: stops with RuntimeError: �[2J")
    assert found["eve�[2J"][-1].startswith("the notebook is of �[2J� bob")
    assert b"\x1b" not in terminal.buffer.getvalue()
    for written in (tmp_path / "out").iterdir():
        text = written.read_text("utf-8")
        assert "\x1b" not in text
        assert max(map(len, text.split(","))) < 32_767  # what a spreadsheet's cell holds


def question(number: int, title: str, more: str = "") -> dict:
    text = f"## {number}. {title} (3 points)\n\n<details>A hint.</details>{more}"
    return {"cell_type": "markdown", "source": text}


@sandboxes.posix
@pytest.mark.parametrize(
    ("kind", "source", "at", "words"),
    [
        ("markdown", PARABOLA, 2, "its cell is text (Markdown), so it did not run"),
        ("code", PARABOLA.replace("kov", "kow"), 1, "; your notebook has epanechnikow"),
        ("code", PARABOLA.replace("epanechnikov", "mine"), 2, "; your notebook has mine"),
        ("code", "", 2, "there is no function epanechnikov in the notebook"),
    ],
)
def test_an_answer_without_metadata_or_name_is_looked_for(tmp_path, kind, source, at, words):
    texts = [question(2, "Why?", "\n\nSince"), "*Write your explanation here.*", "it *is*."]
    notebook = [NOTEBOOK["cells"][0], question(1, "The parabola"), texts[0]]
    notebook += [{"cell_type": "markdown", "source": text} for text in texts[1:]]
    notebook.insert(at, {"cell_type": kind, "source": source})
    path = write(tmp_path / "ada.ipynb", json.dumps({"cells": notebook}))
    homework = read_homework(homework_file(tmp_path))
    report = grade.graded("ada", [path], homework, "none")
    assert report.written == {"ex-parabola": source, "ex-why": "Since\n\nit *is*."}
    assert report.explanations == {"ex-why": "Since\n\nit *is*."}
    assert words in report.results["ex-parabola"].verdict.message  # the student hears it,
    assert words in report.remarks  # and so does the lecturer
    assert html.escape(source) in feedback.page(report, homework)


def test_a_page_has_a_tick_for_all_points_alone(tmp_path, graded):
    homework, ((_, of_ada), *_) = graded
    places = (("Exercise 1.1", "https://book.example/1.html#ex-parabola"), ("section “A < B”", ""))
    tasks = (dataclasses.replace(homework.tasks[0], places=places), homework.tasks[1])
    text = feedback.page(of_ada, dataclasses.replace(homework, tasks=tasks))
    assert "<p>✓ 1 of 1 point</p>" in text
    assert "<p>◐ 2.5 of 3 points</p>" in text
    assert f'<a href="{places[0][1]}">Exercise 1.1</a>; section “A &lt; B”.' in text
    assert "What next?" in text


@pytest.mark.parametrize(
    ("status", "kind", "earned", "points"),
    [
        ("right", "held out", 0.0, 5),
        ("wrong", "held out", 0.5, 2.5),
        ("wrong", "held out", 0.69, 3),
        ("wrong", "published", 0.5, 0),
        ("not yet", "held out", 0.5, 0),
    ],
)
def test_points_for_a_part(status, kind, earned, points):
    task = Task("ho-a", "A", 5, kind, "a", "ch01")
    assert grade._points(task, Verdict(status, "", earned)) == points


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
        (["--roster", "none.txt"], "roster: got none.txt (No such file or directory), expected"),
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
