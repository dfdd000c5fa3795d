"""What a release consists of: the checks before it, its archives and its notes.

python tools/release.py check v0.1.0    the tag, pyproject.toml and CHANGELOG.md agree
python tools/release.py archives        site, PDF, cards, notebooks, the package → dist/

Only the standard library, and hatchling for the package.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from check_environment import ROOT, project_table

BUILT = {  # what a release shows, and what makes it
    "_build/html/index.html": "make book",
    "_build/pdf/attnbook.pdf": "make pdf",
    "_build/cards/attnbook.apkg": "make teach",
}
HEADING = re.compile(r"^## (?P<version>\S+)(?: \((?P<date>[^)]*)\))?[ \t]*$", re.MULTILINE)
FILES = """\
| file | what it is |
| --- | --- |
| `{name}-site.zip` | the website: unpack, open `index.html`; it needs no network |
| `{name}.pdf` | the book to print |
| `{name}.apkg` | cards for Anki: the lectures' questions, and formulas |
| `{name}-notebooks.zip` | the chapters as notebooks, with their outputs |
| `{name}-py3-none-any.whl`, `{name}.tar.gz` | the Python package, for pip |
| `SHA256SUMS` | checksums: `sha256sum -c SHA256SUMS` |
"""


class NotReady(Exception):
    """What stands in the way of a release."""


def section(root: Path) -> tuple[str, str | None, str]:
    """This version, and the date and the text that the change log has for it."""
    version = project_table(root)["version"]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = list(HEADING.finditer(changelog))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading["version"] == version:
            end = following.start() if following else len(changelog)
            return version, heading["date"], changelog[heading.end() : end].strip()
    raise NotReady(f"CHANGELOG.md has no section '## {version}'")


def check(root: Path, tag: str) -> None:
    """Whether this tag may be released: one version in all places, and a dated section."""
    version, date, text = section(root)
    if tag != f"v{version}":
        raise NotReady(f"the tag is {tag}; pyproject.toml has {version}, so it must be v{version}")
    if date is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise NotReady(f"CHANGELOG.md must say when: '## {version} (2026-12-31)', not ({date})")
    if not text:
        raise NotReady(f"CHANGELOG.md says nothing under '## {version}'")


def archives(root: Path, output: Path) -> list[Path]:
    """Write everything that a release has into a folder, in place of what was there before."""
    version, _, text = section(root)
    for file, target in BUILT.items():
        if not (root / file).is_file():
            raise NotReady(f"there is no {file}; do: {target}")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    name = f"attnbook-{version}"
    site, pdf, cards = (root / file for file in BUILT)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(site.parent, Path(folder, f"{name}-site"))
        notebooks = Path(folder, f"{name}-notebooks")
        notebooks.mkdir()
        licences = [root / one for one in ("LICENSE", "LICENSE-CONTENT")]
        for one in [*(root / "chapters").glob("*.ipynb"), *licences]:
            shutil.copy(one, notebooks)
        for part in ("site", "notebooks"):
            shutil.make_archive(f"{output / name}-{part}", "zip", folder, f"{name}-{part}")
    shutil.copyfile(pdf, output / f"{name}.pdf")
    shutil.copyfile(cards, output / f"{name}.apkg")
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(output.resolve())]
    subprocess.run(build, cwd=root, check=True)
    made = sorted(output.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in made]
    (output / "SHA256SUMS").write_text("".join(sums), encoding="utf-8", newline="\n")
    notes = f"{text}\n\n{FILES.format(name=name)}"
    (output / "NOTES.md").write_text(notes, encoding="utf-8", newline="\n")
    return made


def main(words: Sequence[str], root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    try:
        match words:
            case ["check", tag]:
                check(root, tag)
                print(f"{tag} is ready.")
            case ["archives"]:
                for path in archives(root, root / "dist"):
                    print(f"{path.stat().st_size / 1e6:8.2f} MB  {path}")
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except NotReady as problem:
        print(f"Not ready for a release: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
