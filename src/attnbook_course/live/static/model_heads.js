// Every head of a model on a sentence: a map of all of them, and what one of them attends to.
const root = document.documentElement.dataset.content_root; // the website sets it, notebooks do not
const here = root !== undefined && location.protocol !== "file:";
const event = cb_obj.event_name, opened = cb_obj.type === "Column"; // the figure is new
const nth = (k) => k + (k % 100 > 10 && k % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][k % 10] ?? "th");
const shown = (text) => (text.includes("\n") ? "⏎" : text.trim() || "␣");

// The other sentences' weights from the page's own host, asked for once at a time.
async function fetch_weights() {
  const answer = await fetch(`${root}_static/models/${stored}.weights`, { cache: "no-cache" });
  if (!answer.ok) throw new Error(`the host answers ${answer.status}`);
  const buffer = await answer.arrayBuffer(), { tokens } = cases.data;
  const sizes = tokens.map((one) => (layers * heads * one.length * (one.length + 1)) / 2);
  let at = 8 + Number(new DataView(buffer).getBigUint64(0, true));
  if (buffer.byteLength !== at + sizes.reduce((sum, size) => sum + size, 0)) throw new Error("it does not fit this figure");
  cases.data = { ...cases.data, units: sizes.map((size) => new Uint8Array(buffer, (at += size) - size, size)) };
}
const ask_host = () => (cases.asked ??= fetch_weights().finally(() => { delete cases.asked; }));
const again = () => matrix.document.get_model_by_name("update").execute(example);
const missing = (k) => cases.data.units[k].length === 0;

const chosen = Number(example?.value ?? 0), another = cb_obj === (example ?? cases); // is the sentence another one?
if (missing(chosen)) {
  if (!another) return;
  const fail = (reason) => { notice.setv({ text: `${reason} ${instead}`, visible: true }); example.value = "0"; };
  if (here) ask_host().then(again, (error) => fail(`The other sentences could not be loaded: ${error.message}.`));
  else fail("Only the book's website can load the other sentences.");
  return;
}
if (opened && here && cases.data.units.some((_, k) => missing(k))) ask_host().catch(() => {}); // told when one is chosen
if (another && chosen > 0) notice.visible = false;

const { tokens: { [chosen]: tokens }, units: { [chosen]: units } } = cases.data;
const n = tokens.length, size = (n * (n + 1)) / 2;
const weight = (h, i, j) => units[h * size + (i * (i + 1)) / 2 + j] / 255; // head h, counted from 0 over all layers

if (token.end !== n) token.end = n;
if (another) {
  token.value = n;
  token.properties.title.change.emit(); // another sentence's name for the same number
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
const cutting = measure.value === "cut"; // a figure that asks the model knows what each head, cut alone, moves
const every = Array.from({ length: layers * heads }, (_, h) => h);
const by_head = every.map((h) => (cutting ? state.moved?.[h] ?? 0 : mean(h, counted[measure.value])));
const largest = Math.max(...by_head), most_of_all = by_head.indexOf(largest);
const named = (h) => [Math.floor(h / heads) + 1, (h % heads) + 1];
if (event === "button_click") {
  [layer.value, head.value] = named(most_of_all);
  return; // the sliders that moved have drawn the figure
}

const h = (deep - 1) * heads + aside - 1;
const over = event === "mousemove" ? Math.min(n, Math.max(1, Math.round(cb_obj.origin === matrix ? cb_obj.y : cb_obj.x))) : at;
if (event === "mousemove" && asked.data.x[0] === over) return;
const row = Array.from({ length: over }, (_, j) => weight(h, over - 1, j));

// The token's row: arcs to the tokens that it attends to, and a dot at each
asked.data = { x: [over] };
frame.data = { x: [(over + 1) / 2], y: [over], width: [over] };
dots.data = { x: row.map((_, j) => j + 1), size: row.map((w) => 18 * Math.sqrt(w)) };
const far = row.map((_, j) => j).filter((j) => j < over - 1 && row[j] > 0.02);
arcs.data = {
  start: far.map(() => over), end: far.map((j) => j + 1), middle: far.map((j) => (over + j + 1) / 2),
  top: far.map((j) => 0.5 + (1.4 * (over - 1 - j)) / n), width: far.map((j) => Math.max(0.7, 8 * row[j])),
};

if (!event?.startsWith("mouse")) {
  const [x, y] = [0, 1].map((axis) => every.map((h) => named(h)[axis]));
  all.data = { x, y, weight: cutting && largest > 0 ? by_head.map((w) => w / largest) : by_head };
  chosen_head.data = { x: [deep], y: [aside] };
  const names = new Map(tokens.map((text, i) => [i + 1, shown(text)]));
  for (const axis of [down, across]) {
    axis.ticker.ticks = [...names.keys()];
    axis.major_label_overrides = names;
  }
  across.major_label_orientation = Math.max(...tokens.map((text) => shown(text).length)) > 3 ? "vertical" : "horizontal";
  if (another || opened) matrix.frame_height = cases.data.height[chosen];
  matrix.x_range.setv({ start: 0.5, end: n + 0.5 });
  matrix.y_range.setv({ start: n + 0.5, end: 0.5 });
  const causal = places.flatMap((i) => places.slice(0, i + 1).map((j) => [i, j]));
  cells.data = { x: causal.map(([, j]) => j + 1), y: causal.map(([i]) => i + 1), weight: causal.map(([i, j]) => weight(h, i, j)) };
}

const many = (j) => tokens.some((text, k) => k !== j && shown(text) === shown(tokens[j]));
const told = row.map((_, j) => j).sort((a, b) => row[b] - row[a]).filter((j) => row[j] >= 0.005).slice(0, 3)
  .map((j) => `'${shown(tokens[j])}'${many(j) ? ` (${nth(j + 1)})` : ""} ${row[j].toFixed(2)}`);
const part = ([label, pairs]) => `${pairs.length ? mean(h, pairs).toFixed(2) : "nothing"} on ${label}`;
const large = by_head.filter((w) => w > 0.5).length;
const measured = { first: "the first token", before: "the token before", followed: "what followed an equal token" };
const summary = cutting
  ? largest > 0 ? `Cut alone, head ${named(most_of_all).join(".")} moves most, ${largest.toFixed(2)} of the next token's probability.`
    : "Let each head be cut in turn: then the colours show how much of the next token's probability it moves."
  : counted[measure.value].length ? `${large} of ${by_head.length} heads put more than half of their weight on ${measured[measure.value]}.`
  : "No token of this sentence comes twice, so no head can look at what followed.";
words.text = `Head ${deep}.${aside}: the token '${shown(tokens[over - 1])}' (${nth(over)} of ${n}) attends to ${told.join(", ")}.` +
  ` On average over the tokens that have one, the head puts ${Object.entries(counted).filter(([, pairs]) => pairs.length).map(([key, pairs]) => part([measured[key], pairs])).join(", ")}.` +
  ` ${summary}`;
