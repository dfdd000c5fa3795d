"""Chapters show before they prove: little visible code is checks, and most cells show something."""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat
import pacing
import pytest

ROOT = Path(__file__).parents[2]

each = pytest.mark.parametrize("chapter", pacing.chapters(), ids=lambda path: path.stem)
NUMBERED = re.compile(r"\$\$ *\((eq-[\w-]+)\)")


@each
def test_a_chapter_keeps_its_pace(chapter):
    found = pacing.measure(chapter)
    assert found.overhead_share <= pacing.MOST_OVERHEAD, found.overhead
    assert found.showing_share >= pacing.LEAST_SHOWING, found.silent
    assert found.words <= pacing.most_words(found.chapter)
    assert found.long == []


@each
def test_a_chapter_says_how_long_it_takes_to_read(chapter):
    text = chapter.read_text(encoding="utf-8")
    said = re.search(r"\*\*It takes\*\* about (\d+) minutes for text and figures", text)
    assert said and int(said[1]) == pacing.measure(chapter).minutes


@each
def test_a_folded_check_says_what_it_checks_and_prints_nothing(chapter):
    woven = nbformat.read(chapter.with_suffix(".ipynb"), 4)
    folded = [c for c in woven.cells if "hide-cell" in c.metadata.get("tags", ())]
    assert folded
    for cell in folded:
        title = re.match(r"# (Checked|Set-up): \S", cell.source)
        assert title, cell.source
        assert cell.outputs == [], cell.source
        assert "assert" in cell.source or title[1] == "Set-up", cell.source


@each
def test_a_numbered_formula_is_followed_by_its_function_and_by_something_to_see(chapter):
    """Before the next numbered formula, or the exercises: a visible cell, and one with an output."""
    cells = pacing.before_exercises(jupytext.read(chapter))
    woven = nbformat.read(chapter.with_suffix(".ipynb"), 4)
    shown = {cell.source.strip() for cell in woven.cells if cell.get("outputs")}
    missing, waiting = [], []
    for cell in cells:
        if cell.cell_type == "code":
            if cell.source.strip() in shown:
                waiting = []
        elif NUMBERED.search(cell.source):
            labels = NUMBERED.findall(cell.source)
            missing += waiting
            waiting = labels[-1:]
    assert missing + waiting == []


SAMPLE = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
---

# One

Two words.

```{code-cell} ipython3
import numpy
```

```{code-cell} ipython3
import math
rng = numpy.random.default_rng(0)
# a remark
def f(x):
    assert x
    return x

def f_loop(x):
    for one in x:
        yield one
for x in (1, 2):
    assert f(x)
    print(x, f(x))
print("done")
```

```{code-cell} ipython3
:tags: [hide-cell]
# Checked: nothing
assert f(1) == f_loop(1)
```

$$
a = b
$$ (eq-one)

## Exercises

Not counted.
"""


def test_what_is_counted(tmp_path):
    chapter = tmp_path / "01-a.md"
    chapter.write_text(SAMPLE, encoding="utf-8")
    nbformat.write(nbformat.v4.new_notebook(), chapter.with_suffix(".ipynb"))
    found = pacing.measure(chapter)
    assert (found.words, found.cells, found.lines) == (3, 1, 12)
    assert [line.strip() for line in found.overhead] == [
        "import math",
        "rng = numpy.random.default_rng(0)",
        "assert x",
        "def f_loop(x):",
        "for one in x:",
        "yield one",
        "assert f(x)",
        'print("done")',
    ]
    assert found.silent == ["import math"]


def test_the_table_has_a_line_for_each_chapter(capsys):
    assert pacing.main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(pacing.chapters())
