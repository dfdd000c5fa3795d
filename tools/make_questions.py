"""Write the questions of all lectures, and the quiz, for Moodle (GIFT) and Canvas (QTI).

python tools/make_questions.py            into _build/questions
"""

from __future__ import annotations

import sys
from pathlib import Path

from make_plan import decks_of, writers_of
from slides import ROOT
from slides.build import desk
from slides.gift import gift
from slides.page import PageWriter, plain
from slides.plan import read_plan
from slides.qti import qti
from slides.question import Question

TARGET = ROOT / "_build/questions"
BOOK = "From Kernel Regression to the Transformer"
QUIZ_NAME = "The quiz, before and after"
ABOUT = {
    "lecture": "The questions of the lecture.",
    "quiz": "Twelve questions, before the course and after it.",
}


def questions_of(root: Path, writers: dict[str, PageWriter]) -> list[tuple[str, list[Question]]]:
    """The questions of each lecture, and those of the quiz, each group with its name."""
    plan = read_plan(root / "lectures/plan.toml", decks_of(writers))
    groups = [
        (f"{number} {writer.deck.about['title']}", [plain(q, writer) for q in writer.questions])
        for number, writer in writers.items()
    ]
    return [*groups, (QUIZ_NAME, list(plan.quiz))]


def files_of(groups: list[tuple[str, list[Question]]]) -> dict[str, bytes]:
    """The files by name: all questions for Moodle, and for Canvas an archive for each quiz."""
    *lectures, (_, quiz) = groups
    files = {"attnbook.gift.txt": gift(groups).encode("utf-8")}
    for name, questions in lectures:
        file = f"attnbook-{name.split()[0]}-qti.zip"
        files[file] = qti(name, ABOUT["lecture"], questions)
    return files | {"attnbook-quiz-qti.zip": qti(f"{BOOK}: the quiz", ABOUT["quiz"], quiz)}


def main() -> int:
    """The command; returns its exit status."""
    try:
        with desk(ROOT) as book:
            groups = questions_of(ROOT, writers_of(book, ROOT))
        files = files_of(groups)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    TARGET.mkdir(parents=True, exist_ok=True)
    for old in TARGET.glob("attnbook*"):
        old.unlink()  # of a lecture that has another name now
    for name, content in files.items():
        (TARGET / name).write_bytes(content)
    count = sum(len(questions) for _, questions in groups)
    print(
        f"{count} questions in {TARGET.relative_to(ROOT)}: attnbook.gift.txt for Moodle has all, "
        f"the other {len(files) - 1} files are a quiz each, for Canvas"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
