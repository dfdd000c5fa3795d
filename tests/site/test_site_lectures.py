"""The slides as they are shown, read on a phone, and printed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest
from cut import TOO_WIDE
from playwright.sync_api import Browser, Frame, Page
from pypdf import PdfReader
from site_visits import SITE, WIDTHS, rests, visiting
from test_site_pages import axe_findings

SCREEN = {"width": 1280, "height": 720}
DECKS = sorted(file.stem for file in (SITE / "lectures").glob("[0-9]*.html")) or ["none"]
FIRST = DECKS[0]  # a weighted average: the one that is tried in every way
LAST_CLICK = """(at) => {
  Reveal.slide(at);
  while (Reveal.availableFragments().next) Reveal.nextFragment();
}"""
# What leaves its box, scrolls or is missing, on the slide that is shown.
OUTSIDE = """() => {
  const slide = Reveal.getCurrentSlide(), body = slide.querySelector(".body"), found = [];
  if (slide.scrollHeight > slide.clientHeight + 1) found.push(`${slide.scrollHeight} pixels high`);
  for (const one of body?.querySelectorAll("p, li, pre, figure, .formula, .katex-html, table, .bars, .map, .live, .answer") ?? []) {
    const inner = one.getBoundingClientRect();
    if (!inner.width) continue;
    const outer = (one.matches(".tall figure") ? slide : one.closest(".column") ?? body).getBoundingClientRect();
    if (inner.bottom > outer.bottom + 1.5 || inner.right > outer.right + 1.5 || inner.top < outer.top - 1.5)
      found.push(`${one.tagName}.${one.className} leaves its box: ${one.textContent.slice(0, 40)}`);
  }
  for (const one of slide.querySelectorAll("pre"))
    if (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
      found.push(`code scrolls: ${one.textContent.slice(0, 40)}`);
  for (const one of slide.querySelectorAll(".katex-display"))
    if (one.scrollWidth > one.clientWidth + 1) found.push(`too wide: ${one.querySelector("annotation").textContent}`);
  for (const one of slide.querySelectorAll("figure:not(.qr) > img"))
    if (!one.naturalWidth) found.push(`no picture: ${one.alt}`);
  return found.map((one) => `${slide.id}: ${one}`);
}"""
# The least type of a slide in pixels, and what has it; a script of a line counts as the line.
LEAST_TYPE = """async () => {
  const slide = Reveal.getCurrentSlide(), found = [];
  const words = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const said = words.currentNode.data.trim(), one = words.currentNode.parentElement;
    if (!said || said === "\\u200b" || !one.getClientRects().length || one.closest(".notes, .katex-mathml, .veil")) continue;
    const drawn = one.closest("text"), scale = drawn ? drawn.getScreenCTM().a : 1;
    found.push([parseFloat(getComputedStyle(drawn ?? one.closest(".katex") ?? one).fontSize) * scale, said]);
  }
  for (const one of slide.querySelectorAll("figure > img")) {
    const svg = await (await fetch(one.src)).text();
    const types = [...svg.matchAll(/ scale\\((0\\.\\d+) -0/g)].map((type) => 100 * type[1]);
    if (!types.length) throw Error(`no type in ${one.src}`);
    const [width, height] = /viewBox="\\S+ \\S+ (\\S+) ([^"]+)"/.exec(svg).slice(1);
    found.push([Math.min(...types) * Math.min(one.clientWidth / width, one.clientHeight / height), one.alt]);
  }
  return found.sort((a, b) => a[0] - b[0])[0];
}"""
LEAST = 20  # pixels of 720 that the last row of a room can read
# Pictures whose own design has smaller type even at a slide's size; a larger one leaves this list.
SMALLER = {
    "chapter-12-changes-nothing-in-the-result": 18,
    "gained-no-device-must-hold-it-all": 18,
    "one-drawing-has-all-three-machines": 17,
}
HEIGHTS = "[document.documentElement.scrollHeight, innerHeight]"


def open_deck(page: Page, address: str) -> None:
    """A deck whose slides are laid out."""
    page.goto(address)
    page.wait_for_selector("html[data-ready]")


def live_frame(page: Page) -> Frame:
    """The frame of the live figure that is on the slide, once it is drawn."""
    frame = page.locator(".present .live iframe").element_handle().content_frame()
    assert frame is not None
    frame.wait_for_selector(".attnbook-live[data-ready]")
    return frame


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    with visiting(browser, f"{site}/lectures", viewport=SCREEN) as seen:
        yield seen.page


@pytest.mark.parametrize("deck", DECKS)
def test_every_slide_shows_all_of_itself_also_on_a_phone(
    deck: str, browser: Browser, site: str
) -> None:
    """With all clicks; and the deck asks nobody else, and complains of nothing."""
    with visiting(browser, site, viewport=SCREEN) as seen:
        page, outside, small = seen.page, [], {}
        open_deck(page, f"{site}/lectures/{deck}.html")
        count = page.evaluate("Reveal.getTotalSlides()")
        page.evaluate("document.fonts.ready")
        for at in range(count):
            page.evaluate(LAST_CLICK, at)
            for image in page.query_selector_all(".present figure > img"):
                image.evaluate("(one) => one.decode()")
            outside += page.evaluate(OUTSIDE)
            least, words = page.evaluate(LEAST_TYPE)
            slide = page.evaluate("Reveal.getCurrentSlide().id")
            if least < LEAST - 0.1 or slide in SMALLER:
                small[slide] = (least, words)
            if page.query_selector(".present .live"):
                content, room = rests(live_frame(page), HEIGHTS)
                if content > room:
                    outside.append(f"slide {at + 1}: {content} of {room} pixels")
        assert count >= 15
        assert outside == []
        assert {one: words for one, (_, words) in small.items() if one not in SMALLER} == {}
        for one, (least, _) in small.items():
            assert SMALLER[one] <= least < LEAST - 0.1, f"{one}: {least:.1f} pixels"
        page.set_viewport_size(WIDTHS["phone"])
        page.goto(f"{site}/lectures/{deck}.html?read=notes")
        for button in page.query_selector_all(".question button"):
            button.click()
        assert page.locator(".answer:visible").count() == page.locator(".question").count() >= 3
        assert axe_findings(page) == []
        assert page.evaluate(TOO_WIDE) <= 0


def test_the_speaker_sees_notes_and_steps_and_keys_turn_to_the_dark(page: Page, site: str) -> None:
    open_deck(page, f"{site}/lectures/{FIRST}.html?theme=light#/ignore-x-or-trust-one-point")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    opened.value.wait_for_function(
        "document.querySelector('.speaker-controls-notes .value')?.textContent.includes('Who says so')"
    )
    assert opened.value.locator(".pacing").is_visible()
    opened.value.locator("body").press("PageDown")
    page.wait_for_function("Reveal.getIndices().f >= 0")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("?")
    assert "light or dark" in page.locator(".r-overlay-help").inner_text()
    assert not page.evaluate("Reveal.isPaused()")


def test_the_speakers_notes_fit_mark_the_click_and_say_what_to_skip(page: Page, site: str) -> None:
    """Without scrolling, in the deck whose notes are longest."""
    open_deck(page, f"{site}/lectures/13a-one-model-many-workers.html")
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    speaker, notes = opened.value, ".speaker-controls-notes .value"
    speaker.set_viewport_size({"width": 1280, "height": 800})
    speaker.wait_for_selector(f"{notes} > *")
    for at in range(page.locator("section.slide").count()):
        clock = page.evaluate(
            "(at) => { Reveal.slide(at); return Reveal.getCurrentSlide().querySelector('.clock').textContent; }",
            at,
        )
        speaker.locator(notes).filter(has_text=clock).wait_for()
        panel = speaker.locator("#speaker-controls")
        assert panel.evaluate("(one) => one.scrollHeight <= one.clientHeight"), clock
    marked = page.locator(".present .notes .now")
    page.evaluate("Reveal.slide(9, 0, -1)")
    assert marked.count() == 0
    page.evaluate("Reveal.next()")
    assert marked.all_inner_texts() == ["Click."]
    speaker.wait_for_selector(f"{notes} .now")
    late = page.locator(".late").first
    page.evaluate(
        "(one) => Reveal.slide(Reveal.getIndices(one.closest('section')).h)", late.element_handle()
    )
    to = re.fullmatch(
        r"If late: g (\d+) Enter goes on to “(.*)” and saves [\d.]+ min.", late.text_content() or ""
    )
    assert to is not None
    page.keyboard.type(f"g{to[1]}")
    page.keyboard.press("Enter")
    assert page.locator(".present h2").inner_text() == to[2]


def test_a_question_keeps_its_answer_until_the_click(page: Page, site: str) -> None:
    open_deck(page, f"{site}/lectures/{FIRST}.html#/ignore-x-or-trust-one-point")
    right = page.locator(".present li.right")
    colour = "(one) => getComputedStyle(one).borderTopColor"
    before = right.evaluate(colour)
    assert {one.evaluate(colour) for one in page.locator(".present li.wrong").all()} == {before}
    page.keyboard.press("ArrowRight")
    assert right.evaluate(colour) != before


def test_a_formula_turns_into_the_next_in_its_place(page: Page, site: str) -> None:
    """What both have glides there, its colours stay, and whoever goes back sees the first again."""
    open_deck(page, f"{site}/lectures/{FIRST}.html#/from-1964-to-2017-a-term-a-click")
    parts = page.locator(".present .stacked > .part")
    shown = "(parts) => parts.map((one) => getComputedStyle(one).visibility === 'visible')"
    assert parts.evaluate_all(shown) == [True] + [False] * (parts.count() - 1)
    page.keyboard.press("ArrowRight")
    assert parts.evaluate_all(shown)[:3] == [False, True, False]
    query = parts.nth(1).locator(".katex-html .mathnormal").nth(1)
    moves = "(one) => one.getAnimations().map((all) => Object.keys(all.effect.getKeyframes()[0]))"
    assert query.inner_text() == "q" and "left" in query.evaluate(moves)[0]
    assert "color: var(--drawing-queries);" in query.get_attribute("style")
    page.keyboard.press("ArrowLeft")
    assert parts.evaluate_all(shown)[:2] == [True, False]


def test_bars_grow_in_one_place_and_all_parts_have_room_on_paper(page: Page, site: str) -> None:
    deck = f"{site}/lectures/03a-six-scores.html"
    open_deck(page, f"{deck}#/a-cold-softmax-gives-the-best-key-everything")
    page.keyboard.press("ArrowRight")
    bar = page.locator(".present .part.visible .bar b").first
    assert bar.evaluate("(one) => one.getAnimations().length") == 1
    page.set_viewport_size({"width": 700, "height": 1000})
    page.goto(f"{deck}?read")
    page.emulate_media(media="print")
    room = "(part) => part.closest('.slide').querySelector('footer').getBoundingClientRect().top - part.getBoundingClientRect().bottom"
    assert min(page.locator(".stacked > .part").evaluate_all(f"(all) => all.map({room})")) >= 0


@pytest.mark.parametrize(("path", "least", "most"), [("6", 27, 33), ("45", 42, 45)])
def test_a_short_course_leaves_slides_out_and_keeps_its_time(
    page: Page, site: str, path: str, least: int, most: int
) -> None:
    open_deck(page, f"{site}/lectures/{FIRST}.html?path={path}")
    whole = (SITE / "lectures" / f"{FIRST}.html").read_text("utf-8").count("<section ")
    assert 8 <= page.locator("section.slide").count() < whole
    minutes = page.evaluate(
        "[...document.querySelectorAll('.clock span:not(.all)')].map((s) => Number(s.textContent))"
    )
    assert minutes == sorted(minutes) and least <= minutes[-1] <= most
    votes = page.locator("section[data-vote] .clock b").all_text_contents()
    assert (set(votes) == {"4.5 min"}) is (path == "45")


def test_each_chapter_leads_to_its_slides(page: Page, site: str) -> None:
    chapters = sorted((SITE / "chapters").glob("[0-9]*.html"))
    assert chapters
    for chapter in chapters:
        text = chapter.read_text("utf-8")
        (place,) = re.findall(r'class="slides-of-chapter[^"]*".*?</p>', text, re.DOTALL)
        links = [link.rpartition("/")[2] for link in re.findall(r'href="([^"]*)"', place)]
        assert [link[:3] for link in links] == [f"{chapter.name[:2]}a", f"{chapter.name[:2]}b"]
        assert all((SITE / "lectures" / link).is_file() for link in links)
    page.goto(f"{site}/lectures/")
    page.wait_for_url("**/appendices/teach.html#schedules")


def test_paper_has_no_answer(page: Page, site: str) -> None:
    """Two slides a page."""
    html = (SITE / "lectures" / f"{FIRST}.html").read_text(encoding="utf-8")
    answers = re.findall(r'class="fragment answer">(.*?)</div></div></div>', html, re.DOTALL)
    found = re.findall(r"<p>([^<]{20,})</p>|<strong>([^<]{12,})", "".join(answers))
    told = [first or second for first, second in found]
    page.goto(f"{site}/lectures/{FIRST}.html?read")
    page.evaluate("document.fonts.ready")
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    text = re.sub(r"\s+", "", "".join(one.extract_text() for one in printed.pages))
    assert len(printed.pages) <= html.count("<section ") / 2 + 1
    assert told and not any(re.sub(r"\s+", "", words) in text for words in told)
