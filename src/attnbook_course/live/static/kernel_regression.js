// Nadaraya–Watson in the reader's browser: the same numbers as attnbook.nadaraya_watson.
const kernels = {
  gaussian: (u) => Math.exp(-0.5 * u * u),
  boxcar: (u) => (u <= 1 ? 1 : 0),
  triangular: (u) => Math.max(0, 1 - u),
  epanechnikov: (u) => 0.75 * Math.max(0, 1 - u * u),
};
const h = Math.pow(10, bandwidth.value);
const { x, y } = data.data;

function weights(at) {
  const u = Array.from(x, (key) => Math.abs(at - key) / h);
  // the Gaussian from its nearest key on, so that no sum underflows to 0
  const nearest = kernel.value === "gaussian" ? Math.min(...u) : 0;
  const k = u.map((v) =>
    kernel.value === "gaussian" ? Math.exp(-0.5 * (v - nearest) * (v + nearest)) : kernels[kernel.value](v));
  const total = k.reduce((sum, value) => sum + value, 0);
  return k.map((value) => (total > 0 ? value / total : NaN));
}
const average = (w) => w.reduce((sum, value, j) => sum + value * y[j], 0);

const w = weights(position.value);
const prediction = average(w);
const largest = Math.max(...w);
const counted = w.map((value) => (Number.isFinite(value) ? value : 0));
data.data = { ...data.data, weight: counted, size: counted.map((v) => 4 + (largest > 0 ? 10 * v / largest : 0)) };
curve.data = { ...curve.data, estimate: Array.from(curve.data.x, (at) => average(weights(at))) };
query.data = { x: [position.value], y: [prediction] };
const neighbours = 1 / counted.reduce((sum, value) => sum + value * value, 0);
const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
words.text = Number.isFinite(prediction)
  ? `h = ${h.toPrecision(3)}: at x = ${signed(position.value, 2)} the prediction is ${signed(prediction, 3)},` +
    ` an average over about ${neighbours.toFixed(1)} points.`
  : `h = ${h.toPrecision(3)}: at x = ${signed(position.value, 2)} there is no neighbour, and no prediction.`;
