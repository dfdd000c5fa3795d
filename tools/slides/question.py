"""A question to the class, with what misleads those who answer wrongly."""

import re
from dataclasses import dataclass

NO_VERBS = {"this", "signs"}  # with which a misconception begins, although they end in s
VERB = re.compile(r"[a-z]+s\b")
SECOND = "forgets|guesses|lets|lies|overlooks|stays|throws|underestimates"  # with the same subject
ALSO = re.compile(rf"\b(and|but)( still)? ({SECOND})\b")


@dataclass(frozen=True)
class Choice:
    """One answer to choose; ``misconception`` is why one takes a wrong one."""

    text: str
    is_right: bool
    misconception: str = ""

    @property
    def feedback(self) -> str:
        """The misconception said to whoever chose the answer: "forgets" becomes "You forget"."""
        said = self.misconception
        if (found := VERB.match(said)) and found[0] not in NO_VERBS:
            thought, *reason = re.split(r"(?=[;:])", said[found.end() :], maxsplit=1)
            thought = ALSO.sub(lambda m: f"{m[1]}{m[2] or ''} {plural(m[3])}", thought)
            said = f"you {plural(found[0])}{thought}{''.join(reason)}"
        return said and f"{said[0].upper()}{said[1:]}."


def plural(verb: str) -> str:
    """A verb as it follows "you": takes, guesses, multiplies become take, guess, multiply."""
    if verb in ("is", "has", "lies"):
        return {"is": "are", "has": "have", "lies": "lie"}[verb]
    return re.sub(r"ies$", "y", re.sub(r"(?<=ss|sh|ch)es$|(?<=x)es$|(?<!ie)s$", "", verb))


@dataclass(frozen=True)
class Question:
    """A question of a slide, its numbers those that the chapter printed."""

    lecture: str
    title: str
    section: str
    stem: str
    choices: tuple[Choice, ...]
    answer: str
