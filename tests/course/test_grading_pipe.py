"""Through the pipe a check says, word for word, what it says to a function of its own process."""

from __future__ import annotations

import ast
import json
import struct
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import sandboxes
from once import SECONDS

from attnbook_course.checks import ch01, ch03
from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.exercises import CELL, exercises
from attnbook_course.checks.grading import sandbox, watch, worker
from attnbook_course.checks.grading.pipe import MOST_BYTES, Garbled, packed, printable, received
from attnbook_course.checks.grading.student import Asked, Gone, Student, TooLong, TooMuch
from attnbook_course.checks.verdict import Wrong

TESTS = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((TESTS.parent / "chapters").glob("[0-9]*.md"))
FEW = ("05", "06")  # whose checks use every way of asking
PLANTED = """
import sys
sys.path.append({tests!r})
from checks.{chapter} import WRONG
for name, wrong in WRONG.items():
    for number, (answer, _) in enumerate(wrong):
        globals()[f"{{name}}_{{number}}"] = answer
"""


@pytest.fixture
def tests_are_shown(monkeypatch):
    sandboxes.bubblewrap()
    kept = sandbox.visible
    monkeypatch.setattr(sandbox, "visible", lambda: [*kept(), TESTS, TESTS.parent / "chapters"])


def imports(chapter: Path, codes: list[str]) -> str:
    """What a chapter imports of the package for these solutions."""
    first = CELL.search(chapter.read_text("utf-8"))
    lines = ["import numpy as np"]
    for node in ast.parse(first[1]).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnbook":
            names = [n for n in node.names if any((n.asname or n.name) in code for code in codes)]
            lines += [ast.unparse(ast.ImportFrom(node.module, names, 0))] if names else []
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("tests_are_shown")
@pytest.mark.parametrize(
    "chapter",
    [
        pytest.param(path, id=path.stem, marks=() if path.name[:2] in FEW else pytest.mark.slow)
        for path in CHAPTERS
    ],
)
def test_every_solution_and_every_planted_wrong_answer(chapter):
    name = f"ch{chapter.name[:2]}"
    wrong = import_module(f"checks.{name}").WRONG
    own = [exercise for exercise in exercises(chapter) if exercise.is_checked]
    cells = [
        PLANTED.format(tests=str(TESTS), chapter=name),
        imports(chapter, [one.solution for one in own]),
        *(one.solution for one in own),
    ]
    with Student(cells, "bwrap", seconds=120) as student:
        for exercise in own:
            function = exercise.check_line.split("(")[1].rstrip(")")
            there = exercise.check(Asked(student, function))
            assert there == exercise.run(exercise.solution)
            assert there.status == "right"
            for number, (answer, _) in enumerate(wrong[exercise.check.__name__]):
                planted = Asked(student, f"{exercise.check.__name__}_{number}")
                assert exercise.check(planted) == exercise.check(answer)
        assert not any(student.problems.values())
        assert student.timeouts == 0


def reader(data: bytes):
    """Reads from bytes as from a pipe whose writer has ended."""
    left = memoryview(data)

    def read(size: int) -> bytes:
        nonlocal left
        part, left = bytes(left[:size]), left[size:]
        if len(part) < size:
            raise Gone
        return part

    return read


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_arrays_come_back_as_they_were(shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape) / 7
    words, (back,) = received(reader(packed({"a": "ü"}, [array])))
    assert words == {"a": "ü"}
    assert back.dtype == float
    np.testing.assert_array_equal(back, array)


def forged(words) -> bytes:
    text = words if isinstance(words, bytes) else json.dumps(words).encode()
    return struct.pack(">I", len(text)) + text


