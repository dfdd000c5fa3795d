// The residual stream of one example: the length of every change, and one token's coordinates.
const shown = (x) => (x >= 100 ? x.toFixed(0) : x.toPrecision(3));
const { tokens, labels, width, drawn, unit, coordinates, change, stream: lengths, cosine, said, probability } =
  Object.fromEntries(Object.entries(stream.data).map(([key, [part]]) => [key, part]));
const n = tokens.length;

const within = ({ value, start, end }) => Math.min(end, Math.max(start, Math.round(value))); // a pointer gives a fraction
const i = within(token), s = within(step);
if (token.value !== i || step.value !== s) {
  token.value = i;
  step.value = s;
  return; // the slider that moved has drawn the figure
}

const length = Array.from(colour.value === "change" ? change : lengths);
scale.color_mapper.high = Math.max(...length) || 1;
scale.title = `length of the ${colour.value}`;
cells.data = { x: length.map((_, c) => (c % n) + 1), y: length.map((_, c) => Math.floor(c / n)), length };
frame.data = { x: [i], y: [s] };

// the stream of the chosen token, from 0 before the first record
const at = (k) => Array.from({ length: drawn }, (_, d) => (k < 0 ? 0 : unit[i - 1] * coordinates[(k * n + i - 1) * drawn + d]));
const less = (a, b) => a.map((value, d) => value - b[d]);
const before = at(s - 1), after = at(s);
bars.data = { x: after.map((_, d) => d + 1), before, change: less(after, before), after };
const all = labels.flatMap((_, k) => [...at(k), ...less(at(k), at(k - 1))]).map(Math.abs);
const reach = 1.05 * Math.max(...all) || 1;
panels[0].x_range.setv({ start: 0.5, end: drawn + 0.5 });
panels[0].y_range.setv({ start: -reach, end: reach });
["before", `what ${labels[s]} adds`, "after"].forEach((title, k) => { panels[k].title.text = title; });
coordinate.axis_label = drawn < width ? `coordinate, the first ${drawn} of ${width}` : "coordinate";

const c = s * n + i - 1;
const turned = Number.isNaN(cosine[c]) ? "" : ` (cosine ${signed(cosine[c], 2)})`;
const told = s === 0
  ? `the stream begins with ${labels[0]}, a vector of length ${shown(lengths[c])}`
  : `${labels[s]} adds a change of length ${shown(change[c])} to a stream of length ${shown(lengths[c - n])}${turned},` +
    ` which becomes ${shown(lengths[c])} long`;
words.text = `At '${tokens[i - 1]}' (${nth(i)} of ${n}) ${told}; the readout would now say '${said[c]}' with probability ${probability[c].toFixed(2)}.`;
