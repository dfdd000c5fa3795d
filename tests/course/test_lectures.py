"""The decks: their grammar, what they take from the chapters, and what each lecture has."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from slides import ROOT
from slides.build import Desk, desk, sources
from slides.clicks import draw, in_clicks
from slides.deck import COURSE, PATHS, UNHURRIED, DeckError, clicks, options, read_deck
from slides.page import PageWriter

from attnbook_course import drawings

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.md"))
NAMES = [f"{int(path.name[:2])}{half}" for path in CHAPTERS for half in "ab"]
DECKS = {path.name[:3].lstrip("0"): path for path in sources(ROOT)}
# the courses' shares of a lecture, title included: in minutes
LONG, SHORT = (42, 50), (27, 33)
SPARE = (5, 8)  # minutes of a lecture that may be left out when a question takes longer
WHOLE_OF_TWELVE = ("1a", "2b", "5a", "6b", "8a", "9b")
HEAD = """---
number: 1a
chapter: 01-kernel-regression
title: A title
opening: It opens.
outcomes: [say so]
exercises: [ex-parabola]
---
# The bandwidth: how far to look

## A claim
:minutes: 2
"""
# a decimal number of two digits or more, and what of a slide may have one
NUMBER = re.compile(r"(?<![\d.])(?:0\.0*[1-9]\d+|[1-9]\d*\.\d+)(?!\d|\.\d)")
OTHERS = (
    re.compile(r"^(`{3,}|:{3,})\{(?:notes|question)\}.*?^\1$", re.DOTALL | re.MULTILINE),
    re.compile(r"\{printed\}`[^`]*`|`[^`]*`"),
    re.compile(r"^(?:[`:]{3,}\{.*|:[a-z-]+:.*)$", re.MULTILINE),
    re.compile(r"\$\$.*?\$\$", re.DOTALL),
    re.compile(r"\$[^$]*\$"),
)
# what notes say where the class answers first, and what keeps the answer until then
ASKS_FIRST = re.compile(
    r"before (?:you|they) (?:show|read|point|look)|before the (?:first )?clicks?\b"
    r"|[Cc]over (?:it|them|the)\b|[Hh]ide it\b"
)
KEEPS = re.compile(r"^(?:\+{3}$|:clicks:|`{3,}\{(?:question|live)\})", re.MULTILINE)
# notes by which what is shown first must wait, and what that may be
SHOWS_LATER = re.compile(r"before (?:you|they) (?:show|read) |then show the (?:bars|lines)")
SHOWS = re.compile(r"^(?:`{3,}\{(?:output|bars|figure)\}|\| |:output:)", re.MULTILINE)
# what is taken from a chapter, and its options
TAKING = re.compile(r"^`{3,}\{(?:cell|output)\} .*\n((?::[a-z]+:.*\n)*)", re.MULTILINE)
# a name that code calls, one that stands in it, one that it makes
CALLED = re.compile(r"(?<![\w.])(?<!def )(?<!class )([A-Za-z_]\w*)\(")
STANDS = re.compile(r"\b(?:def|class) (\w+)|(?<![\w.])([A-Za-z_]\w*)\b(?!\()")
NOTES = "\n```{notes}\nSay it.\n```\n"


@pytest.fixture(scope="module")
def book() -> Iterator[Desk]:
    with desk(ROOT) as found:
        yield found


@pytest.fixture(scope="module")
def written(book: Desk) -> dict[str, tuple[PageWriter, str]]:
    """Every deck's writer, and its page."""
    writers = {name: book.writer(read_deck(path)) for name, path in DECKS.items()}
    return {name: (writer, writer.page()) for name, writer in writers.items()}


def page_of(book: Desk, tmp_path: Path, text: str) -> tuple[PageWriter, str]:
    path = tmp_path / "01a-tried.md"
    path.write_text(text, encoding="utf-8")
    writer = book.writer(read_deck(path))
    return writer, writer.page()


def test_each_chapter_has_two_lectures():
    assert list(DECKS) == NAMES
    assert len(NAMES) >= COURSE
    for name, path in DECKS.items():
        deck = read_deck(path)
        assert deck.number == name
        assert deck.about["chapter"][:2] == f"{int(name[:-1]):02d}"


