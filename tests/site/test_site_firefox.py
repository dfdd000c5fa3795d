"""What only a second browser shows: its console, which reads every attribute of a formula."""

from __future__ import annotations

from firefox import Firefox
from site_visits import FRAMES, SITE, pages_of

PAGES = pages_of(SITE) if SITE.is_dir() else ["index.html"]
# each live figure that the reader is near stands there, or says that it cannot
BEGUN = """return [...document.querySelectorAll(".attnbook-live")].every((one) => {
  const box = one.getBoundingClientRect(), near = box.top < innerHeight && box.bottom > 0;
  return !near || !one.checkVisibility() || one.dataset.ready
    || one.textContent.includes("could not load");
})"""


def test_the_console_of_firefox_is_silent(firefox: Firefox, site: str) -> None:
    """No error and no warning on any page.

    A page that complains is loaded once more: Firefox may draw a formula of which only the first
    half has arrived, and finds a child missing. What a page itself has wrong it has wrong twice.
    """

    def complaints(path: str) -> list[str]:
        firefox.log.clear()
        firefox.go(f"{site}/{path}")
        firefox.wait(BEGUN)
        firefox.run(f"await ({FRAMES})()")
        return [line for line in firefox.log if line.startswith(("error", "warn"))]

    firefox.resize(1280, 900)
    said = {path: complaints(path) and complaints(path) for path in PAGES}
    assert {path: lines for path, lines in said.items() if lines} == {}


def test_formulas_have_no_empty_attributes() -> None:
    """KaTeX writes a length that is none, and Firefox complains."""
    assert [p for p in PAGES if 'columnspacing=""' in (SITE / p).read_text(encoding="utf-8")] == []
