// What is kept of the reader goes out as a file, and comes in again: all of it, or mine.py, what the reader has built.
// Nothing that is here is lost by it. progress.js has the store.
"use strict";

const ROAD = "attnbook-road", BEFORE = "attnbook-before"; // the place on the road; all that a file took the place of, and its name
const MARK = "\n# --- All below attnbook has written"; // the end of mine.py, by which it is a program
const MOST = 5e6; // bytes of a file
const PROGRESS = "attnbook-progress.json";

/** The statements of a module that define or import something. */
const statements = (text) => text.split(/^(?<!^@.*\n)(?=@|def |class |import |from |\w+ *=)/m).map((one) => one.trimEnd());

/** The names that a statement sets. */
function names(statement) {
  const set = statement.match(/^(?:@.*\n)*(?:def|class) (\w+)|^(\w+) *=/);
  if (set) return [set[1] ?? set[2]];
  const imported = statement.match(/^(?:from .+)?import (.+)/);
  return imported ? imported[1].split(",").map((one) => one.trim().split(" ").pop()) : [];
}

/** The source of a function in a module's text, and before it what it reads; nothing where there is none. */
function source(text, name) {
  const all = statements(text), wanted = all.filter((one) => /^(@|def )/.test(one) && names(one)[0] === name);
  for (const one of wanted) // which grows meanwhile
    for (const other of all)
      if (!wanted.includes(other) && names(other).some((read) => new RegExp(`\\b${read}\\b`).test(one))) wanted.push(other);
  return all.filter((one) => wanted.includes(one)).join("\n\n");
}

/** What the site knows of builds: their checks, and what stands at the end of mine.py. */
async function ofBuilds() {
  try { return await (await fetch(`${STATIC}run/python.json`)).json(); }
  catch { throw new Error("The site does not answer."); }
}

/** All that is kept here. */
function kept() {
  let road = null;
  try { road = JSON.parse(localStorage.getItem(ROAD)); } catch { /* spoiled, or nothing can be kept */ }
  return { attnbook: 1, done: [...done()], drafts: drafts(), mine: mine(), road };
}

/** Keep this, of a file or from before it, in the place of what is here; all or, where there is no room, nothing. */
function store({ done, drafts, mine, road }, file, undone = false) {
  const wanted = { [DONE]: done, [DRAFTS]: drafts, [MINE]: mine, [ROAD]: road, [BEFORE]: { ...kept(), file, undone } };
  const old = Object.keys(wanted).map((key) => [key, localStorage.getItem(key)]);
  const set = (key, text) => (text === null ? localStorage.removeItem(key) : localStorage.setItem(key, text));
  try {
    for (const [key, value] of Object.entries(wanted)) set(key, value === null || key === MINE ? value : JSON.stringify(value));
  } catch {
    for (const [key] of old) localStorage.removeItem(key); // makes room for what was there
    for (const [key, text] of old) set(key, text);
    throw new Error("This browser has no room for it.");
  }
  refresh();
  for (const cell of typeof cells === "undefined" ? [] : cells.values()) { // of this page
    const draft = cell.draft();
    if (draft !== undefined) cell.fill(draft);
    else if (cell.editor) cell.reset();
  }
}

/** Give the reader a file. */
function give(name, text, type) {
  const link = make("a", "");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
}

/** Give mine.py, as a program. */
async function giveMine(desk) {
  const built = mine();
  if (!built) { desk.say("Nothing is built yet in this browser. A right answer goes into mine.py."); return; }
  const { tail } = await ofBuilds();
  give("mine.py", built.includes(MARK) ? built : `${built.trimEnd()}\n\n\n${tail}`, "text/x-python");
  desk.say("mine.py has all that you built in this browser. Where the book is installed, python mine.py text.txt trains it.");
}

/** Give all that is kept. */
function giveProgress(desk) {
  const all = kept();
  give(PROGRESS, JSON.stringify(all, null, 1), "application/json");
  desk.say(`${PROGRESS} has ${amounts(all.done.length, places(all.drafts).length, all.mine, all.road)}.`);
}

