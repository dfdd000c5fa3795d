"""What `make lab` and `make edit` promise: notebooks to read, and sources that open as notebooks."""

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys

import jupytext
import pytest
import yaml
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from sample import ROOT

CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))
EVERY = [*CHAPTERS, *sorted((ROOT / "appendices").glob("*.md"))]
PAGES = [page for page in EVERY if "\njupytext:" in page.read_text("utf-8")]
BETWEEN_RULES = re.compile(r"^---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)


def of_makefile(word: str) -> str:
    """The one line of the Makefile that has this word."""
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    (found,) = [line for line in lines if word in line]
    return found


def test_the_setting_opens_markdown_as_a_notebook(tmp_path):
    """The command of the Makefile, on a settings file of its own."""
    words = of_makefile("jupytext_config").partition(" -m ")[2].split()
    settings = tmp_path / "lab" / "overrides.json"
    words[words.index("--settings-file") + 1] = str(settings)
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    found = json.loads(settings.read_text("utf-8"))
    viewers = found["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers == {"markdown": "Jupytext Notebook"}


def test_a_reader_finds_notebooks_and_no_sources():
    """With the option that the Makefile gives, the list of files has what a double click can show."""
    words = shlex.split(of_makefile("hide_globs"))
    (option,) = [word for word in words if word.startswith("--ContentsManager.")]
    hidden = ast.literal_eval(option.partition("=")[2])
    manager = jupytext.TextFileContentsManager(root_dir=str(ROOT), hide_globs=hidden)
    assert isinstance(manager, LargeFileManager)  # which the option is for
    listed = {one["name"] for one in manager.get("chapters", type="directory")["content"]}
    assert listed >= {chapter.with_suffix(".ipynb").name for chapter in CHAPTERS}
    assert not listed & {chapter.name for chapter in CHAPTERS}
    everything = {one["name"] for one in manager.get("", type="directory")["content"]}
    assert everything >= {"README.md", "CONTRIBUTING.md", "chapters"}


def in_parts(page):
    """A page's header, the options of its cells, and its other lines with something in them."""
    text = page.read_text("utf-8")
    lines = [line for line in BETWEEN_RULES.sub("", text).splitlines() if line]
    return [yaml.safe_load(one) for one in BETWEEN_RULES.findall(text)], lines


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_survives_opening_and_saving(page, tmp_path):
    """Header and options are wrapped anew, blank lines come or go, and all else is as it was."""
    for path in (page, ROOT / "pyproject.toml"):
        shutil.copy(path, tmp_path)
    manager = jupytext.TextFileContentsManager(root_dir=str(tmp_path))
    model = manager.get(page.name, type="notebook")
    before = jupytext.read(page)
    code = [cell.source for cell in before.cells if cell.cell_type == "code"]
    assert [c.source for c in model["content"].cells if c.cell_type == "code"] == code
    manager.save(model, page.name)
    after = jupytext.read(tmp_path / page.name)
    assert [(c.cell_type, c.source, c.metadata) for c in after.cells] == [
        (c.cell_type, c.source, c.metadata) for c in before.cells
    ]
    assert in_parts(tmp_path / page.name) == in_parts(page)
