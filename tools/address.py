"""Give this copy of the book an address of its own: the repository on GitHub, and the site.

python tools/address.py owner/name                             the site is on github.io
python tools/address.py owner/name https://book.example.org    the site has a domain

pyproject.toml holds the address, and the site takes it from there whenever it is built. The
notebooks are woven anew and keep their outputs; nothing is executed. A passage of a text that needs
an address waits in a comment, and is written between that comment and the next:

    Mistakes are welcome<!-- address: : <{repository}/issues> --><!-- /address -->.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import weave

from attnbook_course.weaving.book import read_book
from attnbook_course.weaving.freshness import read_stored

ROOT = Path(__file__).resolve().parent.parent
GITHUB = "https://github.com/"
REPO = re.compile(r"(?P<owner>[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)/(?P<name>[\w.-]*\w)", re.ASCII)
PAGES = re.compile(r"https://[\w-]+(?:\.[\w-]+)+(?:/[\w.~-]+)*", re.ASCII)
OPENING = "<!-- address:"
PASSAGE = re.compile(rf"({OPENING}((?:(?!-->).)*)-->)(?:(?!{OPENING}).)*?(<!-- /address -->)", re.S)
URLS = re.compile(r"^\[project\.urls\]\n(?:\w.*\n)*\n", re.MULTILINE)
CITED = re.compile(r"^(?:repository-code|url): .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Address:
    """Where a copy of the book lives."""

    repository: str
    pages: str

    def fields(self) -> dict[str, str]:
        """What a passage may name."""
        both = self.repository.removeprefix(GITHUB)
        quoted = quote(self.repository, safe="")
        name = both.rpartition("/")[2]
        return {**vars(self), "owner_and_name": both, "name": name, "quoted": quoted}


def read_address(repo: str, pages: str = "") -> Address:
    """The address that the two words give."""
    found = REPO.fullmatch(repo)
    if not found or found["name"].endswith(".git"):
        raise ValueError(
            f"REPO: got {repo!r}, expected owner/name as on GitHub: make address REPO=owner/name"
        )
    if pages and not PAGES.fullmatch(pages.rstrip("/")):
        raise ValueError(f"PAGES: got {pages!r}, expected an address like https://book.example.org")
    host = f"{found['owner'].lower()}.github.io"
    default = (
        f"https://{host}" if found["name"].lower() == host else f"https://{host}/{found['name']}"
    )
    return Address(GITHUB + repo, pages.rstrip("/") or default)


def filled(text: str, address: Address | None) -> str:
    """A text with the passages that need an address; without an address, none of them."""
    if text.count(OPENING) != len(PASSAGE.findall(text)):
        raise ValueError(f"got {OPENING!r} without its end, expected '<!-- /address -->' after it")

    def passage(found: re.Match[str]) -> str:
        words = found[2].removeprefix(" ").removesuffix(" ")  # those that hold it off the marks
        return found[1] + (words.format_map(address.fields()) if address else "") + found[3]

    return PASSAGE.sub(passage, text)


def project(text: str, address: Address | None) -> str:
    """pyproject.toml with this address."""
    text = URLS.sub("", text)
    if address is None:
        return text
    lines = f'[project.urls]\nRepository = "{address.repository}"\nBook = "{address.pages}"\n\n'
    return re.sub(r"^(?=\[tool\.)", lines, text, count=1, flags=re.MULTILINE)


def citation(text: str, address: Address | None) -> str:
    """CITATION.cff with this address."""
    text = CITED.sub("", text)
    if address is None:
        return text
    lines = f"repository-code: {address.repository}\nurl: {address.pages}\n"
    return re.sub(r"^(?=license:)", lines, text, count=1, flags=re.MULTILINE)


def texts(root: Path, address: Address | None) -> dict[Path, str]:
    """Every file that names the address, but for the notebooks, as it is with this one."""
    found = {}
    for name, write in (("pyproject.toml", project), ("CITATION.cff", citation)):
        found[root / name] = write((root / name).read_text("utf-8"), address)
    for path in sorted([*root.glob("*.md"), *(root / "appendices").glob("*.md")]):
        text = path.read_text("utf-8")
        if OPENING in text:
            try:
                found[path] = filled(text, address)
            except ValueError as problem:
                raise ValueError(f"{path.relative_to(root).as_posix()}: {problem}") from None
    return found


def weave_again(root: Path) -> list[str]:
    """Write the notebooks whose outputs still hold; name the others, which stay as they are."""
    book = read_book(root)
    left = []
    for page, notebook in weave.woven(book, book.notebooks()).items():
        if weave.valid(notebook, read_stored(page.path.with_suffix(".ipynb"))):
            weave.write(page, notebook, force=False, never=True, row=0)
        else:
            left.append(f"{page.docname}.ipynb is not its page executed; do: make notebooks")
    return left


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    try:
        address = read_address(*arguments)
        changed = texts(root, address)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 1
    for path, text in changed.items():
        path.write_text(text, "utf-8", newline="\n")
    left = weave_again(root)
    print(f"This copy of the book is {address.repository}, and its site {address.pages}")
    for line in left:
        print(line, file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
