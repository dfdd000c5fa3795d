"""What a reader does: choose a back end, search, open menus, tick exercises, copy code, print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest
import yaml
from playwright.sync_api import Browser, Page
from site_visits import ROOT, SITE, WIDTHS, Visit, pages_of, visiting, without_script
from weave import woven

from attnbook_course.checks.exercises import exercises
from attnbook_course.weaving.book import read_book

HTML = (
    {path: (SITE / path).read_text(encoding="utf-8") for path in pages_of(SITE)}
    if SITE.is_dir()
    else {}
)
CHAPTERS = [path for path in HTML if path.startswith("chapters/")]
FIRST, TABBED = "chapters/01-kernel-regression.html", "chapters/03-queries-keys-values.html"
SECTION = "the-bandwidth-how-far-to-look"
OVERVIEW = "appendices/exercises.html"
EXERCISES = [one for file in sorted(ROOT.glob("chapters/[0-9]*.md")) for one in exercises(file)]
# What people type into a search engine, and the book has a chapter on.
NAMES = ["attention", "softmax", "multi-head attention", "transformer", "GPT", "layer norm"]
NAMES += ["residual", "positional encoding", "KV cache", "FlashAttention", "linear attention"]
NAMES += [
    "in-context learning",
    "kernel regression",
    "Nadaraya–Watson",
    "Bahdanau",
    "self-attention",
]
PANELS = """() => [...document.querySelectorAll(".sd-tab-set")]
  .filter((set) => set.querySelectorAll(":scope > input").length > 1)
  .map((set) => [...set.querySelectorAll(":scope > .sd-tab-content")].map((one) => one.checkVisibility()))"""


def test_tabs_switch_the_whole_page_and_stay(open_page: Visit) -> None:
    """One choice, with the keyboard too, holds for every block, after a reload and elsewhere."""
    page = open_page.go(TABBED)
    shown = page.evaluate(PANELS)
    assert len(shown) > 1 and all(one == [True, False] for one in shown)
    page.get_by_role("radio", name="PyTorch").first.focus()
    page.keyboard.press("ArrowRight")
    for path in (TABBED, TABBED, "chapters/07-transformer-block.html"):
        assert all(one == [False, True] for one in page.evaluate(PANELS))
        open_page.go(path)


def test_print_shows_both_back_ends_and_what_is_folded(open_page: Visit) -> None:
    page = open_page.go(TABBED)
    page.emulate_media(media="print")
    assert all(all(one) for one in page.evaluate(PANELS))
    assert not any(part.is_visible() for part in page.locator(".bd-sidebar-primary").all())
    folded = page.locator(".exercise-card details > .sd-card-body")
    assert all(part.is_visible() for part in folded.all())


@without_script
def test_without_javascript_tabs_switch_and_no_dead_button_is_there(open_page: Visit) -> None:
    page = open_page.go(TABBED)
    page.locator(".sd-tab-label:visible", has_text="JAX").first.click()
    assert page.evaluate(PANELS)[0] == [False, True]
    assert page.get_by_role("button", name="Search").count() == 0


@pytest.mark.parametrize("path", CHAPTERS)
def test_equations_are_numbered_by_chapter(path: str) -> None:
    """1.1, 1.2, … without a gap, and every reference to one shows such a number."""
    number = re.search(r"chapters/(\d+)", path)
    chapter = int(number[1]) if number else "I"
    numbers = re.findall(r'<span class="eqno">\(([^)]*)\)', HTML[path])
    assert numbers == [f"{chapter}.{k}" for k in range(1, len(numbers) + 1)]
    references = re.findall(r'href="[^"]*#equation-[^"]*"[^>]*>(?!#)(.*?)</a>', HTML[path])
    assert [r for r in references if not re.fullmatch(r"\((\d+|I)\.\d+\)", r)] == []


def test_the_notebooks_lead_to_places_of_the_site() -> None:
    """As they are woven once the book has an address: every page is there, and every anchor."""
    book = replace(read_book(ROOT), site="https://book.test")
    links = {
        link
        for notebook in woven(book, book.notebooks()).values()
        for cell in notebook.cells
        for link in re.findall(r"https://book\.test/([^)\s#]+)(?:#([^)\s]+))?", cell.source)
    }
    assert {f"{page.docname}.html" for page in book.notebooks()} <= {path for path, _ in links}
    assert [
        (path, anchor)
        for path, anchor in links
        if path not in HTML or (anchor and f'id="{anchor}"' not in HTML[path])
    ] == []


def test_the_search_finds_what_a_student_asks_for(open_page: Visit) -> None:
    """Among the first three; functions and authors are found, and what is nowhere is said."""
    page = open_page.go("search.html")
    field, said = (
        page.locator(".bd-search-container input"),
        page.locator(".search-results p[role]"),
    )
    missed = {}
    for row in (ROOT / "tests/site/searches.tsv").read_text("utf-8").splitlines():
        question, place = row.split("\t")
        field.fill("zzyzzx")
        said.filter(has_text="Nothing in the book").wait_for()
        field.fill(question)
        page.locator(".search-results li").first.wait_for()
        found = page.locator(".search-results li > a").evaluate_all("all => all.map(a => a.href)")
        found = [one.removeprefix(f"{open_page.address}/").replace(".html", "") for one in found]
        if place not in found[: 20 if place.startswith("appendices/") else 3]:
            missed[question] = (place, found[:3])
    assert missed == {}


def test_results_come_while_one_types_and_lead_to_their_place(open_page: Visit) -> None:
    """Ctrl+K opens a field, which alone loads the index; arrows choose, and Enter goes there."""
    page = open_page.go(TABBED, rest=True)
    assert not any("search_places" in url for url in open_page.requests)
    page.keyboard.press("Control+k")
    page.keyboard.type("bandwidth how far")
    page.locator("dialog .search-results li p mark").first.wait_for()
    assert not re.search(
        r"\\|_\{|not written yet", page.locator("dialog .search-results").inner_text()
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{FIRST}#{SECTION}")
    assert 0 <= page.locator(f"#{SECTION}").bounding_box()["y"] < 150
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax")
    page.locator(".search-results li").first.wait_for()


@pytest.fixture
def phone(browser: Browser, site: str) -> Iterator[Page]:
    """The first chapter on a phone, under a finger."""
    options = {"viewport": WIDTHS["phone"], "has_touch": True, "is_mobile": True}
    with visiting(browser, site, **options) as seen:
        yield seen.go(FIRST)


@pytest.mark.parametrize(
    ("list_", "entry", "address"),
    [
        ("primary", "2. Learning the kernel", "chapters/02-learning-the-kernel.html"),
        ("secondary", "1.3. The bandwidth: how far to look", f"{FIRST}#{SECTION}"),
    ],
)
def test_a_drawer_opens_closes_and_an_entry_leads_on(
    phone: Page, list_: str, entry: str, address: str
) -> None:
    """Escape gives the focus back; the entry's place comes, and the drawer is gone."""
    button, drawer = phone.locator(f".{list_}-toggle"), phone.get_by_role("dialog")
    button.tap()
    assert drawer.is_visible()
    phone.keyboard.press("Escape")
    drawer.wait_for(state="hidden")
    button.tap()
    drawer.get_by_role("link", name=entry, exact=True).tap()
    phone.wait_for_url(f"**/{address}")
    assert phone.get_by_role("dialog").count() == 0
    if list_ == "secondary":
        top = f"document.getElementById('{SECTION}').getBoundingClientRect().top"
        phone.wait_for_function(f"{top} > 0 && {top} < 150")


