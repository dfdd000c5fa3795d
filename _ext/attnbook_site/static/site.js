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

/** Whoever follows a link finds what it leads to open, and what is around that. */
const reveal = (hash) => {
  const target = document.getElementById(decodeURIComponent(hash.slice(1)));
  let closed = 0;
  for (let one = target; one; one = one.parentElement) {
    const fold = one.matches("details") ? one : one.querySelector(":scope > details.deeper");
    if (fold && !fold.open) closed = fold.open = true;
  }
  if (closed) target.scrollIntoView();
};
addEventListener("hashchange", () => reveal(location.hash));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#']");
  if (link?.hash && link.hash === location.hash && link.pathname === location.pathname) reveal(link.hash); // once more
});
if (location.hash) reveal(location.hash);

/** A figure as large as the window, or wider, to be moved about; Escape and Close give the focus back to it. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.whole");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const box = Object.assign(document.createElement("dialog"), { className: "whole", onclose: () => box.remove() });
  box.innerHTML = '<form method="dialog"><button>Close</button></form>';
  box.append(link.firstElementChild.cloneNode());
  document.querySelector(".bd-article").append(box);
  box.showModal();
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
