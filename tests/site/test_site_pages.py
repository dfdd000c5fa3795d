"""What must hold of every page: one visit each, on a desk, and in the dark."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Page
from site_visits import ROOT, SITE, WIDTHS, Visit, faded, next_frames, pages_of, visiting

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
PAGES = pages_of(SITE) if SITE.is_dir() else ["index.html"]
SHORT = re.compile(r"index|status|glossary|chapters/(01|05|08)")  # of these, make test opens each

UNSHOWN_MATHS = r"""() => [
  ...[...document.querySelectorAll(".math")]
    .filter(e => !e.querySelector(".katex math")).map(e => e.textContent),
  ...[...document.querySelectorAll(".bd-article p, .bd-article li, .bd-article td, .bd-article dd")]
    .filter(e => {
      const copy = e.cloneNode(true);
      copy.querySelectorAll("code, pre, .katex").forEach(part => part.remove());
      return /\$[^$]+\$|\\\(|\\\[|\\begin\{/.test(copy.textContent);
    }).map(e => e.textContent)]"""
UNNAMED_IMAGES = """() => [...document.querySelectorAll(".bd-article img")]
  .filter(e => !(e.getAttribute("alt") || "").trim()
            || /^(_images|[.][.]|[0-9a-f]{64})|[.](svg|png)$/.test(e.alt)).map(e => e.src)"""
BROKEN_IMAGES = """async () => {
  const images = [...document.images];
  for (const image of images) image.loading = "eager";
  await Promise.all(images.map(image => image.decode().catch(() => null)));
  return images.filter(image => !image.naturalWidth).map(image => image.src);
}"""
# Without the inside of formulas, which is KaTeX's; each node's HTML is not read, nor style sheets a
# second time, which only an experiment of axe does.
RUN_AXE = """async (rules) => {
  axe.configure({ noHtml: true });
  const options = { resultTypes: ["violations"], preload: { assets: ["media"] } };
  if (rules) options.runOnly = rules;
  const found = await axe.run({ exclude: [".katex"] }, options);
  return found.violations;
}"""
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules that another theme can break


def in_time(path: str) -> object:
    """A page; most are for make test-all."""
    return pytest.param(path, marks=() if SHORT.search(path) else pytest.mark.slow)


def axe_findings(page: Page, rules: list[str] | None = None) -> list[str]:
    """Serious and critical findings of axe on an open page, one line each; of all rules, or some."""
    if page.evaluate("typeof axe") == "undefined":
        page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    violations = page.evaluate(RUN_AXE, rules)
    return [
        f"{finding['id']} ({finding['impact']}): {node['target']} {node['failureSummary']}"
        for finding in violations
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]


@pytest.mark.parametrize("path", [in_time(path) for path in PAGES])
def test_page(browser: Browser, site: str, path: str) -> None:
    """No outside request, no complaint; everything shown, named and readable."""
    with visiting(browser, site, viewport=WIDTHS["desk"], color_scheme="light") as seen:
        page = seen.go(path, rest=True)
        assert page.locator("h1:visible").count() == 1
        assert page.evaluate(UNSHOWN_MATHS) == []
        assert page.evaluate(UNNAMED_IMAGES) == []
        assert page.evaluate(BROKEN_IMAGES) == []
        assert axe_findings(page) == []
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
        faded(page)
        assert axe_findings(page, COLOURS) == []
        assert page.context.cookies() == []


def test_every_link_within_the_site_leads_somewhere() -> None:
    """Of pages, decks and doors: the file is there, and in it the place."""
    files = [SITE / path for path in PAGES]
    files += (file for folder in ("lectures", "doors") for file in (SITE / folder).glob("*.html"))
    texts = {file.resolve(): file.read_text(encoding="utf-8") for file in files}
    places = {
        file: set(re.findall(r'\s(?:id|name)="([^"]+)"', text)) for file, text in texts.items()
    }
    lost = set()
    for file, text in texts.items():
        for link in re.findall(r'<a [^>]*?href="([^"]*)"', text):
            address = urlsplit(unescape(link))
            if address.scheme or address.netloc:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            anchor = unquote(address.fragment)
            slide = anchor.startswith("/")  # of a deck
            known = slide or not anchor or target not in places or anchor in places[target]
            if not (target.exists() and known):
                lost.add((file.relative_to(SITE.resolve()).as_posix(), link))
    assert sorted(lost) == []


def test_a_link_into_a_chapter_lands_on_a_phone(open_page: Visit) -> None:
    """And nothing jumps after it: an image says its size before it comes."""
    open_page.page.set_viewport_size(WIDTHS["phone"])
    top = "document.getElementById('exercises').getBoundingClientRect().top"
    page = open_page.go("chapters/01-kernel-regression.html#exercises", rest=True)
    for _ in range(10):
        next_frames(page)
        assert 0 <= page.evaluate(top) < 200
