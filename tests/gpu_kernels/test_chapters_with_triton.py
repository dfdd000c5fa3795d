"""Chapters with a kernel in Triton print with it what they print without."""

import shutil
import sys
from pathlib import Path

from attnbook.torch import triton_flash

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "notebooks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from comparison import nbval

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
USING = [
    path
    for path in sorted(CHAPTERS.glob("*.ipynb"))
    if "triton_flash.flash" in path.read_text(encoding="utf-8")
]


def test_prints_the_same_with_triton(tmp_path: Path) -> None:
    folder = Path(triton_flash.triton.__file__).parents[1]
    for path in USING:
        copy = tmp_path / path.stem / path.name
        copy.parent.mkdir()
        shutil.copyfile(path, copy)
        assert nbval(copy, Path(sys.executable), folders=(folder,))
