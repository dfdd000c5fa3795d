"""What a page does not show: text that a box cuts, and whatever is wider than the window."""

# everything that folds lies open, and both back ends show
OPEN = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  document.head.append(Object.assign(document.createElement("style"), {
    textContent: ".sd-tab-content { display: block !important; }" }));
}"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
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
