"""What the site says about the project, read from the one place that knows it: pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sphinx.application import Sphinx
from sphinx.config import Config

BRANCH = "main"
GITHUB = "https://github.com/"
# A passage that is there only where the book has an address: <!-- address: at <{pages}> -->
PASSAGE = re.compile(r"<!-- address:[ \n]?((?:(?!-->).)*?)[ \n]?-->", re.DOTALL)


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
    config.html_context = {**config.html_context, "book_version": project["version"]}


def fill_passages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Write the address of this copy into a page; without one, its passages are no part of it."""
    urls = read_project(Path(app.confdir)).get("urls", {})
    source[0] = filled(source[0], urls.get("Repository", ""), urls.get("Book", ""))


def filled(text: str, repository: str, pages: str) -> str:
    """A text with the passages that name an address, or without them."""
    both = repository.removeprefix(GITHUB)
    words = {"repository": repository, "pages": pages, "owner_and_name": both}
    words |= {"name": both.rpartition("/")[2], "quoted": quote(repository, safe="")}
    return PASSAGE.sub(lambda found: found[1].format_map(words) if repository else "", text)


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
    app.connect("source-read", fill_passages)
    app.connect("html-page-context", launch_notebooks_only, priority=600)
