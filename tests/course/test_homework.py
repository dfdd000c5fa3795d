"""A class's homework: students' notebooks run and hold no solution, the lecturer's copy scores full."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import homework_cells
import make_homework
import nbformat
import pytest
import sandboxes
from make_homework import Maker
from once import once

from attnbook_course.checks.grading.grade import graded
from attnbook_course.checks.grading.homework import BadHomework, read_homework
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
    maker, folders = Maker(ROOT, 1), {}
    for seed in (1, 2):
        maker.seed, folders[seed] = seed, folder / f"seed{seed}"
        for name in SETS:
            assert maker.make(name, folders[seed]) == f"{name}: 8 exercises, 20 points"
    return folders


def notebook(path: Path):
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


@each_set
def test_two_classes_differ_in_the_held_out_numbers_alone(made, name):
    one, two = (notebook(made[seed] / "students" / f"{name}.ipynb") for seed in (1, 2))
    differ = [a.id for a, b in zip(one.cells, two.cells, strict=True) if a.source != b.source]
    assert differ
    assert all(place.startswith("ho-") for place in differ)


@each_set
def test_students_see_no_solution_and_no_seed(made, name):
    text = (made[2] / "students" / f"{name}.ipynb").read_text("utf-8")
    assert '"seed"' not in text
    plan = Maker.plan(MAKER, name)
    for part in MAKER.parts(name, plan):
        student = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells)
        stub = set(part.exercise.stub.splitlines())
        lines = part.exercise.solution.splitlines() if part.function else part.note.splitlines()
        secret = [line.strip() for line in lines if line not in stub and len(line.strip()) > 12]
        assert secret
        assert not [line for line in secret if line in student]


MAKER = Maker(ROOT, 2)


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
def test_the_lecturer_s_copy_scores_full(made, name):
    folder = made[1] / "lecturer" / name
    homework = read_homework(folder / "homework.json")
    report = graded("key", [folder / f"{name}.ipynb"], homework, sandboxes.bubblewrap())
    assert homework.points == 20
    assert report.total == 17  # a person reads the explanation
    assert report.notes == []
    (label,) = report.explanations
    assert report.explanations[label] == next(t.answer for t in homework.tasks if t.label == label)


def test_without_an_address_students_hear_whom_to_ask_and_the_lecturer_what_to_do(
    tmp_path, monkeypatch, capsys
):
    bare = replace(MAKER.book, site="", repository="")
    monkeypatch.setattr(MAKER, "book", bare)
    source = homework_cells.set_up(bare).source
    assert "make address" not in source
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "Ask your lecturer where to open the notebook." in run(source, 0, {})
    monkeypatch.setattr(make_homework, "Maker", lambda *_: MAKER)
    monkeypatch.setattr(MAKER, "make", lambda *_: "made")
    assert make_homework.main(["--seed", "7", "--out", str(tmp_path), "hw2"]) == 0
    heard = capsys.readouterr().err
    assert heard.startswith("This copy of the book has no address")
    assert "make address REPO=owner/name" in heard


def test_held_out_exercises_of_one_s_own(tmp_path, monkeypatch, capsys):
    own = tmp_path / "own"
    own.mkdir()
    for name in ("ch01.md", "ch01.py"):
        text = (ROOT / "homework" / "held_out" / name).read_text("utf-8")
        text = text.replace("A smoother parabola", "One that is nowhere published")
        (own / name).write_text(text.replace("integers(3, 7)", "integers(11, 12)"), "utf-8")
    arguments = ["--seed", "2", "--out", str(tmp_path / "out"), "--held-out"]
    monkeypatch.setattr(MAKER, "own", None)  # to be as it was, after the test

    def maker(root, seed, folder):
        assert (root, seed) == (ROOT, MAKER.seed)
        MAKER.own = folder
        return MAKER

    monkeypatch.setattr(make_homework, "Maker", maker)
    assert make_homework.main([*arguments, str(own), "hw1"]) == 0
    text = (tmp_path / "out" / "students" / "hw1.ipynb").read_text("utf-8")
    assert "One that is nowhere published" in text
    assert "to the power of 11" in text
    kept = tmp_path / "out" / "lecturer" / "hw1" / "held_out" / "ch01.py"
    assert kept.read_text("utf-8") == (own / "ch01.py").read_text("utf-8")
    # the other chapters' are the book's
    assert MAKER.held_out_file("ch02.md") == ROOT / "homework" / "held_out" / "ch02.md"
    (own / "ch01.py").unlink()
    assert make_homework.main([*arguments, str(own), "hw1"]) == 1
    assert "ch01.py: there is no such file" in capsys.readouterr().err
    assert make_homework.main([*arguments, str(own / "no"), "hw1"]) == 2
    assert "expected a folder with chNN.md and chNN.py" in capsys.readouterr().err


END = 'explanations = "read"\n'
GOOD = 'title = "T"\nafter = "1b"\nchapters = ["01"]\nseconds = 60\nminutes = 10\n' + END
TWICE = GOOD.replace('"01"', '"03", "09"')
TWICE += "[points]\nex-prefix-mask = 1\n[held_out]\nho-prefix-mask = 1"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (GOOD, "title = ", "homework/hw0.toml: Invalid value"),
        ("minutes = 10", "", "homework/hw0.toml: minutes: expected a line of it"),
        (
            END,
            END + "[points]\nex-no = 1",
            "no exercise 'ex-no' in [points]; there are ex-parabola, ",
        ),
        (
            END,
            END + "[held_out]\nex-half = 1",
            "no exercise 'ex-half' in [held_out]; there are ho-power-kernel, ho-many-inputs",
        ),
        ('"01"', '"17"', "chapters: got '17', expected two digits, as in 01"),
        (GOOD, TWICE, "two exercises ask for a function prefix_mask"),
    ],
)
def test_a_plan_that_cannot_be(tmp_path, monkeypatch, old, new, words):
    (tmp_path / "homework").mkdir()
    (tmp_path / "homework" / "hw0.toml").write_text(GOOD.replace(old, new), encoding="utf-8")

    def read(name: str):
        with monkeypatch.context() as patch:
            patch.setattr(MAKER, "root", tmp_path)
            return MAKER.plan(name)

    with pytest.raises(BadHomework) as found:
        MAKER.parts("hw0", read("hw0"))
    assert words in str(found.value)
    with pytest.raises(BadHomework, match="there is no such file; there are hw0"):
        read("hw8")


def test_a_solution_that_is_not_right_stops_the_making(tmp_path, monkeypatch):
    monkeypatch.setattr(make_homework, "scored", lambda *_: Verdict("wrong", "no"))
    with pytest.raises(BadHomework, match="the solution of ex-neighbours is not right: ✗ no"):
        MAKER.make("hw1", tmp_path)


@pytest.mark.parametrize("seed", ["", "-1", "x", "1.5", "1" * 30])
def test_a_seed_is_a_whole_number(seed, capsys):
    assert make_homework.main([f"--seed={seed}"]) == 2
    said = f"seed: got {seed!r}, expected a whole number, as in SEED=2027"
    assert said in capsys.readouterr().err
