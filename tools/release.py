"""What a release consists of: the checks before it, its archives and its notes.

python tools/release.py check v0.1.0    the tag, pyproject.toml and CHANGELOG.md agree
python tools/release.py archives        site, PDF, cards, notebooks, the package → dist/

Only the standard library, and hatchling for the package.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from check_environment import ROOT, project_table

SITE, PDF = Path("_build/html"), Path("_build/pdf/attnbook.pdf")
CARDS = Path("_build/cards/attnbook.apkg")
SUMS, NOTES = "SHA256SUMS", "NOTES.md"
HEADING = re.compile(r"^## (?P<version>\S+)(?: \((?P<date>[^)]*)\))?[ \t]*$", re.MULTILINE)
FILES = """\
| file | what it is |
| --- | --- |
| `{name}-site.zip` | the website: unpack, open `index.html`; it needs no network |
| `{name}.pdf` | the book to print |
| `{name}.apkg` | cards for Anki: the lectures' questions, and formulas |
| `{name}-notebooks.zip` | the chapters as notebooks, with their outputs |
| `{name}-py3-none-any.whl`, `{name}.tar.gz` | the Python package, for pip |
| `{sums}` | checksums: `sha256sum -c {sums}` |
"""


class NotReady(Exception):
    """What stands in the way of a release."""


def section(changelog: str, version: str) -> tuple[str | None, str]:
    """The date and the text that the change log has for a version."""
    headings = list(HEADING.finditer(changelog))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading["version"] == version:
            end = following.start() if following else len(changelog)
            return heading["date"], changelog[heading.end() : end].strip()
    raise NotReady(f"CHANGELOG.md has no section '## {version}'")


def check(root: Path, tag: str) -> None:
    """Whether this tag may be released: one version in all places, and a dated section."""
    version = project_table(root)["version"]
    if tag != f"v{version}":
        raise NotReady(f"the tag is {tag}; pyproject.toml has {version}, so it must be v{version}")
    date, text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if date is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise NotReady(f"CHANGELOG.md must say when: '## {version} (2026-12-31)', not ({date})")
    if not text:
        raise NotReady(f"CHANGELOG.md says nothing under '## {version}'")


def built(file: Path, command: str) -> Path:
    """A file that a command writes, if it has."""
    if not file.is_file():
        raise NotReady(f"there is no {file.name}; do: {command}")
    return file


def write_zip(target: Path, files: Iterable[tuple[str, Path]]) -> None:
    """An archive of files by their names, in a folder of the archive's own name."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, file in sorted(files):
            archive.write(file, f"{target.stem}/{name}")


def zip_site(site: Path, target: Path) -> None:
    """The built website, without hidden files."""
    built(site / "index.html", "make book")
    files = {path.relative_to(site): path for path in site.rglob("*") if path.is_file()}
    shown = {name: path for name, path in files.items() if "/." not in f"/{name.as_posix()}"}
    write_zip(target, [(name.as_posix(), path) for name, path in shown.items()])


def zip_notebooks(root: Path, target: Path) -> None:
    """The chapters' notebooks, with the licence of their text."""
    notebooks = list((root / "chapters").glob("*.ipynb"))
    if not notebooks:
        raise NotReady("there is no notebook in chapters/; do: make notebooks")
    licences = [root / name for name in ("LICENSE", "LICENSE-CONTENT")]
    write_zip(target, [(path.name, path) for path in notebooks + licences])


def build_package(root: Path, output: Path) -> None:
    """The wheel and the source distribution."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(output)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise NotReady(f"hatchling cannot build the package:\n{done.stdout}{done.stderr}".rstrip())


def archives(root: Path, output: Path) -> list[Path]:
    """Write everything that a release has into a folder, in place of what was there before."""
    version = project_table(root)["version"]
    name = f"attnbook-{version}"
    _, text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    output.mkdir(parents=True, exist_ok=True)
    for old in [*output.glob("attnbook-*"), output / SUMS, output / NOTES]:
        old.unlink(missing_ok=True)
    zip_site(root / SITE, output / f"{name}-site.zip")
    zip_notebooks(root, output / f"{name}-notebooks.zip")
    shutil.copyfile(built(root / PDF, "make pdf"), output / f"{name}.pdf")
    shutil.copyfile(built(root / CARDS, "make teach"), output / f"{name}.apkg")
    build_package(root, output)
    made = sorted(output.glob("attnbook-*"))
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made]
    (output / SUMS).write_text("".join(sums), encoding="utf-8", newline="\n")
    files = FILES.format(name=name, sums=SUMS)
    (output / NOTES).write_text(f"{text}\n\n{files}", encoding="utf-8", newline="\n")
    return [*made, output / SUMS]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Check a release, or make its archives.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="whether this tag may be released").add_argument("tag")
    making = commands.add_parser("archives", help="write the archives")
    making.add_argument("--output", type=Path, default=root / "dist")
    options = parser.parse_args(arguments)
    try:
        if options.command == "check":
            check(root, options.tag)
            print(f"{options.tag} is ready.")
        else:
            for path in archives(root, options.output):
                print(f"{path.stat().st_size / 1e6:8.2f} MB  {path}")
    except NotReady as problem:
        print(f"Not ready for a release: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
