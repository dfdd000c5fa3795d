// What the reader has built, as one file for all pages: mine.py, which this browser keeps. run.js has the cells.
"use strict";

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

/** What the site knows of builds: their checks, and what stands at the end of mine.py; null where it does not answer. */
async function ofBuilds(cell) {
  try { return await (await fetch(`${STATIC}run/python.json`)).json(); }
  catch { cell.say("The site does not answer."); return null; }
}

/** Give the reader the file, as a program. */
async function download(cell) {
  const built = mine();
  if (!built) { cell.say("Nothing is built yet in this browser. A right answer goes into mine.py."); return; }
  const { tail } = await ofBuilds(cell) ?? {};
  if (!tail) return;
  const text = built.includes(tail.split("\n")[0]) ? built : `${built.trimEnd()}\n\n\n${tail}`;
  const link = make("a", "");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/x-python" }));
  link.download = "mine.py";
  link.click();
  cell.say("mine.py has all that you built in this browser. Where the book is installed, python mine.py text.txt trains it.");
}

/** Take a file of the reader's: what it has of the builds is filled in on their pages. */
async function load(cell, file) {
  const { builds: checks, tail } = await ofBuilds(cell) ?? {};
  if (!checks) return;
  const text = (await file.text()).replaceAll("\r\n", "\n"), [above] = text.split(tail.split("\n")[0]);
  const found = Object.keys(checks).filter((name) => source(above, name));
  if (!found.length) { cell.say(`${file.name} has no function of a build: ${Object.keys(checks).join(", ")}.`, true); return; }
  keepMine(text);
  for (const name of found) keep(["builds", name], `${source(above, name)}\n\n${checks[name]}`);
  if (found.includes(cell.kept[1])) cell.fill(drafts().builds?.[cell.kept[1]] ?? "");
  const list = new Intl.ListFormat("en").format(found);
  cell.say(`${list} ${found.length > 1 ? "are" : "is"} filled in, each in its chapter.`);
}

for (const cell of cells.values()) {
  if (cell.kept[0] !== "builds") continue;
  const chosen = Object.assign(make("input", ""), { type: "file", accept: ".py", hidden: true });
  chosen.addEventListener("change", () => { if (chosen.files[0]) load(cell, chosen.files[0]).then(() => { chosen.value = ""; }); });
  const row = make("span", "run-files");
  row.append(button("Download mine.py", () => download(cell)), button("Load mine.py", () => chosen.click()), chosen);
  cell.said.before(row);
}
