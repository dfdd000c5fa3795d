// What is kept of the reader, in this browser alone: which exercises are done, drafts, and mine.py. The pages read
// without it.
"use strict";

const STATIC = new URL(".", document.currentScript.src).href;
const DONE = "attnbook-done", DRAFTS = "attnbook-drafts", MINE = "attnbook-mine";

const make = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text ?? "" });

/** A button with words, for a bar. */
function button(words, press) {
  const made = make("button", "run-button", words);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

/** All drafts: of builds by the names of their functions, of exercises by their labels, of other cells by page and place. */
function drafts() {
  try { return JSON.parse(localStorage.getItem(DRAFTS)) || {}; } catch { return {}; }
}

/** Keep a draft, or forget it. */
function keep([page, place], code) {
  const all = drafts(), own = all[page] || {};
  if (code === null) delete own[place];
  else own[place] = code;
  all[page] = own;
  if (!Object.keys(own).length) delete all[page];
  try { localStorage.setItem(DRAFTS, JSON.stringify(all)); } catch { /* for this visit only */ }
}

/** The text of mine.py, what the reader has built on all pages; null where that is nothing. */
function mine() {
  try { return localStorage.getItem(MINE); } catch { return null; }
}

/** The labels of the exercises that are ticked. */
function done() {
  try { return new Set(JSON.parse(localStorage.getItem(DONE)) || []); } catch { return new Set(); }
}

/** Tick or untick an exercise, here and on every page of the book. */
function tick(label, ticked) {
  const labels = done();
  if (ticked) labels.add(label);
  else labels.delete(label);
  try { localStorage.setItem(DONE, JSON.stringify([...labels].sort())); } catch { /* for this page only */ }
  count();
}

/** A box to tick, with words beside it or, where a link has them, for screen readers only. */
function box(label, name, words) {
  const input = document.createElement("input");
  input.type = "checkbox";
  input.dataset.exercise = label;
  input.checked = done().has(label);
  input.addEventListener("change", () => tick(label, input.checked));
  const frame = document.createElement("label");
  frame.className = "exercise-done";
  frame.append(input, words);
  if (!words) input.setAttribute("aria-label", `${name} is done`);
  return frame;
}

/** Say under each list of the overview how many of its exercises are ticked. */
function count() {
  for (const list of document.querySelectorAll("ul:has(> li [data-exercise])")) {
    const boxes = [...list.querySelectorAll("[data-exercise]")];
    if (!list.nextElementSibling?.matches(".exercise-count")) {
      const line = document.createElement("p");
      line.className = "exercise-count";
      line.setAttribute("role", "status");
      list.after(line);
      list.classList.add("exercise-list");
    }
    list.nextElementSibling.textContent = `${boxes.filter((b) => b.checked).length} of ${boxes.length} done`;
  }
}

/** Show what is ticked, also when another tab of the browser changed it. */
function refresh() {
  const labels = done();
  for (const input of document.querySelectorAll("[data-exercise]")) input.checked = labels.has(input.dataset.exercise);
  count();
}

for (const exercise of document.querySelectorAll(".exercise-card > .exercise"))
  exercise.parentElement.append(box(exercise.id, "", "done"));
for (const link of document.querySelectorAll('.bd-article li a:is([href*="#ex-"], [href*="#build-"]:not([href*="#build-it"]))'))
  link.before(box(link.hash.slice(1), link.textContent, ""));
count();
window.addEventListener("storage", (event) => { if (event.key === DONE) refresh(); });