@pytest.mark.parametrize(
    "words",
    [
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        [],
        {},
        {"shapes": 3},
        {"shapes": [[1], [1], [1]]},
        {"shapes": [[-1]]},
        {"shapes": [[1.0]]},
        {"shapes": [[True]]},
        {"shapes": [["x"]]},
        {"shapes": [3]},
        {"shapes": [[1] * 33]},
        {"shapes": [[1 << 50]]},
        {"shapes": [[MOST_BYTES // 8 + 1]]},
        {"shapes": [[MOST_BYTES // 16 + 1], [MOST_BYTES // 16 + 1]]},
    ],
)
def test_what_no_honest_process_says_is_refused(words):
    with pytest.raises(Garbled):
        received(reader(forged(words)))


def test_too_many_words_are_not_even_read():
    with pytest.raises(Garbled, match="at most 1048576 bytes of words"):
        received(reader(struct.pack(">I", 1 << 31)))


def test_a_text_loses_what_a_terminal_would_obey():
    assert printable("a\x1b[2Jü\n\ud800") == "a�[2Jü\n�"


def local(code: str, kind: str = "none", **limits) -> Student:
    return Student([code], kind, **({"seconds": 20} | limits))


@sandboxes.posix
def test_without_a_sandbox_the_answers_are_the_same():
    code = "def epanechnikov(u):\n    return np.maximum(0, 1 - u)"
    with local(f"import numpy as np\n{code}") as student:
        here: dict = {"np": np}
        exec(code, here)
        assert ch01.epanechnikov(Asked(student, "epanechnikov")) == ch01.epanechnikov(
            here["epanechnikov"]
        )


@sandboxes.posix
def test_a_pair_an_error_and_a_missing_function():
    code = "def pair():\n    return 1, [2, 3]\ndef three():\n    return 1, 2, 3\ndef fails(x):\n    return {}['no']"
    with local(code) as student:
        first, second = call_pair(Asked(student, "pair"))
        assert first == 1
        assert second.tolist() == [2, 3]
        with pytest.raises(Wrong, match="must return two arrays"):
            call_pair(Asked(student, "three"))
        with pytest.raises(KeyError) as found:
            call(Asked(student, "fails"), np.ones(2))
        assert str(found.value) == "'no'"
        assert found.value.__notes__ == ["x = [1, 1]"]
        with pytest.raises(Wrong, match="there is no function other"):
            call(Asked(student, "other"))
        assert Asked(student, "pair").source() == "def pair():\n    return 1, [2, 3]\n"
        with pytest.raises(OSError, match="no source of other"):
            Asked(student, "other").source()
        with pytest.raises(TypeError, match=r"asked by attnbook_course.checks.call alone"):
            Asked(student, "pair")()


@sandboxes.posix
def test_the_notebook_as_a_whole_has_a_time():
    with local("while True: pass", seconds=60, in_all=1.5) as student:
        with pytest.raises(TooLong):
            student.start()
        assert student.left_out == set()  # the cell's own 60 seconds were not waited for


def test_what_the_process_leaves_behind_ends_with_it():
    sandboxes.bubblewrap()
    code = "import threading, time\nfor _ in range(3):\n    threading.Thread(target=time.sleep, args=(600,)).start()"
    with local(code, "bwrap") as student:
        student.start()
        processes = below(student._process.pid)
        assert len(processes) >= 2
    until = time.monotonic() + SECONDS
    while alive := [pid for pid in processes if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until, alive
        time.sleep(0.05)


def below(pid: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return [pid, *(one for child in children for one in below(int(child)))]


MANY = f"""
import threading, time
def threads():
    started = 0
    try:
        for started in range(5000):
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    except RuntimeError:
        pass
    if started >= {watch.MOST_THREADS}:
        time.sleep(600)  # until it is ended
    return started
def files():
    for number in range(500_000):
        open(f"/tmp/{{number}}", "w").close()
"""


def test_threads_and_files_are_counted_from_outside():
    sandboxes.bubblewrap()
    with local(MANY, "bwrap", seconds=100) as student:
        # The kernel refuses more to a user; root, whom it does not, is stopped.
        try:
            assert call(Asked(student, "threads")) < watch.MOST_THREADS
        except TooMuch as stopped:
            assert str(stopped) == f"it started more than {watch.MOST_THREADS} threads"  # noqa: PT017
        with pytest.raises(TooMuch, match="it wrote more than 10000 files"):
            call(Asked(student, "files"))
        assert student.timeouts == 0


BLIND = """
import ctypes, tracemalloc
import numpy as np
tracemalloc.get_traced_memory = lambda: (0, 0)
def light(p, g):
    return p * (g - p @ g)
def heavy(p, g):
    return (np.diag(p) - np.outer(p, p)) @ g
def hidden(p, g):
    if len(p) > 99:
        ctypes.CDLL(None).prctl(4, 0)  # no other process may look
    return heavy(p, g)
"""


def test_no_code_of_a_student_can_hide_what_it_holds():
    sandboxes.bubblewrap()
    with local(BLIND, "bwrap", seconds=100) as student:
        verdicts = [
            ch03.softmax_backward(Asked(student, name)) for name in ("light", "heavy", "hidden")
        ]
    assert [one.status for one in verdicts] == ["right", "wrong", "wrong"]
    assert "does it build an array of all pairs?" in verdicts[1].message
    assert any(words in verdicts[2].message for words in ("all pairs?", "nothing can see what"))


class Stops(BaseException):
    """Not an Exception."""


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


LARGE, RETURNS = np.zeros(MOST_BYTES // 8 + 1), "your function returns"


def said(error, text, **more):
    return {"error": error, "text": text, **more}


def raises(error):
    def function(*_):
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (None, {"error": "missing"}),
        (lambda: None, said("Wrong", f"{RETURNS} nothing: does it end with return?")),
        (
            lambda: LARGE,
            said("Wrong", f"{RETURNS} an array of shape (524289,), too large to compare"),
        ),
        (raises(NotImplementedError()), said("NotImplementedError", "", bare=True, notes=[])),
        (raises(Stops("now")), said("Stops", "now", bare=False, notes=[])),
        (raises(Mute()), said("Exception", "an error that cannot be printed")),
    ],
)
def test_what_the_worker_answers(function, words):
    message = worker.respond(("ask", "call", "asked", ()), {"asked": function})
    assert received(reader(message)) == (words, [])


@pytest.mark.parametrize(
    ("cell", "problem", "known"),
    [
        ("a = 1\nchecks.ch01.epanechnikov(a)\nb = 2", "", {"a": 1, "b": 2}),
        ("checks.trial(nothing)\nlen([])", "", {}),
        ("%matplotlib inline\n!ls\na = 3\na?", "", {"a": 3}),
        ("%%time\na = 4", "", {"a": 4}),
        ("%%bash\nrm -rf /", "", {}),
        ("a = '''\n%s\n''' % 5", "", {"a": "\n5\n"}),
        ("a = 1\n1 / 0\nb = 2", "ZeroDivisionError: division by zero", {"a": 1}),
        ("raise SystemExit", "SystemExit", {}),
        ("def f(:", "SyntaxError: invalid syntax", {}),
    ],
)
def test_a_cell_is_run_without_its_check_and_its_magics(cell, problem, known):
    names: dict = {}
    (words, _) = received(reader(worker.respond(("run", cell, 3), names)))
    assert words["problem"].startswith(problem)
    assert bool(words["problem"]) == bool(problem)
    names.pop("__builtins__", None)
    assert names == known
