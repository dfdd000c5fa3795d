// Attention of one query in the plane: the same numbers as attnbook.attend with score / τ.
const q = [first.value, second.value];
const tau = Math.pow(10, temperature.value);
const { x, y, name } = keys.data;
const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const norm = (a) => Math.hypot(...a);
const score_of = {
  gaussian: (k) => -0.5 * ((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2),
  dot: (k) => dot(q, k),
  "scaled dot": (k) => dot(q, k) / Math.SQRT2,
  cosine: (k) => (norm(q) > 0 && norm(k) > 0 ? dot(q, k) / (norm(q) * norm(k)) : 0), // a vector without direction
}[score.value];

const scores = Array.from(x, (_, j) => score_of([x[j], y[j]]));
const largest = Math.max(...scores);
const exponentials = scores.map((s) => Math.exp((s - largest) / tau)); // at most 1: none overflows
const total = exponentials.reduce((sum, value) => sum + value, 0);
const weight = exponentials.map((value) => value / total);
const average = (column) => weight.reduce((sum, w, j) => sum + w * column[j], 0);
const out = [average(values.data.x), average(values.data.y)];

const size = weight.map((w) => 7 + 25 * Math.sqrt(w)); // the area beyond the smallest dot is the weight
const drawn = {
  weight, size,
  alpha: weight.map((w) => 0.3 + 0.65 * w),
  offset: size.map((s) => s / 2 + 2),
  query_x: weight.map(() => q[0]),
  query_y: weight.map(() => q[1]),
};
keys.data = { ...keys.data, ...drawn };
values.data = { ...values.data, ...drawn };
query.data = { x: [q[0]], y: [q[1]] };
output.data = { x: [out[0]], y: [out[1]] };

const winner = scores.indexOf(largest);
const counted = 1 / weight.reduce((sum, w) => sum + w * w, 0);
const point = ([a, b]) => `(${a.toFixed(2)}, ${b.toFixed(2)})`.replaceAll("-", "−");
words.text = (scores.every((s) => s === largest)
  ? `All scores are equal: each key has weight ${weight[0].toFixed(3)}.`
  : `${name[winner]} scores highest and has weight ${weight[winner].toFixed(3)}.`) +
  ` The output, ${point(out)}, is an average over about ${counted.toFixed(2)} of ${name.length} keys (1 / Σ w²).`;
