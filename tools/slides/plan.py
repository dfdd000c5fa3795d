"""Read lectures/plan.toml: the course, its schedules, exam questions, projects and the quiz."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slides.deck import COURSE, PATHS, Deck
from slides.question import Choice, Question

QUIZ = 12  # questions


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


def read_plan(path: Path, decks: Mapping[str, Deck]) -> Plan:
    """The plan in a file; PlanError where an entry is not as it must be."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path.name}: no TOML: {error}") from error
    kept: dict[str, type] = {"summary": str, "further": str}
    course = _table(path, data, "course", **kept, prerequisites=list, outcomes=list)
    schedules = [
        _schedule(path, number, entry, decks)
        for number, entry in enumerate(_list(path, data, "schedule"), 1)
    ]
    texts: dict[str, type] = {"lecture": str, "question": str, "answer": str}
    exam = [
        Exam(**_entry(path, "exam", number, entry, decks, texts))
        for number, entry in enumerate(_list(path, data, "exam"), 1)
    ]
    kinds: dict[str, type] = {"title": str, "chapters": str, "label": str}
    projects = [
        _entry(path, "project", number, entry, decks, kinds)
        for number, entry in enumerate(_list(path, data, "project"), 1)
    ]
    quiz = [
        _quiz(path, number, entry, decks)
        for number, entry in enumerate(_list(path, data, "quiz"), 1)
    ]
    if len(quiz) != QUIZ:
        raise PlanError(f"{path.name}: quiz: got {len(quiz)} questions, expected {QUIZ}")
    return Plan(
        course["summary"],
        course["further"],
        tuple(course["prerequisites"]),
        tuple(course["outcomes"]),
        tuple(schedules),
        tuple(exam),
        tuple(projects),
        tuple(quiz),
    )


def read_homework(folder: Path, decks: Mapping[str, Deck]) -> list[Homework]:
    """The sets of homework in the order of the lectures."""
    found = []
    for path in folder.glob("hw*.toml"):
        data = tomllib.loads(path.read_text("utf-8"))
        after = data.get("after")
        if not isinstance(after, str) or after not in decks:
            raise PlanError(
                f"{path.name}: after: got {after!r}, expected one of {', '.join(decks)}"
            )
        found.append(Homework(path.stem, data["title"], after))
    return sorted(found, key=lambda one: (list(decks).index(one.after), one.name))


def _list(path: Path, data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = data.get(name)
    if not isinstance(entries, list) or not entries:
        raise PlanError(f"{path.name}: got no [[{name}]], expected one or more")
    return entries


def _table(path: Path, data: dict[str, Any], name: str, **kinds: type) -> dict[str, Any]:
    table = data.get(name)
    if not isinstance(table, dict):
        raise PlanError(f"{path.name}: got no [{name}]")
    return _typed(f"{path.name}: {name}", table, kinds)


def _typed(where: str, entry: dict[str, Any], kinds: dict[str, type]) -> dict[str, Any]:
    """The entry, if it has these keys, each of its kind and not empty."""
    if set(entry) != set(kinds):
        raise PlanError(f"{where}: got the keys {', '.join(entry)}; expected {', '.join(kinds)}")
    for key, kind in kinds.items():
        if not isinstance(entry[key], kind) or not entry[key]:
            raise PlanError(f"{where}: {key}: got {entry[key]!r}, expected a {kind.__name__}")
    return entry


def _entry(
    path: Path,
    name: str,
    number: int,
    entry: dict[str, Any],
    decks: Mapping[str, Deck],
    kinds: dict[str, type],
) -> dict[str, Any]:
    """An entry of a list, its keys of these kinds and its lecture one that there is."""
    where = f"{path.name}: {name} {number}"
    found = _typed(where, entry, kinds)
    if "lecture" in kinds and found["lecture"] not in decks:
        known = ", ".join(decks)
        raise PlanError(f"{where}: lecture: got {found['lecture']!r}, expected one of {known}")
    return found


def _schedule(
    path: Path, number: int, entry: dict[str, Any], decks: Mapping[str, Deck]
) -> Schedule:
    kinds = {"sessions": int, "minutes": int, "path": str, "about": str, "lectures": list}
    found = _entry(path, "schedule", number, entry, decks, kinds)
    where = f"{path.name}: schedule of {found['sessions']} sessions"
    given = tuple(tuple(session) for session in found["lectures"])
    if found["path"] not in PATHS:
        raise PlanError(f"{where}: path: got {found['path']!r}, expected of {', '.join(PATHS)}")
    if len(given) != found["sessions"]:
        raise PlanError(f"{where}: lectures: got {len(given)} sessions")
    named = [lecture for session in given for lecture in session]
    if named != (course := list(decks)[:COURSE]):
        got, expected = " ".join(named), " ".join(course)
        raise PlanError(f"{where}: got the lectures {got}; expected each once: {expected}")
    for session in given:
        minutes = sum(decks[name].minutes(found["path"]) for name in session)
        if minutes > found["minutes"]:
            raise PlanError(
                f"{where}: {' and '.join(session)} take {minutes:g} minutes, "
                f"expected at most {found['minutes']}"
            )
    return Schedule(found["sessions"], found["minutes"], found["path"], found["about"], given)


def _quiz(path: Path, number: int, entry: dict[str, Any], decks: Mapping[str, Deck]) -> Question:
    kinds: dict[str, type] = dict(lecture=str, question=str, right=str, wrong=list, answer=str)
    found = _entry(path, "quiz", number, entry, decks, kinds)
    where = f"{path.name}: quiz {number}"
    for wrong in found["wrong"]:
        if not isinstance(wrong, list) or len(wrong) != 2 or not all(wrong):
            raise PlanError(f"{where}: wrong: got {wrong!r}, expected an answer and what misleads")
    if not 2 <= len(found["wrong"]) <= 4:
        raise PlanError(f"{where}: wrong: got {len(found['wrong'])} answers, expected 2 to 4")
    choices = [Choice(text, False, why) for text, why in found["wrong"]]
    choices.insert(number % (len(choices) + 1), Choice(found["right"], True))
    return Question(
        found["lecture"],
        f"Quiz {number}",
        "",
        found["question"],
        tuple(choices),
        found["answer"],
    )
