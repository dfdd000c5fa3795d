"""Write the pages Teach, Exam and quiz, and Cards from the plan, the decks and the homework.

python tools/make_plan.py            write the three into appendices/
python tools/make_plan.py --check    are they what they would be written as?
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from slides import ROOT
from slides.build import Desk, desk, sources
from slides.deck import COURSE, PATHS, UNHURRIED, Deck, DeckError, read_deck
from slides.live import title_of
from slides.page import PageWriter, exercises_of
from slides.plan import (
    Exam,
    Homework,
    Plan,
    PlanError,
    Schedule,
    Tutorial,
    read_homework,
    read_plan,
)
from slides.question import LETTERS, Question

from attnbook_course.checks.exercises import Exercise, exercises
from attnbook_course.road import minutes
from attnbook_course.weaving.blocks import MystError

# of lectures/, each the template of a page in appendices/
PAGES = ("teach.md", "exam.md")


def writers_of(book: Desk, root: Path) -> dict[str, PageWriter]:
    """The writer of each lecture's deck, its questions filled in."""
    writers = {}
    for path in sources(root):
        writer = book.writer(read_deck(path))
        writer.page()
        writers[writer.deck.number] = writer
    return writers


def decks_of(writers: dict[str, PageWriter]) -> dict[str, Deck]:
    """The decks alone."""
    return {number: writer.deck for number, writer in writers.items()}


def pages(root: Path, writers: dict[str, PageWriter]) -> dict[Path, str]:
    """Each page's file and text."""
    plan = read_plan(root / "lectures/plan.toml", decks_of(writers))
    sets = read_homework(root / "homework", decks_of(writers))
    texts = {name: (root / "lectures" / name).read_text("utf-8") for name in PAGES}
    paper, others = ([one for one in plan.exam if one.paper is wanted] for wanted in (True, False))
    parts = {
        "first": link(next(iter(writers.values())).deck),
        "summary": plan.summary.strip(),
        "prerequisites": bullets(plan.prerequisites),
        "outcomes": bullets(plan.outcomes),
        "schedules": "\n".join(schedules(plan, writers, sets)).strip(),
        "misconceptions": "\n".join(misconceptions(writers)).strip(),
        "hours": "\n".join(hours(root, writers, sets)).strip(),
        "tutorials": "\n".join(tutorials(plan.tutorials, writers)).strip(),
        "points": str(sum(one.points for one in paper)),
        "paper": "\n".join(exam(paper)).strip(),
        "exam": "\n".join(exam(others, len(paper))).strip(),
        "projects": bullets([project(one) for one in plan.projects]),
        "quiz": "\n".join(quiz(plan)).strip(),
    }
    for part, text in parts.items():
        mark = f"<!-- {part} -->"
        where = [name for name in PAGES if mark in texts[name]]
        if len(where) != 1 or texts[where[0]].count(mark) != 1:
            raise PlanError(f"lectures/{' and '.join(PAGES)}: expected {mark} once, in one of them")
        texts[where[0]] = texts[where[0]].replace(mark, text)
    return {root / "appendices" / name: text for name, text in texts.items()}


def bullets(lines: Sequence[str]) -> str:
    """A list."""
    return "\n".join(f"- {line}" for line in lines)


def project(entry: dict[str, str]) -> str:
    """A project in a line."""
    return f"{{ref}}`{entry['title']} <{entry['label']}>` (after lecture {entry['after']})"


def link(deck: Deck, path: str = "", words: str = "") -> str:
    """A link to a deck's slides, which are no page of the book."""
    address = f"../lectures/{deck.name}.html" + (f"?path={path}" if path else "")
    words = words or f"{deck.number} {escape(deck.about['title'])}"
    return f'<a href="{address}">{words}</a>'


def schedules(plan: Plan, writers: dict[str, PageWriter], sets: list[Homework]) -> Iterator[str]:
    """Each schedule, the one with a lecture a session with all that belongs to a lecture."""
    for schedule in plan.schedules:
        yield f"### {schedule.sessions} sessions of {schedule.minutes} minutes\n"
        yield f"{schedule.about.strip()}\n"
        if len(schedule.lectures) == COURSE:
            lectures = [writers[name] for (name,) in schedule.lectures]
            yield from detailed(lectures, beside(plan, lectures, sets))
        else:
            yield from compact(schedule, writers, sets)
        yield ""
    further = [writer for writer in writers.values() if writer.deck.is_further]
    if further:
        yield f"### Further lectures\n\n{plan.further.strip()}\n"
        yield from detailed(further, {one.after: [short(one)] for one in sets})


