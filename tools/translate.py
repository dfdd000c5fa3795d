"""Catalogues of the book's prose for translators, checks of what they wrote, and a translated site.

python tools/translate.py template                 every page's messages → _build/gettext
python tools/translate.py update de chapters/01-kernel-regression …
                                                   merge them into locales/de; name what is stale
python tools/translate.py check [de]               what translations lost: formulas, numbers, links
python tools/translate.py build de                 the site with them → _build/de/_build/html

A message is a paragraph, a title or a caption in MyST. Code, outputs, figures' numbers, labels and
anchors are in no catalogue, and stay. A message that has no translation, or a stale one, stands in
English. No translated site is published unless somebody does.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import yaml
from babel.messages import Catalog
from babel.messages.pofile import read_po, write_po
from check_environment import ROOT

TEMPLATES = Path("_build/gettext")
NOTICE = "Nobody has reviewed this translation. What counts is the English page.\n"
BORN = datetime(2026, 1, 1, tzinfo=UTC)  # the same file whenever it is written
LANGUAGE = re.compile(r"[a-z]{2,3}(?:_[A-Z]{2})?")
FORMULA = re.compile(r"\$\$?[^$]+\$\$?")
ROLE = re.compile(r"\{([\w:]+)\}`(?:[^`<]*<([^`>]*)>|([^`]*))`")
CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Refused(Exception):
    """Why a command cannot be done."""


def kept(text: str) -> Counter[str]:
    """What a translation must have as often: formulas, roles' targets, code, links, numbers."""
    found = Counter[str]()
    for pattern in (FORMULA, ROLE, CODE, LINK):
        for one in pattern.finditer(text):
            whole = f"{{{one[1]}}} {one[2] or one[3]}" if pattern is ROLE else one[0]
            found[re.sub(r"\s+", " ", whole)] += 1
        text = pattern.sub(" ", text)
    found.update(NUMBER.findall(text))
    return found


def problems(catalog: Catalog) -> Iterator[str]:
    """What each translation lost or added; stale ones are not in force, and not judged."""
    for message in catalog:
        if not message.id or not message.string or message.fuzzy:
            continue
        before, after = kept(str(message.id)), kept(str(message.string))
        words = " ".join(str(message.id).split())[:60]
        for name, lost in (("lacks", before - after), ("adds", after - before)):
            if lost:
                yield f"“{words}…”: the translation {name} {', '.join(lost)}"


def catalogues(root: Path, language: str = "") -> dict[Path, Catalog]:
    """The catalogues of a language, or of all."""
    files = sorted((root / "locales").glob(f"{language or '*'}/LC_MESSAGES/**/*.po"))
    found = {}
    for file in files:
        with file.open("rb") as lines:
            found[file] = read_po(lines, locale=file.relative_to(root / "locales").parts[0])
    return found


def jupyter_book(root: Path, target: Path, builder: str, **options: object) -> None:
    """Run Jupyter Book with more options, on the executed cells that make book keeps."""
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    config["execute"]["cache"] = str(root / "_build" / ".jupyter_cache")
    extensions = config["sphinx"]["local_extensions"]
    extensions |= {name: str(root / folder) for name, folder in extensions.items()}
    config["sphinx"]["config"] |= {"gettext_compact": False, "gettext_location": False} | options
    target.mkdir(parents=True, exist_ok=True)
    (target / "_config.yml").write_text(yaml.safe_dump(config), "utf-8")
    program = Path(sysconfig.get_path("scripts")) / ("jupyter-book" + ".exe" * (os.name == "nt"))
    custom = ["--builder", "custom", "--custom-builder", builder] if builder != "html" else []
    files = ["--config", str(target / "_config.yml"), "--toc", str(root / "_toc.yml")]
    command = [
        str(program),
        "build",
        str(root),
        *files,
        "--path-output",
        str(target),
        "--keep-going",
        *custom,
    ]
    quiet = os.environ | {"TQDM_DISABLE": "1"}
    done = subprocess.run(command, cwd=root, env=quiet, text=True, capture_output=True)
    if done.returncode:
        raise Refused(f"Jupyter Book failed:\n{(done.stdout + done.stderr)[-3000:]}")


