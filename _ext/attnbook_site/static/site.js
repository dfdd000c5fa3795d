// Back-end tabs, drawers that close, and scrolling boxes that the keyboard can reach. The pages read without it.
"use strict";

const STORE = "attnbook-backend";
const SCROLLING = "pre, .math-scroll, .pst-scrollable-table-container, .cell_output > .output";

/** Show this back end in every block of the page; keep it for other pages and visits if asked to. */
function show(backend, keep) {
  document.documentElement.dataset.backend = backend;
  for (const tab of document.querySelectorAll(".backend-tabs [role=tab]")) {
    const chosen = tab.dataset.backend === backend;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  if (keep) {
    try { localStorage.setItem(STORE, backend); } catch { /* no storage: the choice lasts for the page */ }
  }
}

/** Choose a back end at one block, which stays where it is on the screen. */
function choose(tab) {
  const before = tab.getBoundingClientRect().top;
  show(tab.dataset.backend, true);
  window.scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
  tab.focus({ preventScroll: true });
}

/** Arrow keys, Home and End move between the tabs of a block. */
function onKey(event) {
  const tabs = [...event.currentTarget.children];
  const at = tabs.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(tabs[(to + tabs.length) % tabs.length]);
}

/** Make a block's panels into tabs. */
function makeTabs(block) {
  const list = document.createElement("div");
  list.className = "backend-tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Library");
  list.addEventListener("keydown", onKey);
  for (const panel of block.querySelectorAll(":scope > .backend-panel")) {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `${panel.id}-tab`;
    tab.dataset.backend = panel.dataset.backend;
    tab.textContent = panel.querySelector(".backend-name").textContent;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => choose(tab));
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    list.append(tab);
  }
  block.prepend(list);
  block.classList.add("is-tabbed");
}

/** A box that scrolls sideways can be focused, so that the arrow keys scroll it. First all boxes are read, then some written. */
function markScrolling(changes) {
  const boxes = changes.map((change) => change.target);
  const scrolls = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
  boxes.forEach((box, i) => {
    if (scrolls[i]) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
}

/** The browser reports each box once it has laid it out: now, when it is unfolded, and when the window changes. */
const sizes = new ResizeObserver(markScrolling);
function watchSizes() {
  document.querySelectorAll(SCROLLING).forEach((box) => {
    box.tabIndex = 0; // until it is laid out, which on a phone may be late, it may scroll
    sizes.observe(box);
  });
}

document.querySelectorAll(".backend-block:not(.backend-single)").forEach(makeTabs);
show(document.documentElement.dataset.backend || "torch", false);
watchSizes();
document.fonts.ready.then(watchSizes); // the fonts change what fits
window.addEventListener("storage", (event) => {
  if (event.key === STORE && event.newValue) show(event.newValue, false);
});

/** The theme's button opens a list as a drawer or, where the window is wide enough, folds it away beside the text. Here it says
    which, the focus returns to it, and an entry closes the drawer before it leads on. */
function watchDrawer(name, wide) {
  const button = document.querySelector(`.${name}-toggle`);
  if (!button) return;
  const list = document.getElementById(`pst-${name}-sidebar`), drawer = document.getElementById(`pst-${name}-sidebar-modal`);
  const beside = matchMedia(`(min-width: ${wide}px)`);
  const tell = () => button.setAttribute("aria-expanded",
    String(drawer.open || (beside.matches && !list.classList.contains("pst-sidebar-hidden"))));
  drawer.setAttribute("aria-label", button.getAttribute("aria-label"));
  drawer.addEventListener("close", () => button.focus({ preventScroll: true }));
  drawer.addEventListener("click", (event) => {
    const entry = event.target.closest("a[href]");
    if (!entry || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // a tab or window of its own
    event.preventDefault();
    drawer.addEventListener("close", () => location.assign(entry.href), { once: true });
    drawer.close();
  });
  beside.addEventListener("change", () => { drawer.close(); tell(); });
  new MutationObserver(tell).observe(list, { attributeFilter: ["class"] }); // the theme moves the classes with the entries
  tell();
}
watchDrawer("primary", 992);
watchDrawer("secondary", 1200);

/** The theme takes the focus from a button that was pressed, so that its tooltip goes with the mouse. After a key the focus
    stays: a second Enter presses again, and a closed search returns to its button. */
document.addEventListener("click", (event) => {
  const button = event.target.closest(".theme-switch-button, .search-button, .sidebar-toggle");
  if (button) button.blur = event.detail === 0 ? () => {} : HTMLElement.prototype.blur;
}, true);

/** Back and a reload return to where the reader was: by section, since those above may not have been laid out yet. */
const SECTIONS = ".bd-article > section, .bd-article > section > section[id]";
function keepPlace() {
  const above = [...document.querySelectorAll(SECTIONS)].map((one) => [one.id, one.getBoundingClientRect().top]);
  history.replaceState({ ...history.state, place: above.filter(([, top]) => top < 1).at(-1) }, "");
}
function returnToPlace() {
  const [visit] = performance.getEntriesByType("navigation"), [name, top] = history.state?.place ?? [];
  const section = name && document.getElementById(name);
  if (!section || !/^(reload|back_forward)$/.test(visit?.type)) return;
  let end = Infinity;
  for (const move of ["wheel", "touchstart", "keydown", "mousedown"])
    window.addEventListener(move, () => { end = 0; }, { once: true, passive: true });
  window.addEventListener("load", () => setTimeout(() => { end = 0; }, 1000));
  const settle = () => {
    if (performance.now() >= end) return; // the reader has gone on since this was asked for
    const off = section.getBoundingClientRect().top - top;
    if (Math.abs(off) > 1) window.scrollBy({ top: off, behavior: "instant" });
    requestAnimationFrame(settle);
  };
  settle();
}
returnToPlace();
let resting;
window.addEventListener("scroll", () => { clearTimeout(resting); resting = setTimeout(keepPlace, 150); }, { passive: true });
window.addEventListener("pagehide", keepPlace);

/** Figures farther down come once the page rests: then it can be read to its end without a network. */
function fetchFigures() {
  if (navigator.connection?.saveData) return;
  for (const image of document.images) image.loading = "eager";
}
window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(fetchFigures));
