"""What the site says about the project, read from the one place that knows it: pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

BRANCH = "main"
GITHUB = "https://github.com/"
# Around what `make address` writes into a page; one alone on its line goes with the line.
COMMENT = re.compile(r"<!-- /?address(?:(?!-->).)*-->", re.DOTALL)
COMMENT_LINE = re.compile(rf"^{COMMENT.pattern}\n", re.DOTALL | re.MULTILINE)


def read_project(root: Path) -> dict[str, Any]:
    """The ``[project]`` table of the nearest pyproject.toml, from ``root`` upwards."""
    for folder in (root, *root.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    raise FileNotFoundError(f"no pyproject.toml in {root} or above it")


def repository_options(repository: str) -> dict[str, Any]:
    """Theme options for the links to the repository, its issues, Colab and Binder."""
    return {
        "repository_url": repository,
        "repository_branch": BRANCH,
        "repository_provider": "github",
        "path_to_docs": "",
        "use_repository_button": True,
        "use_issues_button": True,
        "use_edit_page_button": True,
        "launch_buttons": {
            "colab_url": "https://colab.research.google.com",
            "binderhub_url": "https://mybinder.org",
            "notebook_interface": "jupyterlab",
        },
    }


def configure(app: Sphinx, config: Config) -> None:
    """Fill in the version, and the theme's links as soon as the book has an address."""
    project = read_project(Path(app.confdir))
    config.project = config.html_title
    config.version = config.release = project["version"]
    repository = project.get("urls", {}).get("Repository", "").rstrip("/")
    options = repository_options(repository) if repository else {}
    config.html_theme_options = {**config.html_theme_options, **options}
    address = project.get("urls", {}).get("Book", "").rstrip("/")
    config.html_baseurl = f"{address}/" if address else ""  # each page then says where it lives
    card = {"card": f"{address}/_static/card.png"} if address else {}
    config.html_context = {**config.html_context, **card, "book_version": project["version"]}


def drop_comments(app: Sphinx, docname: str, source: list[str]) -> None:
    """Passages that wait for an address are no part of the page."""
    source[0] = COMMENT.sub("", COMMENT_LINE.sub("", source[0]))


def launch_notebooks_only(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """No launch button on a page that is no notebook: the theme adds one wherever code ran."""
    if not Path(app.env.doc2path(pagename)).with_suffix(".ipynb").is_file():
        buttons = context.get("header_buttons", [])
        context["header_buttons"] = [b for b in buttons if b.get("label") != "launch-buttons"]


def setup(app: Sphinx) -> None:
    """Run before the theme reads its options, and after it has put its buttons together (501)."""
    app.connect("config-inited", configure, priority=100)
    app.connect("source-read", drop_comments)
    app.connect("html-page-context", launch_notebooks_only, priority=600)
