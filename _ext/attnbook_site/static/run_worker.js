// The interpreter of run.js, off the page's thread: Pyodide, the package and a chapter's cells.
"use strict";

const RUN = new URL("run/", location.href).href;
const say = (words) => postMessage({ kind: "status", words });
const QUIET = { messageCallback: () => {}, errorCallback: () => {} };
// NumPy counts with addresses, which have 32 bits here, and refuses its own integers of 64, which it takes elsewhere.
const COUNTS = `import numpy
counts = numpy.bincount
numpy.bincount = lambda x, *more, **named: counts(numpy.asarray(x).astype(numpy.intp, casting="same_kind"), *more, **named)
`;
const fetchPlain = self.fetch.bind(self);
let started = null, runPage = null, packages = null, libraries = null, unreached = "";

/** What an address answers. A failure is kept: Pyodide is silent about libraries that did not come. */
async function get(url, options) {
  const { hostname, pathname } = new URL(url.url ?? url, location.href), name = pathname.split("/").pop();
  const host = hostname === location.hostname ? "this site" : hostname;
  let response = null;
  try { response = await fetchPlain(url, options); }
  catch { unreached = `${host} did not answer, or not with the expected ${name}.`; }
  if (response && !response.ok) unreached = `${host} answered ${response.status} for ${name}.`;
  reached();
  return response;
}

function reached() { if (unreached) throw new Error(unreached); }

/** A file of the site. */
const own = (name) => get(RUN + name);

/** Pyodide with NumPy and the package. */
async function start() {
  say("Loading Python …");
  const python = await (await own("python.json")).json();
  const from = new URL(python.from || "../pyodide/", RUN).href;
  const core = {};
  libraries = python.libraries;
  await Promise.all(Object.entries(python.core).map(async ([name, integrity]) => {
    core[name] = URL.createObjectURL(await (await get(from + name, { integrity })).blob());
  }));
  self.fetch = (request, options) => { // the interpreter asks for its own file by its address
    const name = String(request.url ?? request).split("/").pop();
    return core[name] ? fetchPlain(core[name]) : get(request, options);
  };
  const lock = structuredClone(python.lock);
  for (const one of Object.values(lock.packages)) one.file_name = from + one.file_name;
  const lockFileURL = URL.createObjectURL(new Blob([JSON.stringify(lock)], { type: "application/json" }));
  importScripts(core["pyodide.js"], core["pyodide.asm.js"]);
  const py = await loadPyodide({ indexURL: from, lockFileURL, stdLibURL: core["python_stdlib.zip"] });
  say("Loading NumPy …");
  await py.loadPackage("numpy", QUIET);
  reached();
  py.unpackArchive(await (await own("attnbook.zip")).arrayBuffer(), "zip", { extractDir: "/lib/python3.12/site-packages" });
  const chapter = await (await own(`${self.name}.json`)).json();
  packages = chapter.packages;
  py.globals.set("CELLS", JSON.stringify(chapter.cells));
  py.runPython(COUNTS);
  py.runPython("import os, json, warnings\nos.environ['MPLBACKEND'] = 'agg'\nfrom attnbook_course.browser import Page\npage = Page(json.loads(CELLS))");
  runPage = py.globals.get("page");
  return py;
}

/** Load what some code imports of Pyodide's libraries, by itself and through the chapter's first cell. */
async function load(py, codes, wanted) {
  const missing = new Set(wanted.flatMap((name) => packages[name] ?? []));
  if (missing.size) await py.loadPackage([...missing], QUIET);
  for (const code of codes) {
    try { await py.loadPackagesFromImports(code, QUIET); } catch { /* what is no Python says so when it runs */ }
  }
  reached();
}

const list = (proxy) => { const found = proxy.toJs({ dict_converter: Object.fromEntries }); proxy.destroy(); return found; };

/** Run some code in a place; a library that a function of the package imports comes then. */
async function runIn(py, place, code) {
  for (const asked = new Set(); ;) {
    const shown = list(runPage.run(place, code));
    const library = libraries[shown.find(({ missing }) => missing)?.missing.split(".")[0]];
    if (!library || asked.has(library)) return shown;
    asked.add(library);
    await py.loadPackage(library, QUIET);
    reached();
  }
}

/** Run a cell, and before it those that it needs. What the reader has built is mine.py meanwhile. */
async function run({ place, code, mine }) {
  started ??= start();
  const py = await started;
  const isThere = () => py.FS.analyzePath("mine.py").exists;
  if (mine) py.FS.writeFile("mine.py", mine);
  else if (isThere()) py.FS.unlink("mine.py"); // a file that was loaded is put back
  let before = [];
  try { before = list(runPage.before(place, code)); } catch { /* a syntax error, which the cell itself will show */ }
  const cells = JSON.parse(py.globals.get("CELLS"));
  const codes = [...before.map((j) => cells[j].code), code];
  let wanted = [];
  try { wanted = list(runPage.wanted(codes)); } catch { /* the same */ }
  say("Loading libraries …");
  await load(py, codes, wanted);
  runPage.prepare(py.toPy(wanted));
  for (const [i, j] of before.entries()) {
    say(`Running cells before it that it needs: ${i + 1} of ${before.length} …`);
    const shown = await runIn(py, j, cells[j].code);
    const failed = shown.find(({ kind }) => kind === "error");
    if (failed) return { shown: [failed], words: "A cell before it that it needs stopped." };
  }
  say("Running …");
  const begun = performance.now();
  const shown = await runIn(py, place, code);
  const took = (performance.now() - begun) / 1000;
  const first = before.length ? `${before.length} cell${before.length > 1 ? "s" : ""} before it ran first. ` : "";
  const built = isThere() ? py.FS.readFile("mine.py", { encoding: "utf8" }) : null;
  return { shown, mine: built, words: `${first}${took < 0.1 ? "Ran." : `Ran in ${took.toFixed(1)} s.`}` };
}

onmessage = async ({ data }) => {
  try { postMessage({ kind: "shown", ...(await run(data)) }); }
  catch (error) { postMessage({ kind: "failed", words: `Python could not be loaded: ${error.message ?? error}` }); }
};
