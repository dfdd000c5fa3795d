// Attention of one query in the plane; plane_attention.js, before it, has the weights.
const q = [first.value, second.value], { x, y, name } = keys.data;
const points = (source) => Array.from(source.data.x, (a, j) => [a, source.data.y[j]]);
const weight = plane_weights(q, points(keys), score.value, Math.pow(10, temperature.value));
const out = plane_average(weight, points(values));

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

const largest = Math.max(...weight), counted = 1 / weight.reduce((sum, w) => sum + w * w, 0);
words.text = (weight.every((w) => w === largest)
  ? `All scores are equal: each key has weight ${largest.toFixed(3)}.`
  : `${name[weight.indexOf(largest)]} scores highest and has weight ${largest.toFixed(3)}.`) +
  ` The output, (${signed(out[0], 2)}, ${signed(out[1], 2)}), is an average over about ${counted.toFixed(2)} of ${name.length} keys (1 / Σ w²).`;
