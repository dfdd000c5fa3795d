// Cells that run in the reader's browser, and answers to exercises, which are such cells. Python comes at the first
// press and not before; the pages read without it. run_worker.js has the interpreter.
"use strict";

const STATIC = new URL(".", document.currentScript.src).href;
const PAGE = location.pathname.split("/").pop().replace(/\.html$/, "");
const AGREED = "attnbook-python", DRAFTS = "attnbook-drafts", MINE = "attnbook-mine";
const colab = document.querySelector('a[href*="colab.research.google.com"]');
const LACKS = { torch: "PyTorch", jax: "JAX", model: "the model’s file", bokeh: "Bokeh", processes: "processes or threads" };
const cells = new Map(); // of the page, by their places
let worker = null, running = null, agreed = false;
try { agreed = localStorage.getItem(AGREED) === "yes"; } catch { /* asked on every page */ }

const make = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text ?? "" });

/** A button with words, for a bar. */
function button(words, press) {
  const made = make("button", "run-button", words);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

/** All drafts, by page and place; those of builds by the names of their functions. */
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
    const build = element.parentElement.querySelector(":scope > .exercise.build");
    this.kept = build ? ["builds", this.code.match(/^def (\w+)/m)[1]] : [PAGE, this.place];
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
    const draft = drafts()[this.kept[0]]?.[this.kept[1]];
    if (draft !== undefined && draft !== this.code) this.edit(draft);
  }

  /** The code as the reader has it. */
  now() { return this.editor ? this.editor.value : this.code; }

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
    this.output = null;
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
    this.say("Starting Python …");
    interpreter().postMessage({ place: this.place, code: this.now(), mine: mine() });
  }

  say(words, failed = false) {
    this.said.textContent = words;
    this.said.classList.toggle("run-failed", failed);
    if (failed) this.said.append(notebook());
  }

  /** What came of it, where the stored output stood. */
  show(shown) {
    this.output?.remove();
    this.output = make("div", "run-output cell_output docutils container");
    for (const { kind, content } of shown) this.output.append(one(kind, content));
    this.bar.after(this.output);
    if (this.stored && shown.length) this.stored.hidden = true;
    if (this.exercise && shown.some(({ content }) => content.startsWith("✓ "))) this.tick();
  }

  /** A right answer ticks its exercise. */
  tick() {
    const all = [...document.querySelectorAll("div.exercise[id]")];
    const own = all.findLast((exercise) => exercise.compareDocumentPosition(this.element) & Node.DOCUMENT_POSITION_FOLLOWING);
    if (!own || typeof window.tick !== "function") return;
    window.tick(own.id, true);
    window.refresh();
  }

  /** It is over; words say how. */
  end(words, failed) {
    running = null;
    this.start.disabled = false;
    this.halt.hidden = true;
    this.say(words, failed);
  }
}

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
