"""The notebooks are their chapters: nothing lost, nothing raw, nothing stale."""

import base64
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import jupytext
import nbformat
import pytest
from markdown_it import MarkdownIt
from nbformat import NotebookNode
from sample import CHAPTER_1, HEADER, ROOT
from weave import main, woven

from attnbook_course.weaving.book import read_book
from attnbook_course.weaving.notebook import code_cells, is_setup, text_of
from attnbook_course.weaving.stills import without_still

CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
# What plain Markdown would show as it stands: roles, directives, targets, comments, breaks.
RAW = re.compile(
    r"\{[\w:+-]+\}`|^[ >]*:{3,}|^[ >]*`{3,}\{|^[ >]*\([\w-]+\)=\s*$|^%|^\+\+\+|\$\$ *\([\w-]+\)",
    re.MULTILINE,
)
CODE = re.compile(
    r"^[ >]*(`{3,})(?!\{)[^\n]*\n.*?^[ >]*\1`*\s*$|(?<!\})`[^`\n]+`", re.DOTALL | re.MULTILINE
)
BY_HAND = "is stale or edited by hand:"
SKIPPING = {"nbval-ignore-output", "nbval-skip", "raises-exception"}
SKIPPING_COMMENTS = ("NBVAL_IGNORE_OUTPUT", "NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION")


def edit(path: Path, old: str, new: str) -> None:
    """Write other words in the place of some, everywhere."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def setup_of(path: Path) -> NotebookNode:
    """The second cell of a notebook, which is the set-up cell."""
    cell = nbformat.read(path, as_version=4).cells[1]
    assert cell.metadata.tags == ["setup"]
    return cell


def parts(notebook: NotebookNode) -> tuple[str, list[object], list[int]]:
    """The prose, what is kept of each cell of code, and the levels of the headings."""
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    cells = [cell for cell in code_cells(notebook) if not is_setup(cell)]
    code = [(c.source, c.metadata.get("tags", []), c.metadata.get("mystnb")) for c in cells]
    tokens = MarkdownIt("commonmark").parse(prose)
    return prose, code, [int(t.tag[1:]) for t in tokens if t.type == "heading_open"]


def assert_faithful(chapter: Path, notebook: NotebookNode) -> None:
    """Code, tags, alt texts and headings are as jupytext reads them; nothing raw is left."""
    prose, code, headings = parts(notebook)
    _, expected, levels = parts(jupytext.read(chapter))
    assert RAW.findall(CODE.sub("", prose)) == []
    assert (code, headings) == (expected, levels)


@cache
def cells_of(path: Path) -> set[str]:
    """The names of a notebook's cells."""
    return {cell.id for cell in nbformat.read(path, as_version=4).cells}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_is_faithful_and_its_outputs_are_compared(chapter):
    """Of its links those within the repository lead to files."""
    notebook = nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)
    assert_faithful(chapter, notebook)
    cells = code_cells(notebook)
    # What a model writes hangs on the last digits of its training. Chapter 8 reads such a sample
    # after every piece, and its Checked cells hold the bits; no other page has as many.
    samples = [cell for cell in cells if "quoted" in cell.metadata.get("tags", [])]
    to_be_read = samples if chapter.stem.startswith("08-") else []
    assert len(to_be_read) <= 14
    skipping = [
        cell
        for cell in cells
        if cell not in to_be_read
        and (
            SKIPPING & set(cell.metadata.get("tags", []))
            or any(comment in cell.source for comment in SKIPPING_COMMENTS)
        )
    ]
    assert len(skipping) <= 0.05 * len(cells)
    assert any(cell.outputs for cell in cells), "a stripped notebook compares nothing"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    targets = re.findall(
        r"\]\((?!https?:|attachment:|data:|#)([^)\s#]+\.(?:md|ipynb))(?:#cell-id=([\w-]+))?\)",
        prose,
    )
    assert [to for to, _ in targets if not (chapter.parent / to).is_file()] == []
    assert [(to, at) for to, at in targets if at and at not in cells_of(chapter.parent / to)] == []


