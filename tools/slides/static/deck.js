// Wide screens get slides; narrow ones, paper and ?read get the same text as one page to scroll.
const params = new URLSearchParams(location.search), root = document.documentElement;
const path = params.get("path"); // 12 or 6 sessions, or 45 minutes: some slides are left out
// the windows of the speaker view are narrow, and slides all the same; for paper there is one layout, whoever asks
const linear = ["read", "print-pdf"].some((one) => params.has(one)) || (!params.has("receiver") && matchMedia("(max-width: 700px)").matches);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function shorten() {
  for (const slide of all(".slide[data-paths]")) if (!slide.dataset.paths.split(" ").includes(path)) slide.remove();
  let seconds = 0;
  for (const slide of all(".slide")) {
    if (path === "45" && slide.dataset.vote) { // a question has the time that a room of sixty takes
      slide.dataset.timing = slide.dataset.vote;
      slide.querySelector(".clock b").textContent = `${slide.dataset.vote / 60} min`;
    }
    seconds += Number(slide.dataset.timing);
    slide.querySelector(".clock span").textContent = Math.round(seconds / 6) / 10;
  }
  document.querySelector(".clock .all").textContent = Math.round(seconds / 6) / 10;
}

// Where slides follow that the shortest course or the unhurried lecture does without, the notes say how to skip them.
function exits() {
  const slides = all(".slide"), needed = ({ dataset: { paths } }) => !paths || ["6", "45"].every((one) => paths.split(" ").includes(one));
  slides.forEach((slide, at) => {
    const to = slides.findIndex((one, place) => place > at && needed(one)), skipped = slides.slice(at + 1, to);
    if (!needed(slide) || !skipped.length) return;
    const minutes = skipped.reduce((sum, one) => sum + Number(one.dataset.timing), 0) / 60;
    const late = Object.assign(document.createElement("p"), { className: "late" });
    const key = Object.assign(document.createElement("code"), { textContent: `g ${to + 1} Enter` });
    const title = slides[to].querySelector("h2").innerHTML;
    late.innerHTML = `<strong>If late:</strong> ${key.outerHTML} goes on to “${title}” and saves ${minutes} min.`;
    slide.querySelector(".notes").append(late);
  });
}

// Light and dark.
function turn() {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("attnbook-slides-theme", root.dataset.theme); } catch { /* a private window */ }
  if (!linear) fit();
}

// A live figure keeps its own pixels: it is drawn at the size that it has on the screen, whatever the slide's scale.
// Inside a scaled slide itself the pointer would be somewhere else than the figure believes.
const TYPE = 20; // pixels of 720, its least
function fit() {
  const scale = Reveal.getScale();
  for (const box of all(".live")) {
    const frame = box.querySelector("iframe"), zoom = Number(box.dataset.zoom);
    Object.assign(frame.style, {
      zoom: zoom * scale, width: `${box.clientWidth / zoom}px`, height: `${box.clientHeight / zoom}px`,
      transform: `scale(${1 / scale})`,
    });
    frame.contentWindow?.postMessage({ theme: root.dataset.theme, type: `${TYPE / zoom}px` }, "*");
  }
}

// The bar runs while the class thinks, once the slide is seen, and once more for the second vote.
function wait() {
  for (const bar of all(".wait")) bar.classList.remove("runs");
  const bar = Reveal.getCurrentSlide()?.querySelector(".wait");
  if (bar && !still) requestAnimationFrame(() => requestAnimationFrame(() => bar.classList.add("runs")));
}

function read() {
  root.classList.add("linear");
  if (params.has("print")) addEventListener("load", () => print());
  if (params.get("read") === "notes") root.classList.add("with-notes");
  for (const formula of all(".formula > :first-child")) formula.tabIndex = 0; // a wide one scrolls
  for (const question of all(".question")) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Show the answer" });
    button.onclick = () => {
      question.classList.add("shown");
      button.remove();
    };
    question.querySelector(".wait").after(button);
  }
}

// Of two formulas in one place, what they have in common glides from one to the other; the rest appears when it is there.
function glide(from, to) {
  const glyphs = (part) => all(".formula .katex-html span", part).filter((one) => !one.childElementCount && /[^\s\u200b]/.test(one.textContent));
  const old = glyphs(from), now = glyphs(to), same = (i, j) => old[i].textContent === now[j].textContent;
  const common = Array.from({ length: old.length + 1 }, () => Array(now.length + 1).fill(0)); // how many, from each pair of places on
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i][j] = same(i, j) ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const scale = Reveal.getScale(), time = { duration: 800, easing: "ease-in-out" };
  const appear = (one) => one.animate([{ opacity: 0 }, { opacity: 0, offset: 0.6 }, { opacity: 1 }], time);
  all(".frac-line", to).forEach(appear);
  for (let i = 0, j = 0; j < now.length;) {
    const kept = i < old.length && same(i, j);
    if (!kept && i < old.length && common[i + 1][j] >= common[i][j + 1]) i++;
    else if (!kept) appear(now[j++]);
    else {
      const before = old[i++].getBoundingClientRect(), after = now[j].getBoundingClientRect();
      now[j].style.position = "relative"; // what stands in a line has no transform
      now[j++].animate([{ left: `${(before.x - after.x) / scale}px`, top: `${(before.y - after.y) / scale}px` }, { left: 0, top: 0 }], time);
    }
  }
}