@pytest.mark.parametrize("name", DECKS)
def test_a_lecture_has_what_a_lecturer_needs(name, written):
    writer, page = written[name]
    deck = writer.deck
    assert LONG[0] <= deck.minutes() <= LONG[1]
    assert SHORT[0] <= deck.minutes("6") <= SHORT[1]
    assert deck.minutes(UNHURRIED) <= int(UNHURRIED)
    same = ("18", "6") if deck.is_further else ("18",) if name in WHOLE_OF_TWELVE else ("6",)
    assert deck.minutes("12") in map(deck.minutes, same)
    place = "A further lecture" if deck.is_further else f"Lecture {NAMES.index(name) + 1} of 18"
    assert f'<p class="lecture">{place}</p>' in page
    assert len(writer.questions) >= 3
    kept = {slide.title for slide in deck.slides if PATHS[-1] in slide.paths}
    assert sum(question.title in kept for question in writer.questions) >= 2
    assert page.count('<aside class="notes">') == len(deck.slides) + 1
    assert "{exercises}" in deck.slides[-1].body
    assert SPARE[0] <= sum(slide.minutes for slide in deck.slides if slide.spare) <= SPARE[1]
    assert page.count("<em>May be left out.</em>") == sum(slide.spare for slide in deck.slides)
    asked = {question.title for question in writer.questions}
    assert not [slide.title for slide in deck.slides if slide.spare and slide.title in asked]
    for slide in deck.slides:
        # a minute alone, a vote, two minutes in pairs and a second vote
        assert slide.minutes >= (3.5 if slide.title in asked else 1), slide.title
        words = re.findall(r"```\{notes\}\n(.*?)```", slide.body, re.DOTALL)[0].split()
        assert len(words) >= 25, slide.title


def test_no_right_answer_has_a_favourite_place(written):
    places = [
        [choice.is_right for choice in question.choices].index(True)
        for writer, _ in written.values()
        for question in writer.questions
    ]
    assert max(places.count(place) for place in set(places)) < len(places) / 2


@pytest.mark.parametrize("name", DECKS)
def test_the_notes_speak_of_no_click_that_is_not_there(name, written):
    for slide in re.findall(r"<section .*?</section>", written[name][1], re.DOTALL)[1:]:
        body, notes = slide.split('<aside class="notes">')
        clicks = len(re.findall(r'class="[^"]*\bfragment\b', body))
        labels = re.findall(r"<strong>Clicks?\b[^<]*", notes)
        highest = max([0, *map(int, re.findall(r"\d+", "".join(labels)))])
        assert (highest or len(labels)) <= clicks, labels


def tells_too_early(body: str) -> bool:
    """Whether a slide's notes let the class answer first, and what it shows does not wait."""
    notes = "".join(re.findall(r"^`{3}\{notes\}\n(.*?)^`{3}$", body, re.DOTALL | re.MULTILINE))
    at_once = re.split(r"(?m)^(?:\+{3}$|`{3,}\{(?:question|notes)\})", body, maxsplit=1)[0]
    if SHOWS_LATER.search(notes) and SHOWS.search(at_once):
        return True
    return bool(ASKS_FIRST.search(notes)) and not KEEPS.search(body)


@pytest.mark.parametrize("name", DECKS)
def test_what_the_class_is_asked_first_waits_for_a_click(name):
    slides = read_deck(DECKS[name]).slides
    assert [slide.title for slide in slides if tells_too_early(slide.body)] == []


def says_nothing(options: str) -> bool:
    """Whether a taking does not say what it must have, or not of what was printed."""
    named = re.search(r"^:(?:has|mark): *\S", options, re.MULTILINE)
    return not named or bool(re.search(r"^:output: *$", options, re.MULTILINE))


@pytest.mark.parametrize("name", DECKS)
def test_what_is_taken_says_what_it_must_have(name):
    text = DECKS[name].read_text(encoding="utf-8")
    takings = list(TAKING.finditer(text))
    assert [one[0] for one in takings if says_nothing(one[1])] == []
    marked = [one for one in takings if ":has:" in one[1]]
    assert all(says_nothing(re.sub(":has:.*\n", "", one[1])) for one in marked)


