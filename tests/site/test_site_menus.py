"""The buttons above a page that open its menus: by finger, mouse and keyboard, at every width."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from firefox import Firefox
from playwright.sync_api import Browser, Page
from site_visits import WIDTHS, Visit, faded, visiting, without_script
from test_site_pages import AXE, axe_findings

CHAPTER = "chapters/01-kernel-regression.html"
SECTION = "#the-bandwidth-how-far-to-look"
PHONE, TABLET, DESK = (390, 844), (820, 1180), (1440, 900)
DRAWERS = [
    *((size, name) for size in (PHONE, TABLET) for name in ("All pages", "On this page")),
    ((970, 700), "All pages"),  # where the theme's styles are a desktop's and its script is not
    ((1100, 800), "On this page"),
]
ENTRIES = {
    "All pages": ("2. Learning the kernel", "chapters/02-learning-the-kernel.html"),
    "On this page": ("1.3. The bandwidth: how far to look", CHAPTER + SECTION),
}
TOP = "document.querySelector('%s').getBoundingClientRect().top"
FOCUS = "document.activeElement.getAttribute('aria-label')"


Size = tuple[int, int]


@pytest.fixture
def page(browser: Browser, site: str, size: Size) -> Iterator[Page]:
    """The chapter in a window of the size that the test names, under a finger where it is small."""
    width, height = size
    touch = {"has_touch": width < 1000, "is_mobile": width < 900}
    with visiting(browser, site, viewport={"width": width, "height": height}, **touch) as seen:
        yield seen.go(CHAPTER)


def press(page: Page, name: str) -> None:
    """A tap where the window has touch, a click elsewhere."""
    button = page.get_by_role("button", name=name, exact=True)
    if page.evaluate("navigator.maxTouchPoints > 0"):
        button.tap()
    else:
        button.click()


@pytest.mark.parametrize(("size", "name"), DRAWERS)
def test_a_drawer_opens_and_an_entry_leads_on(page: Page, size: Size, name: str) -> None:
    """The entry's page or section comes and the drawer is gone, then and after going back."""
    text, address = ENTRIES[name]
    drawer = page.get_by_role("dialog", name=name)
    button = page.get_by_role("button", name=name, exact=True)
    assert button.get_attribute("aria-expanded") == "false"
    press(page, name)
    assert drawer.is_visible() and button.get_attribute("aria-expanded") == "true"
    box = drawer.bounding_box()
    assert box is not None
    assert (box["y"], box["height"]) == (0, size[1]) and box["width"] <= 0.75 * size[0]
    assert box["x"] == (0 if name == "All pages" else size[0] - box["width"])
    entry = drawer.get_by_role("link", name=text, exact=True)
    if size[0] < 1000:
        entry.tap()
    else:
        entry.click()
    page.wait_for_url(f"**/{address}")
    assert page.get_by_role("dialog").count() == 0
    if name == "On this page":
        page.wait_for_function(f"{TOP % SECTION} > 0 && {TOP % SECTION} < 150")
    page.go_back()
    page.wait_for_url(f"**/{CHAPTER}")
    assert page.get_by_role("dialog").count() == 0
    press(page, name)
    assert drawer.is_visible()


@pytest.mark.parametrize(("size", "name"), DRAWERS)
def test_a_drawer_closes_and_the_focus_returns(page: Page, size: Size, name: str) -> None:
    """By Escape and beside it; the keyboard opens it, stays in it and goes on where it was."""
    drawer = page.get_by_role("dialog", name=name)
    button = page.get_by_role("button", name=name, exact=True)
    button.focus()
    page.keyboard.press("Enter")
    assert drawer.is_visible()
    page.keyboard.press("Tab")
    assert drawer.evaluate("box => box.contains(document.activeElement)")
    page.keyboard.press("Escape")
    drawer.wait_for(state="hidden")  # it fades
    assert page.evaluate(FOCUS) == name
    assert button.get_attribute("aria-expanded") == "false"
    press(page, name)
    beside = (size[0] - 10 if name == "All pages" else 10, size[1] / 2)
    page.mouse.click(*beside)
    drawer.wait_for(state="hidden")
    assert page.get_by_role("tooltip").count() == 0


@pytest.mark.parametrize("size", [PHONE])
def test_a_chosen_section_is_where_the_keyboard_goes_on(page: Page, size: Size) -> None:
    press(page, "On this page")
    page.get_by_role("link", name=ENTRIES["On this page"][0]).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{SECTION}")
    page.keyboard.press("Tab")
    within = f"document.querySelector('{SECTION}').contains(document.activeElement)"
    assert page.evaluate(within)


@pytest.mark.parametrize("size", [TABLET])
def test_a_drawer_closes_when_the_tablet_is_turned(page: Page, size: Size) -> None:
    """Upright the pages are in a drawer, on its side beside the text."""
    press(page, "All pages")
    page.set_viewport_size({"width": size[1], "height": size[0]})
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.get_by_role("link", name="2. Learning the kernel", exact=True).is_visible()
    assert page.get_by_role("button", name="All pages").get_attribute("aria-expanded") == "true"


