"""*Checked* cells may be skipped; the scripts that a page names are there."""

from __future__ import annotations

import re

import jupytext
import pytest
from sample import ROOT

from attnbook_course.browser import names

CHAPTERS = sorted(ROOT.glob("chapters/*.md"))
PAGES = [*CHAPTERS, *(ROOT / f"appendices/{name}.md" for name in ("two-more-models", "capstones"))]
each = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
CHECKED = re.compile(r"# Checked: ")
SCRIPT = re.compile(r"\bexperiments/(\w+)\.py")
IN_JAX = re.compile(r"\bjnp\.|\bjax_layers\.|\btorch_to_jax\b|\bjax\.(?:jit|grad|vmap|random)\b")
FULL_PRECISION = ("devices.full_precision()", '"jax_platforms", "cpu"')


def leaning(codes: list[str]) -> list[str]:
    """What a cell outside the checks reads and a check has set: name, its check, its reader."""
    set_by: dict[str, str] = {}
    found = []
    for code in codes:
        bound, read = names(code)
        first = code.partition("\n")[0]
        if not CHECKED.match(code):
            found += [
                f"{name}, set in {set_by[name]!r}, read in {first!r}"
                for name in sorted(read - bound)
                if CHECKED.match(set_by.get(name, ""))
            ]
        set_by |= dict.fromkeys(bound, first)
    return found


@each
def test_checks_can_be_skipped_and_the_scripts_are_there(page):
    cells = jupytext.read(page).cells
    assert leaning([cell.source for cell in cells if cell.cell_type == "code"]) == []
    for script in SCRIPT.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / "experiments" / f"{script}.py").exists(), script


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda path: path.stem)
def test_jax_is_compared_in_full_precision(page):
    """On a GPU JAX would multiply in TF32, and no two back ends would agree to four digits."""
    cells = [c.source for c in jupytext.read(page).cells if c.cell_type == "code"]
    in_jax = [i for i, code in enumerate(cells) if IN_JAX.search(code)]
    asked = [i for i, code in enumerate(cells) if any(word in code for word in FULL_PRECISION)]
    assert asked and asked[0] <= in_jax[0]