/** What there is, in words. */
function amounts(ticks, drafts, mine, road) {
  const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const found = [ticks && counted(ticks, "tick"), drafts && counted(drafts, "draft"), mine && "mine.py", road && "your place on the road"];
  return new Intl.ListFormat("en").format(found.filter(Boolean)) || "nothing yet";
}

const places = (all) => Object.entries(all).flatMap(([page, own]) => Object.keys(own).map((place) => [page, place]));
const isMap = (one) => one !== null && typeof one === "object" && !Array.isArray(one);
const isText = (one) => typeof one === "string";
const isName = (one) => isText(one) && /^[\w-]+$/.test(one) && !(one in {}); // no constructor, no __proto__
const PARTS = { // of a file of progress: what each is, in words and as a test
  attnbook: ["1", (one) => one === 1],
  done: ["a list of exercises", (one) => Array.isArray(one) && one.every(isName)],
  drafts: ["code by page and cell", (one) => isMap(one) && Object.values(one).every(isMap) && places(one).every(([page, place]) => isName(page) && isName(place) && isText(one[page][place]))],
  mine: ["the text of mine.py, or null", (one) => one === null || isText(one)],
  road: ["a page of the book, or null", (one) => one === null || (isMap(one) && isText(one.words) && isText(one.at) && /^(?:[\w-]+\/)*[\w-]+\.html(?:#[\w-]*)?$/.test(one.at))],
};

/** What a file holds, be it progress or mine.py; an error says why it holds neither. */
async function read(file) {
  if (file.size > MOST) throw new Error(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB, expected at most ${MOST / 1e6}.`);
  const text = (await file.text()).replaceAll("\r\n", "\n");
  if (file.name.endsWith(".py")) return ofMine(file.name, text);
  let found = null;
  try { found = JSON.parse(text); } catch { /* said below */ }
  if (!isMap(found) || !("attnbook" in found)) throw new Error(`${file.name} is no ${PROGRESS}, or is damaged; expected that, or mine.py.`);
  for (const [part, [words, fits]] of Object.entries(PARTS))
    if (!fits(found[part])) throw new Error(`${file.name} has in ${part} ${JSON.stringify(found[part])?.slice(0, 60) ?? "nothing"}, expected ${words}.`);
  return found;
}

/** What mine.py holds: each function of a build is a draft, too. */
async function ofMine(name, text) {
  const { builds: checks } = await ofBuilds(), [above] = text.split(MARK);
  const found = Object.keys(checks).filter((build) => source(above, build));
  if (!found.length) throw new Error(`${name} has no function of a build: ${Object.keys(checks).join(", ")}.`);
  const drafts = { builds: Object.fromEntries(found.map((build) => [build, `${source(above, build)}\n\n${checks[build]}`])) };
  return { done: [], drafts, mine: text, road: null };
}

/** Both together; where they have different answers, the one that is here, or theirs. */
function together(here, file, theirs) {
  const both = { ...here, done: [...new Set([...here.done, ...file.done])].sort(), drafts: structuredClone(here.drafts) };
  for (const [page, place] of places(file.drafts))
    if (theirs || here.drafts[page]?.[place] === undefined) (both.drafts[page] ??= {})[place] = file.drafts[page][place];
  for (const part of ["mine", "road"]) both[part] = (theirs ? file[part] ?? here[part] : here[part] ?? file[part]);
  return both;
}

/** In what they differ, as the reader calls it. */
function apart(here, file) {
  const found = places(file.drafts).filter(([page, place]) => (here.drafts[page]?.[place] ?? file.drafts[page][place]).trim() !== file.drafts[page][place].trim());
  const called = found.map(([page, place]) => {
    const link = page === "exercises" && document.querySelector(`.bd-article li > p > a[href$="#${CSS.escape(place)}"]`);
    const chapter = page === "builds" && file.drafts[page][place].match(/^checks\.ch0?(\d+)\./m);
    if (chapter) return `Build ${chapter[1]} (${place})`;
    return link ? `“${link.textContent}”` : page === "builds" || page === "exercises" ? place : `cell ${place} of ${page}`;
  });
  const left = (text) => { // of mine.py, without the builds that are named already
    const [own] = text.split(MARK), named = found.map(([, place]) => source(own, place)).join("\n\n");
    return statements(own).filter((one) => !named.includes(one)).join("\n\n").trim();
  };
  if (here.mine && file.mine && left(here.mine) !== left(file.mine)) called.push("mine.py");
  return called;
}

/** Take a file in; where it has other answers than this browser, the reader says which shall stand. */
async function take(desk, file) {
  const found = await read(file), here = kept(), differ = apart(here, found), list = new Intl.ListFormat("en").format(differ);
  const put = (theirs) => {
    const before = kept(), both = together(before, found, theirs);
    if (JSON.stringify(both) === JSON.stringify(before)) { desk.say(`All that ${file.name} has is here, too. Nothing was changed.`); return; }
    store(both, file.name);
    const ticks = both.done.length - before.done.length, drafts = places(both.drafts).filter(([page, place]) => before.drafts[page]?.[place] !== both.drafts[page][place]);
    const [built, road] = ["mine", "road"].map((part) => JSON.stringify(before[part]) !== JSON.stringify(both[part]));
    desk.say(`Taken from ${file.name}: ${amounts(ticks, drafts.length, built, road)}.${built ? " Python reads mine.py when a cell uses it, and names the line if it cannot." : ""}`);
    desk.offerBack();
  };
  if (!differ.length) { put(false); return; }
  desk.say(`${file.name} differs from this browser in ${list}. Which shall stand here? The rest of the file is taken either way. `,
    button("Keep what is here", desk.trying(() => put(false))), button("Take the file’s", desk.trying(() => put(true))));
}

/** The words of the button that undoes what a file did, and then does it again. */
const ofUndo = ({ file = "the file", undone }) => (undone ? `Take ${file} again` : `Back to before ${file} (what you did since goes, too)`);

/** Undo what a file did, or do it again. */
function putBack(desk) {
  const before = JSON.parse(localStorage.getItem(BEFORE)), { file = "the file", undone } = before;
  store(before, file, !undone);
  desk.say(undone ? `${file} is taken again.` : `All is as it was before ${file}.`);
  desk.offerBack();
}

/** Buttons in a row, with the words below them in which they answer. */
function desk(...buttons) {
  const row = make("div", "run-files"), said = make("p", "files-said"), undo = make("span", ""), chosen = Object.assign(make("input", ""), { type: "file", accept: ".json,.py", hidden: true });
  const own = {
    row,
    say: (words, ...more) => { said.classList.remove("run-failed"); said.replaceChildren(words, ...more); },
    offerBack: () => undo.replaceChildren(button(ofUndo(JSON.parse(localStorage.getItem(BEFORE))), own.trying(() => putBack(own)))),
    trying: (press) => async () => {
      try { await press(); }
      catch (error) { own.say(`${error.message} Nothing was changed.`); said.classList.add("run-failed"); }
    },
  };
  said.setAttribute("role", "status");
  chosen.addEventListener("change", own.trying(async () => {
    const [file] = chosen.files;
    if (file) await take(own, file).finally(() => { chosen.value = ""; });
  }));
  row.append(...buttons.map(([words, press]) => button(words, own.trying(() => press(own)))), button("Load a file", () => chosen.click()), chosen, said, undo);
  return own;
}

for (const place of document.querySelectorAll(".progress-file")) {
  const own = desk(["Download my progress", giveProgress], ["Download mine.py", giveMine]);
  place.append(own.row);
  own.trying(() => { if (localStorage.getItem(BEFORE)) own.offerBack(); })();
}
for (const cell of typeof cells === "undefined" ? [] : cells.values())
  if (cell.kept[0] === "builds") cell.said.before(desk(["Download mine.py", giveMine]).row);