def beside(
    plan: Plan, lectures: Sequence[PageWriter], sets: list[Homework]
) -> dict[str, list[str]]:
    """What a course does after each lecture: classes, homework, projects, quiz and exam."""
    numbers = [writer.deck.number for writer in lectures]
    after: dict[str, list[str]] = {number: [] for number in numbers}
    for one in plan.tutorials:
        after[f"{one.chapter}b"].append(f"class {one.chapter}")
    for given in sets:
        after.setdefault(given.after, []).append(short(given))
    for number, task in enumerate(plan.projects, 1):
        after[task["after"]].append(f"{{ref}}`project {number} <{task['label']}>`")
    after[numbers[0]].insert(0, "before it the {ref}`quiz <exam-and-quiz>`")
    after[numbers[-1]] += ["the quiz again", "the exam"]
    return after


def short(given: Homework) -> str:
    """A set of homework by the name before the colon."""
    return given.title.partition(":")[0].lower()


def detailed(lectures: Sequence[PageWriter], after: dict[str, list[str]]) -> Iterator[str]:
    """A lecture a row, with what to read, to show and to assign."""
    yield "| | lecture, minutes | read and do | and then |\n|---|---|---|---|"
    for writer in lectures:
        deck, chapter = writer.deck, writer.chapter
        unhurried = link(deck, UNHURRIED, f"{deck.minutes(UNHURRIED):g}")
        shown = f"{link(deck)}, {deck.minutes():g}, unhurried {unhurried}"
        if writer.live:
            shown += f". *Live:* {'; '.join(map(title_of, writer.live.values()))}"
        found = exercises_of(deck, chapter)
        assigned = ", ".join(map(linked, found))
        yield (
            f"| {deck.place} | {shown} | {{doc}}`Chapter {deck.number[:-1]} "
            f"<../{chapter.page.docname}>`, {sections(deck)}. *{sum(one.minutes for one in found)} "
            f"minutes:* {assigned} | {', '.join(after.get(deck.number, []))} |"
        )
    yield "\n````{dropdown} What students can do after each of these lectures"
    for writer in lectures:
        deck = writer.deck
        yield f"- **{deck.number} {deck.about['title']}:** {'; '.join(deck.about['outcomes'])}."
    yield "````\n"


def linked(one: Exercise) -> str:
    """An exercise by its number, a build by its name."""
    name = one.name if one.is_build else one.name.partition(" ")[0]
    return f"{{ref}}`{name} <{one.label}>`"


def sections(deck: Deck) -> str:
    """The chapter's sections that a deck goes through, from the first to the last."""
    found = [slide.section for slide in deck.slides if slide.section != "Summary"]
    if found[0] == found[-1]:
        return f"“{found[0]}”"
    return f"“{found[0]}” to “{found[-1]}”"


def compact(
    schedule: Schedule, writers: dict[str, PageWriter], sets: list[Homework]
) -> Iterator[str]:
    """A session a row, narrow enough for a phone; sets of homework by the name before the colon."""
    yield "| session | lectures | minutes | then |" if sets else "| session | lectures | minutes |"
    yield "|---|---|---|---|" if sets else "|---|---|---|"
    path = "" if schedule.path == PATHS[0] else schedule.path
    for number, session in enumerate(schedule.lectures, 1):
        decks = [writers[name].deck for name in session]
        minutes = sum(deck.minutes(schedule.path) for deck in decks)
        row = f"| {number} | {', '.join(link(deck, path) for deck in decks)} | {minutes:g} |"
        given = ", ".join(one.title.partition(":")[0] for one in sets if one.after in session)
        yield f"{row} {given} |" if sets else row


def hours(root: Path, writers: dict[str, PageWriter], sets: list[Homework]) -> Iterator[str]:
    """A student's weeks, one a chapter: two lectures, the road, the exercises, and homework."""
    rows, weeks = [], []
    for one in sets:
        lectures = [writers[one.after[:-1] + half] for half in "ab"]
        if lectures[0].deck.is_further:
            continue
        chapter = lectures[0].chapter.page.path
        own = {found.label: found.minutes for found in exercises(chapter)}
        held_out = root / "homework/held_out" / f"ch{chapter.name[:2]}.md"
        own |= {found.label: found.minutes for found in exercises(held_out)}
        done = [label for writer in lectures for label in writer.deck.about["exercises"]]
        parts = [
            round(sum(writer.deck.minutes() for writer in lectures)),
            minutes(chapter).road,
            sum(own[label] for label in done),
            sum(own[label] for label in one.labels if label not in done),
        ]
        weeks.append(sum(parts) / 60)
        numbers = " | ".join(map(str, parts))
        rows.append(f"| {one.after[:-1]} | {weeks[-1]:.1f} | {numbers} |")
    yield (
        f"A chapter a week takes a student {min(weeks):.1f} to {max(weeks):.1f} hours, by the "
        "minutes that stand in the book. A project takes an afternoon besides. "
        "Nobody has measured it; tell students to expect more, and ask them in the third week."
    )
    yield "\n````{dropdown} Week by week, in hours, and what they consist of in minutes"
    yield "| chapter | hours | lectures | reading | exercises | homework besides |"
    yield "|---|---|---|---|---|---|"
    yield from rows
    yield (
        "\nReading is the chapter without what is folded. Exercises are those that the two "
        "lectures assign, in the exercise class or at home; most of a homework is among them, and "
        "what is not stands in the last column. Week 2 has the interlude besides, "
        f"{minutes(root / 'chapters/just-enough-network.md').road} minutes.\n````"
    )


