"""The corpus of docstrings: which file goes where, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from attnbook.datasets import docstrings


class Library:
    """A distribution of a few files."""

    version = "1.0"

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        self.root, self.files = root, [PurePosixPath(name) for name in files]
        kinds = {"Classifier": ["License :: OSI Approved :: MIT License", "Typing :: Typed"]}
        self.metadata = SimpleNamespace(get_all=kinds.get)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")

    def locate_file(self, name: PurePosixPath) -> Path:
        return self.root / name


def part_of(library: str, name: str) -> str:
    """By the first four bytes of a SHA-256, as a share of what they can be."""
    digest = hashlib.sha256(f"{library}/{name}".encode()).hexdigest()
    share = int(digest[:8], 16) / 16**8
    return "held_out" if share < 0.01 else "validation" if share < 0.02 else "train"


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Library]:
    files = {f"a/{i}.py": f'"""Common words.\n\nOf file {i}: “x”…\n"""\n' for i in range(400)}
    files |= {"a/data.txt": "no Python", "a/bad.py": "def", "a/none.py": "x = 1\n"}
    other = {"b/1.py": 'def f():\n    """Unseen.\n\n    Common words.\n    """\n'}
    made = {"a": Library(tmp_path / "a", files), "b": Library(tmp_path / "b", other)}
    monkeypatch.setattr(docstrings, "LIBRARIES", ("a",))
    monkeypatch.setattr(docstrings, "UNSEEN", ("b",))
    monkeypatch.setattr(docstrings.metadata, "distribution", made.__getitem__)
    return made


def read(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text() for file in folder.glob("*.txt")}


def test_each_file_is_in_one_part(libraries: dict[str, Library], tmp_path: Path) -> None:
    sources = docstrings.write_docstrings(tmp_path / "corpus")
    texts = read(tmp_path / "corpus")
    expected = {part: set() for part in ("train", "validation", "held_out")}
    for i in range(400):
        expected[part_of("a", f"a/{i}.py")].add(f'Of file {i}: "x".')
    for part, lines in expected.items():
        assert {line for line in texts[part].splitlines() if line} == lines
    assert all(expected.values())  # none of the parts is empty
    assert texts["unseen"] == "Unseen.\n\nCommon words.\n\n\n"  # kept where it comes first
    assert json.loads((tmp_path / "corpus" / "sources.json").read_text()) == sources
    assert sources["libraries"]["a"]["licence"] == "MIT License"
    for part, text in texts.items():
        says = sources["files"][f"{part}.txt"]
        assert says["characters"] == len(text)
        assert says["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    docstrings.write_docstrings(tmp_path / "short", 1000)
    short = read(tmp_path / "short")
    assert short["train"] == texts["train"][:1000]
    assert short["held_out"] == texts["held_out"]
