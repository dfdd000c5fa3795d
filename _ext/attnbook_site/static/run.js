// Cells that run in the reader's browser, and answers to exercises, which are such cells. Python comes at the first
// press and not before; the pages read without it. run_worker.js has the interpreter, progress.js what is kept.
"use strict";

const PAGE = location.pathname.split("/").pop().replace(/\.html$/, "");
const AGREED = "attnbook-python";
const colab = document.querySelector('a[href*="colab.research.google.com"]');
const LACKS = { torch: "PyTorch", jax: "JAX", model: "the model’s file", bokeh: "Bokeh", processes: "processes or threads" };
const cells = new Map(); // of the page, by their places
let worker = null, running = null, agreed = false;
try { agreed = localStorage.getItem(AGREED) === "yes"; } catch { /* asked on every page */ }

function keepMine(text) {
  try { localStorage.setItem(MINE, text); } catch { /* until the page is left */ }
}

/** A cell of the page with its bar, its editor and what it showed. */
class Cell {
  constructor(element) {
    this.element = element;
    this.place = Number(element.className.match(/\bcell-(\d+)/)[1]);
    this.input = element.querySelector(".cell_input");
    this.stored = element.querySelector(":scope > .cell_output, :scope > details > .cell_output");
    this.code = this.input.querySelector("pre").textContent.replace(/\n$/, "");
    this.exercise = element.classList.contains("tag_exercise");
    this.card = element.closest(".exercise-card");
    const asked = this.card?.querySelector(".exercise");
    this.kept = [PAGE, this.place];
    if (asked) this.kept = asked.matches(".build") ? ["builds", this.code.match(/^def (\w+)/m)[1]] : ["exercises", asked.id];
    this.bar = make("div", "run-bar");
    this.start = button(this.exercise ? "Check" : "Run", () => this.run());
    this.change = button(this.exercise ? "Write an answer" : "Edit", () => this.edit());
    this.back = button("Reset", () => this.reset());
    this.halt = button("Stop", stop);
    this.said = make("span", "run-said");
    this.said.setAttribute("role", "status");
    this.back.hidden = this.halt.hidden = true;
    this.bar.append(this.start, this.change, this.halt, this.back, this.said);
    this.input.after(this.bar);
    const draft = this.draft();
    if (draft !== undefined && draft !== this.code) this.edit(draft);
  }

  /** What is kept of the reader's. Once an exercise had its draft by its place: there it is if it has the check's line. */
  draft() {
    const all = drafts(), old = all[PAGE]?.[this.place];
    if (this.kept[0] === "exercises" && old?.includes(this.code.split("\n").at(-1))) {
      keep([PAGE, this.place], null);
      if (all.exercises?.[this.kept[1]] === undefined) keep(this.kept, old);
    }
    return drafts()[this.kept[0]]?.[this.kept[1]];
  }

  /** The code as the reader has it. */
  now() { return this.editor ? this.editor.value : this.code; }

  /** What runs: of an exercise the line of its check, too, which is its last, should it be gone. */
  whole() {
    const code = this.now().trimEnd(), check = this.code.split("\n").at(-1);
    return this.exercise && code.split("\n").at(-1) !== check ? `${code}\n\n${check}` : code;
  }

  /** An editor in place of the code. */
  edit(draft) {
    if (this.editor) return;
    this.editor = make("textarea", "run-editor");
    this.editor.value = typeof draft === "string" ? draft : this.code;
    this.editor.spellcheck = false;
    this.editor.setAttribute("autocapitalize", "off");
    this.editor.setAttribute("aria-label", "Code of this cell. Control and Enter run it.");
    this.editor.addEventListener("keydown", (event) => this.key(event));
    this.editor.addEventListener("input", () => { keep(this.kept, this.editor.value); this.fit(); });
    this.input.firstElementChild.hidden = true; // the frame stays, and the editor where its code was
    this.input.append(this.editor);
    this.change.hidden = true;
    this.back.hidden = false;
    this.fit();
    this.editor.setSelectionRange(0, 0); // a caret at the end scrolls a phone's narrow editor to the right
    if (typeof draft !== "string") this.editor.focus();
  }

  /** This code in the editor. */
  fill(code) {
    this.edit(code);
    this.editor.value = code;
    this.fit();
  }

  /** As high as its text. */
  fit() { this.editor.rows = Math.min(40, this.editor.value.split("\n").length); }

