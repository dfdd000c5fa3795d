"""What stands on a slide beside its text: columns, formulas, figures, code, bars."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from textwrap import dedent
from urllib.parse import urlencode

from attnbook_course.weaving.stills import alternative
from slides.asking import AskingWriter
from slides.chapter import part_of, without
from slides.clicks import draw, in_clicks
from slides.deck import clicks
from slides.listing import (
    broken,
    code_as_html,
    expect,
    expression,
    map_as_html,
    printed_as_html,
    typed_as_html,
)
from slides.live import settings, title_of

LETTER = re.compile(r"(?<![A-Za-z\\_])([qkv])(?![A-Za-z])(?:_[a-z])?")  # q, k_j or v_j in a formula
WIDTH, GAP = 1168, 48  # of a slide's body, and between its columns, in its own pixels


@dataclass
class SlideWriter(AskingWriter):
    """Writes slides; gathers what a deck shows of the chapter."""

    live: dict[str, str] = field(default_factory=dict)  # name of a figure to its HTML
    figures: dict[str, str] = field(default_factory=dict)  # name of a figure to its SVG
    notes: list[str] = field(default_factory=list)  # of the slide that is written now
    share: float = 1.0  # of the slide's width, for what is written now
    shares: list[float] = field(default_factory=list)

    def columns_directive(self, widths: str, given: dict[str, str], body: str, line: int) -> str:
        """Columns beside each other: widths such as "1fr 2fr", then a {column} for each."""
        parts = [self.find(float, one.removesuffix("fr")) for one in widths.split()]
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
        """A numbered formula of the chapter; ``:coloured:`` gives q, k and v their colours."""
        tex, number = self.find(self.chapter.formula, label)
        if given.pop("coloured", None) is not None:
            tex = LETTER.sub(lambda m: rf"\{m[1].upper()}{{{m[0]}}}", tex)
        html = self.formula(tex, display=True)
        return f'<div class="formula">{html}<span class="eqno">({number})</span></div>'

    def figure_directive(self, name: str, given: dict[str, str], body: str, line: int) -> str:
        """A still figure of the chapter, or the part of it in ``:view:``; the body is a caption.

        ``:without:`` leaves out the curves of a role, such as the truth that a class must not see.
        """
        cell = self.find(self.chapter.figure, name)
        if "data-drawing" in cell.svg:
            raise self.error(f"{name} is a drawing: show it with {{diagram}}")
        svg = cell.svg
        if role := given.pop("without", ""):
            name, svg = f"{name}-without-{role}", self.find(without, svg, role)
        if view := given.pop("view", ""):
            name, svg = f"{name}-{view.replace(' ', '-')}", self.find(part_of, svg, view)
        self.figures[name] = svg
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

        They must have ``:mark:`` or ``:has:``, and what was printed must have ``:output:``. To be
        typed they come in steps, as a solution does with ``:clicks:``.
        """
        cell, place = self.find(self.chapter.cell, start)
        lines = cell.without_asserts[place:]
        if last := given.pop("to", ""):
            lines = lines[: self.place("to", lines, last) + 1]
        kept = dedent("\n".join(one for one in lines if one is not None))
        shown = re.sub(r"\n{3,}", "\n\n", kept).strip("\n").split("\n")
        mark = given.pop("mark", "")
        marked = [number for number, one in enumerate(shown, 1) if mark and mark in one]
        if mark and not marked:
            raise self.error(f"mark: no shown line has {mark!r}")
        if "has" in given or not mark:
            self.find(expect, "has", given.pop("has", ""), shown)
        html: str
        if cuts := given.pop("clicks", ""):
            html = self.typed("\n".join(shown), cuts)
        else:
            html = self.find(code_as_html, shown, marked, WIDTH * self.share)
        return html + self.output(cell.printed, "output", given) if "output" in given else html

    def solution_directive(self, label: str, given: dict[str, str], body: str, line: int) -> str:
        """The code of an exercise's solution, to be typed: behind each of ``:clicks:`` a step.

        They are how the first lines of the steps begin, with | between them. Long code takes two
        slides: ``:to:`` is how the last line of the first begins, ``:from:`` the first of the next.
        """
        lines = self.find(self.chapter.solution, label).split("\n")
        if first := given.pop("from", ""):
            lines = lines[self.place("from", lines, first) :]
        if last := given.pop("to", ""):
            lines = lines[: self.place("to", lines, last) + 1]
        return self.typed(dedent("\n".join(lines)), given.pop("clicks", ""))

    def place(self, option: str, lines: list[str | None], begins: str) -> int:
        """Which of the lines is the first that begins so."""
        for place, one in enumerate(lines):
            if one and one.strip().startswith(begins):
                return place
        raise self.error(f"{option}: no line after {lines[0]!r} begins {begins!r}")

    def typed(self, code: str, cuts: str) -> str:
        """Code in steps, each of which begins as one of the cuts."""
        each = [cut.strip() for cut in cuts.split("|")]
        html: str = self.find(typed_as_html, code, each, WIDTH * self.share)
        return html

    def stack_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """Parts, with +++ between them, each of which takes the place of the one before."""
        parts = [(line + place, part) for place, part in clicks(body)]
        if len(parts) < 2:
            raise self.error("stack: got one part, expected two or more, with +++ between them")
        html = [f'<div class="part fragment">{self.markdown(part, at)}</div>' for at, part in parts]
        return f'<div class="stacked">{"".join(html).replace(" fragment", "", 1)}</div>'

    def output_directive(self, start: str, given: dict[str, str], body: str, line: int) -> str:
        """What a cell printed; they must have ``:has:``.

        ``:after:`` leaves out what stands up to the last line that it finds, ``:only:`` the lines
        that it does not find, ``:most:`` those behind so many.
        """
        cell, _ = self.find(self.chapter.cell, start)
        return self.output(cell.printed, "has", given)

    def map_directive(self, start: str, given: dict[str, str], body: str, line: int) -> str:
        """A square matrix that a cell printed, a number the darker the larger it is.

        ``:names:`` are those of its rows and columns, with | between them; a click rings the cells
        of ``:ring:``, each a row and a column from 1. Other options are those of ``{output}``.
        """
        lines = self.kept(self.find(self.chapter.cell, start)[0].printed, "has", given)
        names = [one.strip() for one in given.pop("names", "").split("|")]
        cells = re.findall(r"(\d+) (\d+)", given.pop("ring", ""))
        html: str = self.find(map_as_html, lines, names, cells)
        return html

    def output(self, text: str, has: str, given: dict[str, str]) -> str:
        """Printed lines; ``:wrap:`` breaks those that are too long."""
        width, wraps = WIDTH * self.share, given.pop("wrap", None) is not None
        lines = self.kept(text, has, given)
        html: str = self.find(printed_as_html, broken(lines, width) if wraps else lines, width)
        return html

    def kept(self, text: str, has: str, given: dict[str, str]) -> list[str]:
        """The lines of ``:after:``, ``:only:`` and ``:most:``, with what the option says."""
        lines = text.rstrip("\n").split("\n")
        if behind := given.pop("after", ""):
            found = self.find(expression, "after", behind)
            places = [place for place, one in enumerate(lines, 1) if found.search(one)]
            if not places:
                raise self.error(f"after: no printed line has {behind!r}")
            lines = lines[places[-1] :]
        only = self.find(expression, "only", given.pop("only", ""))
        lines = [one for one in lines if only.search(one)]
        lines = lines[: self.find(int, given.pop("most", str(len(lines))))]
        self.find(expect, has, given.pop(has, ""), lines or [""])
        return lines

    def bars_directive(self, most: str, given: dict[str, str], body: str, line: int) -> str:
        """Numbers as bars, "name :: number" a line; :: floor or :: now at its end is a colour.

        Behind +++ each comes with a click.
        """
        rows, click = [], ""
        for place, one in enumerate(body.split("\n")):
            self.line = line + place
            if one == "+++":
                click = " fragment"
                continue
            found = re.fullmatch(r"(.+?) :: (\d+\.?\d*)(?: :: (floor|now))?", self.words(one))
            if found is None:
                raise self.error(f"bars: got {one!r}, expected name :: number (:: floor or now)")
            rows.append((found[1].strip(), found[2], (found[3] or "") + click))
        top = self.find(float, most) if most else max(float(number) for _, number, _ in rows)
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
        zoom = self.find(float, given.pop("zoom", "1.25"))
        title, address = title_of(html), f"live/{name}.html"
        veil = f'<div class="fragment veil">{self.markdown(body, line)}</div>' if body else ""
        if wanted := given.pop("set", ""):
            address += "#" + escape(urlencode(self.find(settings, html, wanted)))
        return (
            f'<div class="live" data-zoom="{zoom:g}">{veil}'
            f'<iframe data-src="{address}" title="{title}" allow="fullscreen"></iframe>'
            f'<a class="still" href="{address}"><img src="../_static/stills/{name}.webp" '
            f'alt="{alternative(title)}" loading="lazy">'
            "<span>Open the live figure</span></a></div>"
        )

    def notes_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """What the lecturer says, does and watches for."""
        self.notes.append(self.markdown(body, line))
        return ""
