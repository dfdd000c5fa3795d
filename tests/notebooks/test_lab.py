"""What `make lab` promises: JupyterLab opens a chapter's source as a notebook, and saves it as one."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest
from sample import ROOT

CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))


def test_the_setting_opens_markdown_as_a_notebook(tmp_path: Path) -> None:
    """The command of the Makefile, on a settings file of its own."""
    (line,) = [
        t for t in (ROOT / "Makefile").read_text("utf-8").splitlines() if "jupytext_config" in t
    ]
    words = line.partition(" -m ")[2].split()
    settings = tmp_path / "lab" / "overrides.json"
    words[words.index("--settings-file") + 1] = str(settings)
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    found = json.loads(settings.read_text("utf-8"))
    viewers = found["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers == {"markdown": "Jupytext Notebook"}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_survives_opening_and_saving(chapter: Path, tmp_path: Path) -> None:
    for path in (chapter, ROOT / "pyproject.toml"):
        shutil.copy(path, tmp_path)
    manager = jupytext.TextFileContentsManager(root_dir=str(tmp_path))
    model = manager.get(chapter.name, type="notebook")
    before = jupytext.read(chapter)
    code = [cell.source for cell in before.cells if cell.cell_type == "code"]
    assert [c.source for c in model["content"].cells if c.cell_type == "code"] == code
    manager.save(model, chapter.name)
    after = jupytext.read(tmp_path / chapter.name)
    assert [(c.cell_type, c.source, c.metadata) for c in after.cells] == [
        (c.cell_type, c.source, c.metadata) for c in before.cells
    ]
    assert "jupytext_version" not in (tmp_path / chapter.name).read_text("utf-8")
