// Drawings that move: one in steps, and the sentence whose words can be touched. They are complete without it.
"use strict";

const TIME = 500, UNITS = 255, SHOWN = 0.05; // milliseconds of a change; a weight of 1 as it is stored; the least with a number
const SIZES = ["x", "y", "width", "height", "rx", "cx", "cy", "r"];
const still = matchMedia("(prefers-reduced-motion: reduce)");
const ease = (t) => t * t * (3 - 2 * t);
const valueOf = (text) => (/^[−-]?\d+(\.\d+)?$/.test(text) ? Number(text.replace("−", "-")) : NaN);

/** Run frame(share) from 0 to 1, at once where motion is unwanted; the function that is returned goes to the end. */
function run(frame) {
  let going = true;
  const end = () => { if (going) { going = false; frame(1); } };
  if (still.matches) { end(); return end; }
  const began = performance.now();
  const next = (now) => {
    if (!going) return;
    const share = Math.min(1, Math.max(0, (now - began) / TIME));
    if (share === 1) return end();
    frame(ease(share));
    requestAnimationFrame(next);
  };
  frame(0);
  requestAnimationFrame(next);
  return end;
}

/** What changes from one step to the next: what has the same data-part moves, what is new fades in. */
function changes(from, to) {
  const lift = Number(to.dataset.top) - Number(from.dataset.top);
  const before = new Map([...from.querySelectorAll("[data-part]")].map((one) => [one.dataset.part, one]));
  return [...to.children].map((one) => {
    const old = before.get(one.dataset.part);
    if (!old) return (share) => { if (share < 1) one.setAttribute("opacity", share); else one.removeAttribute("opacity"); };
    const sizes = SIZES.filter((name) => one.hasAttribute(name) && old.hasAttribute(name)).map((name) => {
      const end = one.getAttribute(name), start = Number(old.getAttribute(name)) + (name === "y" || name === "cy" ? lift : 0);
      return (share) => one.setAttribute(name, share < 1 ? start + share * (end - start) : end);
    });
    const text = one.textContent, [start, end] = [valueOf(old.textContent), valueOf(text)], digits = text.split(".")[1]?.length ?? 0;
    const counts = one.localName === "text" && !isNaN(start) && !isNaN(end);
    return (share) => {
      for (const size of sizes) size(share);
      if (counts) one.textContent = share < 1 ? (start + share * (end - start)).toFixed(digits).replace("-", "−") : text;
    };
  });
}

function inSteps(box) {
  const stage = box.querySelector(".moving-stage"), steps = [...box.querySelectorAll("[data-step]")];
  const said = box.querySelector("[aria-live]"), buttons = [...box.querySelectorAll("button")];
  let now = 0, finish = () => {};
  const go = (to) => {
    if (to < 0 || to >= steps.length || to === now) return;
    finish();
    const from = now;
    now = to;
    steps.forEach((one, k) => one.toggleAttribute("data-shown", k === now));
    box.dataset.now = now + 1;
    said.textContent = `Step ${now + 1} of ${steps.length}: ${steps[now].dataset.name}`;
    for (const button of buttons) button.setAttribute("aria-disabled", String(!steps[now + Number(button.dataset.go)]));
    const all = changes(steps[from], steps[now]);
    finish = run((share) => { for (const change of all) change(share); });
  };
  for (const button of buttons) button.addEventListener("click", () => go(now + Number(button.dataset.go)));
  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", "The drawing: arrow keys go through its steps");
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  });
  box.dataset.now = 1;
  steps[0].toggleAttribute("data-shown", true);
}

function inWords(box) {
  const svg = box.querySelector("svg"), tokens = [...svg.querySelectorAll("[data-token]")], said = box.querySelector(".moving-said");
  const { words, units, heads, radius } = Object.fromEntries(["words", "units", "heads", "radius"].map((key) => [key, JSON.parse(svg.dataset[key])]));
  const alone = heads.length === 1, line = svg.querySelector("[data-part=said]");
  const weight = (h, i, j) => (units[h][i][j] ?? 0) / UNITS;
  const reads = (h, i) => {
    const largest = words.map((_, j) => j).sort((a, b) => weight(h, i, b) - weight(h, i, a)).slice(0, 3);
    return `“${words[i]}” reads ${largest.filter((j) => weight(h, i, j) >= SHOWN).map((j) => `${words[j]} ${weight(h, i, j).toFixed(2)}`).join(", ")}`;
  };
  let chosen = Number(svg.dataset.asks), finish = () => {};
  const choose = (k) => {
    if (k === chosen) return;
    finish();
    chosen = k;
    const dots = tokens.flatMap((one, j) => [...one.querySelectorAll("circle")].map((dot, h) => {
      const start = Number(dot.getAttribute("r")), end = radius * Math.sqrt(weight(h, k, j));
      return (share) => dot.setAttribute("r", start + share * (end - start));
    }));
    tokens.forEach((one, j) => {
      const [word, number] = one.querySelectorAll("text");
      word.setAttribute("fill", `var(--drawing-${j === k ? "queries" : "ink"})`);
      if (j === k) word.setAttribute("font-weight", "600");
      else word.removeAttribute("font-weight");
      if (number) number.textContent = weight(0, k, j) >= SHOWN ? weight(0, k, j).toFixed(2) : "\u2007";
      one.setAttribute("aria-pressed", String(j === k));
      one.tabIndex = j === k ? 0 : -1;
    });
    if (line) line.textContent = reads(0, k);
    said.textContent = heads.map((name, h) => (alone ? reads(h, k) : `${name}: ${reads(h, k)}`)).join(". ");
    finish = run((share) => { for (const dot of dots) dot(share); });
  };
  svg.setAttribute("role", "group");
  tokens.forEach((one, k) => {
    one.setAttribute("role", "button");
    one.setAttribute("aria-pressed", String(k === chosen));
    one.tabIndex = k === chosen ? 0 : -1;
    for (const event of ["pointerenter", "click", "focus"]) one.addEventListener(event, () => choose(k));
  });
  svg.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: words.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    tokens[Math.min(words.length - 1, Math.max(0, to))].focus({ preventScroll: true });
  });
}

document.querySelectorAll(".moving-steps").forEach(inSteps);
document.querySelectorAll(".moving-words").forEach(inWords);
document.documentElement.dataset.moving = "here"; // the page's head expects it, and takes that back where it does not come
