"""Who is in the class, and whose file is whose: names, or a table from Moodle or Canvas."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from attnbook_course.checks.grading.pipe import in_one_line

MOODLE = ("First name", "Last name", "ID number", "Email address")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
SPELT = {"Surname": "Last name", "Email": "Email address"}  # as some versions of Moodle write it
# As the two put a student's name into a folder or a file.
OF_MOODLE = re.compile(r"(?P<name>.+?)_\d+_assignsubmission_\w+_?")
OF_CANVAS = re.compile(r"[^_]+_(?:LATE_)?(?P<id>\d+)_\d+_.+")
NOT_UTF8 = "expected a text file in UTF-8. Do: save it as 'CSV UTF-8'"


class BadRoster(ValueError):
    """What is wrong with the roster's file."""


@dataclass(frozen=True)
class Person:
    """A student, with the columns by which Moodle and Canvas know them."""

    name: str
    columns: dict[str, str] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """What the roster has in this column, and the name where that is what it asks for."""
        if name in self.columns:
            return self.columns[name]
        return {"Student": self.name, "Last name": "" if self.columns else self.name}.get(name, "")

    @property
    def known_as(self) -> set[str]:
        """What a file of this student may be called."""
        keys = ("ID number", "Email address", "ID", "SIS User ID", "SIS Login ID", "Student")
        first, last = self.columns.get("First name", ""), self.columns.get("Last name", "")
        names = [self.name, f"{first} {last}", f"{last} {first}", f"{last}{first}"]
        names += [self.columns.get(key, "") for key in keys]
        names += [self.columns.get("Email address", "").partition("@")[0]]
        return {_simple(name) for name in names if _simple(name)}


def read_roster(path: Path) -> list[Person]:
    """The students of a file: a name a line, or a table with Moodle's or Canvas's columns.

    Raises:
        BadRoster: there is no such file, or nobody in it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        words = "expected the file with your students' names, a name a line"
        raise BadRoster(f"roster: got {path} ({error.strerror}), {words}") from None
    except UnicodeDecodeError:
        raise BadRoster(f"roster: got {path} in another encoding, {NOT_UTF8}") from None
    rows = cells_of(text)
    head = [SPELT.get(cell.strip(), cell.strip()) for cell in rows[0]] if rows else []
    table = "Student" in head or "First name" in head
    if table:
        people = [_person(dict(zip(head, row, strict=False))) for row in rows[1:]]
    else:
        people = [Person(line.strip()) for line in text.splitlines()]
    people = [one for one in people if one.name and one.name not in ("Points Possible", "Student")]
    if not people:
        words = f"a name a line, or a table with {MOODLE[0]!r} or {CANVAS[0]!r} in its first line"
        raise BadRoster(f"{path}: nobody is in it; expected {words}")
    return people


def cells_of(table: str) -> list[list[str]]:
    """A table's cells; its first line says what parts them, as Excel writes ; in many languages."""
    parts = max(",;\t", key=table.partition("\n")[0].count)
    return list(csv.reader(io.StringIO(table, newline=""), delimiter=parts))


def _person(row: dict[str, str]) -> Person:
    columns = {key: value.strip() for key, value in row.items() if key in (*MOODLE, *CANVAS)}
    whole = f"{columns.get('First name', '')} {columns.get('Last name', '')}".strip()
    return Person(columns.get("Student", "") or whole, columns)


def _simple(name: str) -> str:
    """A name without what file systems and spellings change."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(c for c in plain if c.isalnum())


def handed_in(folder: Path) -> dict[str, list[Path]]:
    """What lies in the folder, by file or folder name: notebooks, or folders of them."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            files = (p for p in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
            found.setdefault(in_one_line(path.name), []).extend(sorted(files))
        elif path.suffix == ".ipynb" or path.is_symlink():
            found.setdefault(in_one_line(path.stem), []).append(path)
    return found


def matched(
    found: dict[str, list[Path]], people: Iterable[Person]
) -> tuple[list[tuple[Person, list[Path] | None]], list[str]]:
    """Each student with what they handed in, or None; and the names that are nobody's.

    What is nobody's, or more than one student's, is graded too, under its own name.
    """
    people = list(people)
    owners = {name: [one for one in people if _is_of(name, one)] for name in found}
    given: list[tuple[Person, list[Path] | None]] = []
    for person in people:
        own = [name for name, who in owners.items() if who == [person]]
        paths = [path for name in own for path in found[name]]
        given.append((person, paths if own else None))
    strangers = [name for name, who in owners.items() if len(who) != 1]
    return [*given, *((Person(name), found[name]) for name in strangers)], strangers


def _is_of(name: str, person: Person) -> bool:
    of_moodle, of_canvas = OF_MOODLE.fullmatch(name), OF_CANVAS.fullmatch(name)
    if of_canvas and person.columns.get("ID"):
        return of_canvas["id"] == person.columns["ID"]
    return _simple(of_moodle["name"] if of_moodle else name) in person.known_as
