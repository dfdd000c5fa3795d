// The pages read without it.
"use strict";

for (const icon of document.querySelectorAll(".fa-solid, .fas, .fab, .far")) icon.ariaHidden = "true"; // a letter of a font

/** An entry of a list that lies over the page as a drawer closes the drawer before it leads on. */
document.addEventListener("click", (event) => {
  const entry = event.target.closest("dialog[id$=sidebar-modal] a[href]");
  if (!entry || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // a tab or window of its own
  const drawer = entry.closest("dialog");
  event.preventDefault();
  drawer.addEventListener("close", () => location.assign(entry.href), { once: true });
  drawer.close();
});

/** The contents mark the section that one reads: the last one that begins above a fifth of the window. */
const contents = document.querySelector("#pst-page-toc-nav");
if (contents) {
  contents.removeAttribute("id"); // by which the theme's script, loaded later, finds it: that marks what came into view last, which is wrong after a jump
  const links = [...contents.querySelectorAll("a[href^='#']")], entries = [...contents.querySelectorAll(".toc-entry")];
  const sections = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  let waits = 0;
  const mark = () => {
    waits = 0;
    const now = links[sections.findLastIndex((section) => section?.getBoundingClientRect().top < innerHeight / 5)];
    for (const link of links) {
      link.classList.toggle("active", link === now);
      if (link === now) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const entry of entries) entry.classList.toggle("active", entry.contains(now ?? null));
  };
  for (const event of ["scroll", "resize"]) addEventListener(event, () => { waits ||= requestAnimationFrame(mark); }, { passive: true });
  mark();
}

/** Sphinx's search, with the sections first that have all words in their titles (those of exercises are in brackets), and each formula once in what it shows. */
if (typeof Search === "object") {
  const { htmlToText, _performSearch } = Search;
  Search._performSearch = (query, ...terms) => {
    const { alltitles, docnames, filenames, titles } = Search._index, words = query.toLowerCase().split(/\s+/);
    const sections = Object.entries(alltitles)
      .filter(([title]) => title[0] !== "(" && words.every((word) => title.toLowerCase().includes(word)))
      .flatMap(([title, places]) => places.map(([file, id]) =>
        [docnames[file], titles[file] === title ? title : `${titles[file]} > ${title}`, id ? `#${id}` : "", null, 100, filenames[file]]));
    const is = (one) => one[0] + one[2], known = new Set(sections.map(is));
    return [..._performSearch(query, ...terms).filter((one) => !known.has(is(one))), ...sections.reverse()]; // the last is shown first
  };
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll("#jb-print-docs-body, .katex-html, .katex annotation").forEach((part) => part.remove());
    return htmlToText(page.documentElement.outerHTML, anchor && `#${CSS.escape(anchor.slice(1))}`);
  };
}
