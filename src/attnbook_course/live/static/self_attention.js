// Self-attention on points of the plane: the same numbers as attnbook.attend, layer after layer.
const name = start.data.name, i = name.indexOf(point.value);
const x = Array.from(start.data.x), y = Array.from(start.data.y);
if (cb_obj === point) {
  first.value = x[i]; // a slider that moves runs this script too, and writes the same number
  second.value = y[i];
} else if (cb_obj === first || cb_obj === second) {
  [x[i], y[i]] = cb_obj === first ? [first.value, y[i]] : [x[i], second.value];
  start.data = { ...start.data, x, y };
}
bandwidth.visible = score.value === "gaussian";
temperature.visible = !bandwidth.visible;

const h = Math.pow(10, bandwidth.value), tau = Math.pow(10, temperature.value);
const score_of = {
  gaussian: (q, k) => -((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2) / (2 * h * h),
  "scaled dot": (q, k) => (q[0] * k[0] + q[1] * k[1]) / (Math.SQRT2 * tau),
}[score.value];

function attention(points) {
  return points.map((q) => {
    const scores = points.map((k) => score_of(q, k));
    const largest = Math.max(...scores);
    const weights = scores.map((s) => Math.exp(s - largest)); // at most 1: none overflows
    const total = weights.reduce((sum, w) => sum + w, 0);
    return [0, 1].map((axis) => weights.reduce((sum, w, j) => sum + w * points[j][axis], 0) / total);
  });
}
const half = (points, averages) => points.map((p, j) => [0, 1].map((axis) => (p[axis] + averages[j][axis]) / 2));
const layer = (points) => (residual.value === "half" ? half(points, attention(points)) : attention(points));

function spread_of(points) { // root mean square distance from their mean
  const mean = [0, 1].map((axis) => points.reduce((sum, p) => sum + p[axis], 0) / points.length);
  return Math.sqrt(points.reduce((sum, p) => sum + (p[0] - mean[0]) ** 2 + (p[1] - mean[1]) ** 2, 0) / points.length);
}

const states = [x.map((value, j) => [value, y[j]])];
while (states.length < spread.data.layer.length) states.push(layer(states.at(-1)));
const own = spread_of(states[0]);
const apart = own > 1e-9; // or nothing but rounding is left
const share = states.map((points) => (apart ? spread_of(points) / own : 0));
const seen = states.slice(0, layers.value + 1), last = seen.at(-1);

paths.data = {
  xs: name.map((_, j) => seen.map((points) => points[j][0])),
  ys: name.map((_, j) => seen.map((points) => points[j][1])),
};
after.data = { x: last.map((p) => p[0]), y: last.map((p) => p[1]) };
chosen.data = { x: [x[i]], y: [y[i]] };
spread.data = { ...spread.data, spread: share };
now.data = { layer: [layers.value], spread: [share[layers.value]] };

const percent = 100 * share[layers.value];
const said = percent >= 99.5 ? percent.toFixed(0) : percent >= 0.001 ? percent.toPrecision(2) : "less than 0.001";
words.text = !apart
  ? "All points start in one place, and stay there."
  : layers.value === 0
    ? `Before the first layer the spread, the root mean square distance from the points' mean, is ${own.toFixed(2)}.`
    : `After ${layers.value} layer${layers.value === 1 ? "" : "s"} the spread is ${said} % of the start.`;
