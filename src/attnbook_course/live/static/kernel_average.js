// Nadaraya–Watson: the numbers of attnbook.nadaraya_watson and, of all points but one, of attnbook.leave_one_out.
const KERNELS = {
  gaussian: (u) => Math.exp(-0.5 * u * u),
  boxcar: (u) => (u <= 1 ? 1 : 0),
  triangular: (u) => Math.max(0, 1 - u),
  epanechnikov: (u) => 0.75 * Math.max(0, 1 - u * u),
};

// The weights of the keys x for a query; NaN where no key is near. The Gaussian counts from its nearest key on, so that no sum
// underflows to 0.
function kernel_weights(x, at, h, kind) {
  const u = Array.from(x, (key) => Math.abs(at - key) / h), nearest = kind === "gaussian" ? Math.min(...u) : 0;
  const k = u.map((v) => (kind === "gaussian" ? Math.exp(-0.5 * (v - nearest) * (v + nearest)) : KERNELS[kind](v)));
  const total = k.reduce((sum, value) => sum + value, 0);
  return k.map((value) => (total > 0 ? value / total : NaN));
}

// The Gaussian's f̂ = Σ_j w_j y_j and its slope d f̂ / d log h = Σ_j w_j (y_j − f̂) u_j², with u_j the distance over h, without one
// point. The squares are counted from the nearest key's: the slope stays what it is, as Σ_j w_j (y_j − f̂) = 0.
function predict(x, y, at, h, out = -1) {
  let nearest = Infinity;
  for (let j = 0; j < x.length; j++) if (j !== out) nearest = Math.min(nearest, Math.abs(at - x[j]) / h);
  let total = 0, sum = 0, squares = 0, pulls = 0;
  for (let j = 0; j < x.length; j++) {
    if (j === out) continue;
    const u = Math.abs(at - x[j]) / h, square = (u - nearest) * (u + nearest), k = Math.exp(-0.5 * square);
    total += k;
    sum += k * y[j];
    squares += k * square;
    pulls += k * square * y[j];
  }
  const f = sum / total;
  return { f, slope: (pulls - f * squares) / total };
}

// L(θ) = mean over i of (y_i − f̂_i)² at the bandwidth exp(θ), each point left out, and dL/dθ.
function error_and_slope(x, y, theta) {
  let error = 0, slope = 0;
  for (let i = 0; i < x.length; i++) {
    const { f, slope: df } = predict(x, y, x[i], Math.exp(theta), i);
    error += (y[i] - f) ** 2 / x.length;
    slope += (-2 * (y[i] - f) * df) / x.length;
  }
  return { error, slope };
}
