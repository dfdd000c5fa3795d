"""What only a second browser shows: its console, which reads every attribute of a formula."""

from __future__ import annotations

from firefox import Firefox
from site_visits import SITE, pages_of

PAGES = pages_of(SITE) if SITE.is_dir() else ["index.html"]


def test_the_console_of_firefox_is_silent(firefox: Firefox, site: str) -> None:
    """No error and no warning on any page."""
    firefox.resize(1280, 900)
    said = {}
    for path in PAGES:
        firefox.log.clear()
        firefox.go(f"{site}/{path}")
        firefox.run("await new Promise((done) => setTimeout(done, 300));")  # live figures begin
        said[path] = [line for line in firefox.log if line.startswith(("error", "warn"))]
    assert {path: lines for path, lines in said.items() if lines} == {}


def test_formulas_have_no_empty_attributes() -> None:
    """KaTeX writes a length that is none, and Firefox complains."""
    assert [p for p in PAGES if 'columnspacing=""' in (SITE / p).read_text(encoding="utf-8")] == []
