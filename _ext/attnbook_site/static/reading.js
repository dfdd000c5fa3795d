// How much of each chapter is read: minutes left, and a tick, in the list of pages. Kept in this browser alone.
"use strict";

const READ = "attnbook-read"; // for each chapter the sections whose end the reader has seen, and how many there are
const PASSED = new Set(["exercises", "references"]); // no part of the minutes

function load() {
  try { return JSON.parse(localStorage.getItem(READ)) || {}; } catch { return {}; }
}

/** Say beside each chapter what is left of it. */
function say() {
  const read = load();
  for (const place of document.querySelectorAll(".page-minutes")) {
    const { share = 0 } = read[place.dataset.page] ?? {}, left = Math.ceil(place.dataset.minutes * (1 - share));
    place.classList.toggle("is-read", share > 0 && left === 0);
    place.textContent = share === 0 ? `${left} min` : left === 0 ? "✓" : `${left} min left`;
    if (share > 0 && left === 0) { place.setAttribute("role", "img"); place.setAttribute("aria-label", "read"); }
    else { place.removeAttribute("role"); place.removeAttribute("aria-label"); }
  }
}

/** The end of a section: its last element that is no section itself. */
function endOf(section) {
  let end = section;
  while (end.matches("section") && end.lastElementChild) end = end.lastElementChild;
  return end;
}

function watch(name) {
  const sections = [...document.querySelectorAll(".bd-article > section > section[id]")].filter((one) => !PASSED.has(one.id));
  const sizes = new Map(sections.map((one) => [one.id, parseFloat(one.style.getPropertyValue("--wide")) || 1]));
  const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const seen = new IntersectionObserver((entries) => {
    const ends = entries.filter((one) => one.isIntersecting && one.boundingClientRect.bottom <= innerHeight + 1);
    if (!ends.length) return;
    const read = load(), had = new Set(read[name]?.sections);
    for (const { target } of ends) had.add(target.closest(".bd-article > section > section").id);
    const share = [...had].reduce((sum, id) => sum + (sizes.get(id) ?? 0), 0) / all;
    read[name] = { sections: [...had], share: Math.min(1, share > 0.995 ? 1 : share) };
    try { localStorage.setItem(READ, JSON.stringify(read)); } catch { /* for this page only */ }
    say();
  }, { threshold: [0, 0.25, 0.5, 0.75, 1] });
  for (const section of sections) seen.observe(endOf(section));
}

const name = document.querySelector("meta[name=page]")?.content;
if (name) watch(name);
say();
window.addEventListener("storage", (event) => { if (event.key === READ) say(); });
