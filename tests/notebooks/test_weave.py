"""The notebooks are their chapters: nothing lost, nothing raw, nothing stale."""

import base64
import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import address
import nbformat
import numpy as np
import pytest
from fidelity import score
from nbformat import NotebookNode
from sample import CHAPTER_1, HEADER, ROOT
from weave import check, main, woven

from attnbook import datasets
from attnbook_course import live
from attnbook_course.weaving.book import read_book
from attnbook_course.weaving.freshness import same_code
from attnbook_course.weaving.notebook import code_cells, text_of
from attnbook_course.weaving.stills import alternative, without_still

CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
BY_HAND = "is stale or edited by hand:"
SKIPPING = {"nbval-ignore-output", "nbval-skip", "raises-exception"}
SKIPPING_COMMENTS = ("NBVAL_IGNORE_OUTPUT", "NBVAL_SKIP", "NBVAL_RAISES_EXCEPTION")


def first_chapter(book_root: Path) -> NotebookNode:
    """The sample book's first chapter, woven as it is now."""
    book = read_book(book_root)
    return woven(book, book.notebooks()[:1])[book.notebooks()[0]]


def edit(path: Path, old: str, new: str) -> None:
    """Write other words in the place of some, everywhere."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def assert_faithful(chapter: Path, notebook: NotebookNode) -> None:
    """Hold a notebook to the highest score."""
    result = score(chapter, notebook)
    assert result.raw_tokens == []
    assert result.missing_tags == []
    assert result.missing_alts == []
    assert result.changed_cells == []
    assert result.headings == result.source_headings


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_is_faithful(chapter):
    assert_faithful(chapter, nbformat.read(chapter.with_suffix(".ipynb"), as_version=4))


def test_chapters_are_fresh():
    book = read_book(ROOT)
    assert check(book, book.notebooks()) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_outputs_are_compared(chapter):
    notebook = nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    skipping = [
        cell
        for cell in cells
        if SKIPPING & set(cell.metadata.get("tags", []))
        or any(comment in cell.source for comment in SKIPPING_COMMENTS)
    ]
    assert len(skipping) <= 0.05 * len(cells)
    assert any(cell.outputs for cell in cells), "a stripped notebook compares nothing"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def test_sample_is_faithful(book_root, sample):
    assert_faithful(book_root / "chapters/01-sample.md", sample)


@pytest.mark.parametrize(
    "planted", ["{eq}`eq-mean`", "> :::{note}", "(target)=", "% comment", "$$ (eq-mean)"]
)
def test_score_sees_raw_tokens(book_root, sample, planted):
    sample.cells[2].source += f"\n\n{planted}\n"
    result = score(book_root / "chapters/01-sample.md", sample)
    assert len(result.raw_tokens) == 1


def test_score_sees_what_is_lost(book_root, sample):
    for cell in sample.cells:
        if cell.cell_type == "code" and "setup" not in cell.metadata.tags:
            cell.metadata = NotebookNode()
            cell.source += "\n"
    result = score(book_root / "chapters/01-sample.md", sample)
    assert len(result.missing_tags) == 3
    assert len(result.missing_alts) == 1
    assert len(result.changed_cells) == 3


def test_setup_cell_follows_the_title(sample, monkeypatch, capsys):
    assert sample.cells[0].source.startswith("# Sample\n")
    assert sample.cells[1].metadata.tags == ["setup"]
    assert '"git+https://git.test/r"' in sample.cells[1].source
    exec(sample.cells[1].source, {})  # attnbook is installed here
    assert capsys.readouterr() == ("", "")


def test_what_the_site_folds_is_folded(book_root, sample):
    """JupyterLab and Colab know no tag of the site's; the code is the same, so nothing runs anew."""
    assert [
        cell.metadata.get("cellView") == "form" and cell.metadata.jupyter.source_hidden
        for cell in code_cells(sample)
    ] == [True, False, False, True]
    nbformat.validate(sample)
    stored = copy.deepcopy(sample)
    for cell in code_cells(stored):
        cell.metadata.pop("cellView", None)
        cell.metadata.pop("jupyter", None)
    assert same_code(sample, stored)


def test_cells_of_two_back_ends_are_named(book_root):
    """Each cell that the site shows in a tab, once where two of the same follow each other."""
    path = book_root / "chapters/01-sample.md"
    again = "x = 1\nprint(x)\n```\n\n```{code-cell} ipython3\n:tags: [torch]\n\nagain = 1\n```"
    edit(path, "x = 1\nprint(x)\n```", again)
    sources = [cell.source for cell in first_chapter(book_root).cells]
    first = sources.index("**PyTorch**")
    following = ["x = 1\nprint(x)", "again = 1", "**JAX**", "x = 2\nprint(x)"]
    assert sources[first + 1 : first + 5] == following
    assert sources.count("**PyTorch**") == sources.count("**JAX**") == 1