def test_the_downloads_have_the_notebook_beside_the_source(phone: Page) -> None:
    phone.locator(".dropdown-download-buttons > button").tap()
    entry = phone.get_by_role("link", name=".ipynb", exact=True)
    assert entry.is_visible()
    offered = (SITE / "chapters" / entry.get_attribute("href")).resolve()
    assert offered.read_text("utf-8") == (ROOT / FIRST).with_suffix(".ipynb").read_text("utf-8")
    phone.keyboard.press("Escape")
    entry.wait_for(state="hidden")


def test_on_a_phone_code_fits_and_a_figure_fills_the_screen_and_opens(phone: Page) -> None:
    """By a tap; Escape closes it and gives the focus back."""
    code = phone.locator(".bd-article pre:not(.output pre):visible")
    assert not any(code.evaluate_all("all => all.map(one => one.scrollWidth > one.clientWidth)"))
    figure = phone.locator("figure a.whole").first
    assert figure.locator("img").bounding_box()["width"] > 0.98 * WIDTHS["phone"]["width"]
    figure.tap()
    opened = phone.locator("dialog.whole")
    assert opened.locator("img").bounding_box()["width"] > 700
    phone.keyboard.press("Escape")
    opened.wait_for(state="detached")
    assert figure.evaluate("one => one === document.activeElement")