def test_sample_is_faithful_and_folded_where_the_site_folds_it(book_root, sample):
    assert_faithful(book_root / "chapters/01-sample.md", sample)
    assert [
        cell.metadata.get("cellView") == "form" and cell.metadata.jupyter.source_hidden
        for cell in code_cells(sample)
    ] == [True, False, False, True]
    sources = [cell.source for cell in sample.cells]
    first = sources.index("**PyTorch**")  # each cell that the site shows in a tab is named
    following = ["x = 1\nprint(x)", "**JAX**", "x = 2\nprint(x)"]
    assert sources[first + 1 : first + 4] == following
    nbformat.validate(sample)


def test_what_is_deeper_is_collapsed_up_to_the_next_heading(book_root):
    """JupyterLab and Colab hide what comes after a cell that is so marked, up to a cell with a heading."""
    text = "First.\n\n## Deeper: why\n\nText.\n\n### A part\n\nMore.\n\n## Next\n\nEnd.\n"
    (book_root / "chapters/01-sample.md").write_text(f"{HEADER}# Sample\n\n{text}", "utf-8")
    book = read_book(book_root)
    notebook = woven(book, book.notebooks()[:1])[book.notebooks()[0]]
    sources = [cell.source for cell in notebook.cells[2:]]
    assert sources == [
        "First.",
        "## Deeper: why",
        "Text.",
        "### A part\n\nMore.",
        "## Next\n\nEnd.",
    ]
    (deeper,) = [c for c in notebook.cells if c.metadata.get("jp-MarkdownHeadingCollapsed")]
    assert deeper.source == "## Deeper: why" and deeper.metadata["id"] == deeper.id
    assert notebook.metadata["colab"]["collapsed_sections"] == [deeper.id]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A machine without the package; what pip was asked for there."""
    asked: list[list[str]] = []

    def pip(words: list[str]) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("subprocess.run", pip)
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return asked


def test_the_setup_cell_installs_where_the_package_is_missing_and_only_there(
    sample, request, capsys
):
    exec(sample.cells[1].source, {})  # attnbook is installed here
    assert capsys.readouterr() == ("", "")
    asked = request.getfixturevalue("bare")
    exec(sample.cells[1].source, {})
    ((*pip, what),) = asked
    assert pip[:4] == [sys.executable, "-m", "pip", "install"]
    assert not {"--upgrade", "-U", "--force-reinstall"} & {*pip}  # what is there stays
    assert what == "attnbook[notebooks,torch,jax] @ git+https://git.test/r"
    assert capsys.readouterr().out == "attnbook is installed.\n"


@pytest.mark.parametrize(
    ("place", "notebook"),
    [
        ("work/a clone", ""),  # as git makes one on Colab
        ("work/drive/MyDrive/book", ""),
        ("book", "book/chapters/01-sample.ipynb"),  # the kernel was started elsewhere
    ],
)
def test_in_a_copy_of_the_book_it_installs_that_copy(
    no_address, bare, tmp_path, monkeypatch, place, notebook
):
    """Then no address is needed, and no other version comes than the notebook's own."""
    assert main(["--no-execute"], no_address) == 0
    (tmp_path / place / "src" / "attnbook").mkdir(parents=True)
    if notebook:
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / notebook))
    exec(setup_of(no_address / "chapters/01-sample.ipynb").source, {})
    assert bare[0][-1] == f"attnbook[notebooks,torch,jax] @ {(tmp_path / place).as_uri()}"


def test_a_machine_without_a_network_is_told(sample, bare, monkeypatch):
    monkeypatch.setattr("subprocess.run", lambda words: subprocess.CompletedProcess(words, 1))
    with pytest.raises(RuntimeError, match="Kaggle has a switch for the internet"):
        exec(sample.cells[1].source, {})


