// Cards to remember, asked one at a time after growing gaps. Kept in this browser alone; the page reads without it.
"use strict";

const KEPT = "attnbook-cards", GAPS = [0, 1, 3, 8, 21, 55], NEW = 10; // days until a card comes back; new cards a round
const cards = [...document.querySelectorAll(".card-to-remember")];
const chapters = [...new Set(cards.map((card) => card.closest("section")))];
const label = (chapter) => chapter.querySelector("[id^=cards-]").id; // its number; a title may change

/** What is kept: for each card how often it was known in a row and the day on which it is due; the chapters left out. */
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT));
    const known = Object.entries(found.cards).filter(([, one]) => Array.isArray(one) && one.every(Number.isInteger) && one.length === 2);
    return { cards: Object.fromEntries(known), without: [...found.without] };
  } catch { /* nothing that can be read */ }
  return { cards: {}, without: [] };
}
function keep(state) {
  try { localStorage.setItem(KEPT, JSON.stringify(state)); } catch { /* for this page only */ }
}
let state = kept();

/** The day as a number, by the reader's calendar. */
const today = () => { const now = new Date(); return Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) / 864e5; };
const make = (name, properties, ...parts) => { const made = Object.assign(document.createElement(name), properties); made.append(...parts); return made; };
const button = (words, press) => make("button", { type: "button", className: "run-button", textContent: words, onclick: press });
const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

const isChosen = (card) => !state.without.includes(label(card.closest("section")));

/** The cards of the chosen chapters that are due, the longest waiting first, then as many new ones. */
function waiting() {
  const chosen = cards.filter(isChosen);
  const due = chosen.filter((card) => state.cards[card.id]?.[1] <= today());
  due.sort((a, b) => state.cards[a.id][1] - state.cards[b.id][1]);
  return { due, fresh: chosen.filter((card) => !state.cards[card.id]).slice(0, NEW) };
}

const article = document.querySelector(".bd-article"), said = make("p", { role: "status" });
const begin = button("", start), choice = make("details", {}, make("summary", { textContent: "Chapters" }));
const desk = make("div", { className: "card-desk screen-only" }, said, make("p", {}, begin), choice);
const stage = make("div", { className: "card-stage", hidden: true });
for (const chapter of chapters) {
  const box = make("input", { type: "checkbox", checked: !state.without.includes(label(chapter)) });
  box.addEventListener("change", () => {
    state.without = state.without.filter((one) => one !== label(chapter));
    if (!box.checked) state.without.push(label(chapter));
    keep(state);
    show();
  });
  box.dataset.chapter = label(chapter);
  const title = chapter.querySelector("h2").firstChild.textContent.trim();
  choice.append(make("label", {}, box, ` ${title}`));
}
choice.append(make("p", {}, button("Forget what I know", () => { state = { cards: {}, without: state.without }; keep(state); show(); })));
chapters[0].before(desk, stage);

/** Say what is due, and on which day something will be. */
function show() {
  const { due, fresh } = waiting(), number = due.length + fresh.length;
  const days = cards.filter((card) => isChosen(card) && state.cards[card.id]).map((card) => state.cards[card.id][1] - today());
  const next = days.length ? ` The next comes back in ${count(Math.min(...days), "day", "days")}.` : "";
  said.textContent = number ? `${count(due.length, "card is", "cards are")} due, ${count(fresh.length, "is", "are")} new.` : `Nothing is due today.${next}`;
  begin.textContent = `Ask me ${count(number, "card", "cards")}`;
  begin.parentElement.hidden = !number;
}

let asked = [], place = null;
function start() {
  const { due, fresh } = waiting();
  asked = [...due, ...fresh];
  history.replaceState(history.state, "", location.pathname + location.search); // a link to the place that stood there leads away
  stage.hidden = false;
  desk.hidden = true;
  article.classList.add("asks-cards");
  ask();
}

/** Put the next card on the stage, its answer folded. */
function ask() {
  place?.replaceWith(stage.querySelector(".card-to-remember"));
  place = null;
  stage.replaceChildren();
  const card = asked[0];
  if (!card) { stop(); return; }
  place = make("span", { hidden: true });
  card.replaceWith(place);
  const answer = card.querySelector("details"), known = make("p", { className: "card-buttons", hidden: true });
  answer.open = false;
  known.append(button("I knew it", () => judge(card, true)), " ", button("Not yet", () => judge(card, false)));
  const open = button("Show the answer", () => { answer.open = true; });
  const heading = place.closest("section").querySelector("h2").firstChild.textContent.trim();
  stage.append(
    make("p", { className: "card-place" }, `${heading} · ${count(asked.length, "card", "cards")} left `, button("Stop", stop)),
    card, make("p", { className: "card-open" }, open), known);
  answer.ontoggle = () => {
    known.hidden = !answer.open;
    open.parentElement.hidden = answer.open;
    if (answer.open) known.firstElementChild.focus({ preventScroll: true });
  };
  stage.scrollIntoView({ block: "start" });
  open.focus({ preventScroll: true });
}

/** A card that was known waits longer; another is asked again before the round ends. */
function judge(card, known) {
  const times = known ? Math.min((state.cards[card.id]?.[0] ?? 0) + 1, GAPS.length - 1) : 0;
  state.cards[card.id] = [times, today() + GAPS[times]];
  keep(state);
  asked.shift();
  if (!known) asked.push(card);
  ask();
}

/** Put everything back where it stood. */
function stop() {
  place?.replaceWith(stage.querySelector(".card-to-remember"));
  place = null;
  for (const card of cards) {
    const answer = card.querySelector("details");
    answer.ontoggle = null;
    answer.open = false;
  }
  stage.hidden = true;
  desk.hidden = false;
  article.classList.remove("asks-cards");
  show();
  begin.focus({ preventScroll: true });
  desk.scrollIntoView({ block: "nearest" });
}

window.addEventListener("hashchange", () => {
  if (stage.hidden) return;
  stop(); // a link of the contents leads to a chapter, which was hidden
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
});
window.addEventListener("storage", (event) => { if (event.key === KEPT) { state = kept(); if (stage.hidden) show(); } });
show();
