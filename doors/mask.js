// Why a mask: one layer of self-attention over six words, and which of its outputs change with a word.
const next = normal(3), WIDTH = 4, vector = () => Array.from({ length: WIDTH }, next);
const WORDS = ["the", "queen", "took", "back", "her", "crown"], OTHER = ["a", "king", "gave", "up", "his", "throne"];
const of_word = new Map([...WORDS, ...OTHER].map((word) => [word, vector()]));
const [W_q, W_k] = [0, 1].map(() => Array.from({ length: WIDTH }, () => vector().map((entry) => entry / Math.sqrt(WIDTH))));
const masked = choice("The words", ["see all words", "see no later word (mask)"]);
const changed = WORDS.map(() => false);
let last = null, pressed = false;
const buttons = WORDS.map((word, at) => button(word, () => { changed[at] = !changed[at]; last = at; pressed = true; }));
controls.classList.add("words");

/** The weights of self-attention, a row for each word that asks; with a mask none looks to its right. */
function self_weights(rows, is_masked) {
  const queries = rows.map((row) => times(W_q, row)), keys = rows.map((row) => times(W_k, row));
  return queries.map((q, i) => softmax(keys.map((k, j) => (is_masked && j > i ? -Infinity : dot(q, k) / Math.sqrt(WIDTH)))));
}

/** The outputs: averages of the rows themselves. */
const outputs = (rows, is_masked) =>
  self_weights(rows, is_masked).map((weights) => rows[0].map((_, axis) => dot(weights, rows.map((row) => row[axis]))));

function show() {
  const is_masked = masked.at === 1, words = WORDS.map((word, at) => (changed[at] ? OTHER[at] : word));
  const rows = words.map((word) => of_word.get(word)), weights = self_weights(rows, is_masked);
  let moved = [];
  if (last !== null) {
    const before = words.map((_, at) => of_word.get((changed[at] !== (at === last)) ? OTHER[at] : WORDS[at]));
    const [a, b] = [before, rows].map((one) => outputs(one, is_masked));
    moved = a.map((row, i) => row.some((entry, axis) => entry !== b[i][axis]));
  }
  redraw(() => {
    write(70, 14, "word", "ink small", { "text-anchor": "end" });
    words.forEach((_, j) => write(95 + 34 * j, 22, j + 1, j === last ? "weights small" : "ink small"));
    write(326, 14, "output", "output small");
    words.forEach((word, i) => {
      buttons[i].textContent = word;
      write(70, 50 + 32 * i, `${i + 1} ${word}`, i === last ? "weights" : "ink", { "text-anchor": "end" });
      weights[i].forEach((w, j) => {
        draw("rect", { x: 80 + 34 * j, y: 30 + 32 * i, width: 30, height: 28, rx: 3, class: "weights", opacity: w === 0 ? 0.04 : 0.15 + 0.85 * w });
        write(95 + 34 * j, 49 + 32 * i, w === 0 || w === 1 ? w : w > 0.995 ? "1.0" : w.toFixed(2).slice(1), w > 0.75 ? "on small" : "ink small");
      });
      write(326, 49 + 32 * i, last === null ? "·" : moved[i] ? "changed" : "same", moved[i] ? "weights small" : "ink small");
    });
  });
  const count = moved.filter(Boolean).length;
  say(last === null ? "Press a word: another takes its position." : `Word ${last + 1} is another now, and ${count} of 6 outputs changed${count > 6 - last ? ", also those before it" : ""}.`);
  if (pressed && last === 5) made[is_masked ? "mask" : "none"] = true;
  pressed = false;
  done(["none", "mask"], "With the mask only its own output moved.");
}
