"""The comparison of notebooks: right ones pass, wrong and stripped ones fail."""

import sys
from pathlib import Path

import nbformat
import pytest
from comparison import nbval
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from attnbook_course.weaving.execution import clean, execute

CELLS = [
    "from tqdm import tqdm\nfor i in tqdm(range(3)):\n    print(i)",
    "from IPython.display import HTML\nimport uuid\nHTML(f'<p id={uuid.uuid4()}>a</p>')",
    "from IPython.display import SVG\nimport random\nSVG(f'<svg id=\"{random.random()}\"/>')",
    "print(0.5)",
    "1 + 1",
    "print(f'right {0.9 + random.random() / 20:.3f} ± {random.random() / 100:.3f}')",
]


@pytest.fixture
def notebook(tmp_path: Path) -> NotebookNode:
    """An executed notebook whose outputs differ from run to run where they may."""
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    execute(notebook, "tiny", tmp_path)
    clean(notebook, "tiny")
    return notebook


def compare(notebook: NotebookNode, folder: Path) -> list[float]:
    """The seconds of every cell, if all print what is stored."""
    folder.mkdir(exist_ok=True)
    nbformat.write(notebook, folder / "tiny.ipynb")
    return nbval(folder / "tiny.ipynb", Path(sys.executable))


def test_right_notebook_passes(notebook, tmp_path):
    assert len(compare(notebook, tmp_path)) == len(CELLS)


@pytest.mark.parametrize(
    ("number", "key", "wrong"),
    [(3, "text", "0.6\n"), (4, "data", {"text/plain": "3"})],
    ids=["stream", "result"],
)
def test_wrong_output_fails_and_is_named_with_what_to_ignore(
    notebook, tmp_path, number, key, wrong
):
    notebook.cells[number].outputs[0][key] = wrong
    with pytest.raises(AssertionError, match=f"1 failed, {len(CELLS) - 1} passed") as caught:
        compare(notebook, tmp_path)
    assert f"-- tiny, cell {number}: {CELLS[number]} --" in str(caught.value)
    assert "a reader may ignore" in str(caught.value)
    assert "stops with an error" not in str(caught.value)


def test_a_cell_that_writes_on_stderr_fails_unless_its_tag_allows_it(notebook, tmp_path):
    notebook.cells[4].source = "import warnings\nwarnings.warn('old')\n1 + 1"
    with pytest.raises(AssertionError, match=r"UserWarning: old(.|\n)*It writes on stderr"):
        compare(notebook, tmp_path / "once")
    notebook.cells[4].metadata["tags"] = ["remove-stderr"]
    compare(notebook, tmp_path / "again")


def test_a_failed_assert_is_never_to_be_ignored(notebook, tmp_path):
    notebook.cells[4].source = "assert 1 + 1 == 3"
    with pytest.raises(AssertionError, match="-- tiny, cell 4: assert 1 \\+ 1 == 3 --") as caught:
        compare(notebook, tmp_path)
    assert "stops with an error" in str(caught.value)
    assert "may ignore" not in str(caught.value)
