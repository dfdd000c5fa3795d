"""What a reader builds is kept in mine.py, and used where it is; the file may be edited by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from attnbook import softmax
from attnbook_course import checks, mine
from attnbook_course.builds import BUILDS
from attnbook_course.checks.exercises import exercises
from attnbook_course.checks.repair import define

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
ATTENTION = """
def scaled(q, k):
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1] + TINY)


def attention(q, k, v, mask=None):
    weights = softmax(scaled(q, k), mask)
    return weights @ v, weights
"""
FEW = np.eye(2), np.eye(2), np.ones((2, 3))


@pytest.fixture(autouse=True)
def notebook(tmp_path, monkeypatch):
    """A folder in which a notebook runs, and the notebook's names."""
    import math

    monkeypatch.chdir(tmp_path)
    return {"__name__": "__main__", "np": np, "math": math, "softmax": softmax, "TINY": 1e-9} | {
        "weights": np.ones(3)  # also the name of a variable of the functions
    }


def text() -> str:
    return Path("mine.py").read_text("utf-8")


def test_a_right_answer_of_a_notebook_is_kept_with_what_it_needs(notebook, capsys):
    verdict = checks.ch03.attention(define(ATTENTION, "attention", notebook))
    assert verdict.message.endswith("Kept in mine.py.")
    assert {"import math", "from attnbook import softmax", "TINY = 1e-09"} <= {*text().splitlines()}
    assert "numpy" not in text() and "weights = [" not in text()
    own = mine.use("attention")
    assert capsys.readouterr().out == "attention: yours, from mine.py.\n"
    assert own.__module__ == "mine" and own(*FEW)[0].shape == (2, 3)


def test_another_answer_takes_its_place_and_the_rest_stays_as_the_reader_has_it(notebook):
    checks.ch03.attention(define(ATTENTION, "attention", notebook))
    Path("mine.py").write_text(text() + "\n\n# my own\ndef other():\n    return 1\n", "utf-8")
    shorter = re.sub(r"def scaled.*\n.*", "", ATTENTION).replace("scaled(q, k)", "q @ k.mT / 2")
    checks.ch03.attention(define(shorter, "attention", notebook))
    assert text().count("def attention") == 1 and "q @ k.mT / 2" in text()
    assert "# my own\ndef other():" in text()


def test_what_is_not_right_or_of_another_module_is_not_kept(notebook):
    for chapter in sorted(CHAPTERS.glob("0[1-79]-*.md")):
        (build,) = (one for one in exercises(chapter) if one.is_build)
        verdict = build.run(build.solution)
        assert verdict.status == "right" and "mine.py" not in verdict.message
    wrong = ATTENTION.replace("scaled(q, k), mask", "scaled(q, k)")
    assert checks.ch03.attention(define(wrong, "attention", notebook)).status == "wrong"
    assert not Path("mine.py").exists()


def test_a_helper_that_something_else_uses_is_not_overwritten(notebook):
    checks.ch03.attention(define(ATTENTION, "attention", notebook))
    Path("mine.py").write_text(text() + "\n\ndef other(q):\n    return scaled(q, q)\n", "utf-8")
    before, changed = text(), ATTENTION.replace("+ TINY", "")
    verdict = checks.ch03.attention(define(changed, "attention", notebook))
    assert "Not kept in mine.py: other in mine.py uses another scaled" in verdict.message
    assert text() == before


def test_what_only_the_notebook_has_cannot_be_kept(notebook):
    own = define(ATTENTION.replace("TINY", "0 * weights[0]"), "scaled", notebook)
    attention = own.__globals__["attention"]
    verdict = checks.ch03.attention(attention)
    assert "Not kept in mine.py: it reads weights of the notebook" in verdict.message
    with pytest.raises(ValueError, match="name: got 'scaled', expected one of nadaraya_watson"):
        mine.keep(own)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("x = 1\ndef f(:\n", "mine.py, line 2: SyntaxError: invalid syntax. Until that is mended"),
        ("x = 1\n\n1 / 0\n", "mine.py, line 3: ZeroDivisionError: division by zero. Until"),
        ("def another(): pass", "attention: the book's.\nBuild your own in chapter 3."),
        (None, "attention: the book's.\nBuild your own in chapter 3."),
    ],
)
def test_where_there_is_none_the_book_s_stands_in(notebook, capsys, broken, said):
    if broken is not None:
        Path("mine.py").write_text(broken, "utf-8")
    assert mine.use("attention") is BUILDS["attention"].function
    assert capsys.readouterr().out.startswith(said)
    if said.startswith("mine.py, line 2"):
        verdict = checks.ch03.attention(define(ATTENTION, "attention", notebook))
        assert "Not kept in mine.py: mine.py, line 2: invalid syntax" in verdict.message
        assert text() == broken


def test_a_function_written_for_a_library_takes_numpy_s_arrays_too(notebook):
    Path("mine.py").write_text(
        "import torch\n\ndef attention(q, k, v, mask=None):\n"
        "    w = torch.softmax(q @ k.mT, -1)\n    return w @ v, w\n",
        "utf-8",
    )
    output, weights = mine.use("attention")(*FEW, mask=np.ones((2, 2), dtype=bool))
    assert isinstance(output, np.ndarray) and output.shape == (2, 3) and weights.shape == (2, 2)


def test_unknown_names_are_refused():
    with pytest.raises(
        ValueError, match="name: got 'attend', expected one of nadaraya_watson, des"
    ):
        mine.use("attend")
