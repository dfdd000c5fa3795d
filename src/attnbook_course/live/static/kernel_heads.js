// Multi-head kernel regression; gaussian_average.js, before it, has each head's prediction.
const count = Number(heads.value);
const bandwidth = bandwidths.slice(0, count).map((slider) => Math.pow(10, slider.value));
const used = combination.slice(0, count);

const inner = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// Gauss–Jordan elimination with the largest pivot; null where the matrix has no inverse.
function solve(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const smallest = 1e-12 * Math.max(...matrix.map((row, i) => row[i]));
  for (let p = 0; p < rows.length; p++) {
    const largest = rows.slice(p).reduce((best, row) => (Math.abs(row[p]) > Math.abs(best[p]) ? row : best));
    if (!(Math.abs(largest[p]) > smallest)) return null;
    rows.splice(rows.indexOf(largest), 1);
    const pivot = largest.map((value) => value / largest[p]);
    rows.forEach((row, i) => { rows[i] = row.map((value, c) => value - row[p] * pivot[c]); });
    rows.splice(p, 0, pivot);
  }
  return rows.map((row) => row.at(-1));
}

const leftOut = bandwidth.map((h) => Array.from(x, (at, i) => predict(at, h, i).f));

if (cb_obj.event_name === "button_click") {
  const gram = leftOut.map((a) => leftOut.map((b) => inner(a, b)));
  const right = leftOut.map((a) => inner(a, y));
  const ridge = 1e-9 * Math.max(...gram.map((row, h) => row[h])); // two heads with one bandwidth
  const u = solve(gram, right) ?? solve(gram.map((row, h) => row.map((v, g) => v + (g === h ? ridge : 0))), right);
  u?.forEach((value, h) => {
    const reach = Math.max(2, Math.ceil(Math.abs(value)));
    used[h].setv({ start: -reach, end: reach, value });
  });
  return; // the sliders that moved have drawn the figure
}

const u = used.map((slider) => slider.value);
const combined = (predictions, i) => predictions.reduce((sum, one, h) => sum + u[h] * one[i], 0);
const error = (predictions) =>
  Array.from(y, (value, i) => (value - combined(predictions, i)) ** 2).reduce((a, b) => a + b, 0) / y.length;

const grid = curve.data.x;
const curves = bandwidth.map((h) => Array.from(grid, (at) => predict(at, h).f));
const columns = Object.fromEntries(curves.map((one, h) => [`head${h + 1}`, one]));
curve.data = { ...curve.data, ...columns, estimate: Array.from(grid, (_, i) => combined(curves, i)) };
ends.data = { ...ends.data, y: lines.map((_, h) => (h < count ? curves[h].at(-1) : NaN)) };
lines.forEach((line, h) => { line.visible = h < count; });
[...bandwidths, ...combination].forEach((slider, i) => { slider.visible = i % bandwidths.length < count; });

const onPoints = bandwidth.map((h) => Array.from(x, (at) => predict(at, h).f));
const wide = bandwidth.map((h, i) => (h > 20 ? i + 1 : 0)).filter(Boolean);
const intercept = [
  "",
  ` Head ${wide[0]} is so wide that it is the mean of y: an intercept.`,
  ` Heads ${wide.slice(0, -1).join(", ")} and ${wide.at(-1)} are so wide that each is the mean of y: an intercept.`,
][Math.min(wide.length, 2)];
words.text = `Mean squared error: ${error(leftOut).toPrecision(3)} with each point left out,` +
  ` ${error(onPoints).toPrecision(3)} on the points themselves.` +
  ` The coefficients a add up to ${u.reduce((a, b) => a + b, 0).toFixed(2).replace("-", "−")}.${intercept}`;
