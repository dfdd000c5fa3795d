"""Read lectures/plan.toml: the course, its schedules, exam questions, projects and the quiz."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slides.deck import COURSE, PATHS, Deck
from slides.question import Choice, Question


class PlanError(ValueError):
    """A plan that cannot be followed: which entry, what came and what was expected."""


@dataclass(frozen=True)
class Schedule:
    """A course: its sessions, each with the lectures that are given in it."""

    sessions: int
    minutes: int
    path: str  # which slides are shown
    about: str
    lectures: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Exam:
    """An exam question with a model answer."""

    lecture: str
    question: str
    answer: str


@dataclass(frozen=True)
class Homework:
    """A set of exercises, handed out after a lecture."""

    name: str
    title: str
    after: str


@dataclass(frozen=True)
class Plan:
    """The whole plan."""

    summary: str
    further: str  # of the lectures after the course
    prerequisites: tuple[str, ...]
    outcomes: tuple[str, ...]
    schedules: tuple[Schedule, ...]
    exam: tuple[Exam, ...]
    projects: tuple[dict[str, str], ...]
    quiz: tuple[Question, ...]


ENTRIES: dict[str, dict[str, type]] = {  # the lists of the plan, and what each entry has
    "schedule": {"sessions": int, "minutes": int, "path": str, "about": str, "lectures": list},
    "exam": {"lecture": str, "question": str, "answer": str},
    "project": {"title": str, "chapters": str, "label": str},
    "quiz": {"lecture": str, "question": str, "right": str, "wrong": list, "answer": str},
}
COURSE_HAS: dict[str, type] = {
    "summary": str,
    "further": str,
    "prerequisites": list,
    "outcomes": list,
}


def read_plan(path: Path, decks: Mapping[str, Deck]) -> Plan:
    """The plan in a file; PlanError where an entry is not as it must be."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path.name}: no TOML: {error}") from error
    try:
        course = _typed("course", data.get("course", {}), COURSE_HAS)
        lists = {name: _entries(name, data, decks) for name in ENTRIES}
        return Plan(
            course["summary"],
            course["further"],
            tuple(course["prerequisites"]),
            tuple(course["outcomes"]),
            tuple(_schedule(entry, decks) for entry in lists["schedule"]),
            tuple(Exam(**entry) for entry in lists["exam"]),
            tuple(lists["project"]),
            tuple(_quiz(number, entry) for number, entry in enumerate(lists["quiz"], 1)),
        )
    except PlanError as error:
        raise PlanError(f"{path.name}: {error}") from None


def read_homework(folder: Path, decks: Mapping[str, Deck]) -> list[Homework]:
    """The sets of homework in the order of the lectures."""
    found = []
    for path in folder.glob("hw*.toml"):
        data = tomllib.loads(path.read_text("utf-8"))
        after = data.get("after")
        if not isinstance(after, str) or after not in decks:
            known = ", ".join(decks)
            raise PlanError(f"{path.name}: after: got {after!r}, expected one of {known}")
        found.append(Homework(path.stem, data["title"], after))
    return sorted(found, key=lambda one: (list(decks).index(one.after), one.name))


def _entries(name: str, data: dict[str, Any], decks: Mapping[str, Deck]) -> list[dict[str, Any]]:
    """A list of the plan, its entries complete and their lectures ones that there are."""
    entries: list[dict[str, Any]] = data.get(name, [])
    if not entries:
        raise PlanError(f"got no [[{name}]], expected one or more")
    for number, entry in enumerate(entries, 1):
        lecture = _typed(f"{name} {number}", entry, ENTRIES[name]).get("lecture")
        if lecture is not None and lecture not in decks:
            known = ", ".join(decks)
            raise PlanError(f"{name} {number}: lecture: got {lecture!r}, expected one of {known}")
    return entries


def _typed(where: str, entry: dict[str, Any], kinds: dict[str, type]) -> dict[str, Any]:
    """The entry, if it has these keys, each of its kind and not empty."""
    if set(entry) != set(kinds):
        raise PlanError(f"{where}: got the keys {', '.join(entry)}; expected {', '.join(kinds)}")
    for key, kind in kinds.items():
        if not isinstance(entry[key], kind) or not entry[key]:
            raise PlanError(f"{where}: {key}: got {entry[key]!r}, expected a {kind.__name__}")
    return entry


def _schedule(entry: dict[str, Any], decks: Mapping[str, Deck]) -> Schedule:
    """A course that gives each lecture once; the tests hold its minutes."""
    given = Schedule(**entry | {"lectures": tuple(map(tuple, entry["lectures"]))})
    where = f"schedule of {given.sessions} sessions"
    if given.path not in PATHS:
        raise PlanError(f"{where}: path: got {given.path!r}, expected of {', '.join(PATHS)}")
    if len(given.lectures) != given.sessions:
        raise PlanError(f"{where}: lectures: got {len(given.lectures)} sessions")
    named = [lecture for session in given.lectures for lecture in session]
    if named != (course := list(decks)[:COURSE]):
        got, expected = " ".join(named), " ".join(course)
        raise PlanError(f"{where}: got the lectures {got}; expected each once: {expected}")
    return given


def _quiz(number: int, entry: dict[str, Any]) -> Question:
    """A question of the quiz, its right answer in another place each time."""
    wrong = entry["wrong"]
    if not all(isinstance(w, list) and len(w) == 2 for w in wrong):
        raise PlanError(f"quiz {number}: wrong: got {wrong!r}, expected lists of answer, misleads")
    choices = [Choice(text, False, why) for text, why in wrong]
    choices.insert(number % (len(choices) + 1), Choice(entry["right"], True))
    return Question(
        entry["lecture"], f"Quiz {number}", "", entry["question"], tuple(choices), entry["answer"]
    )
