"""A question to the class, with what misleads those who answer wrongly."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """One answer to choose; ``misconception`` is why one takes a wrong one."""

    text: str
    is_right: bool
    misconception: str = ""


@dataclass(frozen=True)
class Question:
    """A question of a slide, its numbers those that the chapter printed."""

    lecture: str
    title: str
    section: str
    stem: str
    choices: tuple[Choice, ...]
    answer: str