def unexplained(page: str) -> list[str]:
    """What a deck's code calls and no slide up to there shows, nor names as code in its words."""
    known, found = {*dir(builtins), *keyword.kwlist, "softmax"}, []  # a word of every lecture
    for section in page.split("<section ")[1:]:
        code = "\n".join(re.findall(r'<pre class="code".*?</pre>', section, re.DOTALL))
        code = unescape(re.sub(r"<[^>]*>", "", code))
        prose = re.sub(r"<pre.*?</pre>", "", section, flags=re.DOTALL)
        words = "".join(re.findall(r"<code>.*?</code>", prose))
        known |= {*re.findall(r"\w+", words)} | {a or b for a, b in STANDS.findall(code)}
        found += [name for name in CALLED.findall(code) if name not in known]
    return found


@pytest.mark.parametrize("name", DECKS)
def test_what_code_calls_is_shown_or_explained(name, written):
    assert unexplained(written[name][1]) == []


@pytest.mark.parametrize("name", DECKS)
def test_no_result_is_typed(name, written):
    """No number that the chapter printed stands on a slide but by a role; questions may name it."""
    writer, _ = written[name]
    printed = set(NUMBER.findall(" ".join(cell.printed for cell in writer.chapter.cells)))
    for slide in writer.deck.slides:
        text = slide.body
        for other in OTHERS:
            text = other.sub("", text)
        assert not printed & set(NUMBER.findall(text)), slide.title


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{printed}`never printed ([0-9])`", "13: prints nothing for 'never printed ([0-9])'"),
        (
            "{printed}`def no_such :: (.)`",
            "13: no line of code in chapters/01-kernel-regression begin",
        ),
        (
            "```{output} def held_out\n:after: ^never\n:has: .\n```",
            "13: after: no printed line has",
        ),
        ("```{cell} def local_average\n:to: nowhere\n```", "13: to: no line after"),
        ("```{cell} def local_average\n:mark: near\n:too: x\n```", "13: takes no option too"),
        ("```{cell} def local_average\n:has: ne+r_\n```", "13: has: no 'ne+r_' in the lines taken"),
        ("```{output} def held_out\n```", "13: has: got nothing, expected what the lines taken"),
        ("```{output} def held_out\n:has: (\n```", "13: has: '(' is no regular expression"),
        ("```{figure} fig-none\n```", "13: has no figure 'fig-none'"),
        ("```{figure} fig-bandwidths\n:without: truths\n```", "13: without: got 'truths', expect"),
        ("```{figure} fig-valley\n:without: truth\n```", "13: without: no curve of the figure"),
        (
            "```{solution} build-2\n:clicks: a\n```",
            "13: no solution in code 'build-2'; of build-1,",
        ),
        ("```{solution} build-1\n:clicks: K\n```", "13: clicks: 0 lines of the code begin 'K'"),
        ("```{solution} build-1\n:clicks: return | s =\n```", "13: clicks: return | s = do not"),
        ("```{stack}\na\n```", "13: stack: got one part, expected two or more"),
        ("```{diagram} nothing\n```", "13: no drawing 'nothing'; there are"),
        (
            "```{diagram} rung\n:width: 3\n```",
            "13: rung() got an unexpected keyword argument 'width'",
        ),
        ("```{diagram} block\n:from: inside\n```", "13: from: got 'inside', expected one of top"),
        ("```{live} live-none\n```", "13: has no live figure 'live-none'"),
        ("```{live} live-kernel-regression\n:set: kernel=a\n```", "13: kernel has no 'a'; it has"),
        ("```{bars}\na :: much\n```", "14: bars: got 'a :: much', expected name :: number"),
        (
            "```{map} def kernel_weights\n:has: 0\n:names: a | b\n```",
            "13: map: got ",
        ),
        ("```python\n1\n```", "13: no directive 'python'; code of the chapter is a {cell}"),
        ("{eq}`eq-none`", "13: no page of the book has the label 'eq-none'"),
        ("::::{columns} 1fr 1fr\n:::{column}\na\n:::\n::::", "14: columns: 1 fewer columns than"),
        ("```{question}\n- [x] a\n- [x] b\n---\nc\n```", "14: one of them [x]"),
        (
            "```{question}\n- [x] a %% b\n- [ ] b %% c\n---\nc\n```",
            "14: what misleads stands behind %%",
        ),
    ],
)
def test_what_the_chapter_does_not_have_stops_it(book, tmp_path, body, message):
    with pytest.raises(ValueError) as error:
        page_of(book, tmp_path, HEAD + body + "\n" + NOTES)
    line, _, words = message.partition(": ")
    place, _, said = str(error.value).partition(": ")
    assert place == f"01a-tried.md:{line}"
    assert any(part in said for part in words.split("|")), said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("---\nnumber", "number", "01a-tried.md:1: expected front matter"),
        ("title: A title\n", "", "expected number, chapter, title, opening"),
        ("01-kernel-regression", "01-nothing", "chapter: "),
        ("# The bandwidth: how far to look", "", "01a-tried.md:11: no section of the chapter"),
        (":minutes: 2", ":minutes: few", "01a-tried.md:12: got the option :minutes: few; expected"),
        (":minutes: 2", ":minutes: 2\n:paths: 6", ":paths: 6; expected minutes"),
        (
            "## A claim\n:minutes: 2",
            "## A claim\n:minutes: 2\n## A claim\n:minutes: 2",
            "md:13: the title",
        ),
    ],
)
def test_a_deck_that_is_none_is_told_where(book, tmp_path, old, new, message):
    assert old in HEAD
    with pytest.raises(DeckError) as error:
        page_of(book, tmp_path, HEAD.replace(old, new, 1) + NOTES)
    assert message in str(error.value)
    assert str(error.value).startswith("01a-tried.md:")


