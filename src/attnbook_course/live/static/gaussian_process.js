// Gaussian processes: the numbers of attnbook.kernel.gaussian_process, whose variance is 1, by Cholesky.
const JITTER = 1e-9; // on the diagonal: a matrix of smooth functions is singular to rounding
const covariance = (a, b, length_scale) => Math.exp(-0.5 * ((a - b) / length_scale) ** 2);
const dot = (a, b, n = a.length) => { // of the first n
  let sum = 0;
  for (let i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
};

// L, below the diagonal, of the matrix M = L Lᵀ with the entries M(r, c).
function cholesky(n, M) {
  const L = Array.from({ length: n }, () => new Float64Array(n));
  for (let r = 0; r < n; r++)
    for (let c = 0; c <= r; c++) {
      const rest = M(r, c) - dot(L[r], L[c], c);
      L[r][c] = r === c ? Math.sqrt(rest) : rest / L[c][c];
    }
  return L;
}

// Of K + σ²I, the covariances of noisy values at x.
const factor = (x, length_scale, noise) => cholesky(x.length, (r, c) =>
  covariance(x[r], x[c], length_scale) + (r === c ? Math.max(noise ** 2, JITTER) : 0));

// z = L⁻¹ y, and (L Lᵀ)⁻¹ y = L⁻ᵀ z.
function solve_lower(L, y) {
  const z = new Float64Array(y.length);
  for (let r = 0; r < y.length; r++) z[r] = (y[r] - dot(L[r], z, r)) / L[r][r];
  return z;
}
function solve(L, y) {
  const solved = solve_lower(L, y);
  for (let r = y.length - 1; r >= 0; r--) {
    for (let below = r + 1; below < y.length; below++) solved[r] -= L[below][r] * solved[below];
    solved[r] /= L[r][r];
  }
  return solved;
}
