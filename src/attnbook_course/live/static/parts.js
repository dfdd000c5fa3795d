// Chapter 12's parts to cut and combine; softmax_parts.js, before it, has their numbers.
const event = cb_obj.event_name;
const scores = Array.from(keys.data.score), values = Array.from(keys.data.value), n = scores.length;
let after = Array.from(cuts.data.after); // how many keys stand before each cut
let c = Math.min(Number(cut.value) - 1, after.length - 1);

// What the reader has done: a drag moves the nearest cut, which may cross others.
const move = (to) => {
  after[c] = Math.round(Math.min(n, Math.max(0, to)));
  const moved = after[c];
  after.sort((a, b) => a - b);
  c = after[c] === moved ? c : after.indexOf(moved);
};
if (event === "tap" || event === "panstart") {
  const distance = after.map((k) => Math.abs(cb_obj.x - k - 0.5)), low = cb_obj.y < above.y_range.start + 1.2;
  const nearest = distance.indexOf(Math.min(...distance)), hit = low && distance[nearest] * above.inner_width < 22 * n;
  held.data = { what: [hit ? "cut" : ""] };
  if (hit) c = nearest;
} else if (event === "pan") {
  if (!held.data.what[0]) return;
  move(cb_obj.x - 0.5);
} else if (cb_obj === count) {
  if (after.length === count.value - 1) return;
  after = Array.from({ length: count.value - 1 }, (_, k) => Math.floor((n * (k + 1)) / count.value));
  c = Math.min(c, after.length - 1);
} else if (cb_obj === place) {
  if (after[c] === place.value) return; // moved by the lines below
  move(place.value);
}
cuts.data = { after, x: after.map((k) => k + 0.5) };
cut.options = after.map((_, k) => String(k + 1));
cut.value = String(c + 1);
place.value = after[c];
step.end = after.length;
if (step.value > step.end) step.value = step.end;

const ends = [0, ...after, n];
const round = arithmetic.value === "bfloat16" ? bfloat16 : exactly;
const left = combined(scores, values, ends, order.value, step.value, round);
const short = (number, places = 2) =>
  number === -Infinity ? "−∞" : Number.isNaN(number) ? "none" : signed(number, places);
const pixels_per_key = above.inner_width / n;

// The keys of a part, as pieces of the line from one number of keys to another.
function runs_of({ of }) {
  const runs = [];
  for (const k of of)
    if (runs.length && runs.at(-1)[1] === ends[k]) runs.at(-1)[1] = ends[k + 1];
    else runs.push([ends[k], ends[k + 1]]);
  return runs;
}

// A second piece of the same part points back to the first, which has the numbers.
const drawn = { left: [], right: [], top: [], average: [], colour: [] }, written = { x: [], row: [], text: [] };
for (const part of left) {
  const average = part.total > 0 ? finish(part, round) : NaN;
  runs_of(part).forEach(([from, to], k) => {
    const piece = { left: from + 0.6, right: to + 0.4, top: part.top, average, colour: part.last ? blue : orange };
    if (to > from) for (const name of Object.keys(drawn)) drawn[name].push(piece[name]);
    const places = (to - from) * pixels_per_key < 34 ? 1 : 2; // as many as there is room for
    const said = k > 0 ? { top: "←" } : { top: short(part.top, places), total: short(part.total, places), average: short(average, places) };
    for (const [row, text] of Object.entries(said)) {
      written.x.push((from + to + 1) / 2);
      written.row.push(row);
      written.text.push(text);
    }
  });
}
spans.data = drawn;
const crossed = after.map((_, k) => left.some(({ of }) => of.includes(k) && of.includes(k + 1)));
lines.data = { x: after.map((k) => k + 0.5), alpha: crossed.map((within) => (within ? 0.15 : 1)) };
table.data = written;

// The softmax average of all keys, and the weights within each part.
const target = finish(partial(scores, values, exactly), exactly);
goal.location = target;
const top_of = scores.map((_, k) => left.find((part) => part.of.some((one) => ends[one] <= k && k < ends[one + 1])).top);
keys.data = { ...keys.data, size: scores.map((s, k) => 5 + 12 * Math.sqrt(Math.exp(s - top_of[k]))) };

const digits = (number) => signed(number, 4);
const result = (way) => finish(combined(scores, values, ends, way, after.length, round)[0], round);
const name_of = ([from, to]) => (to === from + 1 ? `${to}` : `${from + 1} to ${to}`);
const keys_of = (part) => runs_of(part).filter(([from, to]) => to > from).map(name_of).join(", ").replace(/, ([^,]*)$/, " and $1") || "none";
const last = left.find((part) => part.last);
const now = last && `Step ${step.value} of ${after.length} gives keys ${keys_of(last)}: top ${short(last.top)},` +
  ` total ${digits(last.total)}, average ${last.total > 0 ? digits(finish(last, round)) : "none"}.`;
const ways = ["left to right", "tree", order.value.startsWith("shuffled") ? order.value : "shuffled 1"];
words.text = (now ?? `${n} keys in ${after.length + 1} parts, and nothing is combined yet.`) +
  ` The softmax average of all keys is ${digits(target)}. ` +
  (round === exactly ? `Every order ends there.`
    : `In bfloat16, ${ways.map((way) => `${way} ends at ${digits(result(way))}`).join(", ")}.`);
