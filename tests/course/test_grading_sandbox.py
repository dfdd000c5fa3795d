"""The sandbox: what it shows, what it says where it is missing, and the pipe through it."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sandboxes
from once import SECONDS

from attnbook_course.checks import ch01
from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.grading import sandbox, worker
from attnbook_course.checks.grading.pipe import MOST_BYTES, Garbled, packed, printable, received
from attnbook_course.checks.grading.student import Asked, Gone, Student, TooLong
from attnbook_course.checks.verdict import Wrong

ROOT = Path(__file__).resolve().parents[2]


def test_the_sandbox_shows_the_package_and_nothing_else_of_the_repository():
    assert sandbox.shown(Path(sandbox.__file__))
    for hidden in ("homework", "tests", "chapters", "tools", "_build", "pyproject.toml"):
        assert not sandbox.shown(ROOT / hidden)


@pytest.fixture
def given(monkeypatch, tmp_path):
    """A function that puts a script in the place of bubblewrap, or nothing."""

    def put(script: str) -> None:
        if script:
            (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}")
            (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep if script else None)
        sandbox.probed.cache_clear()
        sandbox._closes_namespaces.cache_clear()

    yield put
    sandbox.probed.cache_clear()
    sandbox._closes_namespaces.cache_clear()


@sandboxes.posix
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", ["bwrap is not installed", "apt install bubblewrap", "runs with your rights"]),
        ("echo 'uid map: denied' >&2; exit 1", ["not work here (uid map: denied)", "apparmor"]),
    ],
)
def test_without_a_sandbox_grading_refuses_and_says_the_remedy(given, script, words):
    given(script)
    with pytest.raises(sandbox.NoSandbox) as found:
        sandbox.probed("bwrap")
    assert not [one for one in words if one not in str(found.value)]
    assert sandbox.probed("none") == "none"


def test_elsewhere_than_on_linux_and_macos_it_says_so(given, monkeypatch):
    sandbox.probed.cache_clear()
    monkeypatch.setattr(sandbox.os, "name", "nt")
    with pytest.raises(sandbox.NoSandbox, match="grade in WSL or on a server"):
        sandbox.probed("none")


def test_importing_the_package_imports_no_grader():
    code = "import sys, attnbook_course.checks; print([m for m in sys.modules if 'grading' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


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


@pytest.mark.parametrize("shape", [(), (0,), (2, 3, 4)])
def test_arrays_come_back_as_they_were(shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape) / 7
    words, (back,) = received(reader(packed({"a": "ü"}, [array])))
    assert words == {"a": "ü"}
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    "words",
    [
        b"{",
        b"[" * 100_000,
        {"shapes": [[1], [1], [1]]},
        {"shapes": [[-1]]},
        {"shapes": [[True]]},
        {"shapes": [[1] * 33]},
        {"shapes": [[MOST_BYTES // 8 + 1]]},
    ],
)
def test_what_no_honest_process_says_is_refused(words):
    text = words if isinstance(words, bytes) else json.dumps(words).encode()
    with pytest.raises(Garbled):
        received(reader(struct.pack(">I", len(text)) + text))
    with pytest.raises(Garbled, match="at most 1048576 bytes of words"):
        received(reader(struct.pack(">I", 1 << 31)))


def test_a_text_loses_what_a_terminal_would_obey():
    assert printable("a\x1b[2Jü\n\ud800") == "a�[2Jü\n�"


def local(code: str, kind: sandbox.Kind = "none", **limits) -> Student:
    return Student([code], kind, **({"seconds": 20} | limits))


@sandboxes.posix
def test_through_the_pipe_a_check_says_what_it_says_here():
    code = "import numpy as np\ndef epanechnikov(u):\n    return np.maximum(0, 1 - u)"
    code += "\ndef pair():\n    return 1, [2, 3]\ndef fails(x):\n    return {}['no']"
    here: dict = {}
    exec(code, here)
    with local(code) as student:
        said = ch01.epanechnikov(Asked(student, "epanechnikov"))
        assert said == ch01.epanechnikov(here["epanechnikov"])
        first, second = call_pair(Asked(student, "pair"))
        assert (first.tolist(), second.tolist()) == (1, [2, 3])
        with pytest.raises(KeyError) as found:
            call(Asked(student, "fails"), np.ones(2))
        assert (str(found.value), found.value.__notes__) == ("'no'", ["x = [1, 1]"])
        with pytest.raises(Wrong, match="there is no function other"):
            call(Asked(student, "other"))
        assert Asked(student, "pair").source() == "def pair():\n    return 1, [2, 3]\n"
        with pytest.raises(OSError, match="no source of other"):
            Asked(student, "other").source()


@sandboxes.posix
def test_the_notebook_as_a_whole_has_a_time():
    with local("while True: pass", seconds=60, in_all=1.5) as student:
        with pytest.raises(TooLong):
            student.start()
        assert student.left_out == set()  # the cell's own 60 seconds were not waited for


def test_what_the_process_leaves_behind_ends_with_it():
    sandboxes.bubblewrap()
    with local("import os, time\nif os.fork() == 0:\n    time.sleep(600)", "bwrap") as student:
        student.start()
        processes = below(student._process.pid)
        assert len(processes) >= 4
    until = time.monotonic() + SECONDS
    while alive := [pid for pid in processes if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until, alive
        time.sleep(0.05)


def below(pid: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return [pid, *(one for child in children for one in below(int(child)))]


@pytest.mark.parametrize(
    ("cell", "problem", "known"),
    [
        ("a = 1\nchecks.ch01.epanechnikov(a)\nb = 2", "", {"a": 1, "b": 2}),
        ("%matplotlib inline\n!ls\na = 3\na?", "", {"a": 3}),
        ("%%bash\nrm -rf /", "", {}),
        ("a = 1\n1 / 0\nb = 2", "ZeroDivisionError: division by zero", {"a": 1}),
        ("raise SystemExit", "SystemExit", {}),
    ],
)
def test_a_cell_is_run_without_its_check_and_its_magics(cell, problem, known):
    names: dict = {}
    words, _ = received(reader(worker.respond(("run", cell, 3), names)))
    assert words["problem"] == problem
    names.pop("__builtins__", None)
    assert names == known
