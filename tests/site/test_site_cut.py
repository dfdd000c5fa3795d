"""What a reader cannot see or move: text that a box cuts, a swipe that a box keeps to itself."""

from __future__ import annotations

import pytest
from live_visits import Phone
from playwright.sync_api import Browser
from site_visits import WIDTHS, next_frames, rests, visiting
from test_site_pages import ALL_LAID_OUT, PAGES, TOO_WIDE

SIZES = [(390, 844), (768, 1024), (1024, 768), (1440, 900), (1920, 1080)]
# everything that folds lies open, and both back ends stand below each other
OPEN = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  for (const one of document.querySelectorAll(".toggle-hidden")) one.classList.remove("toggle-hidden");
  delete document.documentElement.dataset.backend;
}"""
# Lines of text, and a formula's parts, of which a box that clips shows less than all: on the side where it does not scroll,
# on the left and above also where it does. A line may leave its box above and below by a third, which no letter fills.
CUT = """() => {
  const range = document.createRange(), styles = new Map(), chains = new Map(), found = [];
  const style = (box) => styles.get(box) ?? styles.set(box, getComputedStyle(box)).get(box);
  // from within, the boxes that clip what stands in an element; null where it is there for screen readers alone
  const clips = (element) => {
    const chain = [];
    let position = "static"; // of what is placed by a box farther out, and not clipped until there
    for (let box = element; box !== document.documentElement; box = box.parentElement) {
      const { clip, clipPath, display, overflowX, overflowY, position: own, transform } = style(box);
      if (position === "fixed" ? transform === "none" : position === "absolute" && own === "static" && transform === "none")
        continue;
      if (clip !== "auto" || clipPath !== "none") return null;
      if (display !== "inline" && (overflowX !== "visible" || overflowY !== "visible")) {
        if (box.clientWidth <= 1 || box.clientHeight <= 1) return null;
        chain.push(box);
      }
      position = own;
    }
    return chain;
  };
  const chain = (element) => chains.get(element) ?? chains.set(element, clips(element)).get(element);
  const look = (element, rects, words) => {
    const boxes = chain(element);
    if (!boxes?.length || !element.checkVisibility({ visibilityProperty: true })) return;
    for (let { left, right, top, bottom, height } of rects) {
      for (const box of boxes) {
        const { overflowX, overflowY, textOverflow, webkitLineClamp } = style(box), outer = box.getBoundingClientRect();
        const [x, y] = [outer.left + box.clientLeft, outer.top + box.clientTop];
        const [endX, endY] = [x + (box.clientWidth || outer.width), y + (box.clientHeight || outer.height)];
        const stays = (overflow) => overflow === "hidden" || overflow === "clip";
        const cut = overflowX !== "visible" && (left + box.scrollLeft < x - 1
            || (stays(overflowX) && textOverflow === "clip" && right > endX + 1))
          || overflowY !== "visible" && (top + box.scrollTop < y - height / 3
            || (stays(overflowY) && webkitLineClamp === "none" && bottom > endY + height / 3));
        if (cut) found.push(`${box.tagName}.${box.getAttribute("class")}: ${words.trim().slice(0, 40)}`);
        if (overflowX !== "visible") [left, right] = [Math.max(left, x), Math.min(right, endX)];
        if (overflowY !== "visible") [top, bottom] = [Math.max(top, y), Math.min(bottom, endY)];
        if (cut || left >= right || top >= bottom) break; // the rest is there for whoever scrolls
      }
    }
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) =>
    node.nodeType === 3 ? (node.data.trim() ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_SKIP)
    : node.matches(".katex, script, style, noscript, option") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP);
  for (let text; (text = walk.nextNode()); ) {
    range.selectNodeContents(text);
    if (chain(text.parentElement)?.length) look(text.parentElement, range.getClientRects(), text.data);
  }
  for (const base of document.querySelectorAll(".katex .base")) look(base, base.getClientRects(), base.textContent);
  return found;
}"""
SCROLLED = "document.scrollingElement.scrollTop"


@pytest.mark.parametrize("path", PAGES)
def test_no_box_cuts_its_text(in_fonts: Browser, site: str, path: str) -> None:
    """From a phone to a large screen, whatever lies open."""
    with visiting(in_fonts, site, viewport=WIDTHS["phone"]) as seen:
        page = seen.go(path)
        page.add_style_tag(content=ALL_LAID_OUT)
        page.evaluate(OPEN)
        cut = {}
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            next_frames(page)
            cut[width] = page.evaluate(CUT)
            if (beyond := page.evaluate(TOO_WIDE)) > 0:
                cut[width].append(f"the page is {beyond} pixels wider than the window")
    assert {width: found for width, found in cut.items() if found} == {}


def test_the_first_swipe_over_a_live_figure_scrolls_the_page(browser: Browser, site: str) -> None:
    """A box that is higher than its frame by a pixel would take it for itself."""
    options = {"viewport": WIDTHS["phone"], "has_touch": True, "is_mobile": True}
    with visiting(browser, site, **options) as seen:
        page = seen.go("chapters/01-kernel-regression.html#live-kernel-regression")
        page.wait_for_selector(".attnbook-live[data-ready] .bk-Figure")
        before = rests(page, SCROLLED)
        box = page.locator(".attnbook-live .bk-Figure").first.bounding_box()
        assert box is not None
        finger = Phone(page, page.context.new_cdp_session(page))
        finger.swipe(box["x"] + 0.8 * box["width"], box["y"] + 0.7 * box["height"], 0, -160)
        assert rests(page, SCROLLED) > before + 100
