"""What a release consists of: the checks before it, its archives and its notes.

python tools/release.py check v0.1.0    the tag, pyproject.toml and CHANGELOG.md agree
python tools/release.py archives        site, PDF, cards, notebooks, the package → dist/

The same commit gives the same archives, byte for byte: names are sorted, and every file in them
has the commit's date. Only the standard library, and hatchling for the package.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
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


def project_version(root: Path) -> str:
    """The version in pyproject.toml."""
    version: str = project_table(root)["version"]
    return version


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
    version = project_version(root)
    if tag != f"v{version}":
        raise NotReady(f"the tag is {tag}; pyproject.toml has {version}, so it must be v{version}")
    date, text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if date is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise NotReady(f"CHANGELOG.md must say when: '## {version} (2026-12-31)', not ({date})")
    if not text:
        raise NotReady(f"CHANGELOG.md says nothing under '## {version}'")


def notes(root: Path) -> str:
    """The text of the release: its section of the change log, and what its files are."""
    version = project_version(root)
    _, text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    files = FILES.format(name=f"attnbook-{version}", sums=SUMS)
    return f"{text}\n\n{files}"


def commit_time(root: Path) -> int:
    """When the commit was made, in seconds since 1970: the date of everything in the archives."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise NotReady(f"the archives take their date from git, which says: {done.stderr.strip()}")
    return int(done.stdout)


def write_zip(path: Path, files: Iterable[tuple[str, Path]], seconds: int) -> None:
    """An archive that depends on the names, the bytes and the date given, and on nothing else."""
    when = datetime.fromtimestamp(seconds, UTC).timetuple()[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, file in sorted(files):
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, file.read_bytes())


def below(folder: Path) -> list[Path]:
    """The files in a folder and its folders, without hidden ones."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    ]


def zip_site(root: Path, target: Path, seconds: int) -> None:
    """The built website in one folder."""
    site = root / SITE
    if not (site / "index.html").is_file():
        raise NotReady("there is no built website; do: make book")
    files = [(f"{target.stem}/{p.relative_to(site).as_posix()}", p) for p in below(site)]
    write_zip(target, files, seconds)


def zip_notebooks(root: Path, target: Path, seconds: int) -> None:
    """The chapters' notebooks in one folder, with the licence of their text."""
    notebooks = list((root / "chapters").glob("*.ipynb"))
    if not notebooks:
        raise NotReady("there is no notebook in chapters/; do: make notebooks")
    licences = [root / name for name in ("LICENSE", "LICENSE-CONTENT")]
    write_zip(target, [(f"{target.stem}/{p.name}", p) for p in notebooks + licences], seconds)


def copy(source: Path, target: Path, command: str) -> None:
    """What a command wrote: the book to print, and the cards."""
    if not source.is_file():
        raise NotReady(f"there is no {source.name}; do: {command}")
    shutil.copyfile(source, target)


def build_package(root: Path, output: Path, seconds: int) -> None:
    """The wheel and the source distribution."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(output)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(seconds)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise NotReady(f"hatchling cannot build the package:\n{done.stdout}{done.stderr}".rstrip())


def sums(files: Iterable[Path]) -> str:
    """A line for each file, as sha256sum writes it."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in sorted(files, key=lambda file: file.name)
    ]
    return "".join(lines)


def archives(root: Path, output: Path, *, pdf: bool = True) -> list[Path]:
    """Write everything that a release has into a folder, in place of what was there before."""
    name = f"attnbook-{project_version(root)}"
    seconds = commit_time(root)
    text = notes(root)
    output.mkdir(parents=True, exist_ok=True)
    for old in [*output.glob("attnbook-*"), output / SUMS, output / NOTES]:
        old.unlink(missing_ok=True)
    zip_site(root, output / f"{name}-site.zip", seconds)
    zip_notebooks(root, output / f"{name}-notebooks.zip", seconds)
    if pdf:
        copy(root / PDF, output / f"{name}.pdf", "make pdf")
    copy(root / CARDS, output / f"{name}.apkg", "make teach")
    build_package(root, output, seconds)
    made = sorted(output.glob("attnbook-*"))
    (output / SUMS).write_text(sums(made), encoding="utf-8", newline="\n")
    (output / NOTES).write_text(text, encoding="utf-8", newline="\n")
    return [*made, output / SUMS]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Check a release, or make its archives.")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="whether this tag may be released")
    checking.add_argument("tag")
    making = commands.add_parser("archives", help="write the archives")
    making.add_argument("--output", type=Path, default=root / "dist")
    making.add_argument("--without-pdf", action="store_true", help="for a trial")
    options = parser.parse_args(arguments)
    try:
        if options.command == "check":
            check(root, options.tag)
            print(f"{options.tag} is ready.")
        else:
            for path in archives(root, options.output, pdf=not options.without_pdf):
                print(f"{path.stat().st_size / 1e6:8.2f} MB  {path}")
    except NotReady as problem:
        print(f"Not ready for a release: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
