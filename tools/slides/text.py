"""A slide's text as HTML: Markdown, formulas typeset, and what the chapter has and printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attnbook_site.maths import MARK, Katex, display_source
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from attnbook_course.weaving.blocks import MystError
from attnbook_course.weaving.roles import RoleResolver
from slides.chapter import Chapter
from slides.deck import Deck, DeckError, clicks, options

# In a formula \Q{q} is q in the colour that drawings give to queries, as \K and \V are for keys and
# values. KaTeX knows no colours by name of the page, so each goes through it as a number.
ROLES = {"Q": ("#0000a1", "queries"), "K": ("#0000a2", "keys"), "V": ("#0000a3", "values")}
PRINTED = re.compile(r"\{printed\}`([^`]+)`")


@dataclass
class TextWriter:
    """Writes the text of one deck; the directives are methods of those that inherit from it."""

    deck: Deck
    chapter: Chapter
    resolver: RoleResolver
    katex: Katex
    line: int = 1  # in the file, of what is written now

    def __post_init__(self) -> None:
        """Set up Markdown with our fences and formulas."""
        reader = MarkdownIt("commonmark").enable("table")
        reader.use(dollarmath_plugin, double_inline=True).use(colon_fence_plugin)
        reader.core.ruler.before("inline", "roles", self._resolve)
        assert isinstance(reader.renderer, RendererHTML)
        for name in ("fence", "colon_fence", "math_inline", "math_inline_double", "math_block"):
            reader.renderer.rules[name] = getattr(self, f"_{name}")
        self.reader = reader

    def error(self, message: str) -> DeckError:
        """An error at the line that is written now."""
        return DeckError(f"{self.deck.path.name}:{self.line}: {message}")

    def find(self, look: Callable[..., Any], *names: Any) -> Any:
        """What a function finds or reads; where it cannot, that is an error of this line."""
        try:
            return look(*names)
        except (LookupError, ValueError) as wrong:
            raise self.error(str(wrong.args[0])) from wrong

    def text(self, source: str, first: int) -> str:
        """Markdown whose first line stands in that line of the file; +++ waits for a click."""
        parts = [(first + place, part) for place, part in clicks(source)]
        html = [self.markdown(part, line) for line, part in parts]
        return html[0] + "".join(f'<div class="fragment">{part}</div>' for part in html[1:])

    def markdown(self, source: str, first: int) -> str:
        """Markdown without clicks of its own."""
        html: str = self.reader.render(source, {"first": first})
        return html

    def inline(self, source: str) -> str:
        """One line of Markdown."""
        html: str = self.reader.renderInline(source, {"first": self.line})
        return html.strip()

    def words(self, source: str) -> str:
        """Roles resolved: what the chapter printed, citations, numbers of formulas and figures."""
        printed = PRINTED.sub(lambda m: self.find(self.chapter.printed, m[1]), source)
        try:
            return self.resolver.prose(printed, self.line)
        except MystError as error:  # it names the chapter, and this is the deck
            raise self.error(str(error).split(": ", 1)[1]) from error

    def formula(self, tex: str, *, display: bool) -> str:
        """Typeset by KaTeX, as on the site."""
        source = display_source(tex, False) if display else tex
        for mark, (number, _) in ROLES.items():
            source = source.replace(rf"\{mark}{{", rf"\textcolor{{{number}}}{{")
        html: str = self.find(self.katex.render, source, display)
        for number, role in ROLES.values():
            html = html.replace(f"color:{number}", f"color:var(--drawing-{role})")
            html = re.sub(rf' mathcolor="{number}"|\\textcolor{{{number}}}', "", html)
        return html.replace('class="katex-display"', 'class="katex-display" tabindex="0"')

    def _resolve(self, state: StateCore) -> None:
        for token in state.tokens:
            if token.type == "inline":
                self.line = _line_of(token, state.env)
                token.content = self.words(token.content)

    def _math_inline(self, tokens: list[Token], i: int, *_: Any) -> str:
        html = self.formula(tokens[i].content, display=False)
        after = tokens[i + 1] if i + 1 < len(tokens) and tokens[i + 1].type == "text" else None
        mark = MARK.match(after.content) if after else None
        if after is None or mark is None:
            return html
        after.content = after.content[mark.end() :]
        return f'<span class="clings">{html}{mark[0]}</span>'

    def _math_inline_double(self, tokens: list[Token], i: int, *_: Any) -> str:
        return self.formula(tokens[i].content, display=True)

    def _math_block(self, tokens: list[Token], i: int, options: Any, env: Any) -> str:
        self.line = _line_of(tokens[i], env)
        return f'<div class="formula">{self.formula(tokens[i].content.strip(), display=True)}</div>'

    def _fence(self, tokens: list[Token], i: int, _: Any, env: dict[str, int]) -> str:
        """A directive: its argument, its options, its body and the body's line."""
        self.line = line = _line_of(tokens[i], env)
        found = re.fullmatch(r"\{([a-z]+)\}\s*(.*)", tokens[i].info.strip())
        directive = getattr(self, f"{found[1]}_directive", None) if found else None
        if found is None or directive is None:
            raise self.error(f"no directive {tokens[i].info!r}; code of the chapter is a {{cell}}")
        given, body, taken = options(tokens[i].content.rstrip("\n"))
        html: str = directive(found[2], given, body, line + 1 + taken)
        self.line = line
        if given:
            raise self.error(f"{{{found[1]}}} takes no option {', '.join(given)}")
        return html

    _colon_fence = _fence


def _line_of(token: Token, env: Mapping[str, int]) -> int:
    """The line in the file; what stands within a line has none of its own."""
    return env["first"] + (token.map[0] if token.map else 0)
