"""A class of right, wrong, unlucky and hostile notebooks gets the points that each deserves."""

from __future__ import annotations

import csv
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import grading_submissions as submissions
import pytest
import sandboxes
from once import once

from attnbook.checks.grading import command, grade
from attnbook.checks.grading.grade import Report
from attnbook.checks.grading.homework import read_homework

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from make_homework import Maker  # noqa: E402


class OfTests(Maker):
    """Makes a homework that is not in homework/."""

    def plan(self, name):
        return submissions.PLAN


@dataclass
class Class:
    """A class that was graded once, for all tests."""

    folder: Path
    expected: dict[str, list[int]]
    unreadable: dict[str, str]
    reports: dict[str, Report]
    printed: str


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    sandboxes.bubblewrap()
    return once(tmp_path_factory, "class", grade_class)


def grade_class(folder: Path) -> Class:
    """Write the class into a folder and grade it."""
    OfTests(ROOT, seed=5).make("hw0", folder)
    key_folder = folder / "lecturer" / "hw0"
    student = json.loads((folder / "students" / "hw0.ipynb").read_text("utf-8"))
    key = json.loads((key_folder / "hw0.ipynb").read_text("utf-8"))
    handed_in = folder / "submissions"
    handed_in.mkdir()
    expected = submissions.write_class(handed_in, student, key, {"folder": folder})
    loops = folder / "loops"
    loops.mkdir()
    for name in submissions.LOOPS:
        (handed_in / f"{name}.ipynb").rename(loops / f"{name}.ipynb")
    unreadable = submissions.write_unreadable(handed_in, key, key_folder / "hw0.ipynb")
    (folder / "roster.txt").write_text("never came\nright\n", encoding="utf-8")
    reports: dict[str, Report] = {}
    printed: list[str] = []
    arguments = [str(handed_in), "--set", str(key_folder / "homework.json"), "--jobs", "3"]
    arguments += ["--roster", str(folder / "roster.txt"), "--csv", str(folder / "grades.csv")]
    arguments += ["--feedback", str(folder / "feedback")]
    with pytest.MonkeyPatch.context() as patch:
        kept = command.graded

        def recorded(*of):
            reports[of[0]] = kept(*of)
            return reports[of[0]]

        patch.setattr(command, "graded", recorded)
        patch.setattr(
            command,
            "print",
            lambda *words, **_: printed.append(" ".join(map(str, words))),
            raising=False,
        )
        patch.setenv("SECRET_OF_THE_LECTURER", "hunter2")
        assert command.main(arguments) == 0
    impatient = replace(read_homework(key_folder / "homework.json"), seconds=4)
    with ThreadPoolExecutor(len(submissions.LOOPS)) as pool:
        jobs = [
            pool.submit(grade.graded, name, [loops / f"{name}.ipynb"], impatient, "bwrap")
            for name in submissions.LOOPS
        ]
    reports |= {job.result().name: job.result() for job in jobs}
    return Class(folder, expected, unreadable, reports, "\n".join(printed))


GRADED = [*submissions.CHANGED, "wrong", "untouched", "book's solution", "edited checks"]
GRADED += ["patched checks", "in a folder", "a million lines"]


def said(graded, name, label):
    return str(graded.reports[name].results[label].verdict)


@pytest.mark.parametrize("name", GRADED)
def test_everyone_has_the_points_of_what_their_functions_do(graded, name):
    results = graded.reports[name].results
    verdicts = [str(results[label].verdict) for label in submissions.CHECKED]
    points = [results[label].points for label in submissions.CHECKED]
    assert points == graded.expected[name], verdicts


def test_no_one_is_missing(graded):
    assert {*GRADED, *graded.unreadable, "never came"} == set(graded.reports)
    assert len(graded.reports) >= 17 + 5


@pytest.mark.parametrize("name", ["broken", "link", "200 megabytes", "two notebooks", "nested"])
def test_what_cannot_be_graded_is_said_and_has_no_points_to_enter(graded, name):
    assert graded.unreadable[name] in graded.reports[name].problem
    assert not graded.reports[name].complete


def test_every_unreadable_file_is_told_what_to_do(graded):
    for name, words in graded.unreadable.items():
        assert words in graded.reports[name].problem, name
        assert graded.reports[name].results == {}


def test_one_time_out_a_loop(graded):
    counts = {name: report.timeouts for name, report in graded.reports.items() if report.timeouts}
    assert counts == {"loop in function": 1, "loop in cell": 1, "sleeps": 1}


