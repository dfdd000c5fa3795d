// Every head of a model on a text: a map of all of them, and what one of them attends to. ask_model.js stands before it.
const opened = cb_obj.type === "Column"; // the figure is new
const shown = (text) => (text.includes("\n") ? "⏎" : text.trim() || "␣");
const another = cb_obj === cases; // is the text another one?
const { tokens: [tokens], units: [units], height: [height] } = cases.data;
const n = tokens.length, size = (n * (n + 1)) / 2;
const weight = (h, i, j) => units[h * size + (i * (i + 1)) / 2 + j] / 255; // head h, counted from 0 over all layers

if (token.end !== n) token.end = n;
if (another) {
  token.value = n;
  token.properties.title.change.emit(); // another text's name for the same number
}
const sliders = [layer, head, token];
const [deep, aside, at] = sliders.map(({ value, start, end }) => Math.min(end, Math.max(start, Math.round(value))));
if (layer.value !== deep || head.value !== aside || token.value !== at) {
  [deep, aside, at].forEach((value, k) => { sliders[k].value = value; }); // a pointer gives a fraction
  return; // the slider that moved has drawn the figure
}

// Mean weights of every head; each place is a query and the keys that count for it.
const places = Array.from({ length: n }, (_, i) => i);
const counted = {
  first: places.slice(1).map((i) => [i, [0]]),
  before: places.slice(2).map((i) => [i, [i - 1]]),
  followed: places.map((i) => [i, places.slice(1, i + 1).filter((j) => tokens[j - 1] === tokens[i])]).filter(([, keys]) => keys.length),
};
const mean = (h, pairs) => pairs.reduce((sum, [i, keys]) => sum + keys.reduce((s, j) => s + weight(h, i, j), 0), 0) / Math.max(pairs.length, 1);
const cutting = measure.value === "cut"; // what each head, cut alone, moves
const every = Array.from({ length: layers * heads }, (_, h) => h);
const by_head = every.map((h) => (cutting ? state.moved?.[h] ?? 0 : mean(h, counted[measure.value])));
const largest = Math.max(...by_head), most_of_all = by_head.indexOf(largest);
const named = (h) => [Math.floor(h / heads) + 1, (h % heads) + 1];

const h = (deep - 1) * heads + aside - 1;
const row = Array.from({ length: at }, (_, j) => weight(h, at - 1, j));
frame.data = { x: [(at + 1) / 2], y: [at], width: [at] };
const [x, y] = [0, 1].map((axis) => every.map((h) => named(h)[axis]));
all.data = { x, y, weight: cutting && largest > 0 ? by_head.map((w) => w / largest) : by_head };
chosen_head.data = { x: [deep], y: [aside] };
const names = new Map(tokens.map((text, i) => [i + 1, shown(text)]));
for (const axis of [down, across]) {
  axis.ticker.ticks = [...names.keys()];
  axis.major_label_overrides = names;
}
across.major_label_orientation = Math.max(...tokens.map((text) => shown(text).length)) > 3 ? "vertical" : "horizontal";
if (another || opened) matrix.frame_height = height;
matrix.x_range.setv({ start: 0.5, end: n + 0.5 });
matrix.y_range.setv({ start: n + 0.5, end: 0.5 });
const causal = places.flatMap((i) => places.slice(0, i + 1).map((j) => [i, j]));
cells.data = { x: causal.map(([, j]) => j + 1), y: causal.map(([i]) => i + 1), weight: causal.map(([i, j]) => weight(h, i, j)) };

const many = (j) => tokens.some((text, k) => k !== j && shown(text) === shown(tokens[j]));
const told = row.map((_, j) => j).sort((a, b) => row[b] - row[a]).filter((j) => row[j] >= 0.005).slice(0, 3)
  .map((j) => `'${shown(tokens[j])}'${many(j) ? ` (${nth(j + 1)})` : ""} ${row[j].toFixed(2)}`);
const large = by_head.filter((w) => w > 0.5).length;
const measured = { first: "the first token", before: "the token before", followed: "what followed an equal token" };
const summary = cutting
  ? largest > 0 ? `Cut alone, head ${named(most_of_all).join(".")} moves most, ${largest.toFixed(2)} of the next token's probability.`
    : "Let each head be cut in turn: then the colours show how much of the next token's probability it moves."
  : counted[measure.value].length ? `${large} of ${by_head.length} heads put more than half of their weight on ${measured[measure.value]}.`
  : "No token of this text comes twice, so no head can look at what followed.";
words.text = `Head ${deep}.${aside}: the token '${shown(tokens[at - 1])}' (${nth(at)} of ${n}) attends to ${told.join(", ")}.` +
  ` ${summary}`;