@pytest.mark.parametrize("size", [DESK])
def test_the_list_of_pages_folds_away_on_a_desktop(page: Page, size: Size) -> None:
    """The search goes with it, so another button stands in; the sections need no button."""
    button = page.get_by_role("button", name="All pages")
    entry = page.get_by_role("link", name="2. Learning the kernel", exact=True)
    search = page.get_by_role("button", name="Search", exact=True)
    assert page.get_by_role("button", name="On this page").count() == 0
    assert page.get_by_role("link", name=ENTRIES["On this page"][0]).is_visible()
    for shown in (False, True):
        button.click()
        entry.wait_for(state="visible" if shown else "hidden")
        assert button.get_attribute("aria-expanded") == str(shown).lower()
        assert page.get_by_role("dialog").count() == 0
        assert search.count() == (0 if shown else 1)


@pytest.mark.parametrize("size", [PHONE])
@pytest.mark.parametrize("name", ["All pages", "On this page"])
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_an_open_drawer_is_open_to_all(page: Page, size: Size, name: str, theme: str) -> None:
    assert AXE.is_file(), "axe-core is missing: run npm ci"
    page.emulate_media(color_scheme=theme)
    press(page, name)
    faded(page)
    assert axe_findings(page) == []


@pytest.mark.parametrize("size", [PHONE, TABLET, DESK])
def test_the_downloads_open_and_close(page: Page, size: Size) -> None:
    """By a second tap, a tap beside them and Escape; the button says which."""
    button = page.get_by_role("button", name="Download this page")
    entry = page.get_by_role("link", name=".ipynb", exact=True)
    for close in ("again", "beside", "Escape"):
        press(page, "Download this page")
        assert entry.is_visible() and button.get_attribute("aria-expanded") == "true"
        box = entry.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= size[0]
        if close == "again":
            press(page, "Download this page")
        elif close == "beside":
            page.mouse.click(size[0] / 2, size[1] / 2)
        else:
            page.keyboard.press(close)
        entry.wait_for(state="hidden")
        assert button.get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_the_keyboard_stays_where_it_pressed(page: Page, size: Size) -> None:
    """Enter on the theme's button goes through the modes; the search gives the focus back."""
    page.get_by_role("button", name="Colour theme").focus()
    seen = []
    for _ in range(4):
        page.keyboard.press("Enter")
        seen.append(page.evaluate("document.documentElement.dataset.mode"))
    assert seen == ["dark", "light", "auto", "dark"] and page.evaluate(FOCUS) == "Colour theme"
    if size == DESK:
        # the search comes into the header
        page.get_by_role("button", name="All pages").press("Enter")
        assert page.evaluate(FOCUS) == "All pages"
    page.get_by_role("button", name="Search", exact=True).press("Enter")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0 and page.evaluate(FOCUS) == "Search"


@without_script
def test_without_javascript_no_button_is_there_that_needs_it(open_page: Visit) -> None:
    open_page.page.set_viewport_size(WIDTHS["phone"])
    page = open_page.go(CHAPTER)
    for name in ("All pages", "On this page"):
        assert page.get_by_role("button", name=name).count() == 0


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_the_menus_work_in_firefox(firefox: Firefox, site: str, width: int) -> None:
    """Each opens, shows its entries, closes by Escape, and goes where an entry leads."""
    firefox.resize(width, 900)
    firefox.go(f"{site}/{CHAPTER}")
    for name in ("primary", "secondary") if width < 1000 else ():
        button, drawer = f".{name}-toggle", f"#pst-{name}-sidebar-modal"
        firefox.tap(button)
        assert firefox.run(f"return document.querySelector('{drawer}').open")
        firefox.press("\ue00c")  # Escape
        assert not firefox.run(f"return document.querySelector('{drawer}').open")
        assert firefox.run(f"return document.activeElement.matches('{button}')")
    if width > 1000:
        list_shown = "return document.querySelector('#pst-primary-sidebar').checkVisibility({visibilityProperty: true})"
        firefox.tap(".primary-toggle")
        firefox.wait(f"{list_shown} === false")
        firefox.tap(".primary-toggle")
        firefox.wait(list_shown)
        return
    firefox.tap(".secondary-toggle")
    firefox.tap(f"#pst-secondary-sidebar-modal a[href='{SECTION}']")
    firefox.wait(f"return location.hash === '{SECTION}' && {TOP % SECTION} < 150")
    assert firefox.run("return document.querySelector('dialog[open]')") is None
    firefox.tap(".primary-toggle")
    firefox.tap("#pst-primary-sidebar-modal a[href='02-learning-the-kernel.html']")
    firefox.wait("return location.pathname.endsWith('02-learning-the-kernel.html')")
    firefox.run("history.back()")
    firefox.wait(f"return location.pathname.endsWith('{CHAPTER}')")
    assert firefox.run("return document.querySelector('dialog[open]')") is None
