"""The site shows the stored outputs of the notebooks, and executes nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sample import ROOT
from weave import main

CONFIG = """\
title: Tiny
only_build_toc_files: true
exclude_patterns: ["**/*.ipynb"]
execute: {execute_notebooks: "off"}
parse: {myst_enable_extensions: [amsmath, colon_fence, dollarmath]}
bibtex_bibfiles: [references.bib]
sphinx:
  extra_extensions: [sphinx_exercise, attnbook_site.notebooks]
  config:
    bibtex_reference_style: author_year
    numfig: true
    numfig_secnum_depth: 1
    math_numfig: true
    numfig_format: {figure: "Figure %s"}
"""
UNFIT = "got no stored outputs of the code as it stands; do: make notebooks"


@pytest.fixture
def stored(executed: Path) -> Path:
    """The sample book, executed, with an output that only the stored notebook has."""
    (executed / "_config.yml").write_text(CONFIG, "utf-8")
    (executed / "index.md").write_text("# The book\n", "utf-8")
    assert main(["--no-execute"], executed) == 0
    path = executed / "chapters/01-sample.ipynb"
    path.write_text(path.read_text("utf-8").replace('"dot\\n"', '"stored dot\\n"'), "utf-8")
    return executed


def build(book: Path) -> str:
    """What Jupyter Book says of a build."""
    script = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", script, "build", str(book)]
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT / "_ext"), str(ROOT / "tools")])}
    built = subprocess.run(command, capture_output=True, text=True, env=os.environ | path)
    assert built.returncode == 0, built.stdout + built.stderr
    return built.stdout + built.stderr


def page(book: Path) -> BeautifulSoup:
    """The page of the sample's first chapter."""
    html = (book / "_build/html/chapters/01-sample.html").read_text("utf-8")
    return BeautifulSoup(html, "html.parser")


def test_build_shows_the_stored_outputs(stored):
    said = build(stored)
    assert UNFIT not in said and "Executing" not in said
    first = page(stored)
    outputs = [cell.get_text().strip() for cell in first.select(".cell_output")]
    assert outputs[:2] == ["1", "2"]
    assert "stored dot" in first.get_text()
    assert "COLAB_RELEASE_TAG" not in first.get_text()

    # The references of a paragraph read on the site as they do in the notebook.
    words = " ".join(first.select_one("section section > p").get_text().split())
    assert words.startswith(
        "See (1.2), Why h matters, Figure 1.1, Exercise 1.1, "
        "[Nadaraya, 1964, Watson, 1964], Bahdanau et al. [2015]"
    )
    path = stored / "chapters/01-sample.ipynb"
    notebook = path.read_text("utf-8")
    assert "See (1.2), Why $h$ matters, Figure 1.1, Exercise 1.1,\\n" in notebook
    assert "[(2.1)](" in notebook
    assert "(2.1), Far away, Other chapter, Appendix" in words

    # Another output in the notebook is another page; a notebook that is gone is a warning.
    path.write_text(notebook.replace("stored dot", "another dot"), "utf-8")
    (stored / "chapters/02-other.ipynb").unlink()
    said = build(stored)
    assert "another dot" in page(stored).get_text()
    assert f"02-other.md:20: WARNING: {UNFIT}" in said and said.count("WARNING") == 1


def test_outputs_of_other_code_or_of_none_are_not_shown(stored):
    source = stored / "chapters/01-sample.md"
    source.write_text(source.read_text("utf-8").replace("x = 2", "x = 5"), "utf-8")
    bare = stored / "chapters/02-other.ipynb"
    bare.write_text(
        bare.read_text("utf-8").replace('"execution_count": 1', '"execution_count": null')
    )
    said = build(stored)
    line = source.read_text("utf-8").splitlines().index("x = 5") - 1  # of the cell's tags
    assert f"01-sample.md:{line}: WARNING: {UNFIT}" in said
    assert said.count(UNFIT) == 2
    assert "stored dot" not in page(stored).get_text()
