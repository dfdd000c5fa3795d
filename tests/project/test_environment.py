"""What installs the packages: uv chooses as pip would, and a reader who waits is told."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import bare_machine
import check_environment
import environment
import pytest


def test_uv_takes_packages_from_where_pip_would(monkeypatch):
    said = """\
:env:.find-links='/wheels /more'
global.cert='/etc/cert.pem'
global.extra-index-url='https://one.example/simple https://two.example/simple'
global.index-url='https://mirror.example/simple'
:env:.index-url='https://nearer.example/simple'
freeze.timeout='10'
"""
    done = subprocess.CompletedProcess([], 0, stdout=said)
    monkeypatch.setattr(environment.subprocess, "run", lambda *args, **kwargs: done)
    words = environment.uv_command(environment.PYTHON, "-e", ".[book]")
    pairs = list(itertools.pairwise(words))
    assert [value for name, value in pairs if name == "--find-links"] == ["/wheels", "/more"]
    assert ("--index-url", "https://nearer.example/simple") in pairs
    extra = [value for name, value in pairs if name == "--extra-index-url"]
    assert extra == ["https://one.example/simple", "https://two.example/simple"]
    assert ("--index-strategy", "unsafe-best-match") in pairs
    assert words[-4:] == ["-c", str(environment.ROOT / "constraints.txt"), "-e", ".[book]"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("error: client error (Connect): dns error: failed to lookup address", "No package index"),
        ("NewConnectionError: Failed to establish a new connection", "No package index"),
        ("error: failed to write: No space left on device (os error 28)", "The disk is full"),
        ("error: no version of nonsense==1", "could not be installed"),
    ],
)
def test_a_wall_of_errors_becomes_three_lines(words, problem, tmp_path, monkeypatch):
    log = tmp_path / "install.log"
    log.write_text(f"Resolving\n{words}\n", encoding="utf-8")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "PYTHON", tmp_path / "python")
    missing = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(environment, "check", lambda *_: missing)
    with pytest.raises(SystemExit) as stopped:
        environment.explain("book", log)
    said = str(stopped.value)
    assert problem in said
    assert "\n  Do: " in said and "\n  Still works: " in said


def test_pip_does_it_where_uv_fails(tmp_path, monkeypatch):
    log, called = tmp_path / "install.log", []

    def run(command: list[str], log: Path) -> int:
        called.append(command[2])
        log.write_text("error: no such option", encoding="utf-8")
        return int(command[2] == "uv")

    monkeypatch.setattr(environment, "run", run)
    monkeypatch.setattr(environment, "PYTHON", Path(sys.executable))
    assert environment.install("book", log) == 0
    assert called == ["pip", "uv", "pip"]  # uv's own wheel, uv, pip
    assert (tmp_path / "uv.log").exists()


def installed(extra: str) -> set[str]:
    """The names of the packages that an extra brings."""
    return {line.split(">")[0].split("[")[0] for line in check_environment.requirements(extra)}


def test_the_book_needs_neither_tests_nor_browser():
    names = installed("book")
    assert {"jupyter-book", "segno", "torch", "jax", "jupytext"} <= names
    assert not {"pytest", "playwright", "jupyterlab", "transformers"} & names
    everything = installed("test")
    assert names < everything
    assert {"pytest", "playwright", "jupyterlab", "text2qti"} <= everything


def test_the_pages_promise_the_same_minutes_for_a_first_build():
    """The bare machine holds them, at the beginning of .ci/run."""
    texts = [(environment.ROOT / page).read_text("utf-8") for page in bare_machine.PAGES]
    assert len({bare_machine.promised(text) for text in texts}) == 1
