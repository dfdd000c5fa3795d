"""The timeline: the table of the appendix and the stored entries are one list, with sources."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from attnbook import datasets

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = json.loads(files("attnbook").joinpath("datasets", "timeline.json").read_text("utf-8"))
ROW = re.compile(r"^\| (\d{4}) \| \*\*(.+?)\.\*\* (.+) \| \{cite:t\}`([\w,]+)` \|$", re.MULTILINE)
REFERENCE = re.compile(r"^@\w+\{(\w+),(.*?)^\}", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    path = ROOT / name
    if not path.is_file():
        pytest.skip(f"no {name} here")
    return path.read_text(encoding="utf-8")


def test_the_table_has_the_stored_entries():
    table = [
        {"year": int(year), "name": name, "what": what, "key": key}
        for year, name, what, key in ROW.findall(read("appendices/timeline.md"))
    ]
    assert table == [{key: entry[key] for key in table[0]} for entry in ENTRIES]

    lines = [line for line in read("appendices/timeline.md").splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(ENTRIES)


def test_entries_and_their_sources():
    """Years ascend, names differ, a label is short and a source of about that year."""
    assert datasets.timeline() == ENTRIES
    years = [entry["year"] for entry in ENTRIES]
    assert years == sorted(years) and years[0] == 1964
    assert len({entry["name"] for entry in ENTRIES}) == len(ENTRIES)
    references = dict(REFERENCE.findall(read("references.bib")))
    for entry in ENTRIES:
        assert set(entry) == {"year", "name", "weights", "key", "what"}
        assert 0 < len(entry["name"]) <= 24
        assert entry["weights"] in ("fixed", "learned", "none")
        assert re.fullmatch(r"[A-Z][^|]*[^.]\.", entry["what"])
        for key in entry["key"].split(","):
            (year,) = re.findall(r"\byear = \{(\d{4})\}", references[key])
            assert 0 <= int(year) - entry["year"] <= 3, f"{key} is of {year}"
