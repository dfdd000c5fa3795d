"""Write a syllabus with dates, and the calendar of its sessions and homework.

python tools/make_syllabus.py --start 2027-01-11 --days Mon Thu     into _build/syllabus
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from os.path import relpath
from pathlib import Path

from icalendar import Calendar, Event
from make_plan import bullets, decks_of, sections, writers_of
from slides import ROOT
from slides.build import desk
from slides.deck import Deck
from slides.page import PageWriter, exercises_of
from slides.plan import Homework, Plan, Schedule, read_homework, read_plan

TARGET = ROOT / "_build/syllabus"
BOOK = "From Kernel Regression to the Transformer"
Span = tuple[date, date]
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
POLICIES = """
| counts | share |
|---|---|
| homework, the best of all but one | 40 % |
| project | 30 % |
| exam | 30 % |

These shares and rules are a proposal, to be changed before the first session.

- **Late work** loses a tenth of its points a day. Three days in the term are free.
- **Together**: talk about an exercise with anybody, write your own answer, and name whom you
  talked to.
- **Code from elsewhere**, a library's, a neighbour's or a language model's, is named where it
  stands. You must be able to explain every line that you hand in.
- **Solutions** of the exercises in the book are in the book. Points for them are points for
  completion.
"""


@dataclass(frozen=True)
class Session:
    """One meeting of the class: its lectures, and the homework that it hands out till a day."""

    number: int
    day: date
    decks: tuple[Deck, ...]
    homework: tuple[tuple[Homework, date], ...]

    @property
    def title(self) -> str:
        """Its lectures."""
        return ", ".join(f"{deck.number} {deck.about['title']}" for deck in self.decks)


def written(day: date) -> str:
    """A day as people write it, the same in every locale."""
    months = "January February March April May June July August September October November December"
    return f"{WEEK[day.weekday()]} {day.day} {months.split()[day.month - 1]} {day.year}"


def span(word: str) -> Span:
    """A day, or a first and a last one such as 2027-03-01/2027-03-05.

    Raises:
        ValueError: what is no date, or a span that ends before it begins.
    """
    first, _, last = word.partition("/")
    found = date.fromisoformat(first), date.fromisoformat(last or first)
    if found[1] < found[0]:
        raise ValueError(f"free: got {word}, which ends before it begins")
    return found


def days_of(start: date, days: Sequence[str], free: Sequence[Span], count: int) -> list[date]:
    """The first ``count`` of these weekdays from ``start`` on that are not free.

    Raises:
        ValueError: no weekday, one that is not of WEEK, a span in which no session would be.
    """
    if not days or set(days) - set(WEEK):
        raise ValueError(f"days: got {' '.join(days) or 'none'}, expected some of {' '.join(WEEK)}")
    found: list[date] = []
    used = set()
    day = start
    while len(found) < count:
        if WEEK[day.weekday()] in days:
            spans = {one for one in free if one[0] <= day <= one[1]}
            used |= spans
            if not spans:
                found.append(day)
        day += timedelta(days=1)
    if idle := [first for first, last in free if (first, last) not in used]:
        raise ValueError(f"free: got {idle[0]}, when the class would not meet anyway")
    return found


def sessions_of(
    schedule: Schedule,
    decks: dict[str, Deck],
    sets: Sequence[Homework],
    days: Sequence[date],
    due: int,
) -> list[Session]:
    """Each session of a schedule on its day, with the homework that it hands out."""
    return [
        Session(
            number,
            day,
            tuple(decks[name] for name in names),
            tuple((one, day + timedelta(days=due)) for one in sets if one.after in names),
        )
        for number, (day, names) in enumerate(zip(days, schedule.lectures, strict=True), 1)
    ]


def syllabus(
    plan: Plan,
    schedule: Schedule,
    sessions: Sequence[Session],
    writers: dict[str, PageWriter],
) -> Iterator[str]:
    """The syllabus in Markdown, paragraph by paragraph."""
    yield f"# {BOOK}"
    first, last = sessions[0].day, sessions[-1].day
    length = f"{schedule.sessions} sessions of {schedule.minutes} minutes"
    yield f"{length}, {written(first)} to {written(last)}."
    yield plan.summary.strip()
    yield "## You need"
    yield bullets(plan.prerequisites)
    yield "## After the course you can"
    yield bullets(plan.outcomes)
    yield "## Sessions"
    for session in sessions:
        yield f"### {session.number}. {written(session.day)}: {session.title}"
        lines = []
        for deck in session.decks:
            writer = writers[deck.number]
            lines.append(f"*Read after it:* {writer.chapter.title}, {sections(deck)}")
            lines.append(f"*You can then:* {'; '.join(deck.about['outcomes'])}")
            found = exercises_of(deck, writer.chapter)
            minutes = sum(one.minutes for one in found)
            lines.append(f"*Exercises, {minutes} minutes:* {'; '.join(one.name for one in found)}")
        for one, day in session.homework:
            lines.append(f"**Homework:** {one.title}, due {written(day)}")
        yield bullets(lines)
    yield "## Projects"
    yield bullets([f"{one['title']} ({one['chapters']})" for one in plan.projects])
    yield "## What counts"
    yield POLICIES.strip()


def calendar(schedule: Schedule, sessions: Sequence[Session], begins: time | None) -> bytes:
    """The sessions, and the days on which homework is due, as RFC 5545 writes a calendar.

    Without a time a session takes the whole day. A time is local wherever it is read.
    """
    found = Calendar()
    found.add("prodid", "-//attnbook//syllabus//EN")
    found.add("version", "2.0")
    now = datetime.now(UTC)

    def event(name: str, start: date, title: str, text: str) -> Event:
        one = Event()
        one.add("uid", f"{name}-{start:%Y-%m-%d}@attnbook")
        one.add("dtstamp", now)
        one.add("summary", title)
        one.add("description", text)
        one.add("dtstart", start)
        found.add_component(one)
        return one

    for session in sessions:
        can = "; ".join(text for deck in session.decks for text in deck.about["outcomes"])
        start = session.day if begins is None else datetime.combine(session.day, begins)
        one = event(f"session-{session.number}", start, session.title, f"You can then: {can}")
        if begins is not None:
            one.add("dtend", start + timedelta(minutes=schedule.minutes))
        for given, day in session.homework:
            event(f"due-{given.name}", day, f"Due: {given.title}", BOOK)
    return found.to_ical()


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command's arguments."""
    parser = argparse.ArgumentParser(prog="make syllabus", description="A syllabus with dates.")
    parser.add_argument("--start", required=True, type=date.fromisoformat, help="2027-01-11")
    parser.add_argument("--days", required=True, nargs="+", help="Mon Thu")
    parser.add_argument("--sessions", type=int, default=18, help="of a schedule on the page Teach")
    parser.add_argument("--free", nargs="*", default=[], help="2027-02-15, 2027-03-01/2027-03-05")
    parser.add_argument("--time", type=time.fromisoformat, help="10:15, when a session begins")
    parser.add_argument("--due", type=int, default=7, help="days that students have for homework")
    return parser.parse_args(words)


