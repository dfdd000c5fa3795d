"""A whole deck as one HTML page, and the pages of the live figures on it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path

import segno
from docutils.nodes import make_id

from attnbook_course import drawings
from attnbook_course.checks.exercises import Exercise, exercises
from slides.chapter import Chapter
from slides.clicks import in_clicks
from slides.deck import COURSE, PATHS, TITLE_MINUTES, UNHURRIED, Deck, DeckError, Slide
from slides.live import title_of
from slides.question import LETTERS, Question
from slides.slide import SlideWriter

STATIC = Path(__file__).with_name("static")
STILL = re.compile(r'(<div class="attnbook-still"><img [^>]*?src=")data:[^"]*"')
SCRIPT = re.compile(r'<script class="attnbook-live-script">.*?</script>', re.DOTALL)
VIEW = r'<svg\b[^>]*\bviewBox="([^"]*)"'
PICTURE = re.compile(rf'<figure(?: class="diagram")?>(?:<img src="figures/([^"]*)\.svg"|{VIEW})')
OTHERS = re.compile(r'class="(?:question|live|bars|code|printed)')
# Pictures: how high a wide and a tall one is in its width, a slide's height, the largest widths.
WIDE, TALL, HEIGHT, WIDEST = 0.56, 0.65, 720, {"plot": 917, "drawing": 640}
FORMULA = re.compile(r"```\{formula\} (\S+)\n```")  # a directive, in a question's text


@cache
def template(name: str) -> str:
    """A template of this folder."""
    return (STATIC / name).read_text("utf-8")


def fill(page: str, **parts: str) -> str:
    """The template with %NAME% replaced."""
    return re.sub(r"%([A-Z]+)%", lambda found: parts[found[1].lower()], page)


class PageWriter(SlideWriter):
    """Writes a deck's page."""

    def page(self) -> str:
        """The page; DeckError where the deck asks for what the chapter does not have."""
        deck = self.deck
        self.homework = exercises_of(deck, self.chapter)
        minute, slides = TITLE_MINUTES, []
        for number, slide in enumerate(deck.slides, 2):
            self.slide, self.line = slide, slide.line
            if slide.section not in self.chapter.sections:
                where = self.chapter.page.docname
                raise self.error(f"{where} has no section {slide.section!r}")
            minute += slide.minutes
            slides.append(self.section(slide, number, minute))
        self.line = 1
        address = self.chapter.book.site
        return fill(
            template("deck.html"),
            title=escape(deck.about["title"]),
            book=escape(self.chapter.book.title),
            number=deck.number,
            place=place_of(deck),
            chapter=escape(self.chapter.title),
            link=f"../{self.chapter.page.docname}.html",
            outcomes="".join(f"<li>{self.inline(one)}</li>" for one in deck.about["outcomes"]),
            notes=self.markdown(deck.about.get("notes", ""), 1),
            opening=self.markdown(deck.about["opening"], 1),
            qr=qr(f"{address}/lectures/{deck.name}.html") if address else "",
            hint="" if address else NO_ADDRESS,
            rung=in_clicks(drawings.rung(int(deck.number[:-1])), []),
            minutes=f"{minute:g}",
            slides="\n".join(slides),
        )

    def section(self, slide: Slide, number: int, minute: float) -> str:
        """A slide, which ends at this minute of the long course."""
        self.notes, asked = [], len(self.questions)
        body = self.text(slide.body, slide.first)
        self.line = slide.line
        for question in self.questions[asked:]:
            reasons = "".join(
                f"<li><b>{letter}</b> {self.inline(choice.misconception)}</li>"
                for letter, choice in zip(LETTERS, question.choices, strict=False)
                if choice.misconception
            )
            self.notes.append(f"<p>Who says so:</p><ul>{reasons}</ul>")
        if not self.notes or (len(self.questions) > asked and len(self.notes) < 2):
            raise self.error("no notes for the lecturer on this slide: expected {notes}")
        anchor = make_id(slide.section)
        layout, width = self.layout(body)
        kind = " ".join(("slide", *slide.classes, *layout))
        style = f' style="--art: {width}px"' if width else ""
        paths = [path for path in (*PATHS, UNHURRIED) if slide.minutes_in(path)]
        shown = f' data-paths="{" ".join(paths)}"' if len(paths) <= len(PATHS) else ""
        vote = f' data-vote="{round(60 * slide.minutes_in(UNHURRIED))}"' if slide.asks else ""
        spare = ". <em>May be left out.</em>" if slide.spare else ""
        return (
            f'<section id="{make_id(slide.title)}" class="{kind}"{shown}{vote}{style} '
            f'data-timing="{round(60 * slide.minutes)}" aria-labelledby="t{number}">'
            f'<h2 id="t{number}">{self.inline(slide.title)}</h2>'
            f'<div class="body">{body}</div><footer>'
            f'<a href="../{self.chapter.page.docname}.html#{anchor}">{escape(slide.section)}</a>'
            f"<span>{self.deck.number} · {number}</span></footer>"
            f'<aside class="notes"><p class="clock"><b>{slide.minutes:g} min</b>, until minute '
            f"<span>{minute:g}</span>{spare}</p>{''.join(self.notes)}</aside></section>"
        )

    def layout(self, body: str) -> tuple[list[str], int]:
        """Where a slide's one picture stands, as a class, and how wide it is.

        A tall one gets the screen's whole height, beside title and text; a wide plot gets the
        whole width, above the text that is its column's neighbour.
        """
        pictures = PICTURE.findall(body)
        if 'class="stacked"' in body:  # in one place, and of one shape
            pictures = [*set(pictures)]
        if len(pictures) != 1 or OTHERS.search(body):
            return [], 0
        plot, view = pictures[0]
        if plot and (found := re.search(VIEW, self.figures[plot])):
            view = found[1]
        _, _, width, height = map(float, view.split())
        if plot and 'class="columns"' in body:
            return ["wide"] if height < WIDE * width else [], 0
        if height < TALL * width:
            return [], 0
        return ["tall"], round(min(HEIGHT * width / height, WIDEST["plot" if plot else "drawing"]))

    def exercises_directive(self, _: str, given: dict[str, str], body: str, line: int) -> str:
        """What to do until the next lecture: the exercises of the front matter."""
        return exercise_table(self.homework, self.chapter)


