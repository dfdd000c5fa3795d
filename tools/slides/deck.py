"""Read a deck's source: its front matter, then sections of the chapter, and slides in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

OPTION = re.compile(r":([a-z-]+):[ \t]*(.*)")
FENCE = re.compile(r"(`{3,}|:{3,})")
ABOUT = {
    "number": str,
    "chapter": str,
    "title": str,
    "opening": str,
    "outcomes": list,
    "exercises": list,
}
NOTES = {"notes": str}  # what the speaker says with the title, which not every lecture has
COURSE = 18  # lectures; those after them are further ones, which no course needs
PATHS = (str(COURSE), "12", "6")  # sessions of a course; nine sessions are two lectures each
CLASSES = ("large", "middle", "together")
TITLE_MINUTES = 1.0
# A lecture with time for its questions: without its spare slides, and each vote takes this long.
UNHURRIED, VOTE = "45", 4.5


class DeckError(ValueError):
    """A deck that cannot be made: which file, which line, what came and what was expected."""


@dataclass
class Slide:
    """One slide, from its heading to the next; ``line`` is the heading's in the file."""

    title: str
    section: str
    line: int
    minutes: float = 0.0
    paths: tuple[str, ...] = PATHS
    classes: tuple[str, ...] = ()
    spare: bool = False  # may be left out when a question takes longer
    lines: list[str] = field(default_factory=list)
    first: int = 0  # the line in the file of the first of ``lines``

    @property
    def body(self) -> str:
        """What stands below heading and options."""
        return "\n".join(self.lines)

    @property
    def asks(self) -> bool:
        """Whether the class votes on it."""
        return "{question}" in self.body

    def minutes_in(self, path: str) -> float:
        """How long it takes on a path, nothing where it is left out."""
        if path == UNHURRIED:
            return 0.0 if self.spare else max(self.minutes, VOTE * self.asks)
        return self.minutes if path in self.paths else 0.0


@dataclass(frozen=True)
class Deck:
    """One lecture; ``about`` is its front matter."""

    path: Path
    about: dict[str, Any]
    slides: list[Slide]

    @property
    def name(self) -> str:
        """The file's name without its ending, such as 01a-a-weighted-average."""
        return self.path.stem

    @property
    def number(self) -> str:
        """Such as 1a."""
        return str(self.about["number"])

    @cached_property
    def place(self) -> int:
        """Which of the book's lectures it is, from 1."""
        return 2 * int(self.number[:-1]) - (self.number[-1] == "a")

    @property
    def is_further(self) -> bool:
        """Whether it comes after the course."""
        return self.place > COURSE

    def minutes(self, path: str = PATHS[0]) -> float:
        """How long the lecture takes in a course, its first slide included."""
        return TITLE_MINUTES + sum(slide.minutes_in(path) for slide in self.slides)


def read_deck(path: Path) -> Deck:
    """The deck in a file; DeckError with file and line if it cannot be read."""
    text = path.read_text("utf-8")
    found = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    if found is None:
        raise DeckError(f"{path.name}:1: expected front matter between two lines ---")
    about = _about(path, found[1])
    slides: list[Slide] = []
    section = ""
    first = found[0].count("\n") + 1
    for number, line, fenced in numbered(text[found.end() :], first):
        if not fenced and line.startswith("# "):
            section = line[2:].strip()
        elif not fenced and line.startswith("## "):
            slides.append(Slide(line[3:].strip(), section, number))
        elif not slides:
            if line.strip():
                raise DeckError(f"{path.name}:{number}: got {line!r} before the first slide")
        elif not fenced and not slides[-1].lines and (option := OPTION.fullmatch(line)):
            _set_option(path, number, slides[-1], *option.groups())
        else:
            slides[-1].first = slides[-1].first or number
            slides[-1].lines.append(line)
    deck = Deck(path, about, slides)
    _check(deck)
    return deck


def _about(path: Path, text: str) -> dict[str, Any]:
    """The front matter, with every key of its kind."""
    try:
        about = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise DeckError(f"{path.name}:1: front matter is no YAML: {error}") from error
    if not isinstance(about, dict) or about.keys() - NOTES.keys() != ABOUT.keys():
        raise DeckError(f"{path.name}:1: front matter: expected {', '.join(ABOUT)}; got {about}")
    for key, kind in (ABOUT | {key: NOTES[key] for key in about.keys() & NOTES.keys()}).items():
        if not isinstance(about[key], kind) or not about[key]:
            got, need = repr(about[key]), kind.__name__
            raise DeckError(f"{path.name}:1: {key}: got {got}, expected a {need}, not empty")
    if not re.fullmatch(r"[1-9]\d?[ab]", about["number"]):
        raise DeckError(f"{path.name}:1: number: got {about['number']!r}, expected such as 1a")
    return about


def _set_option(path: Path, line: int, slide: Slide, name: str, value: str) -> None:
    """One option below a slide's heading."""
    words = tuple(value.split())
    if name == "minutes" and re.fullmatch(r"\d+(\.\d+)?", value):
        slide.minutes = float(value)
    elif name == "spare" and not value:
        slide.spare = True
    elif name == "paths" and PATHS[0] in words and set(words) <= set(PATHS):
        slide.paths = words
    elif name == "class" and words and set(words) <= set(CLASSES):
        slide.classes = words
    else:
        raise DeckError(
            f"{path.name}:{line}: got the option :{name}: {value}; expected minutes (a number), "
            f"spare, paths ({' '.join(PATHS)} or fewer, with {COURSE}) or class ({CLASSES})"
        )


def _check(deck: Deck) -> None:
    """What every deck must have."""
    if not deck.slides:
        raise DeckError(f"{deck.path.name}:1: no slide, which begins with ##")
    seen = set[str]()
    for slide in deck.slides:
        where = f"{deck.path.name}:{slide.line}"
        if not slide.section:
            raise DeckError(f"{where}: no section of the chapter, # …, above this slide")
        if slide.minutes <= 0:
            raise DeckError(f"{where}: minutes: got none, expected :minutes: below the heading")
        if slide.title in seen:
            raise DeckError(f"{where}: the title is that of a slide above")
        seen.add(slide.title)


def numbered(text: str, first: int) -> Iterator[tuple[int, str, bool]]:
    """Each line with its number and whether it stands in a fence or is its mark."""
    fence = ""
    for number, line in enumerate(text.split("\n"), first):
        mark = FENCE.match(line)
        inside = bool(fence or mark)
        if mark and not fence:
            fence = mark[1]
        elif fence and line.strip() == fence:
            fence = ""
        yield number, line, inside


def clicks(text: str) -> list[tuple[int, str]]:
    """A text cut where +++ stands alone outside fences: each part, after its first line's place."""
    parts: list[tuple[int, list[str]]] = [(0, [])]
    for number, line, fenced in numbered(text, 0):
        if line.strip() == "+++" and not fenced:
            parts.append((number + 1, []))
        else:
            parts[-1][1].append(line)
    return [(first, "\n".join(lines)) for first, lines in parts]


def options(text: str) -> tuple[dict[str, str], str, int]:
    """The options at the head of a directive, its body, and how many lines the options take."""
    lines = text.split("\n")
    found: dict[str, str] = {}
    while len(found) < len(lines) and (option := OPTION.fullmatch(lines[len(found)])):
        if option[1] in found:
            break
        found[option[1]] = option[2]
    return found, "\n".join(lines[len(found) :]), len(found)
