"""Decks into the built site: their pages, and what the pages need. What did not change stays."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attnbook_site.maths import Katex
from pygments.formatters import HtmlFormatter

from attnbook_course.weaving.blocks import MystError
from attnbook_course.weaving.book import read_book
from attnbook_course.weaving.citations import read_references
from attnbook_course.weaving.labels import build_table
from attnbook_course.weaving.roles import RoleResolver
from slides import ROOT
from slides.chapter import Chapter
from slides.deck import UNHURRIED, Deck, DeckError, read_deck
from slides.page import STATIC, PageWriter, live_page

# What every deck is made by, beside its own file, its chapter and the labels of the book.
MAKERS = (
    *("tools/slides", "src/attnbook_course/weaving", "src/attnbook_course"),
    *("_ext/attnbook_site", "references.bib", "pyproject.toml", "package-lock.json", "_toc.yml"),
)
# The folder's own address leads to the lists of the lectures.
INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Lectures</title>
<meta http-equiv="refresh" content="0; url=../appendices/teach.html#schedules">
<p><a href="../appendices/teach.html#schedules">The lectures, with their slides</a></p>
</html>
"""
REVEAL = ("reveal.js", "reveal.css", "plugin/notes.js")


def sources(root: Path, chosen: Sequence[str] = ()) -> list[Path]:
    """The files of the decks, or of those whose names begin so."""
    files = sorted((root / "lectures").glob("[0-9]*.md"))
    for name in chosen:
        if not any(file.name.startswith(name) for file in files):
            known = ", ".join(file.name[:3] for file in files)
            raise DeckError(f"no deck {name!r}; there are {known}")
    return [f for f in files if not chosen or f.name.startswith(tuple(chosen))]


class Desk:
    """The book and its labels, read once for all decks."""

    def __init__(self, root: Path, katex: Katex) -> None:
        """Read the book at ``root``."""
        self.book = read_book(root)
        self.table, self.references = build_table(self.book), read_references(self.book.references)
        self.katex = katex
        self.chapters: dict[str, Chapter] = {}

    def writer(self, deck: Deck) -> PageWriter:
        """What writes this deck, whose chapter is read once."""
        name = deck.about["chapter"]
        if name not in self.chapters:
            path = self.book.root / "chapters" / f"{name}.md"
            try:
                page = self.book.page(path)
            except ValueError as error:
                raise DeckError(f"{deck.path.name}:1: chapter: {error}") from error
            self.chapters[name] = Chapter(self.book, self.table, page)
        chapter = self.chapters[name]
        resolver = RoleResolver(self.book, self.table, self.references, chapter.page)
        return PageWriter(deck, chapter, resolver, self.katex)


@contextmanager
def desk(root: Path) -> Iterator[Desk]:
    """What all decks need, for as long as they are written."""
    katex = Katex(ROOT)
    try:
        yield Desk(root, katex)
    finally:
        katex.close()


def styles() -> str:
    """The decks' style sheet, with the site's two styles of code."""
    rules = []
    for theme, style in (("light", "github-light"), ("dark", "github-dark")):
        scope = f':root[data-theme="{theme}"] pre.code'
        rules += HtmlFormatter(style=style).get_style_defs(scope).split("\n")
    kept = [rule for rule in rules if "pre.code ." in rule and ".hll" not in rule]
    return (STATIC / "deck.css").read_text("utf-8") + "\n".join(kept) + "\n"


def copy_static(target: Path) -> None:
    """Reveal, KaTeX's style sheet, and our own script and styles."""
    target.mkdir(parents=True, exist_ok=True)
    for name in REVEAL:
        shutil.copy2(ROOT / "node_modules/reveal.js/dist" / name, target / Path(name).name)
    for name in ("deck.js", "theme.js"):
        shutil.copy2(STATIC / name, target)
    katex = (ROOT / "node_modules/katex/dist/katex.min.css").read_text("utf-8")
    katex = katex.replace("url(fonts/", "url(../katex/fonts/")
    (target / "katex.css").write_text(katex, "utf-8")
    (target / "deck.css").write_text(styles(), "utf-8")


def write(target: Path, writer: PageWriter) -> None:
    """A deck's page, its figures and the pages of its live figures."""
    files = {f"{writer.deck.name}.html": writer.page()}
    files |= {f"figures/{name}.svg": svg for name, svg in writer.figures.items()}
    files |= {f"live/{name}.html": live_page(name, html) for name, html in writer.live.items()}
    for name, text in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, "utf-8")


def digest(*files: Path) -> str:
    """A number for files, and for all files below folders."""
    found = hashlib.sha256()
    for top in files:
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if not file.is_dir() and file.suffix != ".pyc":  # what is missing is an error
                found.update(f"{file} ".encode() + file.read_bytes())
    return found.hexdigest()


def state(desk: Desk, writer: PageWriter, makers: str) -> str:
    """A number for all that a deck is made from."""
    chapter = writer.chapter.page.path
    labels = f"{desk.table.labels} {desk.table.documents}"
    own = digest(writer.deck.path, chapter, chapter.with_suffix(".ipynb"))
    return hashlib.sha256(f"{makers} {labels} {own}".encode()).hexdigest()


def make(root: Path, site: Path, chosen: Sequence[str] = ()) -> list[str]:
    """Write the decks into the site; what is wrong with those that cannot be made."""
    problems = []
    copy_static(site / "_static" / "slides")
    record, makers = site.with_name("slides.json"), digest(*(root / name for name in MAKERS))
    made = json.loads(record.read_text("utf-8")) if record.exists() else {}
    with desk(root) as found:
        for path in sources(root, chosen):
            try:
                deck = read_deck(path)
                writer, page = found.writer(deck), site / "lectures" / f"{deck.name}.html"
                now = state(found, writer, makers)
                if not chosen and made.get(path.name) == now and page.exists():
                    continue
                write(site / "lectures", writer)
                made[path.name] = now
            except (DeckError, MystError) as error:
                made.pop(path.name, None)
                problems.append(str(error))
                continue
            asked = len(writer.questions)
            short = ", ".join(f"{deck.minutes(p):g}" for p in (UNHURRIED, "12", "6"))
            print(
                f"{deck.number}: {len(deck.slides) + 1} slides, {deck.minutes():g} min "
                f"(short: {short}), {asked} questions, {len(writer.live)} live"
            )
    (site / "lectures" / "index.html").write_text(INDEX, "utf-8")
    record.write_text(json.dumps(made), "utf-8")
    return problems