  /** Enter keeps the indentation; with Control it runs the cell. */
  key(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) { this.run(); return; }
    const { editor } = this, { selectionStart: at, value } = editor;
    const line = value.slice(value.lastIndexOf("\n", at - 1) + 1, at);
    editor.setRangeText(`\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(":") ? "    " : ""}`, at, editor.selectionEnd, "end");
    editor.dispatchEvent(new Event("input"));
  }

  /** The page's own code and output again. */
  reset() {
    this.editor?.remove();
    this.editor = null;
    keep(this.kept, null);
    this.input.firstElementChild.hidden = this.change.hidden = false;
    this.back.hidden = true;
    this.output?.remove();
    this.next?.remove();
    this.output = this.next = null;
    if (this.stored) this.stored.hidden = false;
    this.say("");
  }

  /** Run it, once Python is there. */
  run() {
    if (running) { this.say("Another cell is running."); return; }
    if (!agreed) { ask(this); return; }
    running = this;
    this.start.disabled = true;
    this.halt.hidden = this.back.hidden = false;
    if (!this.output) {
      this.output = make("div", "run-output cell_output docutils container");
      if (this.exercise) this.output.setAttribute("role", "status"); // a check's words are read out when they come
      this.bar.after(this.output);
    }
    this.say("Starting Python …");
    interpreter().postMessage({ place: this.place, code: this.whole(), mine: mine() });
  }

  say(words, failed = false) {
    this.said.textContent = words;
    this.said.classList.toggle("run-failed", failed);
    if (failed) this.said.append(notebook());
  }

  /** What came of it, where the stored output stood. */
  show(shown) {
    this.output.replaceChildren(...shown.map(({ kind, content, cause }) => one(kind, cause === undefined ? content : before(content, cause))));
    if (this.stored && shown.length) this.stored.hidden = true;
    this.next?.remove();
    if (this.card) talkBack(this, shown);
    if (!this.card || !shown.some(({ content }) => content.startsWith("✓ "))) return;
    tick(this.card.querySelector(".exercise").id, true); // a right answer ticks its exercise
    refresh();
  }

  /** It is over; words say how. */
  end(words, failed) {
    running = null;
    this.start.disabled = false;
    this.halt.hidden = true;
    this.say(words, failed);
  }
}

/** The words of a check without their end, the cause, which is for the next press; here a cell is run by its button. */
const before = (content, cause) => content.replace(cause, "").trimEnd().replace(/:$/, ".").replace(/run the cell\.$/, "press Check.");

/** One thing that a cell showed. */
function one(kind, content) {
  if (kind === "svg") {
    const picture = make("img", "");
    picture.src = URL.createObjectURL(new Blob([content], { type: "image/svg+xml" }));
    picture.alt = "As this cell drew it now.";
    return picture;
  }
  const frame = make("div", `output ${kind === "html" ? "text_html" : "stream"} run-${kind}`);
  if (kind === "html") frame.innerHTML = content;
  else {
    frame.append(make("pre", "", content));
    frame.firstChild.tabIndex = 0;
  }
  return frame;
}

/** The interpreter, which is started if there is none. */
function interpreter() {
  if (worker) return worker;
  worker = new Worker(`${STATIC}run_worker.js`, { name: PAGE });
  worker.onmessage = ({ data }) => {
    if (!running) return;
    if (data.kind === "status") running.say(data.words);
    else if (data.kind === "shown") {
      if (data.mine) keepMine(data.mine);
      running.show(data.shown);
      running.end(data.words);
    } else {
      worker.terminate();
      worker = null;
      running.end(`${data.words} Nothing that you wrote is lost. Press ${running.start.textContent} again, or `, true);
    }
  };
  worker.onerror = (event) => {
    event.preventDefault();
    worker?.terminate();
    worker = null;
    running?.end("Python could not be started in this browser. Nothing that you wrote is lost: try another browser, or ", true);
  };
  return worker;
}

/** End what runs: the interpreter goes, and with it what had run. */
function stop() {
  worker?.terminate();
  worker = null;
  running?.end("Stopped. What had run is forgotten; it runs again when a cell needs it.");
}

/** Say what will come, and from where, before anything does. */
async function ask(cell) {
  const before = cell.bar.querySelector(".run-ask");
  if (before) { before.querySelector("button").focus(); return; }
  const box = make("div", "run-ask");
  cell.bar.append(box);
  let from = "", version = "";
  try { ({ from, version } = await (await fetch(`${STATIC}run/python.json`)).json()); }
  catch { box.append("The site does not answer."); return; }
  const host = from ? new URL(from).hostname : "this site";
  box.append(make("p", "", `Python (Pyodide ${version}) comes from ${host}, once, and is checked by its hashes: about 10 MB, as much again with the first figure. It runs in this browser. What you write stays here.`));
  const yes = button("Load and run", () => {
    agreed = true;
    try { localStorage.setItem(AGREED, "yes"); } catch { /* asked again on the next page */ }
    box.remove();
    cell.run();
  });
  box.append(yes, button("Not now", () => { box.remove(); cell.start.focus(); }));
  yes.focus();
}

/** A word under a cell that cannot run here, and where it can. */
function elsewhere(element) {
  const input = element.querySelector(".cell_input");
  const lacks = [...element.className.matchAll(/\blacks-([\w-]+)/g)].map(([, word]) => LACKS[word] ?? word);
  const said = make("p", "run-elsewhere", `Needs ${new Intl.ListFormat("en").format(lacks)}: `);
  said.append(notebook());
  input.after(said);
}

/** A link to where all cells run. */
function notebook() {
  const link = make("a", "", colab ? "run it on Colab" : "download the notebook");
  link.href = colab ? colab.href : document.querySelector('a[href$=".ipynb"]')?.href ?? "#";
  link.download = "";
  return link;
}

for (const element of document.querySelectorAll("div.cell.runs")) cells.set(element, new Cell(element));
for (const element of document.querySelectorAll("div.cell.lacks")) elsewhere(element);
