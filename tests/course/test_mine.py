"""What a reader builds is kept in mine.py, and used where it is; the file may be edited by hand."""

from __future__ import annotations

import json
import linecache
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from attnbook import softmax
from attnbook_course import checks, mine, writer_tail
from attnbook_course.builds import BUILDS
from attnbook_course.checks import writers
from attnbook_course.checks.exercises import exercises
from attnbook_course.checks.repair import define
from attnbook_course.live import models

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
EXTENSION = CHAPTERS.parent / "_ext" / "attnbook_site"
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
    every = [one for chapter in sorted(CHAPTERS.glob("0*.md")) for one in exercises(chapter)]
    builds = [one for one in every if one.is_build]
    assert [one.check.__name__ for one in builds] == list(BUILDS)
    for build in builds:
        verdict = build.run(build.solution)
        assert verdict.status == "right" and "mine.py" not in verdict.message
    wrong = ATTENTION.replace("scaled(q, k), mask", "scaled(q, k)")
    assert checks.ch03.attention(define(wrong, "attention", notebook)).status == "wrong"
    assert not Path("mine.py").exists()


def test_no_other_function_takes_its_place(notebook):
    """One whose cell has changed since, or one of another name, be it another build's."""
    own = define(ATTENTION, "attention", notebook)
    checks.ch03.attention(own)
    before = text()
    file = own.__code__.co_filename
    changed = ATTENTION.replace("attention", "other")
    linecache.cache[file] = (len(changed), None, changed.splitlines(keepends=True), file)
    assert "attention has changed: define it anew" in checks.ch03.attention(own).message
    renamed = define(ATTENTION.replace("attention", "read"), "read", notebook)
    assert "it is called read, not attention." in checks.ch03.attention(renamed).message
    assert text() == before


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


PARTS = """import numpy as np, torch
from attnbook_course.builds import multi_head

def norm(x, gain):
    return gain * (x - x.mean(-1)[:, None]) / np.sqrt(x.var(-1)[:, None] + 1e-5)

def block(x, weights, num_heads, mask=None):
    matrices = (weights[name] for name in ("w_q", "w_k", "w_v", "w_o"))
    x = x + multi_head(norm(x, weights["norm_1"]), *matrices, num_heads, mask)
    hidden = np.maximum(0, norm(x, weights["norm_2"]) @ weights["w_1"].T)
    return x + hidden @ weights["w_2"].T

def twice(x, weights, num_heads, mask=None):
    return block(block(x, weights, num_heads, mask), weights, num_heads, mask)
"""
HALF, ROOT = 'norm(x, weights["norm_2"]) @ weights["w_1"].T', "x.var(-1)[:, None]"
RELU = f"np.maximum(0, {HALF})"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {RELU: f"{HALF}\n    hidden[hidden < 0] = 0"},  # writes into an array
        {RELU: f"torch.relu({HALF})", "np.sqrt": "torch.sqrt", ROOT: "x.var(-1, False)[:, None]"},
    ],
    ids=["NumPy's", "in place", "PyTorch's"],
)
def test_a_block_for_one_row_is_trained_on_many(changes):
    text, weights = PARTS, writers.weights(1)["blocks"][0]
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    Path("mine.py").write_text(text, "utf-8")
    own, x = mine.use("block"), torch.randn(2, 3, 5, 6, dtype=torch.float64)
    causal, slopes = torch.ones(5, 5, dtype=torch.bool).tril(), []
    for function in (own, BUILDS["block"].function):
        given = {name: torch.tensor(one, requires_grad=True) for name, one in weights.items()}
        output = function(x, given, 2, mask=causal)
        (output**2).sum().backward()
        slopes.append([output.detach(), *(one.grad for one in given.values())])
    for got, right in zip(*slopes, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-9)
    assert sys.modules["mine"].twice(x, given, 2).shape == x.shape
    assert isinstance(own(x[0, 0].numpy(), weights, 2), np.ndarray | torch.Tensor)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("np.maximum(0, ", "jax.nn.relu("),
        (f"np.sqrt({ROOT} + 1e-5)", "np.array([[float(v + 1e-5) ** 0.5] for v in x.var(-1)])"),
    ],
    ids=["JAX's", "numbers"],
)
def test_a_block_without_slopes_is_refused(old, new):
    assert old in PARTS
    Path("mine.py").write_text(f"import jax\n{PARTS.replace(old, new)}", "utf-8")
    own, weights = mine.use("block"), writers.weights(1)["blocks"][0]
    with pytest.raises(TypeError, match="block: got one through which PyTorch finds no slopes"):
        own(torch.ones(2, 6), weights, 2)
    assert own(np.ones((2, 6)), weights, 2).shape == (2, 6)


