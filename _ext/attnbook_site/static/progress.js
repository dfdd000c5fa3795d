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

for (const exercise of document.querySelectorAll("div.exercise[id]"))
  exercise.querySelector(".admonition-title").append(box(exercise.id, "", "done"));
for (const link of document.querySelectorAll('.bd-article li a[href*="#ex-"]'))
  link.before(box(link.hash.slice(1), link.textContent, ""));
count();
window.addEventListener("storage", (event) => { if (event.key === DONE) refresh(); });

/** On the overview of all exercises: what run.js keeps of the reader's code, as a file, or forgotten. */
function offerDrafts() {
  const DRAFTS = "attnbook-drafts", list = document.querySelector("ul.exercise-list");
  let kept = null;
  try { kept = JSON.parse(localStorage.getItem(DRAFTS)); } catch { /* nothing is kept */ }
  if (!list || !kept) return;
  const bar = document.createElement("p");
  const button = (words, press) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "run-button", textContent: words });
    made.addEventListener("click", press);
    bar.append(made, " ");
  };
  bar.append("This browser keeps what you wrote into cells. ");
  button("Save it as a file", () => {
    const text = Object.entries(kept).map(([page, cells]) => `# ${page}\n\n${Object.values(cells).join("\n\n\n")}\n`);
    const file = new Blob([text.join("\n\n")], { type: "text/x-python" });
    Object.assign(document.createElement("a"), { download: "answers.py", href: URL.createObjectURL(file) }).click();
  });
  button("Forget it", () => {
    localStorage.removeItem(DRAFTS);
    bar.textContent = "Forgotten.";
  });
  document.querySelector(".bd-article h1").after(bar);
}
offerDrafts();