NO_ADDRESS = (
    "<p>The square that brings these slides to a phone is missing: this copy of the book has no "
    "address in <code>pyproject.toml</code>.</p>"
)


def place_of(deck: Deck) -> str:
    """A lecture's place in the course, or that it comes after it."""
    return "A further lecture" if deck.is_further else f"Lecture {deck.place} of {COURSE}"


def exercises_of(deck: Deck, chapter: Chapter) -> list[Exercise]:
    """The exercises that the front matter names."""
    known = {one.label: one for one in exercises(chapter.page.path)}
    for label in deck.about["exercises"]:
        if label not in known:
            have = ", ".join(known)
            raise DeckError(f"{deck.path.name}:1: exercises: got {label!r}, expected of {have}")
    return [known[label] for label in deck.about["exercises"]]


def exercise_table(chosen: list[Exercise], chapter: Chapter) -> str:
    """A table of exercises, each with its minutes and level."""
    rows = "".join(
        f'<span class="min">{one.minutes} min</span><span class="level">{one.level}</span>'
        f'<a href="../{chapter.page.docname}.html#{one.label}">{escape(one.name)}</a>'
        for one in chosen
    )
    return f'<div class="todo">{rows}</div>'


def qr(address: str) -> str:
    """An address as a QR code, in the colour of the text."""
    code = segno.make(address, error="m", micro=False)
    svg = code.svg_inline(border=0, omitsize=True, dark="#000", light=None)
    svg = svg.replace("#000", "currentColor")
    label = f'role="img" aria-label="QR code of {escape(address)}"'
    return f'<figure class="qr" {label}>{svg}</figure>'


def live_page(name: str, html: str) -> str:
    """A live figure alone, its controls beside its plots; its script is the site's own."""
    body = SCRIPT.sub(f'<script src="../../_static/live/{name}.js"></script>', html)
    body = STILL.sub(rf'\1../../_static/stills/{name}.webp"', body)
    body = body.replace('class="attnbook-live"', 'class="attnbook-live" data-layout="wide"', 1)
    return fill(template("live.html"), title=title_of(html), body=body)


def plain(question: Question, writer: PageWriter) -> Question:
    """The question with the chapter's formulas in its text; DeckError where it shows more."""
    stem = FORMULA.sub(lambda m: f"$$\n{writer.chapter.formula(m[1])[0]}\n$$", question.stem)
    if "```" in stem or ":::" in stem:
        where = f"{writer.deck.path.name}: question {question.title!r}"
        raise DeckError(f"{where}: got a directive in its text, expected words and formulas only")
    return replace(question, stem=stem)