def test_a_notebook_asks_nobody_to_open_it(book_root):
    """The sentence about the site's button stays on the page; every chapter's is recognised."""
    path = book_root / "chapters/01-sample.md"
    for chapter in CHAPTERS:
        lines = [x for x in chapter.read_text("utf-8").split("\n") if "as a notebook (the" in x]
        assert len(lines) == 1
        path.write_text(f"{HEADER}# Sample\n\n{lines[0]}\n", "utf-8")
        text = first_chapter(book_root).cells[-1].source
        before, _, after = lines[0].partition(" Open the page as a notebook")
        assert text == before + after.partition("top).")[2]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """A machine without the package, whatever it is called; what pip was asked for there."""
    asked: list[list[str]] = []

    def pip(words: list[str]) -> subprocess.CompletedProcess[str]:
        asked.append(words)
        return subprocess.CompletedProcess(words, 0)

    for name in ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("subprocess.run", pip)
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return asked


def test_the_setup_cell_installs_wherever_the_package_is_missing(sample, bare, capsys):
    exec(sample.cells[1].source, {})
    ((*pip, what),) = bare
    assert pip[:4] == [sys.executable, "-m", "pip", "install"]
    assert not {"--upgrade", "-U", "--force-reinstall"} & {*pip}  # what is there stays
    assert what == "attnbook[notebooks,torch,jax] @ git+https://git.test/r"
    assert capsys.readouterr().out == "attnbook is installed.\n"


@pytest.mark.parametrize(
    ("place", "notebook"),
    [
        ("", ""),
        ("work/a clone", ""),  # as git makes one on Colab
        ("work/drive/MyDrive/book", ""),
        ("book", "book/chapters/01-sample.ipynb"),  # the kernel was started elsewhere
    ],
)
def test_in_a_copy_of_the_book_it_installs_that_copy(
    no_address, bare, tmp_path, monkeypatch, place, notebook
):
    """A hub may have pulled the whole repository: then no address is needed, and no other version
    comes than the notebook's own."""
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
    text = f'[project]\nversion = "0.2.0"\n{project.read_text("utf-8")}'
    project.write_text(text, "utf-8")
    for heading, place in (
        ("## 0.2.0 (2027-03-05)", "git+https://git.test/r@v0.2.0"),
        ("## 0.2.0 (unreleased)", "git+https://git.test/r"),
        ("## 0.1.0 (2027-01-05)", "git+https://git.test/r"),
    ):
        changes.write_text(f"# Changelog\n\n{heading}\n\nWords.\n", "utf-8")
        assert main(["--no-execute"], book_root) == 0
        assert f'"{place}"' in setup_of(book_root / "chapters/01-sample.ipynb").source


def test_a_chapter_that_trains_asks_colab_for_a_gpu(book_root, capsys):
    path = book_root / "chapters/01-sample.md"
    assert main(["--no-execute"], book_root) == 0
    assert "accelerator" not in path.with_suffix(".ipynb").read_text("utf-8")
    edit(path, "x = 2", "x = 2  # devices.torch_device()")
    assert main([str(path)], book_root) == 0
    metadata = nbformat.read(path.with_suffix(".ipynb"), as_version=4).metadata
    assert metadata["accelerator"] == "GPU" and metadata["colab"] == {"gpuType": "T4"}
    assert {"kernelspec", "language_info", "ran"} < {*metadata}
    assert main(["--check"], book_root) in (0, 1)  # the other chapter was never executed
    assert "01-sample" not in capsys.readouterr().err.replace("01-sample: ", "")


LIVE = """\
<div id="live-one" class="attnbook-live" role="group"><div><strong>One</strong></div>
<div class="attnbook-still"><p>What it shows.</p></div></div><script>draw()</script>"""


def test_where_no_script_runs_a_notebook_shows_a_still(executed):
    """The picture is in the output; a second weaving leaves one; the site's cache has none."""
    path = executed / "chapters/01-sample.ipynb"
    stills = executed / "images" / "stills"
    stills.mkdir(parents=True)
    for content in (b"first", b"second"):
        (stills / "live-one.webp").write_bytes(content)
        notebook = nbformat.read(path, as_version=4)
        cell = code_cells(notebook)[1]
        if content == b"first":
            cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": LIVE})]
            nbformat.write(notebook, path)
        assert main(["--check"], executed) == 1  # its picture is another
        assert main(["--no-execute"], executed) == 0
        assert main(["--check"], executed) == 0
        html = code_cells(nbformat.read(path, as_version=4))[1].outputs[0].data["text/html"]
        seen = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)  # as GitHub shows it
        (picture,) = re.findall(r'<img [^>]*src="data:image/webp;base64,([^"]+)"[^>]*>', seen)
        assert base64.b64decode(picture) == content
        assert 'alt="One: the figure before anything is moved."' in seen
        assert seen.index("<img") < seen.index("What it shows.") and "<button" not in seen
        assert without_still(html) == LIVE