def main(words: Sequence[str], target: Path = TARGET) -> int:
    """The command; returns its exit status."""
    asked = arguments(words)
    try:
        with desk(ROOT) as book:
            writers = writers_of(book, ROOT)
        decks = decks_of(writers)
        plan = read_plan(ROOT / "lectures/plan.toml", decks)
        sets = read_homework(ROOT / "homework", decks)
        schedules = {one.sessions: one for one in plan.schedules}
        if asked.sessions not in schedules:
            known = ", ".join(map(str, schedules))
            raise ValueError(f"sessions: got {asked.sessions}, expected one of {known}")
        if asked.due < 1:
            raise ValueError(f"due: got {asked.due}, expected 1 day or more")
        schedule = schedules[asked.sessions]
        free = [span(word) for word in asked.free]
        days = days_of(asked.start, asked.days, free, schedule.sessions)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    sessions = sessions_of(schedule, decks, sets, days, asked.due)
    text = "\n\n".join(syllabus(plan, schedule, sessions, writers)) + "\n"
    target.mkdir(parents=True, exist_ok=True)
    (target / "syllabus.md").write_text(text, "utf-8")
    (target / "syllabus.ics").write_bytes(calendar(schedule, sessions, asked.time))
    last = written(sessions[-1].day)
    print(f"{relpath(target)}/syllabus.md and .ics: {len(sessions)} sessions, the last on {last}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
