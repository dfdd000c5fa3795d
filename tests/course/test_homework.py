"""A class's homework: students' notebooks run and hold no solution, the lecturer's copy scores full."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import make_homework
import nbformat
import pytest
import sandboxes
from make_homework import Maker
from once import once

from attnbook_course.checks.grading.grade import graded
from attnbook_course.checks.grading.homework import BadHomework, read_homework
from attnbook_course.checks.grading.notebook import PLACEHOLDER, read_notebook
from attnbook_course.checks.grading.worker import run
from attnbook_course.checks.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]

SETS = make_homework.sets(ROOT)
each_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The homework of two classes, by seed."""
    return once(tmp_path_factory, "homework", make_both)


def make_both(folder: Path) -> dict[int, Path]:
    maker, folders = Maker(ROOT, 1), {seed: folder / f"seed{seed}" for seed in (1, 2)}
    for seed, names in ((1, SETS), (2, SETS[:1])):
        maker.seed = seed
        for name in names:
            assert maker.make(name, folders[seed]) == f"{name}: 8 exercises, 20 points"
    return folders


def notebook(path: Path):
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


def test_two_classes_differ_in_the_held_out_numbers_alone(made):
    one, two = (notebook(made[seed] / "students" / "hw1.ipynb") for seed in (1, 2))
    differ = [a.id for a, b in zip(one.cells, two.cells, strict=True) if a.source != b.source]
    assert differ
    assert all(place.startswith("ho-") for place in differ)


@each_set
def test_students_see_no_solution_and_no_seed(made, name):
    text = (made[1] / "students" / f"{name}.ipynb").read_text("utf-8")
    assert '"seed"' not in text
    plan = Maker.plan(MAKER, name)
    for part in MAKER.parts(name, plan):
        student = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells)
        stub = set(part.exercise.stub.splitlines())
        lines = part.exercise.solution.splitlines() if part.function else part.note.splitlines()
        secret = [line.strip() for line in lines if line not in stub and len(line.strip()) > 12]
        assert secret
        assert not [line for line in secret if line in student]


MAKER = Maker(ROOT, 1)


@each_set
def test_a_student_s_notebook_runs_on_its_own_and_nothing_is_right_yet(made, name):
    known: dict = {"__name__": "__main__"}
    verdicts = []
    for place, cell in enumerate(notebook(made[1] / "students" / f"{name}.ipynb").cells):
        if cell.cell_type == "code":
            assert run(cell.source, place, known) == ""
            if cell.id not in ("set-up", "imports"):
                verdicts.append(eval(cell.source.splitlines()[-1], known))
    assert len(verdicts) == 7
    assert all(isinstance(one, Verdict) and one.status == "not yet" for one in verdicts)


@each_set
def test_every_answer_is_found_by_its_question_alone(made, name, tmp_path):
    found = notebook(made[1] / "students" / f"{name}.ipynb")
    for cell in found.cells:
        cell.metadata = {}
    nbformat.write(found, tmp_path / "colab.ipynb")
    handed_in = read_notebook(tmp_path / "colab.ipynb")
    for task in read_homework(made[1] / "lecturer" / name / "homework.json").tasks:
        (cell,) = handed_in.answers(task.label, task.title)
        assert task.function in cell.functions if task.function else cell.text == PLACEHOLDER
        words, to = task.places[-1]
        assert words.startswith("Exercise" if task.kind == "explained" else ("section", "chapter"))
        assert bool(to) == bool(MAKER.book.site)


def test_the_lecturer_s_copy_scores_full(made):
    folder = made[1] / "lecturer" / "hw1"
    homework = read_homework(folder / "homework.json")
    report = graded("key", [folder / "hw1.ipynb"], homework, sandboxes.bubblewrap())
    assert homework.points == 20
    assert report.total == 17  # a person reads the explanation
    assert report.notes == []
    (label,) = report.explanations
    assert report.explanations[label] == next(t.answer for t in homework.tasks if t.label == label)


def test_held_out_exercises_of_one_s_own(tmp_path, capsys):
    own, book = tmp_path / "own", ROOT / "homework" / "held_out"
    own.mkdir()
    for name in ("ch01.md", "ch01.py"):
        text = (book / name).read_text("utf-8").replace("integers(3, 17)", "integers(17, 18)")
        (own / name).write_text(text, "utf-8")
    arguments = ["--seed", "2", "--out", str(tmp_path / "out"), "--held-out", str(own), "hw1"]
    assert make_homework.main(arguments) == 0
    assert "to the power of 17" in (tmp_path / "out/students/hw1.ipynb").read_text("utf-8")
    kept = tmp_path / "out" / "lecturer" / "hw1" / "held_out" / "ch01.py"
    assert kept.read_text("utf-8") == (own / "ch01.py").read_text("utf-8")
    (own / "ch01.py").unlink()
    assert make_homework.main(arguments) == 1
    assert "ch01.py: there is no such file" in capsys.readouterr().err


GOOD = 'title = "T"\nchapters = ["01"]\nseconds = 60\nminutes = 10\nexplanations = "read"\n'


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("title = ", "homework/hw0.toml: Invalid value"),
        (GOOD.replace("minutes", "hours"), "homework/hw0.toml: minutes: expected a line of it"),
        (
            f"{GOOD}[points]\nex-no = 1",
            "no exercise 'ex-no' in [points]; there are build-1, ex-parabola, ",
        ),
    ],
)
def test_a_plan_that_cannot_be_is_refused(tmp_path, monkeypatch, plan, words):
    (tmp_path / "homework").mkdir()
    (tmp_path / "homework" / "hw0.toml").write_text(plan, encoding="utf-8")
    monkeypatch.setattr(MAKER, "chapter", Maker(ROOT, 2).chapter)
    monkeypatch.setattr(MAKER, "held_out", lambda _: [])
    monkeypatch.setattr(MAKER, "root", tmp_path)
    with pytest.raises(BadHomework) as found:
        MAKER.parts("hw0", MAKER.plan("hw0"))
    assert words in str(found.value)


def test_a_section_that_the_chapter_has_not_is_refused():
    (part, *_) = MAKER.parts("hw1", MAKER.plan("hw1"))
    lost = dataclasses.replace(part, exercise=dataclasses.replace(part.exercise, told_in="no"))
    with pytest.raises(BadHomework, match="build-1: told-in-no: chapter 1 has no such section"):
        MAKER.places(lost)


def test_a_solution_that_is_not_right_stops_the_making(tmp_path, monkeypatch):
    monkeypatch.setattr(make_homework, "scored", lambda *_: Verdict("wrong", "no"))
    with pytest.raises(BadHomework, match="the solution of build-1 is not right: ✗ no"):
        MAKER.make("hw1", tmp_path)


@pytest.mark.parametrize("seed", ["", "-1", "1.5"])
def test_a_seed_is_a_whole_number(seed, capsys):
    assert make_homework.main([f"--seed={seed}"]) == 2
    assert f"seed: got {seed!r}, expected a whole number" in capsys.readouterr().err
