"""What is stored with the package: results of experiments, the timeline."""

import json
from importlib.resources import files
from typing import Any


def results(name: str) -> dict[str, Any]:
    """Stored results of an experiment in experiments/, with their date and machine."""
    folder = files("attnbook").joinpath("datasets", "results")
    stored = sorted(f.name.removesuffix(".json") for f in folder.iterdir())
    if name not in stored:
        raise ValueError(f"name: got {name!r}, expected one of {', '.join(stored)}")
    return json.loads(folder.joinpath(f"{name}.json").read_text(encoding="utf-8"))


def timeline() -> list[dict[str, Any]]:
    """The history of attention: entries with their year, name, what they did and BibTeX keys."""
    text = files("attnbook").joinpath("datasets", "timeline.json").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)
    return entries