def test_a_picture_taken_later_says_so():
    said = alternative("live-regressor-training", "One layer")
    assert said == "One layer: the figure after a training of 2000 steps."


def test_a_live_figure_shows_nothing_that_only_a_script_can_use():
    html = live.kernel_regression(*datasets.heteroskedastic(), (np.arange(3.0), np.arange(3.0)))
    seen = re.sub(r"<script.*?</script>", "", html._repr_html_(), flags=re.DOTALL)
    assert "<button" not in seen and "hidden" not in seen.replace("overflow: hidden", "")
    assert "150 points" in seen


@pytest.fixture
def no_address(book_root: Path) -> Path:
    """The sample book as a copy of it is before `make address`."""
    (book_root / "pyproject.toml").write_text('[project]\nname = "tiny"\n[tool.tiny]\n', "utf-8")
    (book_root / "CITATION.cff").write_text("version: 1\nlicense: MIT\n", "utf-8")
    return book_root


def setup_of(path: Path) -> NotebookNode:
    """The second cell of a notebook, which is the set-up cell."""
    cell = nbformat.read(path, as_version=4).cells[1]
    assert cell.metadata.tags == ["setup"]
    return cell


def test_without_an_address_nothing_leads_away(no_address, monkeypatch, capsys):
    """Links lead to the files beside the notebook; elsewhere a sentence says what is missing."""
    assert main(["--no-execute"], no_address) == 0
    path = no_address / "chapters/01-sample.ipynb"
    text = path.read_text("utf-8")
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "*A chapter of Tiny.*" in text and "index.md" not in text
    assert "[(2.1)](02-other.ipynb), [Far away](02-other.ipynb)" in text
    assert "[Appendix](../appendix.md)" in text
    capsys.readouterr()
    source = setup_of(path).source
    exec(source, {})  # attnbook is installed here
    monkeypatch.chdir(no_address / "chapters")
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = r"no address .* open the chapter from a copy .* make lab .* make address REPO=owner/name"
    with pytest.raises(RuntimeError, match=said):
        exec(source, {})
    assert capsys.readouterr() == ("", "")


def test_an_address_reaches_the_notebooks_and_executes_nothing(no_address, monkeypatch, capsys):
    """Set-up cell and links change; outputs stay; a notebook that is stale is left, and named."""
    assert main([], no_address) == 0
    path, other = (no_address / f"chapters/{name}.ipynb" for name in ("01-sample", "02-other"))
    before, stale = nbformat.read(path, as_version=4), other.read_bytes()
    source = other.with_suffix(".md")
    edit(source, "print(3)", "print(4)")
    monkeypatch.setattr("weave.execute", lambda *args, **kwargs: pytest.fail("a cell was executed"))
    for repo in ("some-one/first", "some-one/a.copy"):
        capsys.readouterr()
        assert address.main([repo, ""], no_address) == 1
        said = capsys.readouterr()
        assert f"This copy of the book is https://github.com/{repo}, and its site" in said.out
        assert said.err.startswith("chapters/02-other.ipynb is not its page executed")
        assert other.read_bytes() == stale
    edit(source, "print(4)", "print(3)")
    assert address.main(["some-one/a.copy"], no_address) == 0
    assert main(["--check"], no_address) == 0
    text = path.read_text("utf-8")
    assert "first" not in text and ".ipynb)" not in text
    assert "[Appendix](https://some-one.github.io/a.copy/appendix.html)" in text
    assert 'git+https://github.com/some-one/a.copy"' in setup_of(path).source
    after = nbformat.read(path, as_version=4)
    outputs = [[(c.execution_count, c.outputs) for c in code_cells(nb)] for nb in (before, after)]
    assert outputs[0] == outputs[1] and after.metadata == before.metadata


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_links_to_other_files_lead_to_files(chapter):
    """Without an address links stay in the repository; with one, only those to the site are left."""
    notebook = nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    targets = re.findall(r"\]\((?!https?:|attachment:|data:|#)([^)\s]+\.(?:md|ipynb))\)", prose)
    assert targets or read_book(ROOT).site
    assert [target for target in targets if not (chapter.parent / target).is_file()] == []


def test_weaving_is_deterministic(book_root):
    book = read_book(book_root)
    texts = [[text_of(nb) for nb in woven(book, book.notebooks()).values()] for _ in range(2)]
    assert texts[0] == texts[1]