def test_a_release_installs_its_own_version(book_root):
    """From its tag, as soon as the change log dates it; between releases what is on main."""
    project, changes = book_root / "pyproject.toml", book_root / "CHANGELOG.md"
    project.write_text(f'[project]\nversion = "0.2.0"\n{project.read_text("utf-8")}', "utf-8")
    for heading, tag in (("0.2.0 (2027-03-05)", "@v0.2.0"), ("0.2.0 (unreleased)", "")):
        changes.write_text(f"# Changelog\n\n## {heading}\n\nWords.\n", "utf-8")
        assert main(["--no-execute"], book_root) == 0
        place = f'"git+https://git.test/r{tag}"'
        assert place in setup_of(book_root / "chapters/01-sample.ipynb").source


LIVE = """\
<div id="live-one" class="attnbook-live" role="group"><div><strong>One</strong></div>
<div class="attnbook-still"><p>What it shows.</p></div></div><script>draw()</script>"""


def test_where_no_script_runs_a_notebook_shows_a_still(executed):
    """The picture is in the output; a second weaving leaves one; the site's cache has none."""
    path = executed / "chapters/01-sample.ipynb"
    stills = executed / "images" / "stills"
    stills.mkdir(parents=True)
    notebook = nbformat.read(path, as_version=4)
    cell = code_cells(notebook)[1]
    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": LIVE})]
    nbformat.write(notebook, path)
    for content in (b"first", b"second"):
        (stills / "live-one.webp").write_bytes(content)
        assert main(["--check"], executed) == 1  # its picture is another
        assert main(["--no-execute"], executed) == 0
        assert main(["--check"], executed) == 0
        html = code_cells(nbformat.read(path, as_version=4))[1].outputs[0].data["text/html"]
        (picture,) = re.findall(r'<img [^>]*src="data:image/webp;base64,([^"]+)"[^>]*>', html)
        assert base64.b64decode(picture) == content
        assert 'alt="One: the figure before anything is moved."' in html
        assert without_still(html) == LIVE


@pytest.fixture
def no_address(book_root: Path) -> Path:
    """The sample book as a copy of it that has no address."""
    (book_root / "pyproject.toml").write_text('[project]\nname = "tiny"\n[tool.tiny]\n', "utf-8")
    return book_root


def test_without_an_address_nothing_leads_away(no_address, bare):
    """Links lead to the files beside the notebook; elsewhere a sentence says what is missing."""
    assert main(["--no-execute"], no_address) == 0
    path = no_address / "chapters/01-sample.ipynb"
    text = path.read_text("utf-8")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "*A chapter of Tiny.*" in text and "index.md" not in text
    there = "02-other.ipynb#cell-id=sec-far"
    assert f"[(2.1)]({there}), [Far away]({there})" in text
    assert "[Appendix](../appendix.md)" in text
    with pytest.raises(RuntimeError, match=r"no address .* open the chapter from .* make lab"):
        exec(setup_of(path).source, {})


def test_an_address_reaches_the_notebooks_and_executes_nothing(executed, monkeypatch):
    """Set-up cell and links change; outputs stay."""
    path = executed / "chapters/01-sample.ipynb"
    before = nbformat.read(path, as_version=4)
    edit(executed / "pyproject.toml", "https://git.test/r", "https://github.com/some-one/a.copy")
    edit(executed / "pyproject.toml", "https://book.test", "https://some-one.github.io/a.copy")
    monkeypatch.setattr("weave.execute", lambda *args, **kwargs: pytest.fail("a cell was executed"))
    assert main([], executed) == 0
    assert "[Appendix](https://some-one.github.io/a.copy/appendix.html)" in path.read_text("utf-8")
    assert 'git+https://github.com/some-one/a.copy"' in setup_of(path).source
    after = nbformat.read(path, as_version=4)
    outputs = [[(c.execution_count, c.outputs) for c in code_cells(nb)] for nb in (before, after)]
    assert outputs[0] == outputs[1] and after.metadata == before.metadata