@pytest.mark.parametrize(
    "open_page",
    [{"viewport": WIDTHS["phone"], "permissions": ["clipboard-read", "clipboard-write"]}],
    indirect=True,
)
def test_what_is_copied_is_the_code(open_page: Visit) -> None:
    """By the button, and by hand where lines are broken."""
    page = open_page.go(FIRST)
    source = (ROOT / FIRST).with_suffix(".md").read_text("utf-8")
    cell = page.locator("div.cell_input:visible:has(.long[style])").first
    copied = "async () => (await navigator.clipboard.readText()).trim()"
    cell.hover()
    cell.locator("button.copybtn").click()
    page.wait_for_function(f"{copied} !== ''")
    by_button = page.evaluate(copied)
    assert len(by_button) > 100 and by_button in source
    cell.locator("pre").evaluate(
        "one => { getSelection().selectAllChildren(one); document.execCommand('copy'); }"
    )
    assert page.evaluate(copied) == by_button


def boxes(page: Page) -> dict[str, bool]:
    """Every exercise of a page: whether it is ticked."""
    found = page.locator("[data-exercise]")
    return dict(found.evaluate_all("all => all.map(box => [box.dataset.exercise, box.checked])"))


def test_what_is_ticked_at_an_exercise_is_ticked_in_the_overview(open_page: Visit) -> None:
    """Which lists every exercise; a reload keeps it; nothing is sent anywhere."""
    first = EXERCISES[0]
    page = open_page.go(f"chapters/{first.chapter.stem}.html#{first.label}")
    page.locator(f"[data-exercise={first.label}]").check()
    page = open_page.go(OVERVIEW)
    assert boxes(page) == {one.label: one is first for one in EXERCISES}
    own = sum(one.chapter == first.chapter for one in EXERCISES)
    assert page.locator(".exercise-count").first.inner_text() == f"1 of {own} done"
    page.locator(f"[data-exercise={first.label}]").uncheck()
    page.reload()
    assert not any(boxes(page).values()) and page.context.cookies() == []
    page.evaluate("localStorage.setItem('attnbook-done', '{')")  # a spoiled store
    page.reload()
    assert len(boxes(page)) == len(EXERCISES)


FILES = ".progress-file"


