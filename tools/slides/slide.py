"""A slide's text as HTML: Markdown, formulas, and the directives of the decks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from textwrap import dedent
from typing import Any
from urllib.parse import urlencode

from attnbook_site.maths import MARK, Katex, display_source
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from attnbook_course.weaving.blocks import MystError
from attnbook_course.weaving.roles import RoleResolver
from attnbook_course.weaving.stills import alternative
from slides.chapter import Chapter
from slides.clicks import draw, in_clicks
from slides.deck import Deck, DeckError, Slide, clicks, options
from slides.listing import broken, code_as_html, expect, expression, printed_as_html
from slides.live import settings, title_of
from slides.question import Choice, Question

PRINTED = re.compile(r"\{printed\}`([^`]+)`")
CHOICE = re.compile(r"- \[( |x)\] (.*?)(?: %% (.*))?")
WIDTH, GAP = 1152, 48  # of a slide's body, and between its columns, in its own pixels
LETTERS = "ABCDEF"


@dataclass
class SlideWriter:
    """Writes the slides of one deck; gathers its questions and the live figures it shows."""

    deck: Deck
    chapter: Chapter
    resolver: RoleResolver
    katex: Katex
    questions: list[Question] = field(default_factory=list)
    live: dict[str, str] = field(default_factory=dict)  # name of a figure to its HTML
    figures: dict[str, str] = field(default_factory=dict)  # name of a figure to its SVG
    notes: list[str] = field(default_factory=list)  # of the slide that is written now
    share: float = 1.0  # of the slide's width, for what is written now
    shares: list[float] = field(default_factory=list)
    slide: Slide | None = None
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

    # text

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
        printed = PRINTED.sub(lambda m: self.printed(m[1]), source)
        try:
            return self.resolver.prose(printed, self.line)
        except MystError as error:  # it names the chapter, and this is the deck
            raise self.error(str(error).split(": ", 1)[1]) from error

    def printed(self, pattern: str) -> str:
        """What the chapter printed where the pattern's group is."""
        return self.find(self.chapter.printed, pattern)

    def find(self, look: Callable[..., Any], *names: Any) -> Any:
        """Something of the chapter; what is missing is an error of this line."""
        try:
            return look(*names)
        except LookupError as missing:
            raise self.error(str(missing.args[0])) from missing

    def _resolve(self, state: StateCore) -> None:
        for token in state.tokens:
            if token.type == "inline":
                self.line = _line_of(token, state.env)
                token.content = self.words(token.content)

    # formulas

    def formula(self, tex: str, *, display: bool) -> str:
        """Typeset by KaTeX, as on the site."""
        try:
            html = self.katex.render(display_source(tex, False) if display else tex, display)
        except ValueError as error:
            raise self.error(f"KaTeX cannot show {tex!r}: {error}") from error
        return html.replace('class="katex-display"', 'class="katex-display" tabindex="0"')

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

    # directives

    def _fence(self, tokens: list[Token], i: int, _: Any, env: dict[str, int]) -> str:
        self.line = line = _line_of(tokens[i], env)
        found = re.fullmatch(r"\{([a-z]+)\}\s*(.*)", tokens[i].info.strip())
        if found is None:
            raise self.error("code stands in the chapter: show it with {cell}")
        directive = getattr(self, f"{found[1]}_directive", None)
        if directive is None:
            raise self.error(f"unknown directive {{{found[1]}}}")
        given, body, taken = options(tokens[i].content.rstrip("\n"))
        html: str = directive(found[2], given, body, line + 1 + taken)
        self.line = line
        if given:
            raise self.error(f"{{{found[1]}}} takes no option {', '.join(given)}")
        return html

    _colon_fence = _fence

    def columns_directive(self, widths: str, given: dict[str, str], body: str, line: int) -> str:
        """Columns beside each other: widths such as "1fr 2fr", then a {column} for each."""
        widths = widths or "1fr 1fr"
        if not re.fullmatch(r"\d*\.?\d+fr( \d*\.?\d+fr)+", widths):
            raise self.error(f"columns: got {widths!r}, expected widths such as 1fr 1.5fr")
        parts = [float(width.removesuffix("fr")) for width in widths.split()]
        free = 1 - GAP * (len(parts) - 1) / WIDTH
        before, self.shares = self.share, [free * part / sum(parts) for part in parts]
        html = f'<div class="columns" style="--widths: {widths}">{self.markdown(body, line)}</div>'
        self.share = before
        if self.shares:
            raise self.error(f"columns: {len(self.shares)} fewer columns than widths")
        return html

    def column_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """One column."""
        if not self.shares:
            raise self.error("a column without a width in {columns}")
        self.share = self.shares.pop(0)
        return f'<div class="column">{self.text(body, line)}</div>'

    def formula_directive(self, label: str, given: dict[str, str], body: str, line: int) -> str:
        """A numbered formula of the chapter."""
        tex, number = self.find(self.chapter.formula, label)
        html = self.formula(tex, display=True)
        return f'<div class="formula">{html}<span class="eqno">({number})</span></div>'

    def figure_directive(self, name: str, given: dict[str, str], body: str, line: int) -> str:
        """A still figure of the chapter, or the part of it in ``:view:``; the body is a caption."""
        cell = self.find(self.chapter.figure, name)
        if "data-drawing" in cell.svg:
            raise self.error(f"{name} is a drawing: show it with {{diagram}}")
        view = given.pop("view", "")
        name, svg = (f"{name}-{view.replace(' ', '-')}" if view else name), cell.svg
        self.figures[name] = self.find(part_of, svg, view) if view else svg
        caption = f"<figcaption>{self.text(body, line)}</figcaption>" if body else ""
        return f'<figure><img src="figures/{name}.svg" alt="{escape(cell.alt)}">{caption}</figure>'

    def diagram_directive(self, name: str, given: dict[str, str], body: str, line: int) -> str:
        """A drawing of the book in clicks; other options are the drawing's own arguments."""
        cuts = [cut.strip() for cut in given.pop("clicks", "").split("|") if cut.strip()]
        side = given.pop("from", "top")
        svg = self.find(in_clicks, self.find(draw, name, dict(given)), cuts, side)
        given.clear()
        caption = f"<figcaption>{self.text(body, line)}</figcaption>" if body else ""
        return f'<figure class="diagram">{svg}{caption}</figure>'

    def cell_directive(self, start: str, given: dict[str, str], body: str, line: int) -> str:
        """Lines of a cell: from the one that begins so, ``:to:`` another; without its asserts.

        They must have ``:mark:`` or ``:has:``, and what was printed must have ``:output:``.
        """
        cell, place = self.find(self.chapter.cell, start)
        lines = cell.without_asserts[0 if given.pop("whole", None) is not None else place :]
        if last := given.pop("to", ""):
            ends = [i for i, one in enumerate(lines) if one and one.strip().startswith(last)]
            if not ends:
                raise self.error(f"to: no line after {start!r} begins {last!r}")
            lines = lines[: ends[0] + 1]
        kept = dedent("\n".join(one for one in lines if one is not None))
        source = re.sub(r"\n{3,}", "\n\n", kept)
        mark = given.pop("mark", "")
        shown = source.strip("\n").split("\n")
        marked = [number for number, one in enumerate(shown, 1) if mark and mark in one]
        if mark and not marked:
            raise self.error(f"mark: no shown line has {mark!r}")
        if "has" in given or not mark:
            self.find(expect, "has", given.pop("has", ""), shown)
        html: str = self.find(code_as_html, shown, marked, WIDTH * self.share)
        return html + self.output(cell.printed, "output", given) if "output" in given else html

    def output_directive(self, start: str, given: dict[str, str], body: str, line: int) -> str:
        """What a cell printed, or the lines that ``:only:`` finds; they must have ``:has:``."""
        cell, _ = self.find(self.chapter.cell, start)
        return self.output(cell.printed, "has", given)

    def output(self, text: str, has: str, given: dict[str, str]) -> str:
        """Printed lines; ``:wrap:`` breaks those that are too long."""
        only, width = self.find(expression, "only", given.pop("only", "")), WIDTH * self.share
        lines = [one for one in text.rstrip("\n").split("\n") if only.search(one)]
        if given.pop("wrap", None) is not None:
            lines = broken(lines, width)
        html: str = self.find(printed_as_html, lines, width)
        self.find(expect, has, given.pop(has, ""), lines)
        return html

    def bars_directive(self, most: str, given: dict[str, str], body: str, line: int) -> str:
        """Numbers as bars, "name :: number" a line; :: floor or :: now at its end is a colour."""
        if not re.fullmatch(r"(\d+\.?\d*)?", most):
            raise self.error(f"bars: got {most!r} for the full width, expected a number")
        rows = []
        for place, one in enumerate(body.split("\n")):
            self.line = line + place
            if not one.strip():
                continue
            parts = [part.strip() for part in self.words(one).split("::")]
            if not 2 <= len(parts) <= 3 or not re.fullmatch(r"\d+\.?\d*", parts[1]):
                raise self.error(f"bars: got {one!r}, expected name :: number")
            if len(parts) == 3 and parts[2] not in ("floor", "now"):
                raise self.error(f"bars: got {parts[2]!r}, expected floor or now")
            rows.append((parts[0], parts[1], parts[2] if len(parts) == 3 else ""))
        if not rows:
            raise self.error("bars: no line name :: number")
        top = float(most or max(float(number) for _, number, _ in rows))
        html = "".join(
            f'<div class="bar {kind}"><span>{self.inline(name)}</span>'
            f'<i><b style="width: {100 * min(1, float(number) / top):.1f}%"></b>'
            f"<em>{number}</em></i></div>"
            for name, number, kind in rows
        )
        return f'<div class="bars">{html}</div>'

    def live_directive(self, name: str, given: dict[str, str], body: str, line: int) -> str:
        """A live figure in a frame; elsewhere its picture, with a link.

        The body is a question, which lies over the figure until a click.
        """
        html = self.find(self.chapter.live, name).html
        self.live[name] = html
        zoom = given.pop("zoom", "1.25")
        if not re.fullmatch(r"\d+\.?\d*", zoom) or not 1 <= float(zoom) <= 1.3:
            raise self.error(f"zoom: got {zoom!r}, expected a number from 1 to 1.3")
        title, address = title_of(html), f"live/{name}.html"
        veil = f'<div class="fragment veil">{self.markdown(body, line)}</div>' if body else ""
        if wanted := given.pop("set", ""):
            address += "#" + escape(urlencode(self.find(settings, html, wanted)))
        return (
            f'<div class="live" data-zoom="{float(zoom):g}">{veil}'
            f'<iframe data-src="{address}" title="{title}" allow="fullscreen"></iframe>'
            f'<a class="still" href="{address}"><img src="../_static/stills/{name}.webp" '
            f'alt="{alternative(name, title)}" loading="lazy">'
            "<span>Open the live figure</span></a></div>"
        )

    def question_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """Ask, wait, vote, show: choices, each wrong one with its misconception; --- the answer."""
        lines = body.split("\n")
        if "---" not in lines or not "".join(lines[lines.index("---") + 1 :]).strip():
            raise self.error("a question needs its answer behind a line ---")
        cut = lines.index("---")
        seconds = given.pop("seconds", "60")
        if not seconds.isdecimal() or not 10 <= int(seconds) <= 300:
            raise self.error(f"seconds: got {seconds!r}, expected 10 to 300")
        stem = [one for one in lines[:cut] if not CHOICE.fullmatch(one)]
        choices = []
        for place, one in enumerate(lines[:cut]):
            if match := CHOICE.fullmatch(one):
                self.line = line + place
                right = match[1] == "x"
                if right == bool(match[3]):
                    need = "no reason behind %%" if right else "what misleads behind %%"
                    raise self.error(f"the choice {match[2]!r} needs {need}")
                choices.append(Choice(self.words(match[2]), right, self.words(match[3] or "")))
        self.line = line
        if not 2 <= len(choices) <= len(LETTERS) or sum(c.is_right for c in choices) != 1:
            raise self.error("a question needs 2 to 6 choices, of which one is marked [x]")
        assert self.slide is not None
        question = Question(
            lecture=self.deck.number,
            title=self.slide.title,
            section=self.slide.section,
            stem=self.words("\n".join(stem).strip()),
            choices=tuple(choices),
            answer=self.words(plain_answer(lines[cut + 1 :])),
        )
        self.questions.append(question)
        return self._question(question, "\n".join(stem), lines, cut, line, int(seconds))

    def _question(
        self, question: Question, stem: str, lines: list[str], cut: int, line: int, seconds: int
    ) -> str:
        """The question as it stands on the slide."""
        items = "".join(
            f'<li class="{"right" if choice.is_right else "wrong"}"><b>{letter}</b>'
            f"<span>{self.inline(choice.text)}</span></li>"
            for letter, choice in zip(LETTERS, question.choices, strict=False)
        )
        two = " two" if max(len(c.text) for c in question.choices) < 48 else ""
        answer = self.text("\n".join(lines[cut + 1 :]).strip("\n"), line + cut + 1)
        return (
            f'<div class="question"><div class="stem">{self.text(stem.strip(), line)}</div>'
            f'<ol class="choices{two}">{items}</ol>'
            f'<div class="wait" style="--seconds: {seconds}s">'
            f"<span>{span_of(seconds)} to think, then vote</span><i></i></div>"
            f'<div class="fragment answer">{answer}</div></div>'
        )

    def notes_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """What the lecturer says, does and watches for."""
        self.notes.append(self.markdown(body, line))
        return ""