def template(root: Path) -> Path:
    """Write the messages of every page."""
    if not (root / "_build" / ".jupyter_cache").is_dir():
        raise Refused("the outputs are not at hand, and captions are among them; do: make book")
    jupyter_book(root, root / TEMPLATES, "gettext")
    return root / TEMPLATES / "_build" / "gettext"


def update(root: Path, language: str, pages: list[str]) -> Iterator[str]:
    """Merge the messages of pages into a language's catalogues; what is stale or missing."""
    folder = root / TEMPLATES / "_build" / "gettext"
    for page in pages:
        source = folder / f"{page}.pot"
        if not source.is_file():
            raise Refused(f"PAGE: got {page!r}, expected a page as in _toc.yml; do: make gettext")
        file = root / "locales" / language / "LC_MESSAGES" / f"{page}.po"
        catalog = Catalog(locale=language)
        if file.is_file():
            with file.open("rb") as lines:
                catalog = read_po(lines, locale=language)
        with source.open("rb") as lines:
            catalog.update(read_po(lines))
        catalog.project, catalog.version = "attnbook", ""
        catalog.creation_date = catalog.revision_date = BORN
        catalog.last_translator = catalog.language_team = catalog.msgid_bugs_address = ""
        catalog.header_comment, catalog.fuzzy = "# Text CC BY 4.0, as the book's.", False
        for message in catalog:
            message.flags &= {"fuzzy"}  # a role's brace is no Python format
        file.parent.mkdir(parents=True, exist_ok=True)
        notice = root / "locales" / language / "notice.md"
        if not notice.is_file():
            notice.write_text(NOTICE, "utf-8")
        with file.open("wb") as out:
            write_po(out, catalog, width=0, ignore_obsolete=True)
        messages = [message for message in catalog if message.id]
        stale = [str(message.id) for message in messages if message.fuzzy]
        missing = sum(not message.string for message in messages)
        yield f"{page}: {len(messages)} messages, {missing} not translated, {len(stale)} stale"
        yield from (f"  stale: {' '.join(one.split())[:90]}" for one in stale)


def build(root: Path, language: str) -> Path:
    """The site in a language."""
    target = root / "_build" / language
    options = {"language": language, "locale_dirs": [str(root / "locales")]}
    jupyter_book(root, target, "html", **options)
    return target / "_build" / "html" / "index.html"


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Catalogues, their checks, and a translated site.")
    parser.add_argument("command", choices=("template", "update", "check", "build"))
    parser.add_argument("language", nargs="?", default="", help="such as de or pt_BR")
    parser.add_argument("pages", nargs="*", help="as in _toc.yml; all that are there by default")
    options = parser.parse_args(words)
    language: str = options.language
    try:
        named = language or options.command in ("update", "build")
        if named and not LANGUAGE.fullmatch(language):
            raise Refused(f"LANGUAGE: got {language!r}, expected a name such as de or pt_BR")
        if options.command in ("check", "build") and not catalogues(root, language):
            raise Refused(
                f"LANGUAGE: got {language!r}, expected a folder of locales/ with catalogues"
            )
        if options.command == "template":
            print(f"The messages are in {template(root)}")
        elif options.command == "update":
            there = root / "locales" / language / "LC_MESSAGES"
            known = [
                file.relative_to(there).with_suffix("").as_posix() for file in there.rglob("*.po")
            ]
            print(*update(root, language, options.pages or sorted(known)), sep="\n")
        elif options.command == "build":
            print(f"The site is at {build(root, language)}")
        else:
            found = [
                f"{file.relative_to(root).as_posix()}: {problem}"
                for file, catalog in catalogues(root, language).items()
                for problem in problems(catalog)
            ]
            print(*found, sep="\n", end="\n" if found else "")
            return int(bool(found))
    except Refused as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
