"""What the files of this room share: imports, the lectures, a place for models."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from slides.page import PageWriter

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tools", "_ext", "")]


@pytest.fixture(scope="session")
def writers() -> dict[str, "PageWriter"]:
    """The writer of each lecture's deck."""
    from make_plan import writers_of
    from slides.build import desk

    with desk(ROOT) as book:
        return writers_of(book, ROOT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for the models of live figures that is not the package."""
    from attnbook_course.live import models

    monkeypatch.setattr(models, "FOLDER", tmp_path / "models")
    return tmp_path / "models"
