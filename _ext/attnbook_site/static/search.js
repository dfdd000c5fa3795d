// Finds sections by their words. search-index.js calls searchIndex with all of them, packed, so that no server is needed.
"use strict";

const LIMIT = 40, AROUND = 110; // results; letters of an excerpt on each side of what was found
const fold = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace(/[–—−]/g, "-");
const WORD = /[\p{L}\p{N}_]+/gu;
const wordsOf = (text) => fold(text).match(WORD) ?? [];

/** Whether two words differ in one letter at most: another one, one more, one less, or two in the other order. */
function near(a, b) {
  if (Math.abs(a.length - b.length) > 1) return false;
  let start = 0, end = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [x, y] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  return (x.length <= 1 && y.length <= 1) || (x.length === 2 && y.length === 2 && x[0] === y[1] && x[1] === y[0]);
}

/** A number of either is written as the other: kernels finds kernel. */
const stem = (word) => (word.length > 4 ? word.replace(/(?<!s)s$/, "") : word);

/** The sections of the book, ready to be looked through. */
function prepare(index) {
  return Object.entries(index).flatMap(([page, [pageTitle, entries]]) => entries.map(([anchor, title, text, code], i) => ({
    page, pageTitle, anchor: i ? anchor : "", title, text, heading: wordsOf(title), body: wordsOf(text), code: wordsOf(code),
    first: i === 0,
  })));
}

/** How well a section answers to a word, and 0 if it does not have it. */
function score(section, word) {
  const count = (words, points, whole) => words.reduce((sum, one) => sum + (stem(one) === word ? whole : one.startsWith(word) ? points : 0), 0);
  const heading = Math.min(30, count(section.heading, 8, 20)), body = count(section.body, 0.4, 1), code = count(section.code, 0.5, 1);
  const points = heading + 6 * (body / (body + 4)) + 2 * (code / (code + 4)) + (heading && section.first ? 2 : 0);
  return /^references$|checks\.ch\d/.test(section.anchor) ? points / 4 : points; // the lists of sources, and what checks answers
}

/** What was asked, each word as it is in the book or, if none begins so, as the nearest that does; and which were changed. */
function understood(question, vocabulary) {
  const changed = [];
  const words = [...new Set(wordsOf(question).map((word) => {
    const known = (one) => vocabulary.some((other) => other.startsWith(one));
    if (known(stem(word)) || word.length < 4) return stem(word);
    const close = vocabulary.filter((other) => near(word, other));
    if (!close.length) return word;
    changed.push(close[0]);
    return stem(close[0]);
  }))];
  return { words, changed };
}

/** The sections with all of the words, best first; if none has all, those with most of them. */
function find(sections, words) {
  const scored = sections.map((section) => {
    const points = words.map((word) => score(section, word));
    return { section, has: points.filter(Boolean).length, points: points.reduce((sum, one) => sum + one, 0) };
  });
  const most = Math.max(0, ...scored.map((one) => one.has));
  return most ? scored.filter((one) => one.has === most).sort((a, b) => b.points - a.points).map((one) => one.section) : [];
}

/** The text around the first of the words, with all of them marked. */
function excerpt(text, words) {
  const places = [...text.matchAll(WORD)].filter((found) => words.some((word) => fold(found[0]).startsWith(word)));
  const at = places[0]?.index ?? 0, from = at > AROUND ? text.indexOf(" ", at - AROUND) + 1 : 0;
  const next = text.indexOf(" ", at + AROUND), to = next < 0 ? text.length : next;
  const line = Object.assign(document.createElement("p"), { className: "context" });
  let done = from;
  line.append(from ? "… " : "");
  for (const { index, 0: word } of places) {
    if (index < from || index >= to) continue;
    line.append(text.slice(done, index), Object.assign(document.createElement("mark"), { textContent: word }));
    done = index + word.length;
  }
  line.append(text.slice(done, Math.max(done, to)), to < text.length ? " …" : "");
  return line;
}

function show(found, words, root) {
  document.getElementById("search-results").replaceChildren(...found.slice(0, LIMIT).map((section) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `${root}${section.page}.html${section.anchor && `#${section.anchor}`}`;
    link.textContent = section.title;
    item.append(link);
    if (!section.first) item.append(Object.assign(document.createElement("span"), { className: "search-page", textContent: section.pageTitle }));
    if (section.text) item.append(excerpt(section.text, words));
    return item;
  }));
}

/** What was packed by zlib and written as base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

async function searchIndex(text) {
  const index = await unpacked(text);
  const question = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  for (const field of document.querySelectorAll(".bd-search input")) field.value = question;
  document.querySelector(".bd-article input").focus();
  if (!question) return;
  const sections = prepare(index), counts = new Map();
  for (const one of sections) for (const word of [...one.heading, ...one.body]) counts.set(word, (counts.get(word) ?? 0) + 1);
  const vocabulary = [...counts.keys(), ...new Set(sections.flatMap((one) => one.code))].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  const { words, changed } = understood(question, vocabulary);
  const found = find(sections, words);
  const number = found.length > LIMIT ? `the best ${LIMIT} of ${found.length} places` : `${found.length} ${found.length === 1 ? "place" : "places"}`;
  const instead = changed.length ? ` No word of the book begins so; these have “${changed.join("”, “")}”.` : "";
  document.getElementById("search-said").textContent = found.length ? `“${question}”: ${number}.${instead}` : `“${question}” is nowhere in the book.`;
  show(found, words, document.documentElement.dataset.content_root);
}
