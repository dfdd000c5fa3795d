"""What a reader does: choose a back end, search, open the notebook, copy code, print."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace

import pytest
from playwright.sync_api import Page
from site_visits import ROOT, SITE, Visit, pages_of, without_script
from weave import woven

from attnbook_course.weaving.book import read_book

HTML = (
    {path: (SITE / path).read_text(encoding="utf-8") for path in pages_of(SITE)}
    if SITE.is_dir()
    else {}
)
CHAPTERS = [path for path in HTML if path.startswith("chapters/")]
TABBED = [path for path in CHAPTERS if HTML[path].count('class="backend-panel"') >= 2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository", "")  # until make address there is none


@pytest.fixture
def chapter(open_page: Visit) -> Page:
    """The first chapter that has back-end tabs, open."""
    assert TABBED, "no chapter shows back-end tabs: run make book"
    return open_page.go(TABBED[0])


def shown(page: Page) -> tuple[int, int]:
    """How many panels of tabbed blocks show PyTorch, and how many JAX."""
    block = ".backend-block:not(.backend-single) >"
    panel = f"{block} [data-backend=%s].backend-panel:visible"
    return page.locator(panel % "torch").count(), page.locator(panel % "jax").count()


def blocks(page: Page) -> int:
    return page.locator(".backend-block:not(.backend-single)").count()


def test_tabs_switch_the_whole_page_and_stay(chapter: Page, open_page: Visit) -> None:
    """One click switches every block; the choice survives a reload and goes to other pages."""
    number = blocks(chapter)
    assert number > 0 and shown(chapter) == (number, 0)
    chapter.get_by_role("tab", name="JAX").first.click()
    assert shown(chapter) == (0, number)
    chapter.reload()
    assert shown(chapter) == (0, number)
    assert chapter.get_by_role("tab", name="JAX").first.get_attribute("aria-selected") == "true"
    elsewhere = open_page.go("index.html" if len(TABBED) == 1 else TABBED[1])
    assert elsewhere.locator("html").get_attribute("data-backend") == "jax"
    assert shown(elsewhere) == (0, blocks(elsewhere))


def test_tabs_are_tabs_to_assistive_devices(chapter: Page) -> None:
    """A tablist with tabs and panels that name each other, moved through with the arrow keys."""
    tabs = chapter.get_by_role("tablist").first.get_by_role("tab")
    assert tabs.all_inner_texts() == ["PyTorch", "JAX"]
    tabs.nth(0).focus()
    chapter.keyboard.press("ArrowRight")
    assert tabs.nth(1).evaluate("tab => tab === document.activeElement")
    assert [tab.get_attribute("tabindex") for tab in tabs.all()] == ["-1", "0"]
    assert shown(chapter) == (0, blocks(chapter))
    panel = chapter.locator(f"#{tabs.nth(1).get_attribute('aria-controls')}")
    assert panel.get_attribute("role") == "tabpanel" and panel.is_visible()
    assert panel.get_attribute("aria-labelledby") == tabs.nth(1).get_attribute("id")


def test_both_back_ends_show_in_print(chapter: Page) -> None:
    """On paper both panels stand, and the frame around the text is gone."""
    chapter.emulate_media(media="print")
    number = blocks(chapter)
    assert shown(chapter) == (number, number)
    frame = chapter.locator(".bd-sidebar-primary, .bd-header-article, .backend-tabs")
    assert not any(part.is_visible() for part in frame.all())
    folded = chapter.locator(".admonition.dropdown > :not(.toggle-button)")
    assert all(part.is_visible() for part in folded.all())


@without_script
def test_both_back_ends_show_without_javascript(chapter: Page) -> None:
    """The two stand one after another, each under its name."""
    number = blocks(chapter)
    assert shown(chapter) == (number, number)
    assert chapter.locator(".backend-name:visible").count() >= 2 * number


@pytest.mark.parametrize("path", CHAPTERS)
def test_equations_are_numbered_by_chapter(path: str) -> None:
    """1.1, 1.2, … without a gap, and every reference to one shows such a number."""
    chapter = int(re.search(r"chapters/(\d+)", path)[1])
    numbers = re.findall(r'<span class="eqno">\(([^)]*)\)', HTML[path])
    assert numbers == [f"{chapter}.{k}" for k in range(1, len(numbers) + 1)]
    references = re.findall(r'href="[^"]*#equation-[^"]*"[^>]*>(?!#)(.*?)</a>', HTML[path])
    assert [r for r in references if not re.fullmatch(r"\(\d+\.\d+\)", r)] == []


@pytest.mark.parametrize("path", CHAPTERS)
def test_links_to_colab_binder_and_the_repository(path: str) -> None:
    """As soon as the book has an address; until then no button leads to anybody's account.

    Colab and Binder open the notebook beside the chapter's source, on main; the rest, the repository.
    """
    stem, book = path.removesuffix(".html"), REPOSITORY.removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{book}/blob/main/{stem}.ipynb"
    binder = f"https://mybinder.org/v2/gh/{book}/main?urlpath=lab/tree/{stem}.ipynb"
    launched = re.findall(r'href="(https://(?:colab|mybinder)[^"]*)"', HTML[path])
    assert sorted(launched) == ([colab, binder] if REPOSITORY else [])
    assert REPOSITORY or 'href="https://github.' not in HTML[path]
    if REPOSITORY:
        for link in (
            f'{REPOSITORY}"',
            f'{REPOSITORY}/edit/main/{stem}.md"',
            f"{REPOSITORY}/issues/new?",
        ):
            assert f'href="{link}' in HTML[path]


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


def test_no_link_opens_what_is_no_notebook() -> None:
    launched = re.compile(r'href="https://(?:colab|mybinder)[^"]*/[^"/]*\.md"')
    assert [path for path, html in HTML.items() if launched.search(html)] == []


def test_keys_open_the_search_and_it_finds_words_of_a_chapter(chapter: Page) -> None:
    """Ctrl+K opens a field; Enter goes to the search page, which answers from the site's index."""
    chapter.keyboard.press("Control+k")
    field = chapter.locator("#pst-search-dialog input")
    field.fill("weighted average")
    field.press("Enter")
    chapter.wait_for_url("**/search.html?q=weighted+average*")
    links = chapter.locator("#search-results li a")
    links.first.wait_for()
    found = links.evaluate_all("links => links.map(link => link.href)")
    assert any(path in link for link in found for path in CHAPTERS), found


