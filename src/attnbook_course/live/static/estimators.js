// Weights of each point in five predictions: the numbers of attnbook.linear_attention.online_regression.one_pass and passes, of
// attnbook.kernel.gaussian_process.posterior and of attnbook.nadaraya_watson. points.js, before it, has moved x, y and the query.
const n = x.length;

// arrival[t] is the point that comes at time t.
const in_turn = x.map((_, j) => j);
const arrival = order.value === "reversed" ? in_turn.reverse() : order.value === "as given" ? in_turn : shuffled(n, order.value);
const covariance = (a, b) => Math.exp(-0.5 * ((a - b) / length_scale) ** 2);
const gram = arrival.map((a) => arrival.map((b) => covariance(x[a], x[b])));
const identity = arrival.map((_, t) => arrival.map((_, c) => (t === c ? 1 : 0)));
const times = arrival.map((_, t) => t);
const told = (row, u, c, which) => which.reduce((sum, t) => sum + row[t] * u[t][c], 0);

function one_pass(values, beta) { // u = (I + β tril(K, −1))⁻¹ β y
  const u = [];
  values.forEach((y, t) => u.push(y.map((value, c) => beta * (value - told(gram[t], u, c, times.slice(0, t))))));
  return u;
}

function passes(values, count) { // Gauss–Seidel on (K + σ²I) u = y, from u = 0
  const u = values.map((y) => y.map(() => 0));
  for (let pass = 0; pass < count; pass++)
    for (const t of times)
      u[t] = values[t].map((value, c) => (value - told(gram[t], u, c, times.filter((s) => s !== t))) / (gram[t][t] + noise ** 2));
  return u;
}

function posterior(values) { // (K + σ²I)⁻¹ y by Cholesky: the matrix is L Lᵀ, with L below the diagonal
  const L = gram.map((row, r) => row.map((value, c) => value + (r === c ? Math.max(noise ** 2, 1e-9) : 0)));
  for (const r of times)
    for (let c = 0; c <= r; c++) {
      const left = L[r][c] - inner(L[r].slice(0, c), L[c].slice(0, c));
      L[r][c] = r === c ? Math.sqrt(left) : left / L[c][c];
    }
  const u = values.map((y) => [...y]);
  for (const r of times) u[r] = u[r].map((value, c) => (value - told(L[r], u, c, times.slice(0, r))) / L[r][r]);
  for (const r of [...times].reverse()) {
    const below = times.slice(r + 1);
    u[r] = u[r].map((value, c) => (value - below.reduce((sum, t) => sum + L[t][r] * u[t][c], 0)) / L[r][r]);
  }
  return u;
}

// k(q, ·) M, a number for each point; M has a row and a column for each time.
function weights_by(M) {
  return (at) => {
    const k = arrival.map((j) => covariance(at, x[j])), weights = x.map(() => 0);
    arrival.forEach((j, c) => { weights[j] = times.reduce((sum, t) => sum + k[t] * M[t][c], 0); });
    return weights;
  };
}
function nadaraya_watson(at) {
  const u = x.map((key) => Math.abs(at - key) / bandwidth), nearest = Math.min(...u);
  const k = u.map((v) => Math.exp(-0.5 * (v - nearest) * (v + nearest))); // from the nearest key on: none underflows
  const total = k.reduce((sum, value) => sum + value, 0);
  return k.map((value) => value / total);
}
const count = 2 ** doublings.value;
const weights_of = {
  sum: weights_by(identity),
  delta: weights_by(one_pass(identity, beta.value)),
  passes: weights_by(passes(identity, count)),
  kernel: nadaraya_watson,
  posterior: weights_by(posterior(identity)),
};

const grid = Array.from(curve.data.x), q = query.value, now = shown.options.indexOf(shown.value);
curve.data = Object.fromEntries([["x", grid], ...columns.map((one) => [one, grid.map((at) => inner(weights_of[one](at), y))])]);
const seen = columns.map((_, k) => k).filter((k) => k === now || others.active.includes(k));
lines.forEach((one, k) => {
  one.visible = seen.includes(k);
  one.glyph.line_width = k === now ? 4 : 2;
});
const said = columns.map((one) => inner(weights_of[one](q), y));
at_query.data = { x: seen.map(() => q), y: seen.map((k) => said[k]), colour: seen.map((k) => colours[k]) };
line.location = mark.location = q;
grip.data = { ...grip.data, x: [q] };
arrived.data = { x, y, name: x.map((_, j) => String(arrival.indexOf(j) + 1)) };

const w = weights_of[columns[now]](q), tenths = (value) => Math.ceil(10 * value) / 10;
bars.data = { x, weight: w, colour: w.map((value) => (value < 0 ? down : up)) };
below.y_range.setv({ start: -Math.max(0.4, tenths(-1.1 * Math.min(...w))), end: Math.max(1, tenths(1.1 * Math.max(...w))) });

const label = [ // in the order of columns
  "the sum", `the delta rule with β = ${beta.value.toFixed(2)}`, count === 1 ? "one pass" : `${count} passes`,
  `Nadaraya–Watson with h = ${bandwidth.toPrecision(2)}`, "the posterior mean",
];
const below_zero = w.filter((value) => value < -5e-4), say = now === 2 && count > 1 ? "predict" : "predicts";
words.text = `From ${n} point${n === 1 ? "" : "s"}, at x = ${signed(q, 2)}, ${label[now]} ${say} ${signed(said[now], 3)}.` +
  ` The weights sum to ${signed(w.reduce((sum, value) => sum + value, 0), 3)}, and ` +
  (below_zero.length === 0 ? "none is negative."
    : `${below_zero.length} ${below_zero.length === 1 ? "is" : "are"} negative, down to ${signed(Math.min(...w), 3)}.`) +
  (now === 4 ? "" : ` The posterior mean predicts ${signed(said[4], 3)}.`);
