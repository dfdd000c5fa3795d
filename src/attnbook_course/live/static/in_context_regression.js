// Three regressions of the context points: the numbers of attnbook.nadaraya_watson, of
// attnbook.kernel.gaussian_process.posterior, and of a transformer that has learned to regress. points.js, before it, has moved x, y and the query;
// gaussian_process.js has the posterior's matrix.
if (clicked === load || (opened && has_models)) {
  load_model(model, load, notice, instead).then((found) => {
    if (!found) return;
    if (loaded(model).sizes.input_dim === 3) return plane.document.get_model_by_name("update").execute(plane);
    notice.setv({ text: "The model that is stored does not fit this figure.", visible: true });
  });
  if (clicked === load) return;
}
if (cb_obj === point) return; // no curve changes

const n = x.length, h = Math.pow(10, bandwidth.value);

function nadaraya_watson(at) {
  const u = x.map((key) => Math.abs(at - key) / h), nearest = Math.min(...u);
  const k = u.map((v) => Math.exp(-0.5 * (v - nearest) * (v + nearest))); // from the nearest key on: none underflows
  return inner(k, y) / k.reduce((sum, value) => sum + value, 0);
}

const solved = solve(factor(x, length_scale, noise), y); // (K + σ²I)⁻¹ y
const posterior = (at) => inner(x.map((key) => covariance(at, key, length_scale)), solved);

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
words.text = `From ${n} point${n === 1 ? "" : "s"}, at x = ${signed(query.value, 2)}:` +
  ` Nadaraya–Watson with h = ${h.toPrecision(2)} says ${signed(told[0], 3)}, the Gaussian process` +
  ` ${signed(told[1], 3)}${ready ? `, the transformer ${signed(told[2], 3)}.` : "; the transformer is not loaded yet."}`;
