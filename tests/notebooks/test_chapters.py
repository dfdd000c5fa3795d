"""Every notebook runs again under nbval, and prints what is stored, without network and models.

Colab's test runs them all as well, each in a clean environment and with the models, so that make
test-all leaves out here what uses no model.
"""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from comparison import NOTEBOOKS, nbval

LONG = ("04", "06", "08", "09", "11", "13", "as", "ca")  # half a minute and more: make test-all


def uses_models(path: Path) -> bool:
    """Whether a notebook asks for a published model."""
    return "pretrained.fetch(" in path.read_text(encoding="utf-8")


def parameter(path: Path) -> object:
    """A notebook; one without models is run by another test, too."""
    marks = [] if uses_models(path) else [pytest.mark.repeated]
    if path.stem[:2] in LONG:
        marks.append(pytest.mark.slow)
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.mark.parametrize("path", [parameter(path) for path in NOTEBOOKS])
def test_notebook_prints_the_same(path, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("ATTNBOOK_OFFLINE", "1")
    shutil.copyfile(path, tmp_path / path.name)
    seconds = nbval(tmp_path / path.name, Path(sys.executable))
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert len(seconds) == len(cells)
    assert not (tmp_path / "empty").exists()


def test_a_chapter_uses_models():
    assert any(map(uses_models, NOTEBOOKS))
