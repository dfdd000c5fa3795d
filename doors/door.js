// What the figures of the doors share: a drawing with its controls, a line that says what it shows, and the thing to do.
"use strict";

const canvas = document.querySelector("#drawing"), controls = document.querySelector("#controls");
const made = {}; // of the task: what the reader has done

/** An element of the drawing; attributes whose value is null are left out. */
function draw(name, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  element.textContent = text;
  canvas.append(element);
  return element;
}

/** A text, centred at x. */
const write = (x, y, text, colour = "ink", more = {}) =>
  draw("text", { x, y, class: colour, "text-anchor": "middle", ...more }, text);

/** A slider of numbers, whose words say where it stands; its element has the value. */
function slider(label, { min, max, step = 1, value, words = String }) {
  const frame = document.createElement("label"), input = document.createElement("input"), now = document.createElement("span");
  Object.assign(input, { type: "range", min, max, step, value });
  const say = () => {
    now.textContent = words(Number(input.value));
    input.setAttribute("aria-valuetext", now.textContent);
  };
  input.addEventListener("input", () => { say(); show(); });
  say();
  frame.append(label, " ", now, input);
  controls.append(frame);
  return { get at() { return Number(input.value); }, set at(to) { input.value = to; say(); } };
}

/** A choice between some words, of which the first is taken; `at` is the number of the one that is. */
function choice(label, names) {
  const frame = document.createElement("fieldset"), boxes = names.map((name, number) => {
    const box = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, { type: "radio", name: label, checked: number === 0 });
    input.addEventListener("change", () => show());
    box.append(input, name);
    frame.append(box);
    return input;
  });
  frame.setAttribute("aria-label", label);
  controls.append(frame);
  return { get at() { return boxes.findIndex((one) => one.checked); } };
}

/** A button that does something. */
function button(words, press) {
  const one = Object.assign(document.createElement("button"), { type: "button", textContent: words });
  one.addEventListener("click", () => { press(); show(); });
  controls.append(one);
  return one;
}

/** Say what the drawing shows. */
function say(words) { document.querySelector("#said").textContent = words; }

/** The thing to do is done when all of its steps have been made; words say what has been seen. */
function done(steps, words) {
  if (!steps.every((step) => made[step])) return;
  document.querySelector("#task").classList.add("done");
  document.querySelector("#seen").textContent = ` ✓ ${words}`;
}

/** A tap on the drawing, or a drag that began on a handle, in its coordinates. A swipe elsewhere scrolls the page. */
function follow(move) {
  const to = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(canvas.getScreenCTM().inverse());
    move(x, y);
    show();
  };
  canvas.addEventListener("click", to);
  canvas.addEventListener("pointerdown", (event) => { if (event.target.matches(".handle")) canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => { if (canvas.hasPointerCapture(event.pointerId)) to(event); });
}

/** Draw anew what `picture` draws. */
function redraw(picture) {
  canvas.replaceChildren();
  picture();
}

/** The softmax of some scores, of which −∞ gets the weight 0. */
function softmax(scores) {
  const top = Math.max(...scores), parts = scores.map((score) => Math.exp(score - top));
  const total = parts.reduce((sum, part) => sum + part, 0);
  return parts.map((part) => part / total);
}
const dot = (a, b) => a.reduce((sum, entry, at) => sum + entry * b[at], 0);
const times = (matrix, column) => matrix.map((row) => dot(row, column));

/** Numbers as a normal distribution has them, after Box and Muller, from Park and Miller's; the same for the same seed. */
function normal(seed) {
  let state = 69621 * (seed + 1);
  const uniform = () => (state = (48271 * state) % 2147483647) / 2147483647; // above 0 and below 1
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
