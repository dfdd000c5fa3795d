// Three regressions of the context points: the numbers of attnbook.nadaraya_watson, of
// attnbook.gaussian_process.posterior, and of a transformer that has learned to regress.
const opened = cb_obj.type === "Column"; // the figure is new
const event = cb_obj.event_name, clicked = event === "button_click" ? cb_obj.origin : null;
const x = Array.from(context.data.x), y = Array.from(context.data.y);
let i = Number(point.value) - 1;
const inside = (value, slider) => Math.round(100 * Math.min(slider.end, Math.max(slider.start, value))) / 100;

// What the reader has done: i is the chosen point; a drag moves it, or the query where no point is near.
const pixels = (j) => {
  const per = (range, length) => length / (range.end - range.start);
  return Math.hypot((cb_obj.x - x[j]) * per(plane.x_range, plane.inner_width),
    (cb_obj.y - y[j]) * per(plane.y_range, plane.inner_height));
};
const put = (at, a, b) => { [x[at], y[at]] = [inside(a, first), inside(b, second)]; };
const tapped = event === "tap" || event === "doubletap"; // the second of two quick taps
if (tapped || event === "panstart") {
  const nearest = x.map((_, j) => j).reduce((best, j) => (pixels(j) < pixels(best) ? j : best));
  const hit = pixels(nearest) < 22;
  held.data = { what: [hit ? "point" : "query"] };
  if (hit) i = nearest;
  else if (tapped && x.length < most) put((i = x.length), cb_obj.x, cb_obj.y);
} else if (event === "pan" && held.data.what[0] === "query") {
  query.value = inside(cb_obj.x, query);
  return; // the slider that moved draws the figure
} else if (event === "pan") {
  put(i, cb_obj.x, cb_obj.y);
} else if (clicked === add && x.length < most) {
  put((i = x.length), query.value, 0);
} else if (clicked === remove && x.length > 1) {
  x.splice(i, 1);
  y.splice(i, 1);
  i = Math.min(i, x.length - 1);
} else if (cb_obj === first || cb_obj === second) {
  if (x[i] === first.value && y[i] === second.value) return; // moved by the lines below
  [x[i], y[i]] = [first.value, second.value];
}
if (clicked === load || (opened && has_models)) {
  load_model(model, load, notice, instead).then((found) => {
    if (!found) return;
    if (loaded(model).sizes.input_dim === 3) return plane.document.get_model_by_name("update").execute(plane);
    notice.setv({ text: "The model that is stored does not fit this figure.", visible: true });
  });
  if (clicked === load) return;
}
context.data = { x, y };
chosen.data = { x: [x[i]], y: [y[i]] };
point.options = x.map((_, j) => String(j + 1));
point.value = String(i + 1);
first.value = x[i];
second.value = y[i];
add.disabled = x.length >= most;
remove.disabled = x.length <= 1;
if (cb_obj === point) return; // no curve changes

const n = x.length, h = Math.pow(10, bandwidth.value);
const inner = (a, b) => a.reduce((sum, value, j) => sum + value * b[j], 0);

function nadaraya_watson(at) {
  const u = x.map((key) => Math.abs(at - key) / h), nearest = Math.min(...u);
  const k = u.map((v) => Math.exp(-0.5 * (v - nearest) * (v + nearest))); // from the nearest key on: none underflows
  return inner(k, y) / k.reduce((sum, value) => sum + value, 0);
}

// (K + σ²I)⁻¹ y by Cholesky: the matrix is L Lᵀ, with L below the diagonal.
const covariance = (a, b) => Math.exp(-0.5 * ((a - b) / length_scale) ** 2);
const L = x.map(() => new Float64Array(n));
for (let r = 0; r < n; r++) {
  for (let c = 0; c <= r; c++) {
    const left = covariance(x[r], x[c]) + (r === c ? Math.max(noise ** 2, 1e-9) : 0);
    const rest = left - inner(L[r].subarray(0, c), L[c]);
    L[r][c] = r === c ? Math.sqrt(rest) : rest / L[c][c];
  }
}
const solved = Float64Array.from(y);
for (let r = 0; r < n; r++) solved[r] = (solved[r] - inner(L[r].subarray(0, r), solved)) / L[r][r];
for (let r = n - 1; r >= 0; r--) {
  for (let below = r + 1; below < n; below++) solved[r] -= L[below][r] * solved[below];
  solved[r] /= L[r][r];
}
const posterior = (at) => inner(x.map((key) => covariance(at, key)), solved);

function regress(transformer, queries) { // every query reads all pairs and itself, a pair those up to it
  const tokens = [...x.map((key, j) => [key, y[j], 0]), ...queries.map((at) => [at, 0, 1])];
  const mask = (r, c) => r === c || (c < n && (r >= n || c < r));
  return encoder_only(transformer, tokens, mask).slice(n).map(([said]) => said);
}

const queries = [query.value, ...curve.data.x];
const kernel = queries.map(nadaraya_watson), mean = queries.map(posterior);
const transformer = loaded(model)?.sizes.input_dim === 3 ? regress(loaded(model), queries) : queries.map(() => NaN);
curve.data = { x: curve.data.x, kernel: kernel.slice(1), posterior: mean.slice(1), transformer: transformer.slice(1) };
const told = [kernel[0], mean[0], transformer[0]];
at_query.data = { ...at_query.data, x: told.map(() => query.value), y: told };
line.location = query.value;
grip.data = { ...grip.data, x: [query.value] };
const ready = Number.isFinite(transformer[0]);
if (ready) {
  load.visible = false;
  notice.visible = false;
}
const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
words.text = `From ${n} point${n === 1 ? "" : "s"}, at x = ${signed(query.value, 2)}:` +
  ` Nadaraya–Watson with h = ${h.toPrecision(2)} says ${signed(told[0], 3)}, the Gaussian process` +
  ` ${signed(told[1], 3)}${ready ? `, the transformer ${signed(told[2], 3)}.` : "; the transformer is not loaded yet."}`;
