"""Once in Firefox: a chapter, its tabs and menus, the search, a live figure, a deck."""

from __future__ import annotations

from firefox import Firefox
from test_site_lectures import FIRST as DECK
from test_site_reading import FIRST, SECTION, TABBED

FIGURE = "document.querySelector('.attnbook-live[data-ready=true]') !== null"


def test_firefox_reads_the_book_and_its_console_is_silent(firefox: Firefox, site: str) -> None:
    firefox.resize(390, 800)
    firefox.log.clear()
    firefox.go(f"{site}/index.html")
    firefox.run("document.querySelector('.attnbook-live').scrollIntoView()")
    firefox.wait(f"return {FIGURE}")
    firefox.go(f"{site}/{FIRST}")
    firefox.click(".secondary-toggle")
    firefox.click(f"#pst-secondary-sidebar-modal a[href='#{SECTION}']")
    firefox.wait(f"return location.hash === '#{SECTION}'")
    assert firefox.run("return document.querySelector('dialog[open]')") is None
    firefox.go(f"{site}/{TABBED}")
    firefox.click(".sd-tab-set > input:not(:checked) + label")
    firefox.go(f"{site}/{TABBED}")
    assert firefox.run("""return [...document.querySelectorAll(".sd-tab-set > input:checked + label")]
        .every((label) => label.textContent.trim() === "JAX" || !label.nextElementSibling.nextElementSibling)""")
    firefox.go(f"{site}/search.html?q=bandwidth")
    firefox.wait(
        "return document.querySelector('.bd-search-container .search-results li a') !== null"
    )
    firefox.resize(1280, 720)
    firefox.go(f"{site}/lectures/{DECK}.html")
    firefox.wait("return document.documentElement.dataset.ready === 'true'")
    assert [line for line in firefox.log if line.startswith(("error", "warn"))] == []
