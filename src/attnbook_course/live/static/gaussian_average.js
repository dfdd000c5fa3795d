// Nadaraya–Watson of the points in data with the Gaussian kernel: the numbers of attnbook.nadaraya_watson and, of all points
// but one, of attnbook.leave_one_out.
const { x, y } = data.data;

// f̂ = Σ_j w_j y_j and its slope d f̂ / d log h = Σ_j w_j (y_j − f̂) u_j², with u_j the distance over h. The squares are counted
// from the nearest key's: no sum underflows to 0, and the slope stays what it is, as Σ_j w_j (y_j − f̂) = 0.
function predict(at, h, out = -1) {
  let nearest = Infinity;
  for (let j = 0; j < x.length; j++) if (j !== out) nearest = Math.min(nearest, Math.abs(at - x[j]) / h);
  let total = 0, sum = 0, squares = 0, pulls = 0;
  for (let j = 0; j < x.length; j++) {
    if (j === out) continue;
    const u = Math.abs(at - x[j]) / h;
    const square = (u - nearest) * (u + nearest);
    const k = Math.exp(-0.5 * square);
    total += k;
    sum += k * y[j];
    squares += k * square;
    pulls += k * square * y[j];
  }
  const f = sum / total;
  return { f, slope: (pulls - f * squares) / total };
}
