"""A question to the class, with what misleads those who answer wrongly."""

import re
from dataclasses import dataclass

LETTERS = "ABCDEF"
CHOICE = re.compile(r"- \[( |x)\] (.*?)(?: %% (.*))?")
VERB = re.compile(r"(?!this|signs)[a-z]+s\b")  # with which most misconceptions begin


@dataclass(frozen=True)
class Choice:
    """One answer to choose; ``misconception`` is why one takes a wrong one."""

    text: str
    is_right: bool
    misconception: str = ""

    @property
    def feedback(self) -> str:
        """The misconception as a sentence."""
        said = self.misconception
        if VERB.match(said):
            said = f"whoever says so {said}"
        return said and f"{said[0].upper()}{said[1:]}."


@dataclass(frozen=True)
class Question:
    """A question of a slide, its numbers those that the chapter printed."""

    lecture: str
    title: str
    section: str
    stem: str
    choices: tuple[Choice, ...]
    answer: str


def plain_answer(text: str) -> str:
    """An answer's own sentences, those in columns too, without what it shows, nor its colours."""
    text = re.sub(r"^(`{3,})\{.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?::{3,}.*|\+{3})$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\[QKV](?=\{)", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()
