// The residual stream of one example: the length of every change, and one token's coordinates.
const nth = (k) => k + (k % 100 > 10 && k % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][k % 10] ?? "th");
const shown = (x) => (x >= 100 ? x.toFixed(0) : x.toPrecision(3));
const chosen = Number(example.value);
const { tokens, labels, width, drawn, unit, coordinates, change, stream, cosine, said, probability, height } =
  Object.fromEntries(Object.entries(cases.data).map(([key, column]) => [key, column[chosen]]));
const n = tokens.length, last = labels.length - 1;

const within = (value, low, high) => Math.min(high, Math.max(low, Math.round(value))); // a pointer gives a fraction
const i = within(token.value, 1, n), s = within(step.value, 0, last);
token.setv({ end: Math.max(n, 2), visible: n > 1 });
step.end = last;
if (token.value !== i || step.value !== s) {
  token.value = i;
  step.value = s;
  return; // the slider that moved has drawn the figure
}
if (cb_obj === example) // another example's names for the same numbers
  for (const slider of [token, step]) slider.properties.title.change.emit();

const tick = (axis, names, first) => {
  axis.ticker.ticks = names.map((_, k) => k + first);
  axis.major_label_overrides = new Map(names.map((one, k) => [k + first, one]));
};
tick(across, tokens, 1);
tick(down, labels, 0);
across.major_label_orientation = tokens.some((one) => one.length > 2) ? "vertical" : "horizontal";
lengths.frame_height = height;
lengths.x_range.setv({ start: 0.5, end: n + 0.5 });
lengths.y_range.setv({ start: last + 0.5, end: -0.5 });

const length = Array.from(colour.value === "change" ? change : stream);
const largest = Math.max(...cases.data[colour.value].flatMap((one) => Array.from(one))); // one scale for all examples
scale.color_mapper.high = largest || 1;
scale.title = `length of the ${colour.value}`;
cells.data = { x: length.map((_, c) => (c % n) + 1), y: length.map((_, c) => Math.floor(c / n)), length };
frame.data = { x: [i], y: [s] };

// the stream of the chosen token, from 0 before the first record
const at = (k) => Array.from({ length: drawn }, (_, d) => (k < 0 ? 0 : unit[i - 1] * coordinates[(k * n + i - 1) * drawn + d]));
const minus = (a, b) => a.map((value, d) => value - b[d]);
const before = at(s - 1), after = at(s);
bars.data = { x: after.map((_, d) => d + 1), before, change: minus(after, before), after };
const all = labels.flatMap((_, k) => [...at(k), ...minus(at(k), at(k - 1))]).map(Math.abs);
const reach = 1.05 * Math.max(...all) || 1;
panels[0].x_range.setv({ start: 0.5, end: drawn + 0.5 });
panels[0].y_range.setv({ start: -reach, end: reach });
["before", `what ${labels[s]} adds`, "after"].forEach((title, k) => { panels[k].title.text = title; });
coordinate.axis_label = drawn < width ? `coordinate, the first ${drawn} of ${width}` : "coordinate";

const c = s * n + i - 1;
const turn = Number.isNaN(cosine[c]) ? "" : ` (cosine ${cosine[c].toFixed(2).replace("-", "−")})`;
const told = s === 0
  ? `the stream begins with ${labels[0]}, a vector of length ${shown(stream[c])}`
  : `${labels[s]} adds a change of length ${shown(change[c])} to a stream of length ${shown(stream[c - n])}${turn},` +
    ` which becomes ${shown(stream[c])} long`;
const lens = said.length ? `; the readout would now say '${said[c]}' with probability ${probability[c].toFixed(2)}` : "";
words.text = `At '${tokens[i - 1]}' (${nth(i)} of ${n}) ${told}${lens}.`;
