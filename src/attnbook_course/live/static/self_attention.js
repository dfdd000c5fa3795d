// Self-attention on points of the plane; plane_attention.js, before it, has the layers.
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

const tau = bandwidth.visible ? Math.pow(10, 2 * bandwidth.value) : Math.pow(10, temperature.value); // h² of the Gaussian
const states = plane_layers(x.map((a, j) => [a, y[j]]), score.value, tau, residual.value === "half", spread.data.layer.length - 1);
const own = spread_of(states[0]), apart = own > 1e-9; // or nothing but rounding is left
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
