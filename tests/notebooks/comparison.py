"""Run a notebook again under nbval, as on Colab, and compare what it prints with what it has stored."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from sample import ROOT

from attnbook_course.weaving.book import read_book
from attnbook_course.weaving.execution import QUIET, TIMEOUT

HERE = ROOT / "tests" / "notebooks"
LONGEST = (
    "asides",
    "capstones",
    "13",
    "04",
    "08",
    "09",
    "07",
)  # pages that come first, so that no worker ends on one
NOTEBOOKS = sorted(
    [page.path.with_suffix(".ipynb") for page in read_book(ROOT).notebooks()],
    key=lambda path: (*(not path.stem.startswith(name) for name in LONGEST), path.stem),
)
NBVAL = [
    *("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-W", "default"),
    *("-p", "nbval_streams", "--nbval-kernel-name", "colab"),
    *("--nbval-sanitize-with", str(HERE / "nbval_sanitize.cfg")),
    *("--nbval-cell-timeout", str(TIMEOUT)),
]


def kernel(python: Path, folder: Path, folders: tuple[Path, ...] = ()) -> None:
    """Jupyter's kernel "colab" in this folder: this Python, which takes the machine for Colab."""
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    environment = {
        "COLAB_RELEASE_TAG": "release-colab-test",
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        **QUIET,
    }
    spec = {"argv": argv, "display_name": "Colab", "language": "python", "env": environment}
    path = folder / "kernels" / "colab" / "kernel.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(spec), encoding="utf-8")


def nbval(
    notebook: Path, python: Path, *, compare: bool = True, folders: tuple[Path, ...] = ()
) -> list[float]:
    """Run and compare a notebook with this Python as its kernel; the seconds of each code cell.

    Without the comparison a notebook passes if every cell runs. What lies in the folders can be
    imported besides.
    """
    kernel(python, notebook.parent, folders)
    report = notebook.with_suffix(".xml")
    result = subprocess.run(
        [
            *(sys.executable, *NBVAL),
            *(("--nbval", "--quiet-cells") if compare else ("--nbval-lax",)),
            *(f"--junitxml={report}", notebook.name),
        ],
        cwd=notebook.parent,
        env=os.environ | {"JUPYTER_PATH": str(notebook.parent), "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return [float(case.attrib["time"]) for case in ElementTree.parse(report).iter("testcase")]
