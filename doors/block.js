// What a block adds: six rows of random numbers go through random blocks, which add their results or replace the rows by them.
const WORDS = ["the", "old", "man", "walked", "his", "dog"], WIDTH = 12, BLOCKS = 12;
const adds = choice("Each block", ["adds to the words", "replaces the words"]);
const depth = slider("after block", { min: 0, max: BLOCKS, value: 0 });
let seed = 11;
button("Other numbers", () => { seed += 1; });
const matrix = (next, rows, columns) => Array.from({ length: rows }, () => Array.from({ length: columns }, () => next() / Math.sqrt(columns)));
const plus = (a, b) => a.map((row, i) => row.map((entry, axis) => entry + b[i][axis]));

/** Each row with mean 0 and variance 1. */
function layer_norm(rows) {
  return rows.map((row) => {
    const mean = dot(row, row.map(() => 1)) / row.length, centred = row.map((entry) => entry - mean);
    return centred.map((entry) => entry / Math.sqrt(dot(centred, centred) / row.length + 1e-5));
  });
}

/** A block's matrices: of queries, keys, values and outputs, and the two of the MLP. */
function random_block(next) {
  const [q, k, v, o] = [0, 1, 2, 3].map(() => matrix(next, WIDTH, WIDTH));
  return { q, k, v, o, hidden: matrix(next, 4 * WIDTH, WIDTH), output: matrix(next, WIDTH, 4 * WIDTH) };
}

function attention({ q, k, v, o }, rows) {
  const [queries, keys, values] = [q, k, v].map((one) => rows.map((row) => times(one, row)));
  return queries.map((query) => {
    const weights = softmax(keys.map((key) => dot(query, key) / Math.sqrt(WIDTH)));
    return times(o, values[0].map((_, axis) => dot(weights, values.map((value) => value[axis]))));
  });
}
const mlp = ({ hidden, output }, rows) => rows.map((row) => times(output, times(hidden, row).map((entry) => Math.max(0, entry))));

/** The rows after 0, 1, … blocks. */
function through(rows, blocks, is_sum) {
  const states = [rows];
  for (const block of blocks)
    states.push([attention, mlp].reduce((now, part) => {
      const change = part(block, layer_norm(now));
      return is_sum ? plus(now, change) : change;
    }, states.at(-1)));
  return states;
}

/** How alike the rows are: the mean cosine of two of them, after a layer norm. */
function likeness(rows) {
  const even = layer_norm(rows), cosines = even.flatMap((a, i) => even.slice(i + 1).map((b) => dot(a, b) / WIDTH));
  return dot(cosines, cosines.map(() => 1)) / cosines.length;
}

function show() {
  const next = normal(seed), start = Array.from({ length: 6 }, () => Array.from({ length: WIDTH }, next));
  const is_sum = adds.at === 0, rows = through(start, Array.from({ length: BLOCKS }, () => random_block(next)), is_sum)[depth.at];
  redraw(() => {
    layer_norm(rows).forEach((row, i) => {
      write(44, 28 + 34 * i, WORDS[i], "ink", { "text-anchor": "end" });
      row.forEach((entry, axis) => {
        draw("rect", { x: 54 + 25 * axis, y: 8 + 34 * i, width: 25, height: 28, class: entry > 0 ? "output" : "weights", opacity: Math.min(1, 0.06 + Math.abs(entry) / 2.2) });
      });
    });
    write(204, 228, "blue above 0, orange below", "ink small");
  });
  const alike = likeness(rows);
  say(`After ${depth.at === 1 ? "1 block" : `${depth.at} blocks`} two words have a cosine of ${signed(alike, 2)} on average, where 1 is the same direction.`);
  if (depth.at >= 4) made[is_sum ? "sum" : "none"] = true;
  done(["sum", "none"], "Without the sum six words had become one.");
}