def _line_of(token: Token, env: Mapping[str, int]) -> int:
    """The line in the file; what stands within a line has none of its own."""
    return env["first"] + (token.map[0] if token.map else 0)


def plain_answer(lines: list[str]) -> str:
    """An answer's own sentences, those in columns too, without what it shows."""
    text = re.sub(r"^(`{3,})\{.*?^\1$", "", "\n".join(lines), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?::{3,}.*|\+{3})$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def part_of(svg: str, view: str) -> str:
    """A figure cut to x, y, width and height in its own units."""
    found = re.fullmatch(r"(\d+) (\d+) ([1-9]\d*) ([1-9]\d*)", view)
    if found is None:
        raise LookupError(f"view: got {view!r}, expected x y width height, such as 0 20 300 200")
    head = re.search(r"<svg\b[^>]*>", svg)
    assert head is not None
    bare = re.sub(r'\s(?:width|height|viewBox)="[^"]*"', "", head[0])
    size = f' viewBox="{view}" width="{found[3]}pt" height="{found[4]}pt">'
    return svg[: head.start()] + bare[:-1] + size + svg[head.end() :]


def span_of(seconds: int) -> str:
    """A time in words."""
    if seconds < 60:
        return f"{seconds} seconds"
    return "one minute" if seconds == 60 else f"{seconds / 60:g} minutes"
