"""The book as its configuration files tell it: pages in order, addresses, names of numbers."""

import posixpath
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

INTERLUDE = "I"  # in place of a number: its first figure is I.1


@dataclass(frozen=True)
class Page:
    """One source file; ``number`` is the chapter's, None on pages that are no chapters."""

    docname: str
    path: Path
    number: int | str | None
    is_notebook: bool  # it has code: a notebook is woven from it


@dataclass(frozen=True)
class Book:
    """Where the book's parts lie, and what it calls them."""

    root: Path
    title: str
    pages: tuple[Page, ...]
    site: str  # address of the published book; empty until pyproject.toml has it
    repository: str  # empty until then, too
    tag: str  # of the release that this is; empty between releases
    references: tuple[Path, ...]
    figure_format: str

    def page(self, path: Path) -> Page:
        """The page of a source file."""
        for page in self.pages:
            if page.path == path.resolve():
                return page
        known = ", ".join(page.docname for page in self.pages)
        raise ValueError(f"{path} is not in _toc.yml; it lists {known}")

    def notebooks(self) -> tuple[Page, ...]:
        """The pages that become notebooks."""
        return tuple(page for page in self.pages if page.is_notebook)

    def file(self, page: Page) -> str:
        """A page's path from the root, for messages."""
        return page.path.relative_to(self.root).as_posix()

    def address(self, docname: str, anchor: str = "", cell: str = "") -> str:
        """The address of a place on the published site; without one, of a file beside it.

        There JupyterLab finds a cell by its id. (It finds headings only where they are drawn.)
        """
        if not self.site:
            file = posixpath.relpath(docname, "chapters")
            if not any(page.docname == docname for page in self.notebooks()):
                return f"{file}.md"
            return f"{file}.ipynb" + (f"#cell-id={cell}" if cell else "")
        return f"{self.site}/{docname}.html" + (f"#{anchor}" if anchor else "")

    def file_address(self, name: str) -> str:
        """The address of a file of the repository, a script for instance, from a notebook."""
        if not self.repository:
            return posixpath.relpath(name, "chapters")
        return f"{self.repository}/blob/{self.tag or 'main'}/{name}"


def read_book(root: Path) -> Book:
    """Read pyproject.toml, _config.yml and _toc.yml of the book at ``root``."""
    root = root.resolve()
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    urls = project.get("urls", {})
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    sphinx = config.get("sphinx", {}).get("config", {}) or {}
    return Book(
        root=root,
        title=config["title"],
        pages=tuple(_pages(root)),
        site=urls.get("Book", "").rstrip("/"),
        repository=urls.get("Repository", ""),
        tag=_tag(root / "CHANGELOG.md", project.get("version", "")),
        references=tuple(root / name for name in config.get("bibtex_bibfiles", [])),
        figure_format=sphinx.get("numfig_format", {}).get("figure", "Fig. %s"),
    )


def _tag(changes: Path, version: str) -> str:
    """The tag of this version, once the change log gives it a date: the release is tagged then."""
    dated = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)[ \t]*$"
    text = changes.read_text("utf-8") if changes.is_file() else ""
    return f"v{version}" if version and re.search(dated, text, re.MULTILINE) else ""


def _pages(root: Path) -> list[Page]:
    """The pages in the order of _toc.yml; numbers run on through the numbered parts."""
    toc: dict[str, Any] = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    pages, count = [_page(root, toc["root"], None)], 0
    for part in toc["parts"]:
        for chapter in part["chapters"]:
            count += part.get("numbered", False)
            other = INTERLUDE if chapter["file"].startswith("chapters/") else None
            pages.append(_page(root, chapter["file"], count if part.get("numbered") else other))
    return pages


def _page(root: Path, name: str, number: int | str | None) -> Page:
    """The page of one _toc.yml entry, which may leave out the file's ending."""
    docname = name.removesuffix(".md")
    path = root / f"{docname}.md"
    if not path.exists():
        raise FileNotFoundError(f"_toc.yml names {name!r}, but there is no {path}")
    header = path.read_text("utf-8").partition("\n---")[0]
    return Page(docname, path, number, is_notebook="jupytext:" in header)
