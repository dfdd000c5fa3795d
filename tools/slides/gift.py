"""Questions as GIFT, the text that Moodle imports: a category for each lecture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from slides.question import Question

SPECIAL = re.compile(r"[\\~=#{}:]")
HEADER = "// Written by make teach. Import it in Moodle: question bank, import, GIFT."


def html_reader() -> MarkdownIt:
    r"""Markdown to HTML with formulas as \( … \) and \[ … \], which Moodle's MathJax shows."""
    reader = MarkdownIt("commonmark").use(dollarmath_plugin, double_inline=True)
    kinds = {"math_inline": r"\(%s\)", "math_inline_double": r"\[%s\]", "math_block": r"\[%s\]"}
    for kind, frame in kinds.items():
        reader.add_render_rule(kind, _formula(frame))
    return reader


def _formula(frame: str) -> Callable[..., str]:
    def render(_renderer: RendererHTML, tokens: list[Token], place: int, *_: Any) -> str:
        return frame % escape(tokens[place].content.strip(), quote=False)

    return render


def escaped(text: str) -> str:
    """A text that holds none of GIFT's signs, in one line."""
    return SPECIAL.sub(r"\\\g<0>", text).replace("\n", r"\n")


def named(question: Question) -> str:
    """A question's name in a list, without marks of Markdown."""
    return f"{question.lecture} {re.sub(r'[$*`]', '', question.title)}"


def gift(groups: Iterable[tuple[str, Iterable[Question]]]) -> str:
    """All questions, group by group; a group is a category of Moodle's question bank."""
    return "\n".join([HEADER, *_lines(groups)])


def _lines(groups: Iterable[tuple[str, Iterable[Question]]]) -> Iterator[str]:
    reader = html_reader()
    for name, questions in groups:
        yield f"\n$CATEGORY: attnbook/{name.replace('/', '//')}\n"
        for question in questions:
            stem = escaped(reader.render(question.stem).strip())
            yield f"::{escaped(named(question))}::[html]{stem}{{"
            for choice in question.choices:
                text = escaped(reader.renderInline(choice.text))
                why = escaped(reader.renderInline(choice.feedback))
                yield f"={text}" if choice.is_right else f"~{text}#{why}"
            if question.answer:
                yield f"####{escaped(reader.render(question.answer).strip())}"
            yield "}\n"
