"""Questions as QTI, the archive that Canvas imports; text2qti writes it from its own format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from text2qti.config import Config
from text2qti.err import Text2qtiError
from text2qti.qti import QTI
from text2qti.quiz import Quiz

from slides.gift import named
from slides.question import LETTERS, Question

DISPLAY = re.compile(r"\$\$\s*(.+?)\s*\$\$", re.DOTALL)


def qti(title: str, about: str, questions: Iterable[Question]) -> bytes:
    """An archive with one quiz; ValueError where text2qti cannot read a question."""
    text = "\n".join(_lines(title, about, questions))
    try:
        # not Config.load, which reads and writes a file in the user's home
        return bytes(QTI(Quiz(text, config=Config(), source_name=title)).zip_bytes())
    except Text2qtiError as error:
        raise ValueError(f"text2qti cannot read the questions: {error}") from error


def _lines(title: str, about: str, questions: Iterable[Question]) -> Iterator[str]:
    yield f"Quiz title: {title}"
    yield f"Quiz description: {about}"
    yield "Shuffle answers: false\n"
    for number, question in enumerate(questions, 1):
        yield f"Title: {named(question)}"
        yield _indented(f"{number}.", question.stem)
        if question.answer:
            yield _indented("...", question.answer)
        for letter, choice in zip(LETTERS.lower(), question.choices, strict=False):
            yield _indented(f"{'*' if choice.is_right else ''}{letter})", choice.text)
            if choice.feedback:
                yield _indented("...", choice.feedback)
        yield ""


def _indented(mark: str, text: str) -> str:
    """A text behind its mark; further lines stand below its first one, formulas in one line."""
    text = DISPLAY.sub(lambda m: rf"$\displaystyle {' '.join(m[1].split())}$", text.strip())
    return f"{mark} " + text.replace("\n", "\n" + " " * (len(mark) + 1))
