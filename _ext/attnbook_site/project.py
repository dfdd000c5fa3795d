"""What the site says about the project, read from the one place that knows it: pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

BRANCH = "main"


def read_project(root: Path) -> dict[str, Any]:
    """The ``[project]`` table of the nearest pyproject.toml, from ``root`` upwards."""
    for folder in (root, *root.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    raise FileNotFoundError(f"no pyproject.toml in {root} or above it")


def repository_options(repository: str) -> dict[str, Any]:
    """Theme options for the links to the repository, its issues and Colab."""
    return {
        "repository_url": repository,
        "repository_branch": BRANCH,
        "repository_provider": "github",
        "path_to_docs": "",
        "use_repository_button": True,
        "use_issues_button": True,
        "use_edit_page_button": True,
        "launch_buttons": {"colab_url": "https://colab.research.google.com"},
    }


def configure(app: Sphinx, config: Config) -> None:
    """Fill in the version and the theme's links."""
    project = read_project(Path(app.confdir))
    config.project = config.html_title
    config.version = config.release = project["version"]
    options = repository_options(project["urls"]["Repository"].rstrip("/"))
    config.html_theme_options = {**config.html_theme_options, **options}
    config.html_context = {**config.html_context, "book_version": project["version"]}


def setup(app: Sphinx) -> None:
    """Run before the theme reads its options."""
    app.connect("config-inited", configure, priority=100)