// Bars in one place grow or shrink from one to the next; one that comes with a click begins where the one above it ends.
function grow(from, to) {
  const old = all(".bar b", from);
  all(".bar b", to).forEach((bar, at) => old[at] && stretch(bar, old[at]));
}

function stretch(bar, before) {
  bar.animate([{ width: before.style.width }, { width: bar.style.width }], { duration: 800, easing: "ease-in-out" });
}

function turnPart({ fragment }, back) {
  if (!back && !still && fragment.matches(".bar")) stretch(fragment.querySelector("b"), fragment.previousElementSibling.querySelector("b"));
  const other = fragment.matches(".stacked > .part") && fragment.previousElementSibling;
  const [from, to] = back ? [fragment, other] : [other, fragment];
  if (other && !still) for (const move of [glide, grow]) move(from, to);
}

// On such a slide a click shows the next part in every column, and of what is typed and what is said of it.
function together() {
  for (const column of all(".together :is(.column, .stacked, pre.code)"))
    all(".fragment", column).forEach((part, at) => { part.dataset.fragmentIndex = at; });
}

// In the notes, what belongs to the click that was done last; where it is not certain which, nothing.
function mark() {
  const slide = Reveal.getCurrentSlide(), labels = all(".notes strong", slide).filter((one) => /^Click\b/.test(one.textContent));
  const clicks = new Set(all(".fragment", slide).map((one) => one.dataset.fragmentIndex)).size;
  const done = Reveal.getIndices().f + 1;
  labels.forEach((label, at) => {
    const own = /\d+/.exec(label.textContent)?.[0] ?? (labels.length === clicks ? at + 1 : 0);
    label.classList.toggle("now", Number(own) === done);
  });
}

// The speaker's window is Reveal's own. Its notes have the right half, so that they need no scrolling.
const NOTES = `body[data-speaker-layout="tall"] .speaker-controls-notes .value { font-size: 20px; line-height: 1.35; }
  .speaker-controls-notes .label { display: none; } .speaker-controls-time { padding: 0 16px 4px !important; margin: 0 !important; font-size: 0.8em; }
  .value p, .value ul { margin: 0.45em 0; } .value .now { background: #ffe08a; outline: 3px solid #ffe08a; }`;
function speak() {
  try { localStorage.setItem("reveal-speaker-layout", localStorage.getItem("reveal-speaker-layout") ?? "tall"); } catch { /* a private window */ }
  addEventListener("message", ({ data, source }) => {
    if (!/reveal-notes.*connected/.test(data)) return;
    const style = source.document.createElement("style");
    style.textContent = NOTES;
    source.document.head.append(style);
  });
}

// Reveal's own list of keys, with ours; whatever the keyboard, it comes with what types a question mark.
function keys() {
  const ours = { D: ["light or dark", turn], W: ["start the clock of a question again", wait] };
  for (const [key, [description, callback]] of Object.entries(ours))
    Reveal.addKeyBinding({ keyCode: key.charCodeAt(0), key, description }, callback);
  const others = { "Page Up, Page Down": "turn the page, also from within a live figure", Escape: "leave a live figure, or this list", "B  ,  .": "a black screen", "?": "this list" };
  for (const [key, description] of Object.entries(others)) Reveal.registerKeyboardShortcut(key, description);
}

function present() {
  together();
  exits();
  document.querySelector(".deck").classList.add("reveal");
  document.querySelector(".stack").classList.add("slides");
  speak();
  const turned = () => { fit(); wait(); mark(); };
  Reveal.initialize({
    width: 1280, height: 720, margin: 0, minScale: 0.1, maxScale: 4, center: false, display: "flex",
    hash: true, controls: true, controlsTutorial: false, progress: true, transition: "none",
    backgroundTransition: "none", viewDistance: 2, preloadIframes: true, scrollActivationWidth: null,
    plugins: [RevealNotes], defaultTiming: 120,
    navigationMode: "linear", keyboardCondition: ({ key }) => key !== "?", // to Reveal it may be a pause
  }).then(() => {
    keys();
    turned();
    root.dataset.ready = "true";
  });
  for (const event of ["resize", "slidechanged"]) Reveal.on(event, turned);
  for (const [name, back] of [["fragmentshown", false], ["fragmenthidden", true]])
    Reveal.on(name, (event) => { turnPart(event, back); mark(); });
  addEventListener("keydown", (event) => {
    if (event.key === "?") Reveal.toggleHelp();
    // Slides are not for paper, and would show their answers: the page to scroll is.
    if (event.key !== "p" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    window.open(`?read&print${path ? `&path=${path}` : ""}`);
  });
  // A presenter's remote control turns the page after a click into a live figure, too.
  addEventListener("message", ({ data }) => {
    if (data?.deck === "next") Reveal.next();
    if (data?.deck === "previous") Reveal.prev();
    if (data?.deck === "theme?") fit();
    if (data?.deck === "leave") {
      document.activeElement?.blur();
      window.focus();
    }
  });
}

if (path) shorten();
if (linear) read();
else present();
