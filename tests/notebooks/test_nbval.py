"""The comparison of notebooks: right ones pass, wrong and stripped ones fail."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from sample import ROOT
from weaving.execution import clean, execute

HERE = ROOT / "tests/notebooks"
NBVAL = [
    *("-p", "nbval_streams", "--nbval", "--nbval-current-env"),
    *("--nbval-sanitize-with", str(HERE / "nbval_sanitize.cfg")),
    *("-p", "no:cacheprovider", "-W", "default", "-n", "2", "--dist", "loadscope"),
]
CELLS = [
    "from tqdm import tqdm\nfor i in tqdm(range(3)):\n    print(i)",
    "from IPython.display import HTML\nimport uuid\nHTML(f'<p id={uuid.uuid4()}>a</p>')",
    "from IPython.display import SVG\nimport random\nSVG(f'<svg id=\"{random.random()}\"/>')",
    "print(0.5)",
    "1 + 1",
]


@pytest.fixture
def notebook(tmp_path: Path) -> NotebookNode:
    """An executed notebook whose outputs differ from run to run where they may."""
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    execute(notebook, "tiny", tmp_path)
    clean(notebook, "tiny")
    return notebook


def nbval(notebook: NotebookNode, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run nbval on one notebook as `make test` runs it on all."""
    nbformat.write(notebook, folder / "tiny.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", *NBVAL, "--rootdir", str(folder), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_right_notebook_passes(notebook: NotebookNode, tmp_path: Path) -> None:
    result = nbval(notebook, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(CELLS)} passed" in result.stdout


@pytest.mark.parametrize(
    "planted",
    [("print(0.5)", "text", "0.6\n"), ("1 + 1", "data", {"text/plain": "3"})],
    ids=["stream", "result"],
)
def test_wrong_output_fails(
    notebook: NotebookNode, tmp_path: Path, planted: tuple[str, str, str]
) -> None:
    source, key, wrong = planted
    cell = next(cell for cell in notebook.cells if cell.source == source)
    cell.outputs[0][key] = wrong
    result = nbval(notebook, tmp_path)
    assert result.returncode == 1
    assert "1 failed" in result.stdout