def tutorials(given: Sequence[Tutorial], writers: dict[str, PageWriter]) -> Iterator[str]:
    """A fold for each exercise class; its exercises are those that the lectures assign."""
    for one in given:
        chapter = writers[f"{one.chapter}a"].chapter
        known = {
            found.label: found
            for half in "ab"
            for found in exercises_of(writers[f"{one.chapter}{half}"].deck, chapter)
        }

        def named(found: re.Match[str], known: dict[str, Exercise] = known) -> str:
            if found[1] not in known:
                have = ", ".join(known)
                raise PlanError(f"plan.toml: tutorial: got <{found[1]}>, expected one of {have}")
            return f"{{ref}}`{known[found[1]].name} <{found[1]}>`"

        yield f"````{{dropdown}} {one.chapter}. {chapter.title}"
        yield bullets([re.sub(r"<((?:ex|build)-[\w-]+)>", named, line) for line in one.lines])
        yield "````\n"


def misconceptions(writers: dict[str, PageWriter]) -> Iterator[str]:
    """What misleads those who answer wrongly, a fold for each chapter."""
    chapters: dict[str, list[Question]] = {}
    for writer in writers.values():
        chapters.setdefault(writer.chapter.title, []).extend(writer.questions)
    for number, (title, questions) in enumerate(chapters.items(), 1):
        yield f"````{{dropdown}} {number}. {title}"
        for question in questions:
            yield f"**{question.title}** ({question.lecture})\n"
            for choice in question.choices:
                if not choice.is_right:
                    yield f"- “{choice.text}”: {choice.misconception}."
            yield ""
        yield "````\n"


def exam(questions: Sequence[Exam], before: int = 0) -> Iterator[str]:
    """Exam questions, each with a folded answer, counted on from those before."""
    for number, one in enumerate(questions, before + 1):
        yield f"**{number}** ({one.lecture}, {one.points} points). {in_parts(one.question)}\n"
        yield f"````{{dropdown}} Answer to {number}\n{in_parts(one.answer)}\n````\n"


def in_parts(text: str) -> str:
    """A text whose parts (a), (b) and so on begin lines of their own."""
    return re.sub(r"(?<=[.:?$]) (?=\([a-e]\) )", "\\\\\n", text.strip())


def quiz(plan: Plan) -> Iterator[str]:
    """The quiz, each question with a folded answer."""
    for number, one in enumerate(plan.quiz, 1):
        yield f"**{number}.** {one.stem.strip()}\n"
        for letter, choice in zip(LETTERS, one.choices, strict=False):
            yield f"- **{letter}** {choice.text}"
        right = next(letter for letter, c in zip(LETTERS, one.choices, strict=False) if c.is_right)
        yield f"\n````{{dropdown}} Answer to {number}\n**{right}.** {one.answer.strip()}\n"
        for letter, choice in zip(LETTERS, one.choices, strict=False):
            if not choice.is_right:
                yield f"- **{letter}** {choice.misconception}."
        yield f"\nLecture {one.lecture} answers it.\n````\n"


def main(words: Sequence[str]) -> int:
    """The command; returns its exit status."""
    try:
        with desk(ROOT) as book:
            texts = pages(ROOT, writers_of(book, ROOT))
    except (DeckError, MystError, PlanError) as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" in words:
        problems = stale(texts)
        for problem in problems:
            print(problem, file=sys.stderr)
        return int(bool(problems))
    for file, text in texts.items():
        file.write_text(text, "utf-8")
        print(f"{file.relative_to(ROOT).as_posix()} is written")
    return 0


def stale(texts: dict[Path, str]) -> list[str]:
    """Which stored pages are not what they should be."""
    return [
        f"{file.parent.name}/{file.name} is not what the plan, the decks and the homework say: "
        "run make slides"
        for file, text in texts.items()
        if not file.is_file() or file.read_text("utf-8") != text
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
