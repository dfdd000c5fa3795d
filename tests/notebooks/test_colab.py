"""Colab without Colab: each notebook, from its own set-up cell, where no attnbook is installed.

The notebooks are those of a copy of the working tree that has been given an address.

nbval runs it in a clean environment and compares what it prints with what the notebook has stored.

COLAB_PINS=pip-freeze.txt, a list that Colab publishes, makes the environment of what Colab has
today; COLAB_PINS=none, of the newest releases. Other versions may print other last digits, so then
the cells must run, and what they assert must hold.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import environment
import nbformat
import pytest
import weave
from comparison import NOTEBOOKS, nbval
from nbformat.v4 import new_output
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sample import ROOT

from attnbook_course.weaving.notebook import is_setup

PREINSTALLED = ["torch", "jax", "numpy", "matplotlib", "ipykernel"]
COPY = "some-one/a.copy"
PINS = os.environ.get("COLAB_PINS", "constraints.txt")


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; an AssertionError with all of it if it fails."""
    result = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def versions(python: Path) -> dict[str, str]:
    """Each distribution that this Python sees, with its version."""
    code = "import importlib.metadata as m, json; "
    code += "print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found: dict[str, str] = json.loads(run(python, "-c", code))
    return found


def of_colab(listed: str) -> tuple[list[str], list[str]]:
    """From what Colab lists: the packages that the book uses, and the list as pip's constraints."""
    lines = [line for line in listed.splitlines() if re.match(r"[A-Za-z]", line)]
    pins = [line for line in lines if "file:" not in line]  # built on Colab's own machines
    there = {canonicalize_name(Requirement(pin).name) for pin in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (
        project["optional-dependencies"][name]
        for name in ("notebooks", "pretrained", "torch", "jax")
    )
    used = [
        Requirement(line).name for lines in (project["dependencies"], *extras) for line in lines
    ]
    names = dict.fromkeys(canonicalize_name(name) for name in [*PREINSTALLED, *used])
    return [name for name in names if name in there], pins


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a clean environment with what Colab has and the book needs."""
    folder = tmp_path_factory.mktemp("colab") / "env"
    venv.create(folder, with_pip=True, symlinks=os.name != "nt", upgrade_deps=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = (python, "-m", "pip", "install", "-q")
    if PINS == "constraints.txt" and Path(sys.executable) == environment.PYTHON:
        run(*environment.uv_command(python, *PREINSTALLED))  # in seconds what takes pip minutes
    elif PINS == "constraints.txt":
        run(*install, "-c", ROOT / PINS, *PREINSTALLED)
    elif PINS == "none":
        run(*install, *PREINSTALLED)
    else:
        names, pins = of_colab((ROOT / PINS).read_text(encoding="utf-8"))
        assert {*PREINSTALLED} <= {*names}
        (folder / "colab.txt").write_text("\n".join(pins), encoding="utf-8")
        run(*install, "-c", folder / "colab.txt", *names)
    assert "attnbook" not in versions(python)
    return python


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose one commit is the working tree as it is, but for its address."""
    folder = tmp_path_factory.mktemp("clone")
    listed = run("git", "ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write(f'\n[project.urls]\nRepository = "https://github.com/{COPY}"\n')
    assert weave.main(["--no-execute"], folder) == 0
    run("git", "init", "-q", cwd=folder)
    run("git", "add", "-A", cwd=folder)
    who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    run("git", *who, "commit", "-q", "-m", "the working tree", cwd=folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_the_same_on_colab(path, machine, repository, tmp_path):
    if "attnbook" in versions(machine):
        run(machine, "-m", "pip", "uninstall", "-q", "-y", "attnbook")
    before = versions(machine)

    notebook = nbformat.read(repository / path.relative_to(ROOT), as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    setup = next(cell for cell in cells if is_setup(cell))
    written = f"git+https://github.com/{COPY}"
    assert setup.source.count(written) == 1
    setup.source = setup.source.replace(written, f"git+{repository.as_uri()}")
    setup.outputs = [new_output("stream", name="stdout", text="attnbook is installed.\n")]
    nbformat.write(notebook, tmp_path / path.name)
    seconds = nbval(tmp_path / path.name, machine, compare=PINS == "constraints.txt")

    assert len(seconds) == len(cells)
    after = versions(machine)
    assert "attnbook" in after
    assert {name: after.get(name) for name in before} == before