def test_skip_link_leads_to_the_text(chapter: Page) -> None:
    """The first stop of the keyboard skips to the text."""
    chapter.keyboard.press("Tab")
    assert chapter.evaluate("document.activeElement.textContent").strip() == "Skip to main content"
    chapter.keyboard.press("Enter")
    assert chapter.url.endswith("#main-content")


CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.mark.parametrize("open_page", [{"permissions": CLIPBOARD}], indirect=True)
def test_copy_button_copies_the_cell(chapter: Page) -> None:
    """Its code, whole, to the clipboard."""
    cell = chapter.locator("div.cell_input:visible").first
    cell.hover()
    cell.locator("button.copybtn").click()
    code = cell.locator("pre").inner_text().strip()
    copied = "async (code) => (await navigator.clipboard.readText()).trim() === code"
    chapter.wait_for_function(copied, arg=code)


def test_theme_button_switches_and_stays(chapter: Page) -> None:
    """The theme button changes the theme, and the choice survives a reload."""
    theme = "document.documentElement.dataset.theme"
    before = chapter.evaluate(theme)
    for _ in range(3):
        chapter.locator(".theme-switch-button:visible").first.click()
        if chapter.evaluate(theme) != before:
            break
    after = chapter.evaluate(theme)
    assert after != before
    chapter.reload()
    assert chapter.evaluate(theme) == after


def test_footer_names_version_and_day() -> None:
    """Every page says which version it is and when it was built."""
    version = PROJECT["version"]
    for path, text in HTML.items():
        assert re.search(rf"version {re.escape(version)} · built on \d+ \w+ \d{{4}}", text), path


def test_bokeh_is_in_the_site_but_in_no_page() -> None:
    """Live figures load Bokeh themselves, from the site."""
    for name in ("bokeh.min.js", "bokeh-widgets.min.js"):
        assert (SITE / "_static" / "bokeh" / name).stat().st_size > 10_000
    asks = re.compile(r'<script[^>]*src="[^"]*bokeh')
    assert [path for path, text in HTML.items() if asks.search(text)] == []


def test_lock_file_names_no_host() -> None:
    """The lock file holds versions and hashes only: npm asks the registry of its own machine."""
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert [name for name, entry in packages.items() if "resolved" in entry] == []


@pytest.mark.parametrize("width", [390, 700])
def test_no_line_begins_with_the_comma_of_a_formula(open_page: Visit, width: int) -> None:
    """The mark behind a formula stands beside the formula's last part, wherever the line breaks."""
    open_page.page.set_viewport_size({"width": width, "height": 900})
    page = open_page.go(CHAPTERS[0])
    page.add_style_tag(content="section { content-visibility: visible !important; }")
    lonely = """all => all.filter(e => {
      const range = document.createRange();
      range.selectNodeContents(e.lastChild);
      const mark = range.getBoundingClientRect();
      const last = [...e.querySelector(".katex-html").getClientRects()].at(-1);
      return mark.top >= last.bottom || mark.left < last.right - 2;
    }).map(e => e.textContent)"""
    marked = page.locator(".bd-article p > .clings:visible")
    assert marked.count() > 30
    assert marked.evaluate_all(lonely) == []
