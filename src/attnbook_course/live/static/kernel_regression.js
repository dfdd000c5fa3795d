// Chapter 1's figure; kernel_average.js, before it, has the weights.
const h = Math.pow(10, bandwidth.value), { x, y } = data.data;
const average = (w) => w.reduce((sum, value, j) => sum + value * y[j], 0);
const weights = (at) => kernel_weights(x, at, h, kernel.value);

const w = weights(position.value), prediction = average(w), largest = Math.max(...w);
const counted = w.map((value) => (Number.isFinite(value) ? value : 0));
data.data = { ...data.data, weight: counted, size: counted.map((v) => 4 + (largest > 0 ? 10 * v / largest : 0)) };
curve.data = { ...curve.data, estimate: Array.from(curve.data.x, (at) => average(weights(at))) };
query.data = { x: [position.value], y: [prediction] };
const neighbours = 1 / counted.reduce((sum, value) => sum + value * value, 0);
words.text = `h = ${h.toPrecision(3)}: at x = ${signed(position.value, 2)} ` + (Number.isFinite(prediction)
  ? `the prediction is ${signed(prediction, 3)}, an average over about ${neighbours.toFixed(1)} points.`
  : `there is no neighbour, and no prediction.`);
