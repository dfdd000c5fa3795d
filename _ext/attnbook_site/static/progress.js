// Which exercises the reader has done. Kept in this browser alone; the pages read without it.
"use strict";

const DONE = "attnbook-done";

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
