"""The slides as they are shown, read on a phone, and printed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import handouts
import pytest
from firefox import Firefox
from playwright.sync_api import Browser, Frame, Page
from pypdf import PdfReader
from site_visits import SITE, WIDTHS, next_frames, rests, run_tool, visiting
from test_site_pages import COLOURS, TOO_WIDE, axe_findings

SCREEN = {"width": 1280, "height": 720}
DECKS = sorted(file.stem for file in (SITE / "lectures").glob("[0-9]*.html")) or ["none"]
FIRST = DECKS[0]  # a weighted average: the one that is tried in every way
LAST_CLICK = """(at) => {
  Reveal.slide(at);
  while (Reveal.availableFragments().next) Reveal.nextFragment();
}"""
# What leaves its box, is cut, scrolls or is too small to see, on the slide that is shown.
OUTSIDE = """() => {
  const slide = Reveal.getCurrentSlide(), body = slide.querySelector(".body"), found = [];
  if (slide.scrollHeight > slide.clientHeight + 1) found.push(`${slide.scrollHeight} pixels high`);
  for (const one of body?.querySelectorAll("p, li, pre, figure, .formula, .katex-html, table, .bars, .live, .answer") ?? []) {
    const inner = one.getBoundingClientRect();
    if (!inner.width) continue;
    const outer = (one.closest(".column") ?? body).getBoundingClientRect();
    if (inner.bottom > outer.bottom + 1.5 || inner.right > outer.right + 1.5 || inner.top < outer.top - 1.5)
      found.push(`${one.tagName}.${one.className} leaves its box: ${one.textContent.slice(0, 40)}`);
  }
  for (const one of slide.querySelectorAll("pre"))
    if (one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1)
      found.push(`code scrolls: ${one.textContent.slice(0, 40)}`);
  for (const one of slide.querySelectorAll("figure:not(.qr) > :is(img, svg)")) {
    const { width, height } = one.getBoundingClientRect();
    if (one.complete === false || one.naturalWidth === 0) found.push(`no picture: ${one.alt}`);
    if (Math.min(width, 2 * height) < 240) found.push(`a small picture, ${width} by ${height}`);
  }
  return found.map((one) => `${slide.id}: ${one}`);
}"""
PLACE = """(x) => {
  const [view] = [...Bokeh.index.query((v) => v.model.type === "Figure")];
  const { x_range: range } = view.model, frame = view.frame.bbox, box = view.el.getBoundingClientRect();
  const share = (x - range.start) / (range.end - range.start);
  return {
    x: (box.x + frame.left + share * (frame.right - frame.left)) / innerWidth,
    y: (box.y + (frame.top + frame.bottom) / 2) / innerHeight,
  };
}"""
FRAME_BOX = """(({ x, y, width }) => [x, y, width])(
  document.querySelector(".present iframe").getBoundingClientRect())"""
HEIGHTS = "[document.documentElement.scrollHeight, innerHeight]"
QUERY = """() => [...Bokeh.documents[0]._all_models.values()].find((m) => m.title === "query x").value"""
CROWDED_NOTES = """() => [...document.querySelectorAll(".slide")].filter((slide, i, all) => {
  const notes = slide.querySelector(".notes").getBoundingClientRect(), next = all[i + 1]?.getBoundingClientRect();
  return next && next.top > notes.top ? notes.bottom > next.top : notes.height > 190;
}).map((slide) => slide.id)"""


def deck_at(site: str, deck: str = FIRST, query: str = "") -> str:
    return f"{site}/lectures/{deck}.html{query}"


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


# every option of every menu, and both ends of every slider: nothing may be higher than the frame
STATES = """async () => {
  const all = [...Bokeh.documents[0]._all_models.values()], found = [];
  const controls = Bokeh.index.roots[0].child_views[1].el;
  const look = async (what) => {
    for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    const { scrollHeight, scrollWidth } = document.documentElement;
    if (scrollHeight > innerHeight || scrollWidth > innerWidth)
      found.push(`${what}: ${scrollWidth} by ${scrollHeight} of ${innerWidth} by ${innerHeight} pixels`);
    return controls.getBoundingClientRect().height / (controls.style.zoom || 1);
  };
  await look("at first");
  for (const one of all.filter((m) => m.type === "Select")) {
    let [value, most] = [one.value, 0];
    for (const option of one.options) {
      one.value = Array.isArray(option) ? option[0] : option;
      const height = await look(`${one.title}: ${one.value}`);
      if (height > most) [value, most] = [one.value, height];
    }
    one.value = value; // the highest stays for the others
  }
  for (const one of all.filter((m) => m.type === "Slider" && m.visible)) {
    const { value } = one;
    for (const end of [one.start, one.end]) {
      one.value = end;
      await look(`${one.title}: ${end}`);
    }
    one.value = value;
  }
  return found;
}"""
SHOW_LIVE = """(which) => Reveal.slide([...document.querySelectorAll("section.slide")]
  .indexOf(document.querySelectorAll(".live")[which ?? 0].closest(".slide")))"""
IN_THE_MIDDLE = """() => {
  const { x, y, width, height } = document.querySelector(".present .live").getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2).closest(".veil, iframe").tagName;
}"""
# the lower deck of each chapter's two shows its figure; the same as the other's but for 12 and 13
OF_FIGURES = [
    next(iter(decks), "none")
    for decks in ([d for d in DECKS if d[:2] == f"{n:02}"] for n in range(1, 14))
]
LARGEST = [deck for deck in DECKS if deck[:3] == "02b"]  # three heads, and the least room


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    with visiting(browser, site, viewport=SCREEN) as seen:
        yield seen.page


@pytest.mark.parametrize("deck", DECKS)
def test_every_slide_shows_all_of_itself(deck: str, in_fonts: Browser, site: str) -> None:
    """With all clicks; and the deck asks nobody else, and complains of nothing."""
    with visiting(in_fonts, site, viewport=SCREEN) as seen:
        page, outside = seen.page, []
        open_deck(page, deck_at(site, deck))
        count = page.evaluate("Reveal.getTotalSlides()")
        page.evaluate("document.fonts.ready")
        for at in range(count):
            page.evaluate(LAST_CLICK, at)
            for image in page.query_selector_all(".present figure > img"):
                image.evaluate("(one) => one.decode()")
            outside += page.evaluate(OUTSIDE)
            if page.query_selector(".present .live"):
                content, room = rests(live_frame(page), HEIGHTS)
                if content > room:
                    outside.append(f"slide {at + 1}: {content} of {room} pixels")
        assert count >= 15
        assert outside == []


@pytest.mark.parametrize("deck", OF_FIGURES)
@pytest.mark.slow
def test_a_live_figure_fits_its_slide_in_every_state(
    deck: str, in_fonts: Browser, site: str
) -> None:
    """The first of a deck."""
    with visiting(in_fonts, site, viewport=SCREEN) as seen:
        open_deck(seen.page, deck_at(site, deck))
        seen.page.evaluate(SHOW_LIVE)
        frame = live_frame(seen.page)
        rests(frame, HEIGHTS)
        assert frame.evaluate(STATES) == []


@pytest.mark.parametrize("deck", LARGEST)
def test_three_heads_fit_their_slide(deck: str, browser: Browser, site: str) -> None:
    test_a_live_figure_fits_its_slide_in_every_state(deck, browser, site)


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("deck", DECKS)
def test_everyone_can_read_a_deck_also_on_a_phone(
    deck: str, theme: str, browser: Browser, site: str
) -> None:
    phone = {"viewport": WIDTHS["phone"], "has_touch": True, "is_mobile": True}
    with visiting(browser, site, **phone) as seen:
        page = seen.page
        page.goto(deck_at(site, deck, "?read=notes"))
        assert page.evaluate(TOO_WIDE) <= 0
        for button in page.query_selector_all(".question button"):
            button.click()
        assert page.locator(".answer:visible").count() == page.locator(".question").count() >= 3
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        assert axe_findings(page, COLOURS if theme == "dark" else None) == []
        assert page.evaluate(TOO_WIDE) <= 0


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("http", (1280, 720)),
        pytest.param("file", (1280, 720), marks=pytest.mark.slow),
        *(
            pytest.param(scheme, size, marks=pytest.mark.slow)
            for scheme in ("http", "file")
            for size in ((1920, 1080), (1024, 768))
        ),
    ],
)
def test_a_drag_lands_where_the_pointer_is(
    page: Page, site: str, scheme: str, size: tuple[int, int]
) -> None:
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    open_deck(page, deck_at(site if scheme == "http" else SITE.as_uri()))
    page.evaluate(SHOW_LIVE)
    frame = live_frame(page)
    rests(frame, HEIGHTS)
    rests(page, FRAME_BOX)
    at = rests(frame, f"({PLACE})(1)")
    box = page.locator(".present iframe").bounding_box()
    x, y = box["x"] + at["x"] * box["width"], box["y"] + at["y"] * box["height"]
    page.mouse.move(x - 30, y)
    page.mouse.down()
    page.mouse.move(x, y, steps=5)
    page.mouse.up()
    next_frames(frame)
    assert frame.evaluate(QUERY) == pytest.approx(1, abs=0.02)
    before = page.evaluate("Reveal.getIndices().h")
    page.keyboard.press("PageDown")  # a remote control's key, and the figure has the focus
    page.wait_for_function(f"Reveal.getIndices().h === {before} + 1")


OPENED = [  # a deck, which of its live figures, and how that opens
    ("12b", 0, {"parts": 8}),
    ("13a", 0, {"mask": "none", "step": 1}),
    ("13b", 0, {"mask": "causal"}),
    ("13b", 1, {"mask": "none"}),
]
VALUES = """(titles) => Object.fromEntries([...Bokeh.documents[0]._all_models.values()].filter(
  (one) => titles.includes(one.title) && "value" in one).map((one) => [one.title, one.value]))"""


@pytest.mark.parametrize(("deck", "which", "state"), OPENED)
def test_a_live_figure_opens_as_the_notes_want_it(
    deck: str, which: int, state: dict[str, str | int], page: Page, site: str
) -> None:
    (name,) = [one for one in DECKS if one[:3] == deck.zfill(3)]
    open_deck(page, deck_at(site, name))
    page.evaluate(SHOW_LIVE, which)
    frame = live_frame(page)
    frame.wait_for_function(
        f"([titles, state]) => {{ const now = ({VALUES})(titles);"
        " return titles.every((one) => now[one] === state[one]); }",
        arg=[list(state), state],
    )


def test_the_speaker_sees_notes_and_the_pace(page: Page, site: str) -> None:
    open_deck(page, deck_at(site, query="#/3"))
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    speaker = opened.value
    speaker.wait_for_function(
        "document.querySelector('.speaker-controls-notes .value')?.textContent.includes('Who says so')"
    )
    assert speaker.locator(".pacing").is_visible()
    speaker.locator("body").press("PageDown")
    page.wait_for_function("Reveal.getIndices().h === 4 || Reveal.getIndices().f >= 0")


def test_keys_turn_light_and_dark_and_start_the_wait_again(page: Page, site: str) -> None:
    open_deck(page, deck_at(site, query="?theme=light#/3"))
    page.wait_for_selector(".present .wait.runs")
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.goto("about:blank")
    open_deck(page, deck_at(site, query="#/3"))
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.evaluate("document.querySelector('.present .wait').classList.remove('runs')")
    page.keyboard.press("w")
    page.wait_for_selector(".present .wait.runs")


def test_a_question_keeps_its_answer_until_the_click(page: Page, site: str) -> None:
    open_deck(page, deck_at(site, query="#/3"))
    right = page.locator(".present li.right")
    colour = "(one) => getComputedStyle(one).borderTopColor"
    before = right.evaluate(colour)
    others = {one.evaluate(colour) for one in page.locator(".present li.wrong").all()}
    assert others == {before}
    page.keyboard.press("ArrowRight")
    assert right.evaluate(colour) != before
    assert page.locator(".present .wait").is_hidden()


def number_of_slides(deck: str) -> int:
    return (SITE / "lectures" / f"{deck}.html").read_text(encoding="utf-8").count("<section ")


def test_a_click_shows_the_next_part_of_every_column(page: Page, site: str) -> None:
    open_deck(page, deck_at(site, query="#/5"))
    columns = page.locator(".present.together .column")
    assert columns.count() == 2
    parts = [column.locator(".fragment").count() for column in columns.all()]
    for click in range(1, max(parts) + 1):
        page.keyboard.press("ArrowRight")
        seen = [column.locator(".fragment.visible").count() for column in columns.all()]
        assert seen == [min(click, count) for count in parts]


@pytest.mark.parametrize(("path", "least"), [("12", 15), ("6", 8)])
def test_a_short_course_leaves_slides_out(page: Page, site: str, path: str, least: int) -> None:
    open_deck(page, deck_at(site, query=f"?path={path}"))
    kept = page.locator("section.slide").count()
    assert least <= kept <= number_of_slides(FIRST)
    minutes = page.evaluate(
        "[...document.querySelectorAll('.clock span:not(.all)')].map((s) => Number(s.textContent))"
    )
    assert minutes == sorted(minutes)
    assert page.locator(".clock .all").first.text_content() == f"{minutes[-1]:g}"
    if path == "6":
        assert kept < number_of_slides(FIRST)
        assert 27 <= minutes[-1] <= 33


def test_firefox_shows_slides_and_a_live_figure(firefox: Firefox, site: str) -> None:
    firefox.resize(1280, 720)
    firefox.go(deck_at(site))
    firefox.wait("return document.documentElement.dataset.ready === 'true'")
    firefox.run(f"return ({SHOW_LIVE})()")
    firefox.wait(
        "return (document.querySelector('.present iframe')?.contentDocument?.querySelector('.attnbook-live[data-ready]') ?? null) !== null"
    )
    iframe, live = (
        firefox.run(
            f"return document.querySelector('.present {one}').getBoundingClientRect().width"
        )
        for one in ("iframe", ".live")
    )
    assert abs(iframe - live) < 2


def test_a_question_lies_over_a_live_figure_until_a_click(page: Page, site: str) -> None:
    """The figure is drawn meanwhile; on a phone the question stands above its picture."""
    (deck,) = [one for one in DECKS if one[:3] == "05b"]
    open_deck(page, deck_at(site, deck))
    page.evaluate(SHOW_LIVE)
    live_frame(page)
    assert page.evaluate(IN_THE_MIDDLE) == "DIV"
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"({IN_THE_MIDDLE})() === 'IFRAME'")
    page.goto(deck_at(site, deck, "?read"))
    question, still = (page.locator(one).bounding_box() for one in (".veil", ".still img"))
    assert question and still and question["y"] + question["height"] <= still["y"]


def test_each_chapter_leads_to_its_slides() -> None:
    chapters = sorted((SITE / "chapters").glob("[0-9]*.html"))
    assert chapters
    for chapter in chapters:
        (place,) = re.findall(
            r'class="slides-of-chapter[^"]*".*?</p>', chapter.read_text("utf-8"), re.S
        )
        links = [link.rpartition("/")[2] for link in re.findall(r'href="([^"]*)"', place)]
        assert [link[:3] for link in links] == [f"{chapter.name[:2]}a", f"{chapter.name[:2]}b"]
        for link in links:
            assert (SITE / "lectures" / link).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("deck", DECKS)
def test_notes_fit_below_their_slide_on_paper(deck: str, page: Page, site: str) -> None:
    page.set_viewport_size({"width": 688, "height": 1032})
    page.emulate_media(media="print")
    page.goto(deck_at(site, deck, "?read=notes"))
    page.evaluate("document.fonts.ready")
    assert page.evaluate(CROWDED_NOTES) == []


def answers_of(deck: str) -> list[str]:
    """The sentences that only answers have, without blanks."""
    html = (SITE / "lectures" / f"{deck}.html").read_text(encoding="utf-8")
    answers = re.findall(r'class="fragment answer">(.*?)</div></div></div>', html, re.DOTALL)
    told = [
        words
        for answer in answers
        for words in re.findall(r"<p>([^<]{20,})</p>|<strong>([^<]{12,})", answer)
    ]
    said = [re.sub(r"\s+", "", a or b) for a, b in told]
    assert said
    return said


@pytest.mark.slow
def test_paper_has_no_answer_however_it_is_asked_for(page: Page, site: str) -> None:
    """Two slides a page; Ctrl+P leads to the same page."""
    address, pdfs = deck_at(site), []
    for query in ("?read", "?print-pdf"):
        page.goto(address + query)
        page.evaluate("document.fonts.ready")
        pdfs.append(PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))))
    texts = [[one.extract_text() for one in pdf.pages] for pdf in pdfs]
    assert texts[0] == texts[1]
    assert len(texts[0]) <= number_of_slides(FIRST) / 2 + 1
    for words in answers_of(FIRST):
        assert words not in re.sub(r"\s+", "", "".join(texts[0]))
    open_deck(page, address)
    with page.expect_popup() as opened:
        page.keyboard.press("Control+p")
    opened.value.wait_for_selector("html.linear")
    assert opened.value.url == f"{address}?read&print"
    page.emulate_media(media="print")
    assert page.locator(".answer:visible").count() == 0


@pytest.mark.slow
def test_handouts_are_tagged_and_the_students_have_no_answer() -> None:
    done = run_tool("handouts.py", FIRST[:3])
    assert done.returncode == 0, done.stderr
    text = {}
    for kind in handouts.KINDS:
        reader = PdfReader(handouts.HANDOUTS / f"{FIRST}-{kind}.pdf")
        assert reader.trailer["/Root"]["/MarkInfo"]["/Marked"]
        assert reader.trailer["/Root"]["/StructTreeRoot"]
        text[kind] = re.sub(r"\s+", "", "".join(p.extract_text() for p in reader.pages))
    for words in answers_of(FIRST):
        assert words in text["lecturer"]
        assert words not in text["student"]
    assert "Whosaysso" in text["lecturer"] and "Whosaysso" not in text["student"]
