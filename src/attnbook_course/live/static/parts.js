// A softmax average in parts: the numbers of attnbook.exact.online_softmax.partial, combine and finish.
const event = cb_obj.event_name;
const scores = Array.from(keys.data.score), values = Array.from(keys.data.value), n = scores.length;
let after = Array.from(cuts.data.after); // how many keys stand before each cut
let j = Number(key.value) - 1, c = Math.min(Number(cut.value) - 1, after.length - 1);
const inside = (number, { start, end }, digit) => Math.round(Math.min(end, Math.max(start, number)) / digit) * digit;

// What the reader has done: a drag moves the top of a bar, or a cut; a cut may cross others.
const pixels = (x, y) => {
  const per = (range, length) => length / (range.end - range.start);
  return Math.hypot((cb_obj.x - x) * per(above.x_range, above.inner_width), (cb_obj.y - y) * per(above.y_range, above.inner_height));
};
const move = (to) => {
  after[c] = inside(to, place, 1);
  const moved = after[c];
  after.sort((a, b) => a - b);
  c = after[c] === moved ? c : after.indexOf(moved);
};
if (event === "tap" || event === "panstart") {
  const level = above.y_range.start + 0.6; // of the cuts' handles
  const near = [...scores.map((s, k) => [pixels(k + 1, s), "key", k]), ...after.map((k, i) => [pixels(k + 0.5, level), "cut", i])];
  const [distance, what, which] = near.reduce((best, one) => (one[0] < best[0] ? one : best));
  held.data = { what: [distance < 22 ? what : ""] };
  if (distance < 22) [j, c] = what === "key" ? [which, c] : [j, which];
} else if (event === "pan") {
  const [what] = held.data.what;
  if (!what) return;
  if (what === "key") scores[j] = inside(cb_obj.y, score, 0.25);
  else move(cb_obj.x - 0.5);
} else if (cb_obj === count) {
  if (after.length === count.value - 1) return;
  after = Array.from({ length: count.value - 1 }, (_, k) => Math.floor((n * (k + 1)) / count.value));
  c = Math.min(c, after.length - 1);
} else if (cb_obj === place) {
  if (after[c] === place.value) return; // moved by the lines below
  move(place.value);
} else if (cb_obj === score || cb_obj === value) {
  if (scores[j] === score.value && values[j] === value.value) return;
  [scores[j], values[j]] = [score.value, value.value];
}
cuts.data = { after, x: after.map((k) => k + 0.5) };
keys.data = { ...keys.data, score: scores, value: values };
chosen.data = { x: [j + 1], y: [scores[j]] };
cut.options = after.map((_, k) => String(k + 1));
[cut.value, key.value] = [String(c + 1), String(j + 1)];
place.value = after[c];
score.value = scores[j];
value.value = values[j];
step.end = after.length;
if (step.value > step.end) step.value = step.end;

// To the nearest of the numbers with 8 bits, a tie to the even one, as from float32.
const bits = new DataView(new ArrayBuffer(4));
function bfloat16(number) {
  bits.setFloat32(0, number);
  const whole = bits.getUint32(0);
  bits.setUint32(0, ((whole + 0x7fff + ((whole >>> 16) & 1)) & 0xffff0000) >>> 0);
  return bits.getFloat32(0);
}
const exactly = (number) => number;

function partial(from, to, round) { // key by key
  const top = Math.max(...scores.slice(from, to).map(round)); // −∞ of no key
  let total = 0, weighted = 0;
  for (let k = from; k < to; k++) {
    const share = round(Math.exp(round(round(scores[k]) - top)));
    total = round(total + share);
    weighted = round(weighted + round(share * round(values[k])));
  }
  return { top, total, weighted };
}

function combine(a, b, round) {
  const top = Math.max(a.top, b.top);
  if (top === -Infinity) return a; // no key in either
  const [f, g] = [a, b].map((one) => round(Math.exp(round(one.top - top))));
  const sum = (name) => round(round(f * a[name]) + round(g * b[name]));
  return { top, total: sum("total"), weighted: sum("weighted") };
}
const finish = (part, round) => round(part.weighted / part.total);

const ends = [0, ...after, n]; // part k has the keys from ends[k] to ends[k + 1]

// After some steps: the parts that are left, each with those that it is made of; the last that was made is marked.
function combined(way, steps, round) {
  let left = ends.slice(1).map((end, k) => ({ ...partial(ends[k], end, round), of: [k] }));
  if (way.startsWith("shuffled")) left = shuffled(left.length, way).map((k) => left[k]);
  for (let done = 0, at = 0; done < steps; done++) {
    if (way !== "tree" || at + 1 >= left.length) at = 0;
    const [a, b] = left.slice(at, at + 2);
    left = left.map((one) => ({ ...one, last: false }));
    left.splice(at, 2, { ...combine(a, b, round), of: [...a.of, ...b.of].sort((p, q) => p - q), last: true });
    at += 1;
  }
  return left;
}

const round = arithmetic.value === "bfloat16" ? bfloat16 : exactly;
const left = combined(order.value, step.value, round);
const minus = (text) => text.replace("-", "−");
const short = (number, places = 2) =>
  number === -Infinity ? "−∞" : Number.isNaN(number) ? "none" : minus(number.toFixed(places));
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
const all = partial(0, n, exactly), target = finish(all, exactly);
goal.location = target;
const top_of = scores.map((_, k) => left.find((part) => part.of.some((one) => ends[one] <= k && k < ends[one + 1])).top);
keys.data = { ...keys.data, size: scores.map((s, k) => 5 + 12 * Math.sqrt(Math.exp(s - top_of[k]))) };

const digits = (number) => minus(number.toFixed(4));
const result = (way) => finish(combined(way, after.length, round)[0], round);
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
