"""Chapters that use published models print the same where no model can be had."""

import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from comparison import nbval
from sample import ROOT

USING = [
    path
    for path in sorted((ROOT / "chapters").glob("*.ipynb"))
    if "pretrained.fetch(" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", USING, ids=lambda path: path.stem)
def test_prints_the_same_without_models(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With them it is run by the test of Colab, which compares with the same stored outputs."""
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("ATTNBOOK_OFFLINE", "1")
    shutil.copyfile(path, tmp_path / path.name)
    seconds = nbval(tmp_path / path.name, Path(sys.executable))
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert len(seconds) == len(cells)
    assert not (tmp_path / "empty").exists()


def test_a_chapter_uses_them() -> None:
    assert USING
