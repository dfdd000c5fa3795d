"""Questions to the class: one asks, waits, lets vote, and shows the answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from slides.deck import Slide
from slides.question import CHOICE, LETTERS, Choice, Question, plain_answer
from slides.text import TextWriter


@dataclass
class AskingWriter(TextWriter):
    """Writes the questions of a deck's slides, and gathers them."""

    questions: list[Question] = field(default_factory=list)
    slide: Slide | None = None  # that is written now

    def question_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """Ask, wait, vote, show: choices, each wrong one with its misconception; --- the answer."""
        lines, seconds = body.split("\n"), self.find(int, given.pop("seconds", "60"))
        cut = lines.index("---") if "---" in lines else len(lines)
        answer = "\n".join(lines[cut + 1 :]).strip("\n")
        stem = "\n".join(one for one in lines[:cut] if not CHOICE.fullmatch(one)).strip()
        choices = []
        for place, one in enumerate(lines[:cut]):
            if match := CHOICE.fullmatch(one):
                self.line = line + place
                if (match[1] == "x") == bool(match[3]):
                    raise self.error(f"{match[2]!r}: what misleads stands behind %% of wrong ones")
                choices.append(
                    Choice(self.words(match[2]), match[1] == "x", self.words(match[3] or ""))
                )
        self.line = line
        if not answer.strip() or sum(c.is_right for c in choices) != 1:
            raise self.error("a question needs choices, one of them [x], and an answer behind ---")
        if not 2 <= len(choices) <= len(LETTERS):
            raise self.error(f"a question of {len(choices)} choices; expected 2 to {len(LETTERS)}")
        assert self.slide is not None
        question = Question(
            lecture=self.deck.number,
            title=self.slide.title,
            section=self.slide.section,
            stem=self.words(stem),
            choices=tuple(choices),
            answer=self.words(plain_answer(answer)),
        )
        self.questions.append(question)
        items = "".join(
            f'<li class="{"right" if choice.is_right else "wrong"}"><b>{letter}</b>'
            f"<span>{self.inline(choice.text)}</span></li>"
            for letter, choice in zip(LETTERS, choices, strict=False)
        )
        two = " two" if max(len(c.text) for c in choices) < 48 else ""
        time = "one minute" if seconds == 60 else f"{seconds} seconds"
        return (
            f'<div class="question"><div class="stem">{self.text(stem, line)}</div>'
            f'<ol class="choices{two}">{items}</ol>'
            f'<div class="wait" style="--seconds: {seconds}s">'
            f"<span>{time} to think, then vote</span><i></i></div>"
            f'<div class="fragment answer">{self.text(answer, line + cut + 1)}</div></div>'
        )