def test_weaving_is_deterministic_and_ids_outlive_edits_elsewhere(book_root, sample):
    """Equal cells have ids of their own: a notebook with an id twice is not valid.

    A cell that begins with a label has it for its id.
    """
    added = "```{code-cell} ipython3\n0\n```\n\n"
    source = book_root / "chapters/01-sample.md"
    source.write_text(HEADER + CHAPTER_1.replace("(sec-why)", f"{added * 2}(sec-why)"), "utf-8")
    book = read_book(book_root)
    other, again = (woven(book, book.notebooks()[:1])[book.notebooks()[0]] for _ in range(2))
    assert text_of(other) == text_of(again)
    ids, new_ids = ([cell.id for cell in notebook.cells] for notebook in (sample, other))
    assert set(ids) <= set(new_ids)
    assert len(set(new_ids)) == len(new_ids) and "sec-why" in new_ids


def test_executes_once(executed, capsys):
    path = executed / "chapters/01-sample.ipynb"
    before = path.read_bytes()
    assert main([], executed) == 0
    assert "executed" not in capsys.readouterr().out
    assert path.read_bytes() == before
    code = code_cells(nbformat.read(path, as_version=4))
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4]
    assert [output.text for cell in code for output in cell.outputs[:1]] == ["1\n", "2\n", "dot\n"]
    source = executed / "chapters/01-sample.md"
    edit(source, "x = 2", "x = 5  # devices.torch_device()")
    assert main(["--no-execute"], executed) == 0
    assert main(["--check"], executed) == 1
    assert main([], executed) == 0
    assert "01-sample.ipynb: woven and executed" in capsys.readouterr().out
    assert main(["--check"], executed) == 0
    metadata = nbformat.read(path, as_version=4).metadata  # of a chapter that trains, for Colab
    assert metadata["accelerator"] == "GPU" and metadata["colab"] == {"gpuType": "T4"}
    assert metadata.language_info == {"name": "python"} and "ran" in metadata


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("A mean is a mean", "A mean is mean", f"{BY_HAND} its text or metadata differ"),
        ("print(x)", "print(x )", f"{BY_HAND} its code cells differ"),
        ('"torch"', '"jax"', f"{BY_HAND} its code cells differ"),
        ('_count": 2', '_count": null', "has cells that were not executed in order"),
        ('{\n "cells"', '"cells"', "is not a notebook"),
        ("", None, "is missing"),
    ],
)
def test_a_stale_notebook_is_named(executed, capsys, old, new, problem):
    path = executed / "chapters/01-sample.ipynb"
    text = path.read_text("utf-8")
    assert old in text
    if new is None:
        path.unlink()
    else:
        path.write_text(text.replace(old, new, 1), "utf-8")
    assert main(["--check"], executed) == 1
    assert f"chapters/01-sample.ipynb {problem}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise OSError('no luck')", "OSError: no luck"),
        ("import sys; print(1, file=sys.stderr)", "this cell writes on stderr"),
    ],
)
def test_failing_cell_leaves_the_old_notebook(executed, capsys, code, message):
    path = executed / "chapters/01-sample.ipynb"
    before = path.read_bytes()
    edit(executed / "chapters/01-sample.md", 'print("dot")', code)
    assert main([], executed) == 1
    error = capsys.readouterr().err
    assert "01-sample: " in error and code in error and message in error
    assert path.read_bytes() == before


def test_outputs_are_cleaned(book_root):
    """Of a cell whose tag lets it write on stderr."""
    source = book_root / "chapters/02-other.md"
    code = ":tags: [remove-stderr]\n\nimport sys\nprint(1, flush=True)\n"
    edit(source, "print(3)", f"{code}print('bar', file=sys.stderr, flush=True)\nprint(2)")
    assert main([str(source)], book_root) == 0
    cell = json.loads(source.with_suffix(".ipynb").read_text("utf-8"))["cells"][-1]
    assert cell["metadata"] == {"tags": ["remove-stderr"]}
    assert cell["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["1\n", "2\n"]}]