def test_nothing_was_written_outside(graded):
    names = {path.name for path in graded.folder.iterdir()}
    tables = {f"grades{of}.csv" for of in ("", "-moodle", "-canvas", "-to-read")}
    folders = {"students", "lecturer", "submissions", "loops", "feedback"}
    assert names == {*folders, "roster.txt", *tables}


def test_system_calls_find_no_process_no_file_and_no_network(graded):
    no_shell, no_file = f"{127 << 8} | " * 3, "FileNotFoundError | " * 3
    words = said(graded, "os system", "ex-half")
    assert words.endswith(f"NameError: {no_shell}{no_file}clean | no network")


@pytest.mark.parametrize(
    ("name", "label", "words"),
    [
        ("loop in function", "ex-weights", "no answer in time. Does a loop not end?"),
        ("loop in cell", "ex-half", "its cell does not end within 4 s"),
        ("syntax error", "ex-weights", "its cell stops: SyntaxError: expected ':'"),
        ("exits", "ex-neighbours", "its process ended"),
        ("exits", "ex-half", "its cell stops: SystemExit"),
        ("memory", "ex-weights", "stops with MemoryError: Unable to allocate 298. GiB"),
        ("pickle and pipes", "ex-weights", "stops with RecursionError"),
        ("pickle and pipes", "ex-slope", "its answer cannot be read"),
        ("patched libraries", "ex-slope", "its cell ends the process"),
        ("fork bomb", "ex-weights", "stops with PermissionError: [Errno 1] Operation not permitted"),
        ("text", "ex-half", "your function returns a str, expected numbers"),
        ("nan", "ex-half", "you give nan"),
        ("huge array", "ex-half", "an array of shape (10000000,), too large to compare"),
        ("full disk", "ex-half", "stops with NameError: No space left on device"),
        ("segmentation fault", "ex-weights", "its process ended"),
        ("deleted cell", "ex-half", "there is no function data_for_half_the_error in the notebook"),
        ("untouched", "ho-power-kernel", "… power_kernel: not written yet."),
        ("untouched", "ex-far-query", "… mended_prediction: nothing has changed yet."),
        ("wrong", "ex-parabola", "That is the triangular kernel"),
        ("wrong", "ex-slope", "stops with NameError: name 'wieghts' is not defined"),
        ("wrong", "ho-power-kernel", "That is Epanechnikov's kernel, p = 1."),
    ],
)  # fmt: skip
def test_what_a_student_hears(graded, name, label, words):
    assert words in said(graded, name, label)


def test_an_explanation_waits_for_a_person(graded):
    result = graded.reports["right"].results["ex-explain-valley"]
    assert result.points is None
    assert graded.reports["untouched"].results["ex-explain-valley"].points == 0
    assert "to read" in row(graded, "grades.csv", "right")
    assert row(graded, "grades-moodle.csv", "right") == []
    assert "explanations to read: enter their points in" in graded.printed


def row(graded, table, name):
    with (graded.folder / table).open(encoding="utf-8", newline="") as file:
        return next((one for one in csv.reader(file) if name in one), [])


def test_the_roster_is_complete_and_the_rest_is_named(graded):
    assert graded.reports["never came"].problem == "nothing was handed in"
    assert row(graded, "grades-moodle.csv", "never came")[4] == "0"
    assert row(graded, "grades-canvas.csv", "never came")[-1] == "0"
    assert "not in the roster, or there more than once: 200 megabytes, " in graded.printed


def test_a_name_is_no_formula_and_no_markup(graded):
    assert row(graded, "grades.csv", '\'=HYPERLINK("evil")')
    pages = sorted((graded.folder / "feedback").iterdir())
    assert len(pages) == len(graded.reports) - len(submissions.LOOPS) - 1
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "\x1b" not in text
        assert "http" not in text.replace("http-equiv", "")
    strange = (graded.folder / "feedback" / "strange errors.html").read_text("utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in strange
    assert (
        "<title>Homework 0: &lt;b&gt;tests&lt;/b&gt; &amp; more: strange errors</title>" in strange
    )
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in strange


def test_a_changed_check_is_noted_for_the_lecturer(graded):
    notes = graded.reports["edited checks"].notes
    assert "ex-parabola: the check in the notebook was changed" in notes
    assert graded.reports["right"].notes == []
