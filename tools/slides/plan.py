"""Read lectures/plan.toml: the course, its schedules and classes, exam, projects and quiz."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slides.deck import Deck
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
    lectures: list[list[str]]


@dataclass(frozen=True)
class Exam:
    """An exam question with a model answer."""

    lecture: str
    question: str
    answer: str
    paper: bool = False  # whether the sample paper has it

    @property
    def points(self) -> int:
        """One for each of the minutes that the question names."""
        found = re.match(r"\s*\*[^*]*?(\d+) minutes", self.question)
        if found is None:
            raise PlanError(f"expected a question that begins *Kind, 8 minutes.*: {self.question}")
        return int(found[1])


@dataclass(frozen=True)
class Tutorial:
    """What a tutor does in the exercise class of a chapter, with ``<label>`` for an exercise."""

    chapter: int
    lines: list[str]


@dataclass(frozen=True)
class Homework:
    """A set of exercises, handed out after a lecture."""

    name: str
    title: str
    after: str
    labels: tuple[str, ...]  # of its exercises


@dataclass(frozen=True)
class Plan:
    """The whole plan."""

    summary: str
    further: str  # of the lectures after the course
    prerequisites: list[str]
    outcomes: list[str]
    schedules: list[Schedule]
    tutorials: list[Tutorial]
    exam: list[Exam]
    projects: list[dict[str, str]]
    quiz: list[Question]


def read_plan(path: Path, decks: Mapping[str, Deck]) -> Plan:
    """The plan in a file; PlanError where an entry is not as it must be."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        plan = Plan(
            **data["course"],
            schedules=[Schedule(**entry) for entry in data["schedule"]],
            tutorials=[Tutorial(**entry) for entry in data["tutorial"]],
            exam=[Exam(**entry) for entry in data["exam"]],
            projects=data["project"],
            quiz=[_quiz(number, **entry) for number, entry in enumerate(data["quiz"], 1)],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(f"{path.name}: {error!r}") from error
    given = {name for one in plan.schedules for session in one.lectures for name in session}
    given |= {one.lecture for one in plan.exam} | {one.lecture for one in plan.quiz}
    given |= {one["after"] for one in plan.projects}
    if unknown := sorted(given - decks.keys()):
        known = ", ".join(decks)
        raise PlanError(f"{path.name}: got the lecture {unknown[0]}, expected one of {known}")
    return plan


def read_homework(folder: Path, decks: Mapping[str, Deck]) -> list[Homework]:
    """The sets of homework in the order of the lectures."""
    found = []
    for path in folder.glob("hw*.toml"):
        data = tomllib.loads(path.read_text("utf-8"))
        after = data.get("after")
        if not isinstance(after, str) or after not in decks:
            known = ", ".join(decks)
            raise PlanError(f"{path.name}: after: got {after!r}, expected one of {known}")
        labels = (*data.get("points", ()), *data.get("held_out", ()))
        found.append(Homework(path.stem, data["title"], after, labels))
    return sorted(found, key=lambda one: (list(decks).index(one.after), one.name))


def _quiz(
    number: int, lecture: str, question: str, right: str, wrong: list[tuple[str, str]], answer: str
) -> Question:
    """A question of the quiz, its right answer in another place each time."""
    choices = [Choice(text, False, why) for text, why in wrong]
    choices.insert(number % (len(choices) + 1), Choice(right, True))
    return Question(lecture, f"Quiz {number}", "", question, tuple(choices), answer)
