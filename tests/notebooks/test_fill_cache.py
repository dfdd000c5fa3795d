"""The site shows the stored outputs of the notebooks, and executes only what has none."""

import subprocess
import sys
from pathlib import Path

import fill_cache
import pytest
from bs4 import BeautifulSoup
from weave import main

CONFIG = """\
title: Tiny
only_build_toc_files: true
exclude_patterns: ["**/*.ipynb"]
execute: {execute_notebooks: cache}
parse: {myst_enable_extensions: [amsmath, colon_fence, dollarmath]}
bibtex_bibfiles: [references.bib]
sphinx:
  extra_extensions: [sphinx_exercise]
  config:
    bibtex_reference_style: author_year
    numfig: true
    numfig_secnum_depth: 1
    math_numfig: true
    numfig_format: {figure: "Figure %s"}
"""


@pytest.fixture
def stored(executed: Path) -> Path:
    """The sample book, executed, with an output that only the stored notebook has."""
    (executed / "_config.yml").write_text(CONFIG, "utf-8")
    (executed / "index.md").write_text("# The book\n", "utf-8")
    assert main(["--no-execute"], executed) == 0
    path = executed / "chapters/01-sample.ipynb"
    path.write_text(path.read_text("utf-8").replace('"dot\\n"', '"stored dot\\n"'), "utf-8")
    return executed


def test_build_uses_the_stored_outputs(stored, capsys):
    (stored / "chapters/02-other.ipynb").unlink()
    assert fill_cache.main(stored) == 0
    said = capsys.readouterr().out
    assert "01-sample.md: outputs taken from 01-sample.ipynb" in said
    assert "02-other.md: no stored outputs that fit" in said

    script = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", script, "build", str(stored)]
    built = subprocess.run(command, capture_output=True, text=True)
    log = built.stdout + built.stderr
    assert built.returncode == 0, log
    assert "01-sample.md: Using cached notebook" in log
    assert "02-other.md: Executing notebook" in log
    page = BeautifulSoup(
        (stored / "_build/html/chapters/01-sample.html").read_text(), "html.parser"
    )
    outputs = [cell.get_text().strip() for cell in page.select(".cell_output")]
    assert outputs[:2] == ["1", "2"]
    assert "stored dot" in page.get_text()
    assert "COLAB_RELEASE_TAG" not in page.get_text()

    # The references of a paragraph read on the site as they do in the notebook.
    words = " ".join(page.select_one("section section > p").get_text().split())
    assert words.startswith(
        "See (1.2), Why h matters, Figure 1.1, Exercise 1.1, "
        "[Nadaraya, 1964, Watson, 1964], Bahdanau et al. [2015]"
    )
    notebook = (stored / "chapters/01-sample.ipynb").read_text("utf-8")
    assert "See (1.2), Why $h$ matters, Figure 1.1, Exercise 1.1,\\n" in notebook
    assert "[(2.1)](" in notebook
    assert "(2.1), Far away, Other chapter, Appendix" in words


def test_what_the_cache_has_is_left_alone(stored, capsys):
    assert fill_cache.main(stored) == 0
    assert "01-sample.md: outputs taken" in capsys.readouterr().out
    assert fill_cache.main(stored) == 0
    assert capsys.readouterr().out == ""
    path = stored / "chapters/01-sample.ipynb"
    path.write_text(path.read_text("utf-8").replace("stored dot", "another dot"), "utf-8")
    assert fill_cache.main(stored) == 0
    assert capsys.readouterr().out == "01-sample.md: outputs taken from 01-sample.ipynb\n"


def test_changed_chapter_is_not_filled(stored):
    source = stored / "chapters/01-sample.md"
    assert fill_cache.with_outputs(source) is not None
    source.write_text(source.read_text("utf-8").replace("x = 2", "x = 5"), "utf-8")
    assert fill_cache.with_outputs(source) is None