def test_a_slide_without_notes_stops_it(book, tmp_path):
    with pytest.raises(DeckError, match=r"01a-tried.md:11: no notes"):
        page_of(book, tmp_path, HEAD + "Text.\n")


def test_a_cell_comes_with_its_output_and_a_marked_line(book, tmp_path):
    body = "```{cell} def left_out_error\n:output: choose 0\n:mark: np.mean\n```\n"
    _, page = page_of(book, tmp_path, HEAD + body + NOTES)
    code, printed = re.findall(r"<pre.*?</pre>", page, re.DOTALL)
    assert 'class="hll"' in code
    plain = re.sub(r"<.*?>", "", printed)
    assert re.fullmatch(r"the others choose 0\.\d\d, .* 0\.\d+", plain)


def test_a_cell_is_typed_in_steps_and_what_it_printed_is_cut(book, tmp_path):
    """Behind the last line that is found; and a number that many cells print is one cell's."""
    body = """```{cell} class Smallest(nn.Module):
:to: return self.readout
:has: readout
:clicks: def embed | def forward
```

```{output} one_block = grow
:after: bits per held-out character$
:has: ^The expression
:most: 1
```

```{bars} 7
last character :: {printed}`smallest = grow :: ^([\\d.]+) bits per held-out`
+++
mean :: {printed}`mean_of_past = grow :: ^([\\d.]+) bits per held-out` :: now
```
"""
    path = tmp_path / "08a-tried.md"
    head = HEAD.replace("1a", "8a").replace("01-kernel-regression", "08-three-transformers")
    head = head.replace("ex-parabola", "ex-packed").replace(
        "The bandwidth: how far to look", "Nine pieces"
    )
    path.write_text(head + body + NOTES, encoding="utf-8")
    writer = book.writer(read_deck(path))
    page = writer.page()
    code, printed = re.findall(r"<pre.*?</pre>", page, re.DOTALL)
    assert code.count('class="step fragment"') == 2
    both = re.findall(
        "^The expression.*", writer.chapter.cell("one_block")[0].printed, re.MULTILINE
    )
    assert len(both) == 2 and unescape(re.sub(r"<.*?>", "", printed)) == both[1]
    assert re.findall(r'class="bar ([^"]*)"', page) == ["", "now fragment"]