def test_what_is_built_after_the_end_was_written_goes_above_it(notebook, capsys):
    mine.finish()
    assert "these are the book's: block, logits, train, generate." in capsys.readouterr().out
    checks.ch03.attention(define(ATTENTION, "attention", notebook))
    own, mark, end = text().partition(mine.MARK)
    assert "def attention" in own and mark + end == mine.tail()
    Path("mine.py").write_text(text().replace("STEPS = 16, 800", "STEPS = 16, 900"), "utf-8")
    changed = text()
    mine.finish()
    assert text() == changed
    assert mine.use("attention").__module__ == "mine"
    clashing = ATTENTION.replace("scaled", "WIDTH")
    verdict = checks.ch03.attention(define(clashing, "attention", notebook))
    assert "WIDTH is a name of the end of mine.py" in verdict.message and text() == changed


def test_mine_py_trains_and_writes():
    """In a process, with a small model, and the reader's block in the book's logits."""
    Path("text.txt").write_text("what is seen twice is read once. " * 60, "utf-8")
    noted = PARTS.replace("    matrices", "    open('called', 'w').close()\n    matrices")
    Path("mine.py").write_text(noted, "utf-8")
    mine.finish()
    sizes = "WIDTH, HEADS, BLOCKS, WINDOW = 128, 4, 2, 64", "ROWS, STEPS, RATE, PIECE = 16, 800"
    assert all(size in text() for size in sizes)
    small = text().replace(sizes[0], "WIDTH, HEADS, BLOCKS, WINDOW = 16, 2, 1, 16")
    Path("mine.py").write_text(
        small.replace(sizes[1], "ROWS, STEPS, RATE, PIECE = 8, 200"), "utf-8"
    )
    command = [sys.executable, "-W", "error", "mine.py", "text.txt"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stderr, done.returncode, Path("called").exists()) == ("", 0, True)
    first, held_out = (float(one) for one in re.findall(r"([\d.]+) bits", done.stdout))
    assert held_out < 1.5 < 3 < first
    assert done.stdout.count("the book's, until you build it") == 3
    assert len(done.stdout.split("\n\n")[1].strip()) > 300
    sizes = models.unpack(Path("mine.safetensors").read_bytes()).config
    assert (sizes.embed_dim, sizes.activation, sizes.bias) == (16, "relu", False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "t.txt: No such file or directory"),
        (b"", "t.txt: got 0 characters, expected 970 or more. A tenth is held out, which must"),
        (b"GIF89a\xff", "t.txt: byte 6 is not UTF-8"),
    ],
)
def test_a_text_that_cannot_be_trained_on_is_refused(content, said):
    if content is not None:
        Path("t.txt").write_bytes(content)
    with pytest.raises(SystemExit, match=said):
        writer_tail.read_text("t.txt")


BROUGHT = {
    "attnbook": 1,
    "done": [],
    "drafts": {},
    "mine": f"import math\n\n{ATTENTION}",
    "road": None,
}
PROGRESS = "attnbook-progress.json"


def test_what_a_browser_has_comes_in_and_what_was_here_stays(capsys):
    """Twice is once; two files of the reader's keep their names and their words."""
    Path(PROGRESS).write_text(json.dumps(BROUGHT), "utf-8")
    for _ in range(2):
        mine.take(PROGRESS)
    assert capsys.readouterr().out.splitlines() == [
        f"mine.py has from {PROGRESS}: attention.",
        "mine.py is the same already.",
    ]
    mine.finish()  # below a line, which stays where the browser's has none
    for own in ("first = 1\n", "second = 2\n"):
        Path("mine.py").write_text(f"{own}\n\n{mine.tail()}", "utf-8")
        mine.take(PROGRESS)
        assert "def attention" in text() and text().endswith(mine.tail())
    for name, own in (("mine-before.py", "first = 1"), ("mine-before-2.py", "second = 2")):
        assert Path(name).read_text("utf-8").startswith(own)
    assert "The mine.py that was here is kept in mine-before-2.py." in capsys.readouterr().out
    assert mine.MARK in (EXTENSION / "static" / "files.js").read_text("utf-8")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(BROUGHT)[:-9], "which is no JSON"),
        (b"\xff\xd8", "which is no JSON"),
        ("[1]", "which is another JSON"),
        (json.dumps(BROUGHT | {"attnbook": 2}), "which is another JSON"),
        (json.dumps(BROUGHT | {"mine": None}), "nothing is built"),
        (json.dumps(BROUGHT | {"mine": [1]}), "mine is .1., expected the text of mine.py"),
        (json.dumps(BROUGHT | {"mine": "def f(:"}), "mine.py, line 1: invalid syntax"),
        (" " * (mine.MOST + 1), "of 5.0 MB"),
    ],
)
def test_a_damaged_or_foreign_file_changes_nothing(content, said):
    Path("mine.py").write_text("own = 1\n", "utf-8")
    Path(PROGRESS).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=said):
        mine.take(PROGRESS)
    assert text() == "own = 1\n" and not list(Path().glob("mine-*"))


def test_unknown_names_are_refused():
    with pytest.raises(
        ValueError, match="name: got 'attend', expected one of nadaraya_watson, des"
    ):
        mine.use("attend")
