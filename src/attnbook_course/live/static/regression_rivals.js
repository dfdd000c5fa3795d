// What chapter 9 holds a layer against: kernel regression with the best bandwidth, ridge regression on 1, x, x² with the best
// penalty, and the posterior mean. gaussian_process.js and attention_regressor.js stand before it.

// Chapter 1's kernel as a matrix of the score, so that the layer's average is Nadaraya–Watson's.
const form_of = (h) => [[0, 0, -0.5 / h ** 2], [0, 1 / h ** 2, 0], [0, 0, 0]];
const spaced = (from, to, count) => Array.from({ length: count }, (_, i) => from * (to / from) ** (i / (count - 1)));

// Ridge regression from sums over the points: the coefficients (Φᵀ Φ + λI)⁻¹ Φᵀ y.
const sums = () => ({ moments: new Float64Array(5), right: new Float64Array(3) });
function add_point({ moments, right }, x, y) {
  for (let power = 0; power < 5; power++) moments[power] += x ** power;
  for (const r of POWERS) right[r] += x ** r * y;
}
const ridge = ({ moments, right }, penalty) =>
  solve(cholesky(3, (r, c) => moments[r + c] + (r === c ? penalty : 0)), right);
const quadratic = ([a, b, c], at) => a + (b + c * at) * at;

// The squared distance to f at the point after the first n, for n = 1, 2, …: means over the functions, a row for each choice.
function rivals(functions, { length_scale, noise }) {
  const pairs = functions[0].x.length - 1, weights = new Float64Array(pairs);
  const bandwidths = spaced(0.15 * length_scale, 1.5 * length_scale, 24), penalties = spaced(0.1, 10, 7);
  const rows = (choices) => choices.map(() => new Float64Array(pairs));
  const errors = { kernel: rows(bandwidths), ridge: rows(penalties), posterior: rows([0]) };
  for (const { x, y, f } of functions) {
    const note = (row, n, said) => { row[n - 1] += (said - f[n]) ** 2 / functions.length; };
    const L = factor(x, length_scale, noise), z = solve_lower(L, y), seen = sums();
    for (let n = 1; n <= pairs; n++) {
      note(errors.posterior[0], n, y[n] - L[n][n] * z[n]); // the mean of y_{n+1} given those before it
      add_point(seen, x[n - 1], y[n - 1]);
      penalties.forEach((penalty, i) => note(errors.ridge[i], n, quadratic(ridge(seen, penalty), x[n])));
      bandwidths.forEach((h, i) => note(errors.kernel[i], n, average(x, y, n, x[n], form_of(h), weights)));
    }
  }
  return { ...errors, bandwidths, penalties };
}

// The choice with the least mean error over 1 to so many pairs.
function best(rows, choices, pairs) {
  const means = rows.map((row) => row.subarray(0, pairs).reduce((sum, error) => sum + error, 0) / pairs);
  const error = Math.min(...means);
  return { error, choice: choices[means.indexOf(error)] };
}

// The layer's error in the same sense.
function layer_error(parameters, functions, pairs) {
  const { A, gain, shift } = read_off(parameters), weights = new Float64Array(pairs);
  let sum = 0;
  for (const { x, y, f } of functions)
    for (let n = 1; n <= pairs; n++) sum += (gain * average(x, y, n, x[n], A, weights) + shift - f[n]) ** 2;
  return sum / (functions.length * pairs);
}