def test_a_solution_is_typed_in_steps_and_has_every_line_once(book, tmp_path):
    """But for its docstring; and formulas in one place have the colours of drawings."""
    body = "```{solution} build-1\n:clicks: squares | weights\n```\n"
    formulas = "\n```{stack}\n$$\n\\Q{q}\n$$\n+++\n$$\n\\K{k}\n$$\n```\n"
    writer, page = page_of(book, tmp_path, HEAD + body + formulas + NOTES)
    (code,) = re.findall(r"<pre.*?</pre>", page, re.DOTALL)
    first, *steps = code.split('<span class="step fragment">')
    assert [part.count("\n") for part in (first, *steps)] == [1, 3, 2]
    typed = unescape(re.sub("<.*?>", "", code)).strip().split("\n")
    assert typed == [
        one for one in writer.chapter.solution("build-1").strip().split("\n") if '"""' not in one
    ]
    parts = page.split('<div class="part')[1:]
    assert [part.startswith(" fragment") for part in parts] == [False, True]
    for part, role in zip(parts, ("queries", "keys"), strict=True):
        assert f";color:var(--drawing-{role})" in part and "#0000a" not in part


def test_long_code_is_typed_on_two_slides(book, tmp_path):
    """The second part stands as far left as the page allows, and no line is lost between them."""
    parts = (":to: squares\n:clicks: squares", ":from: s =\n:clicks: s = | return")
    body = "".join(f"```{{solution}} build-1\n{part}\n```\n" for part in parts)
    writer, page = page_of(book, tmp_path, HEAD + body + NOTES)
    found = re.findall(r"<pre.*?</pre>", page, re.DOTALL)
    first, second = (unescape(re.sub("<.*?>", "", code)).strip("\n") for code in found)
    assert first.startswith("def ") and second.startswith("s =")
    lines = writer.chapter.solution("build-1").strip().split("\n")
    kept = [one.strip() for one in lines if '"""' not in one]
    assert [one.strip() for one in f"{first}\n{second}".split("\n")] == kept


def test_a_map_is_darkest_at_the_largest_number_and_rings_equal_ones(written):
    (table,) = re.findall(r'<div class="map".*?</div></div>', written["5b"][1], re.DOTALL)
    cells = re.findall(r"--heat: (\d+)%\">([^<]*)<", table)
    numbers = [float(said.replace("−", "-")) for _, said in cells]
    heats = [int(heat) for heat, _ in cells]
    assert sorted(numbers) == [number for _, number in sorted(zip(heats, numbers, strict=True))]
    rings = re.findall(r"grid-area: (\d) / (\d)", table)
    assert len(rings) == 2
    assert len({numbers[6 * (int(i) - 2) + int(j) - 2] for i, j in rings}) == 1


def test_clicks_are_cut_outside_of_fences():
    cut = [(0, "a"), (2, "b\n```\n+++\n```"), (7, "c")]
    assert clicks("a\n+++\nb\n```\n+++\n```\n+++\nc") == cut
    given, body = {"to": "x", "mark": "y"}, "body\n:no: z"
    assert options(f":to: x\n:mark: y\n{body}") == (given, body, 2)


def test_a_drawing_in_clicks_has_every_part_once():
    whole = draw("weighted_average", {})
    svg = in_clicks(whole, ["distances", "118", "weights"])
    assert svg.count('class="fragment"') == 3
    for tag in ("<text", "<path", "<circle", "<polygon", "<line", "<rect"):
        assert svg.count(tag) == whole.svg.count(tag)
    first, *groups = re.split('<g class="fragment">', svg)
    assert ">keys<" in first and ">distances<" not in first
    assert ">distances<" in groups[0] and ">weights<" in groups[2]
    assert all(f">14.{head}<" in draw("sentence", {"heads": "14 1, 14 9"}).svg for head in (1, 9))
    turned = in_clicks(drawings.show("block"), [], "bottom")
    assert "fragment" not in turned and ", #" not in turned
