// One attention matrix of several, and the weights of its chosen row.
const chosen = Number(example.value);
const queries = cases.data.rows[chosen], keys = cases.data.columns[chosen];
const percent = cases.data.percent[chosen][Number(head.value)];
const m = queries.length, n = keys.length;

const at = Math.min(m, Math.max(1, Math.round(row.value))); // a pointer gives a fraction
row.setv({ end: Math.max(m, 2), visible: m > 1 });
if (row.value !== at) {
  row.value = at;
  return; // the slider that moved has drawn the figure
}

const longest = Math.max(...keys.map((token) => token.length));
for (const [axis, tokens] of [[down, queries], [across, keys]]) {
  axis.ticker.ticks = tokens.map((_, i) => i + 1);
  axis.major_label_overrides = new Map(tokens.map((token, i) => [i + 1, token]));
  axis.major_label_orientation = tokens === keys && longest > 2 ? "vertical" : "horizontal";
}
matrix.frame_height = cases.data.height[chosen];
matrix.x_range.setv({ start: 0.5, end: n + 0.5 });
matrix.y_range.setv({ start: m + 0.5, end: 0.5 });

const weight = Array.from(percent, (p) => p / 100);
cells.data = { x: weight.map((_, c) => (c % n) + 1), y: weight.map((_, c) => Math.floor(c / n) + 1), weight };
frame.data = { x: [(n + 1) / 2], y: [at], width: [n] };
const read = weight.slice((at - 1) * n, at * n);
bars.data = { x: read.map((_, j) => j + 1), weight: read };

const largest = read.map((_, j) => j).sort((a, b) => read[b] - read[a]).filter((j) => read[j] > 0).slice(0, 3);
const many = (token) => keys.indexOf(token) !== keys.lastIndexOf(token);
const told = largest.map((j) => `'${keys[j]}'${many(keys[j]) ? ` (${nth(j + 1)})` : ""} ${read[j].toFixed(2)}`);
words.text = `The ${query} '${queries[at - 1]}' (${nth(at)} of ${m}) reads ${told.join(", ") || "nothing"}.`;