def load(page: Page, name: str, content: object) -> str:
    """What the page says to a file."""
    text = content if isinstance(content, str) else json.dumps(content)
    given = {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    said = page.locator(f"{FILES} .files-said")
    said.evaluate("one => one.replaceChildren()")
    page.locator(f"{FILES} input[type=file]").set_input_files(given)
    said.filter(has_text=re.compile(".")).wait_for()
    return said.inner_text()


def kept(page: Page) -> dict[str, str]:
    return page.evaluate("({ ...localStorage })")


def test_progress_goes_out_and_comes_in_and_nothing_is_lost(open_page: Visit) -> None:
    """On another device; of two answers the reader says which stands, and can take it back."""
    answer, other = "def f():\n    return 1", "def f():\n    return 2"
    here = {"attnbook-done": '["ex-lead"]', "attnbook-mine": "x = 1\n"}
    road = {"at": f"{FIRST}#{SECTION}", "words": "1.3. The bandwidth"}
    for name, value in (("drafts", {"exercises": {"ex-lead": answer}}), ("road", road)):
        here[f"attnbook-{name}"] = json.dumps(value, separators=(",", ":"))
    page = open_page.go(OVERVIEW)
    page.evaluate("here => Object.assign(localStorage, here)", here)
    page.reload()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download my progress").click()
    assert saved.value.suggested_filename == "attnbook-progress.json"
    progress = json.loads(saved.value.path().read_text("utf-8"))
    page.evaluate("localStorage.clear()")
    page.reload()
    assert load(page, "p.json", progress).startswith(
        "Taken from p.json: 1 tick, 1 draft, mine.py, and your place on the road."
    )
    assert kept(page).items() >= here.items() and boxes(page)["ex-lead"]
    assert load(page, "p.json", progress).startswith("All that p.json has is here, too.")
    changed = progress | {"done": ["ex-leaky"], "drafts": {"exercises": {"ex-lead": other}}}
    changed["mine"] = "y = 2\n"
    before = kept(page)
    assert "p.json differs from this browser in “3.2 How large a lead?” and mine.py. Which" in load(
        page, "p.json", changed
    )
    assert kept(page) == before
    page.get_by_role("button", name="Keep what is here").click()
    assert answer in json.loads(kept(page)["attnbook-drafts"])["exercises"]["ex-lead"]
    assert boxes(page)["ex-lead"] and boxes(page)["ex-leaky"]
    assert kept(page)["attnbook-mine"] == "x = 1\n"
    load(page, "p.json", changed)
    page.get_by_role("button", name="Take the file’s").click()
    assert json.loads(kept(page)["attnbook-drafts"])["exercises"]["ex-lead"] == other
    assert kept(page)["attnbook-mine"] == "y = 2\n"
    page.get_by_role("button", name="Back to before p.json").click()
    assert json.loads(kept(page)["attnbook-drafts"])["exercises"]["ex-lead"] == answer
    assert load(page, "q.json", "{").endswith("Nothing was changed.")
    page.get_by_role("button", name="Take p.json again").click()
    assert json.loads(kept(page)["attnbook-drafts"])["exercises"]["ex-lead"] == other
    page.evaluate("localStorage.clear()")
    page.reload()
    broken = "def attention(q:\n    return 1\n"
    assert "Python reads mine.py when a cell uses it" in load(page, "mine.py", broken)
    mended = broken.replace("q:", "q):")
    assert "in Build 3 (attention). Which" in load(page, "mine.py", mended)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no attnbook-progress.json, or is damaged"),
        ([1], "is no attnbook-progress.json, or is damaged"),
        ({"attnbook": 2}, "has in attnbook 2, expected 1"),
        ({"done": [{}]}, "has in done [{}], expected a list of exercises"),
        (
            {"drafts": {"builds": {"f": 1}}},
            'has in drafts {"builds":{"f":1}}, expected code by page',
        ),
        ({"drafts": {"builds": None}}, "has in drafts"),
        ({"drafts": {"constructor": {"f": ""}}}, "has in drafts"),
        ({"road": {"at": "javascript:alert(1)//.html", "words": ""}}, "has in road"),
        ({"mine": 3}, "has in mine 3, expected the text of mine.py, or null"),
        (" " * 5_000_001, "has 5.0 MB, expected at most 5"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_and_nothing_changes(
    open_page: Visit, content: object, said: str
) -> None:
    good = {"attnbook": 1, "done": [], "drafts": {}, "mine": None, "road": None}
    page = open_page.go(OVERVIEW)
    page.evaluate("localStorage.setItem('attnbook-done', '[\"ex-lead\"]')")
    before = kept(page)
    words = load(page, "p.json", good | content if isinstance(content, dict) else content)
    assert said in words and words.endswith("Nothing was changed.")
    assert kept(page) == before


def test_the_landing_page_starts_the_book(open_page: Visit) -> None:
    """Its figure runs; a button leads to chapter 1."""
    page = open_page.go("index.html")
    page.locator(".attnbook-live").scroll_into_view_if_needed()
    page.wait_for_selector(".attnbook-live[data-ready=true]")
    page.get_by_role("link", name="Start reading").click()
    page.wait_for_url(f"**/{FIRST}")


def test_a_chapter_says_where_it_ran_and_what_it_is_about() -> None:
    for path in CHAPTERS:
        ran = json.loads((ROOT / path).with_suffix(".ipynb").read_text("utf-8"))["metadata"]["ran"]
        assert f", on {ran['machine']}." in HTML[path]
        source = (ROOT / path).with_suffix(".md").read_text("utf-8")
        about = yaml.safe_load(source.split("---")[1])["description"]
        assert f'<meta name="description" content="{about}" />' in unescape(HTML[path])


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_is_found_by_what_the_world_calls_it(name: str) -> None:
    """Its title or its description has the words that people type."""
    told = r'<title>.*?</title>|<meta name="description" content=".*?" />'
    heads = {path: unescape(" ".join(re.findall(told, HTML[path]))) for path in CHAPTERS}
    assert [path for path in heads if name.lower() in heads[path].lower()]


@pytest.mark.parametrize("path", CHAPTERS)
def test_the_markdown_of_a_chapter_leads_to_pages_and_solves_no_exercise(path: str) -> None:
    text = (SITE / path).with_suffix(".md").read_text("utf-8")
    page = (SITE / path).resolve()
    links = re.findall(r"\]\((?!https?:)([^)#\s]*\.(?:html|md|ipynb|py))", text)
    assert all((page.parent / link).is_file() for link in links)
    woven_cells = json.loads((ROOT / path).with_suffix(".ipynb").read_text("utf-8"))["cells"]
    notebook = "".join("".join(cell["source"]) for cell in woven_cells)
    solutions = re.findall(r"<summary>Solution.*?</summary>\s*(.*?)</details>", notebook, re.S)
    assert len(solutions) == notebook.count("<summary>Solution")
    assert not [one for one in solutions if max(one.splitlines(), key=len) in text]


CELL = "div.cell.runs:not([class*=tag_])"
EXERCISE = "div.cell.tag_exercise"


def test_cells_run_or_say_why_not_and_ask_before_they_load(open_page: Visit) -> None:
    page = open_page.go(FIRST)
    runs, lacks = page.locator("div.cell.runs"), page.locator("div.cell.lacks")
    assert page.locator("div.cell.runs .run-bar").count() == runs.count() > 25
    for words in lacks.locator(".run-elsewhere").all_text_contents():
        assert re.match(
            "Needs (PyTorch|JAX|PyTorch and JAX|statsmodels): download the notebook", words
        )
    cell = page.locator(CELL).first
    cell.get_by_role("button", name="Run").click()
    cell.locator(".run-ask p", has_text="about 10 MB").wait_for()
    cell.get_by_role("button", name="Not now").click()
    assert cell.locator(".run-ask").count() == 0
    assert not any("run_worker" in url or "attnbook.zip" in url for url in open_page.requests)


def test_a_site_that_python_does_not_reach_says_so(open_page: Visit) -> None:
    open_page.expected = "pyodide|ERR_"
    page = open_page.go(FIRST)
    cell = page.locator(CELL).first
    cell.get_by_role("button", name="Run").click()
    cell.get_by_role("button", name="Load and run").click()
    said = "cdn.jsdelivr.net did not answer, or not with the expected .* Nothing that you wrote is lost"
    cell.locator(".run-said", has_text=re.compile(said)).wait_for()
    assert cell.get_by_role("button", name="Run").is_enabled()


def test_a_draft_is_kept_and_reset(open_page: Visit) -> None:
    page, written = open_page.go(FIRST), "def f(x):\n    return x"
    cell = page.locator(EXERCISE).first
    cell.get_by_role("button", name="Write an answer").click()
    editor = cell.locator("textarea")
    assert editor.evaluate("e => [e.scrollLeft, e.selectionStart]") == [0, 0]
    editor.press("Control+a")
    editor.type("def f(x):\nreturn x")
    assert editor.input_value() == written
    page.reload()
    assert editor.input_value() == written
    cell.get_by_role("button", name="Reset").click()
    assert editor.count() == 0
    assert page.evaluate("localStorage.getItem('attnbook-drafts')") == "{}"
