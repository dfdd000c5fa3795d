// Attention in the plane: the numbers of attnbook.attend with score / τ, and of layers of self-attention.
const inner = (a, b) => a[0] * b[0] + a[1] * b[1];
const PLANE_SCORES = {
  gaussian: (q, k) => -0.5 * ((q[0] - k[0]) ** 2 + (q[1] - k[1]) ** 2),
  dot: inner,
  "scaled dot": (q, k) => inner(q, k) / Math.SQRT2,
  cosine: (q, k) => inner(q, k) / (Math.hypot(...q) * Math.hypot(...k) || 1), // 0 of a vector without direction
};

// Weights softmax_j(score(q, k_j) / τ) of one query, and the weighted average of values.
function plane_weights(q, keys, kind, tau) {
  const scores = keys.map((k) => PLANE_SCORES[kind](q, k) / tau), largest = Math.max(...scores);
  const exponentials = scores.map((s) => Math.exp(s - largest)); // at most 1: none overflows
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}
const plane_average = (weights, points) =>
  [0, 1].map((axis) => weights.reduce((sum, w, j) => sum + w * points[j][axis], 0));

// Points after 0, 1, … layers, each point query, key and value; with half a residual a layer takes the mean of both.
function plane_layers(points, kind, tau, half, count) {
  const states = [points];
  while (states.length <= count) {
    const now = states.at(-1), averages = now.map((q) => plane_average(plane_weights(q, now, kind, tau), now));
    states.push(half ? now.map((p, j) => [0, 1].map((axis) => (p[axis] + averages[j][axis]) / 2)) : averages);
  }
  return states;
}

function spread_of(points) { // root mean square distance from their mean
  const mean = plane_average(points.map(() => 1 / points.length), points);
  return Math.sqrt(points.reduce((sum, p) => sum + (p[0] - mean[0]) ** 2 + (p[1] - mean[1]) ** 2, 0) / points.length);
}
