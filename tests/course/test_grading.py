"""A class of right, wrong, unlucky and hostile notebooks gets the points that each deserves."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import grading_submissions as submissions
import pytest
import sandboxes
from make_homework import Maker
from once import once

from attnbook_course.checks.grading import command, grade
from attnbook_course.checks.grading.grade import Report
from attnbook_course.checks.grading.homework import read_homework

ROOT = Path(__file__).resolve().parents[2]

ROSTER = "First name,Last name,ID number\nnever,came,1\n,right,2\n"
ABSENT = ["never came"]


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


GRADED = [
    *submissions.CHANGED,
    "wrong",
    "untouched",
    "book's solution",
    "edited checks",
    "patched checks",
    "in a folder",
    "a million lines",
]
REST = [name for name in GRADED if name not in submissions.FEW]


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """One of each kind."""
    sandboxes.bubblewrap()
    return once(tmp_path_factory, "class", partial(grade_class, chosen=submissions.FEW))


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    """All the others."""
    sandboxes.bubblewrap()
    return once(tmp_path_factory, "rest", partial(grade_class, chosen=REST))


@pytest.fixture
def of(request):
    """The class in which there is someone of this name."""

    def find(name: str) -> Class:
        return request.getfixturevalue("rest" if name in REST else "graded")

    return find


def someone(name: str, *more):
    """A case of this name; slow for those that only repeat another."""
    return pytest.param(name, *more, marks=pytest.mark.slow if name in REST else ())


def grade_class(folder: Path, chosen: list[str]) -> Class:
    """Write those of the class into a folder and grade them."""
    OfTests(ROOT, seed=5).make("hw0", folder)
    key_folder = folder / "lecturer" / "hw0"
    student = json.loads((folder / "students" / "hw0.ipynb").read_text("utf-8"))
    key = json.loads((key_folder / "hw0.ipynb").read_text("utf-8"))
    handed_in = folder / "submissions"
    handed_in.mkdir()
    expected = submissions.write_class(handed_in, student, key, folder, chosen)
    loops = folder / "loops"
    loops.mkdir()
    endless = [name for name in submissions.LOOPS if name in chosen]
    for name in endless:
        (handed_in / f"{name}.ipynb").rename(loops / f"{name}.ipynb")
    unreadable = submissions.write_unreadable(handed_in, key, key_folder / "hw0.ipynb")
    (folder / "roster.csv").write_text(ROSTER, encoding="utf-8")
    reports: dict[str, Report] = {}
    printed: list[str] = []
    arguments = [
        str(handed_in),
        "--set",
        str(key_folder / "homework.json"),
        "--jobs",
        "3",
        "--roster",
        str(folder / "roster.csv"),
        "--csv",
        str(folder / "grades.csv"),
        "--feedback",
        str(folder / "feedback"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        kept = command.graded

        def recorded(*of):
            reports[of[0]] = kept(*of)
            return reports[of[0]]

        def written(*words, **_):
            printed.append(" ".join(map(str, words)))

        patch.setattr(command, "graded", recorded)
        patch.setattr(command, "print", written, raising=False)
        patch.setenv("SECRET_OF_THE_LECTURER", "hunter2")
        assert command.main(arguments) == 0
    impatient = replace(read_homework(key_folder / "homework.json"), seconds=15)
    with ThreadPoolExecutor(len(endless)) as pool:
        jobs = [
            pool.submit(grade.graded, name, [loops / f"{name}.ipynb"], impatient, "bwrap")
            for name in endless
        ]
    reports |= {job.result().name: job.result() for job in jobs}
    return Class(folder, expected, unreadable, reports, "\n".join(printed))


def said(graded, name, label):
    return str(graded.reports[name].results[label].verdict)


@pytest.mark.parametrize("name", [someone(name) for name in GRADED])
def test_everyone_has_the_points_of_what_their_functions_do(of, name):
    results = of(name).reports[name].results
    verdicts = [str(results[label].verdict) for label in submissions.CHECKED]
    points = [results[label].points for label in submissions.CHECKED]
    assert points == of(name).expected[name], verdicts


def test_no_one_is_missing(graded):
    assert {*submissions.FEW, *graded.unreadable, *ABSENT} == set(graded.reports)


def test_every_unreadable_file_is_told_what_to_do_and_has_no_points_to_enter(graded):
    for name, words in graded.unreadable.items():
        assert words in graded.reports[name].problem, name
        assert graded.reports[name].results == {}
        assert not graded.reports[name].complete


def test_one_time_out_a_loop(graded):
    counts = {name: report.timeouts for name, report in graded.reports.items() if report.timeouts}
    assert counts == {"loop in function": 1}


@pytest.mark.slow
def test_one_time_out_each_other_loop(rest):
    counts = {name: report.timeouts for name, report in rest.reports.items() if report.timeouts}
    assert counts == {"loop in cell": 1, "sleeps": 1}


def test_nothing_was_written_outside(graded):
    names = {path.name for path in graded.folder.iterdir()}
    tables = {f"grades{of}.csv" for of in ("", "-moodle", "-overview", "-to-read")}
    folders = {"students", "lecturer", "submissions", "loops", "feedback"}
    assert names == {*folders, "roster.csv", *tables}


def test_system_calls_find_no_process_no_file_and_no_network(graded):
    no_shell, no_file = f"{127 << 8} | " * 3, "FileNotFoundError | " * 3
    words = said(graded, "os system", "ex-half")
    assert words.endswith(f"NameError: {no_shell}{no_file}clean | no network")


HEARD = [
    ("loop in function", "ex-weights", "no answer in time. Does a loop not end?"),
    ("loop in cell", "ex-half", "its cell does not end within 15 s"),
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
    ("wrong", "ex-parabola", "That is the triangular kernel"),
    ("wrong", "ex-slope", "stops with NameError: name 'wieghts' is not defined"),
    ("wrong", "ho-power-kernel", "That is Epanechnikov's kernel, p = 1."),
]


@pytest.mark.parametrize(("name", "label", "words"), [someone(*case) for case in HEARD])
def test_what_a_student_hears(of, name, label, words):
    assert words in said(of(name), name, label)


def test_after_the_deadline_nobody_is_told_to_run_the_cell(graded):
    assert said(graded, "untouched", "ho-power-kernel") == "… power_kernel: not written yet."
    changed = said(graded, "untouched", "ex-far-query")
    assert changed == "… mended_prediction: nothing has changed yet."


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
    assert row(graded, "grades-moodle.csv", "came") == []  # to be entered by the course's own rule
    assert row(graded, "grades.csv", "never came")[-1] == "nothing was handed in"
    assert "not in the roster, or there more than once: 200 megabytes, " in graded.printed


def test_a_name_is_no_formula_and_no_markup(graded):
    assert row(graded, "grades.csv", '\'=HYPERLINK("evil")')
    pages = sorted((graded.folder / "feedback").iterdir())
    assert len(pages) == len(graded.reports) - len(ABSENT) - 1  # the loop was graded apart
    for page in pages:
        text = page.read_text("utf-8")
        assert "<script" not in text
        assert "\x1b" not in text
        assert "http" not in text.replace("http-equiv", "")
    strange = (graded.folder / "feedback" / "strange errors.html").read_text("utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in strange
    title = "Homework 0: &lt;b&gt;tests&lt;/b&gt; &amp; more: strange errors"
    assert f"<title>{title}</title>" in strange
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in strange


def test_a_changed_check_is_noted_for_the_lecturer(graded):
    notes = graded.reports["edited checks"].notes
    assert "ex-parabola: the check in the notebook was changed" in notes
    assert graded.reports["right"].notes == []
