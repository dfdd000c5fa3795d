"""What `make lab` and `make edit` promise: notebooks to read; sources that open as notebooks."""

import ast
import json
import shlex
import subprocess
import sys

import jupytext
from sample import ROOT

CHAPTERS = sorted((ROOT / "chapters").glob("*.md"))


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
    listed = {one["name"] for one in manager.get("chapters", type="directory")["content"]}
    assert listed >= {chapter.with_suffix(".ipynb").name for chapter in CHAPTERS}
    assert not listed & {chapter.name for chapter in CHAPTERS}