def test_ids_outlive_edits_elsewhere(book_root, sample):
    added = "```{code-cell} ipython3\n0\n```\n\n"
    source = book_root / "chapters/01-sample.md"
    source.write_text(HEADER + CHAPTER_1.replace("(sec-why)", f"{added}(sec-why)"), "utf-8")
    other = first_chapter(book_root)
    ids, new_ids = ([cell.id for cell in notebook.cells] for notebook in (sample, other))
    assert len(set(ids)) == len(ids)
    assert len(set(ids) - set(new_ids)) == 1, "only the text that the new cell divides"


def test_equal_cells_have_ids_of_their_own(book_root):
    """The first keeps the id that it has alone; a notebook with an id twice is not valid."""
    cell = "```{code-cell} ipython3\nagain = 1\n```\n\n"
    source = book_root / "chapters/01-sample.md"
    source.write_text(HEADER + CHAPTER_1.replace("(sec-why)", f"{cell * 3}(sec-why)"), "utf-8")
    notebook = first_chapter(book_root)
    ids = [cell.id for cell in notebook.cells if cell.source == "again = 1"]
    assert ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]
    nbformat.validate(notebook)


def test_executes_once(executed, capsys):
    path = executed / "chapters/01-sample.ipynb"
    before = path.read_bytes()
    assert main([], executed) == 0
    assert "executed" not in capsys.readouterr().out
    assert path.read_bytes() == before
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2, 3, 4]
    assert [output.text for cell in code for output in cell.outputs[:1]] == ["1\n", "2\n", "dot\n"]
    assert notebook.metadata.language_info == {"name": "python"}

    source = executed / "chapters/01-sample.md"
    edit(source, "x = 2", "x = 5")
    assert main(["--no-execute"], executed) == 0
    assert main(["--check"], executed) == 1
    assert main([], executed) == 0
    assert "01-sample.ipynb: woven and executed" in capsys.readouterr().out
    assert main(["--check"], executed) == 0


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("A mean is a mean", "A mean is mean", f"{BY_HAND} its text or metadata differ"),
        ("print(x)", "print(x )", f"{BY_HAND} its code cells differ"),
        ('"torch"', '"jax"', f"{BY_HAND} its code cells differ"),
        ('"A dot"', '"A spot"', f"{BY_HAND} its text or metadata differ"),
        ('_count": 2', '_count": null', "has cells that were not executed in order"),
        ('{\n "cells"', '"cells"', "is not a notebook"),
    ],
)
def test_hand_edit_is_seen(executed, capsys, old, new, problem):
    path = executed / "chapters/01-sample.ipynb"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    edited = path.read_bytes()
    assert main(["--check"], executed) == 1
    assert f"chapters/01-sample.ipynb {problem}" in capsys.readouterr().err
    assert path.read_bytes() == edited
    assert main(["--no-execute"], executed) == 0


def test_missing_notebook_is_seen(book_root, capsys):
    assert main(["--check"], book_root) == 1
    assert "chapters/01-sample.ipynb is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "message"),
    [("raise OSError('no luck')", "OSError: no luck"), ("print(object())", "has a memory address")],
)
def test_failing_cell_leaves_the_old_notebook(executed, capsys, code, message):
    path = executed / "chapters/01-sample.ipynb"
    before = path.read_bytes()
    source = executed / "chapters/01-sample.md"
    edit(source, 'print("dot")', code)
    assert main([], executed) == 1
    error = capsys.readouterr().err
    assert "01-sample: " in error
    assert f"    {code}" in error
    assert message in error
    assert path.read_bytes() == before


def test_outputs_are_cleaned_and_stderr_is_refused(book_root, capsys):
    source = book_root / "chapters/02-other.md"
    code = "import sys\nprint(1, flush=True)\nprint('bar', file=sys.stderr, flush=True)\nprint(2)"
    edit(source, "print(3)", code)
    assert main([str(source)], book_root) == 1
    assert "02-other: this cell writes on stderr" in capsys.readouterr().err
    edit(source, "import sys", ":tags: [remove-stderr]\n\nimport sys")
    assert main([str(source)], book_root) == 0
    cell = json.loads(source.with_suffix(".ipynb").read_text("utf-8"))["cells"][-1]
    assert cell["metadata"] == {"tags": ["remove-stderr"]}
    assert cell["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["1\n", "2\n"]}]


def test_chapter_outside_the_book(book_root, capsys):
    assert main(["nowhere.md"], book_root) == 1
    assert "nowhere.md is not in _toc.yml" in capsys.readouterr().err


def test_weaving_changes_no_stored_outputs(executed):
    path = executed / "chapters/02-other.ipynb"
    stored = nbformat.read(path, as_version=4)
    before = copy.deepcopy(stored.cells[-1].outputs)
    source = executed / "chapters/02-other.md"
    edit(source, "Far away", "Far off")
    assert main(["--no-execute"], executed) == 0
    after = nbformat.read(path, as_version=4)
    assert after.cells[-1].outputs == before
    assert "Far off" in path.read_text("utf-8")
