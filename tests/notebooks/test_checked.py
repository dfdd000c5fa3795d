"""*Checked* cells may be skipped, and say which script measured what they assert."""

from __future__ import annotations

import re
import symtable
from collections.abc import Iterator
from pathlib import Path

import jupytext
import pacing
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]

APPENDICES = ("two-more-models", "capstones")
PAGES = (*pacing.chapters(), *(ROOT / "appendices" / f"{name}.md" for name in APPENDICES))
each = pytest.mark.parametrize("chapter", pacing.chapters(), ids=lambda path: path.stem)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
CHECKED = re.compile(r"# Checked: ")
STORED = re.compile(r'\bresults\("(\w+)"\)')
SCRIPT = re.compile(r"\bexperiments/(\w+)\.py")


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """A scope and all scopes inside it."""
    yield table
    for inner in table.get_children():
        yield from tables(inner)


def names(code: str) -> tuple[set[str], set[str]]:
    """The notebook's names that a cell sets, and those that it takes from cells before it."""
    module = symtable.symtable(code, "cell", "exec")
    bound = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {
        symbol.get_name()
        for table in tables(module)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (table is module or symbol.is_global())
    }
    return bound, read - bound


def leaning(cells: list[NotebookNode]) -> list[str]:
    """What a cell outside the checks reads and a check has set: name, its check, its reader."""
    set_by: dict[str, str] = {}
    found = []
    for cell in cells:
        if cell.cell_type != "code":
            continue
        bound, read = names(cell.source)
        is_check, first = bool(CHECKED.match(cell.source)), cell.source.partition("\n")[0]
        if not is_check:
            found += [
                f"{name}, set in {set_by[name]!r}, read in {first!r}"
                for name in sorted(read)
                if CHECKED.match(set_by.get(name, ""))
            ]
        set_by |= dict.fromkeys(bound, first)
    return found


def sections(cells: list[NotebookNode]) -> Iterator[tuple[str, list[str]]]:
    """The prose and the code cells of each section of a chapter."""
    prose, code = "", []
    for cell in cells:
        if cell.cell_type == "markdown":
            before, *rest = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
            prose += before
            for text in rest:
                yield prose, code
                prose, code = text, []
        else:
            code.append(cell.source)
    yield prose, code


def unnamed_scripts(cells: list[NotebookNode]) -> list[str]:
    """The checks on stored results whose title, or whose section, does not name the script."""
    holders: dict[str, str] = {}  # a name that holds stored results, and their script
    found = []
    for prose, codes in sections(cells):
        for code in codes:
            bound, read = names(code)
            scripts = {holders[name] for name in read if name in holders}
            scripts |= set(STORED.findall(code))
            for name in bound:
                holders.pop(name, None)
            for line in code.splitlines():
                if (stored := STORED.search(line)) and (name := re.match(r"(\w+) = ", line)):
                    holders[name[1]] = stored[1]
            if CHECKED.match(code) and "assert" in code and scripts:
                title = code.partition("\n")[0]
                linked = set(re.findall(r"\]\(\.\./experiments/(\w+)\.py\)", prose))
                for script in sorted(scripts):
                    if script not in SCRIPT.findall(title) or script not in linked:
                        found.append(f"{title!r}: experiments/{script}.py")
    return found


@each_page
def test_no_other_cell_reads_what_a_check_sets(page):
    assert leaning(jupytext.read(page).cells) == []


@each_page
def test_a_check_of_stored_results_names_its_script(page):
    assert unnamed_scripts(jupytext.read(page).cells) == []


@each_page
def test_the_scripts_are_there(page):
    for script in SCRIPT.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / "experiments" / f"{script}.py").exists(), script


def code(source: str) -> NotebookNode:
    return NotebookNode(cell_type="code", source=source)


def prose(source: str) -> NotebookNode:
    return NotebookNode(cell_type="markdown", source=source)


def test_a_name_that_leans_on_a_check_is_found():
    check = code("# Checked: it\nloss = 1\nfor step in range(3):\n    assert loss")
    assert leaning([check, code("print(loss)")]) == [
        "loss, set in '# Checked: it', read in 'print(loss)'"
    ]
    assert leaning([check, code("def f():\n    return loss")])  # in a function as well
    assert leaning([code("loss = 0"), check, code("print(loss)")])  # it would print another
    assert not leaning([check, code("loss = 2\nprint(loss)")])
    assert not leaning([check, code("print([loss for loss in (1, 2)])")])
    assert not leaning([check, code("# Checked: more\nassert loss")])


def test_a_script_that_is_not_named_is_found():
    stored = code('stored = results("recall")')
    check = code("# Checked: it; measured by experiments/recall.py\nassert stored")
    link = prose("## One\n[experiments/recall.py](../experiments/recall.py) trained them.")
    assert not unnamed_scripts([link, stored, check])
    assert unnamed_scripts([prose("## One"), stored, check])  # no link
    assert unnamed_scripts([link, stored, prose("## Two"), check])  # a link in another section
    assert unnamed_scripts([link, stored, code("# Checked: it\nassert stored")])  # no name
    assert unnamed_scripts([link, code('# Checked: it\nassert results("recall")')])


IN_JAX = re.compile(r"\bjnp\.|\bjax_layers\.|\btorch_to_jax\b|\bjax\.(?:jit|grad|vmap|random)\b")
FULL_PRECISION = ("devices.full_precision()", '"jax_platforms", "cpu"')


@each
def test_jax_is_compared_in_full_precision(chapter):
    """On a GPU JAX would multiply in TF32, and no two back ends would agree to four digits."""
    cells = [c.source for c in jupytext.read(chapter).cells if c.cell_type == "code"]
    in_jax = [i for i, code in enumerate(cells) if IN_JAX.search(code)]
    asked = [i for i, code in enumerate(cells) if any(word in code for word in FULL_PRECISION)]
    assert asked and asked[0] <= in_jax[0]
