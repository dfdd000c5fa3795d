"""The comparison of notebooks: what may differ passes, and what is wrong fails and is named."""

import sys

import nbformat
import pytest
from comparison import nbval
from nbformat.v4 import new_code_cell, new_notebook

from attnbook_course.weaving.execution import execute

MAY_DIFFER = [
    "from tqdm import tqdm\nfor i in tqdm(range(3)):\n    print(i)",
    "from IPython.display import SVG\nimport random\nSVG(f'<svg id=\"{random.random()}\"/>')",
    "print(f'right {0.9 + random.random() / 20:.3f} ± {random.random() / 100:.3f}')",
]


def test_wrong_cells_fail_and_say_what_a_reader_may_ignore(tmp_path):
    code = [*MAY_DIFFER, "print(0.5)", "1 + 1", "2 + 2", "import warnings"]
    notebook = new_notebook(cells=[new_code_cell(one) for one in code])
    execute(notebook, "tiny", tmp_path)
    stream, result, wrong, warns = notebook.cells[3:]
    stream.outputs[0]["text"] = "0.6\n"
    result.outputs[0]["data"] = {"text/plain": "3"}
    wrong.source = "assert 2 + 2 == 5"
    warns.source = "import warnings\nwarnings.warn('old')"
    nbformat.write(notebook, tmp_path / "tiny.ipynb")
    with pytest.raises(AssertionError, match="4 failed, 3 passed") as caught:
        nbval(tmp_path / "tiny.ipynb", sys.executable)
    said = str(caught.value)
    assert "-- tiny, cell 3: print(0.5) --" in said and "-- tiny, cell 4: 1 + 1 --" in said
    assert said.count("a reader may ignore") == 2 and said.count("It stops with an error") == 1
    assert "UserWarning: old" in said and "It writes on stderr" in said
