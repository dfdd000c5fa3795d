// Chapter 9's layer learns while the reader watches: five steps of training, then a drawing. attention_regressor.js, before it,
// has the step, and regression_rivals.js the other three. What a figure has learned is kept on the page.
const clicked = cb_obj.event_name === "button_click" ? cb_obj.origin : null;
const opened = cb_obj.type === "Column"; // the figure is new
const all = (window.attnbookTraining ??= {}), process = { length_scale, noise }, n = pairs.value;
const peak = () => Math.pow(10, rate.value);
if (opened) { // what all seeds are judged on, and the rivals' errors there
  const random = generator(judged_seed);
  const functions = Array.from({ length: judged }, () => draw_function(random, pairs.end + 1, process));
  all[figure] = { functions, rivals: rivals(functions, process) };
}
const kept = all[figure];
const { kernel, ridge: ridges, posterior, bandwidths, penalties } = kept.rivals;
const [nearest, straight, exact] = [best(kernel, bandwidths, n), best(ridges, penalties, n), best(posterior, [0], n)];

const bandwidth = (entry) => (entry > 0 ? entry ** -0.5 : NaN); // 1/h² of an entry that may have the other sign
function measure() {
  const { parameters, step } = kept.training, { A, gain, shift } = read_off(parameters);
  const error = layer_error(parameters, kept.functions, n);
  return { step, error, product: bandwidth(A[1][1]), square: bandwidth(-2 * A[0][2]), A, gain, shift };
}
function note() {
  kept.now = measure();
  trail.data = Object.fromEntries(Object.entries(trail.data).map(([key, column]) => [key, [...column, kept.now[key]]]));
}

// The four answers for a function that no training has seen, from its first n points, and the head's weights for the query 0.
function draw() {
  const { step, error, product, square, A, gain, shift } = kept.now;
  const { x, y } = kept.functions[seed.value], keys = x.subarray(0, n), values = y.subarray(0, n);
  const weights = new Float64Array(n), seen = sums();
  const solved = solve(factor(keys, length_scale, noise), values), at = Array.from(curve.data.x);
  keys.forEach((key, j) => add_point(seen, key, values[j]));
  const line = ridge(seen, straight.choice);
  curve.data = {
    x: at,
    layer: at.map((q) => gain * average(x, y, n, q, A, weights) + shift),
    kernel: at.map((q) => average(x, y, n, q, form_of(nearest.choice), weights)),
    ridge: at.map((q) => quadratic(line, q)),
    posterior: at.map((q) => keys.reduce((sum, key, j) => sum + covariance(q, key, length_scale) * solved[j], 0)),
  };
  average(x, y, n, 0, A, weights);
  points.data = { x: [...keys], y: [...values], size: Array.from(weights, (weight) => 4 + 20 * Math.sqrt(weight)) };
  best_h.location = nearest.choice;
  [kernel_error, ridge_error, posterior_error].forEach((span, i) => { span.location = [nearest, straight, exact][i].error; });
  below.y_range.setv({ start: 0.8 * exact.error, end: 1.5 });

  const found = Number.isNaN(product + square) ? "A is no Gaussian kernel yet: an entry has the wrong sign"
    : `Read off A: h = ${three(product)} from x x′, ${three(square)} from x′²`;
  const next = step < STEPS ? `; the next has the rate ${three(warm_cosine(peak(), step))}` : ", the last";
  words.text = `Step ${step} of ${STEPS}${next}. ${found}; gain ${three(gain)}.` +
    ` Error on ${judged} new functions: the layer ${three(error)}, kernel regression ${three(nearest.error)} with the best h,` +
    ` ${three(nearest.choice)}, ridge ${three(straight.error)}, posterior mean ${three(exact.error)}.`;
}

const begin = () => {
  kept.training = begin_training(seed.value);
  trail.data = Object.fromEntries(Object.keys(trail.data).map((key) => [key, []]));
  note();
};
function go(count) {
  const last = Math.min(STEPS, kept.training.step + count);
  for (let done = 1; kept.training.step < last; done++) {
    train_step(kept.training, peak(), n, process);
    if (done % 5 === 0 || kept.training.step === last) note();
  }
  draw();
}

if (cb_obj === rate) { // what runs goes on, with other rates
  draw();
  return;
}
end_run(figure);
const idle = at_once ? `${portion} steps` : "start";
const runs = clicked === run && run.label !== "stop";
if (!clicked || clicked === again || (runs && kept.training.step === STEPS)) begin();
relabel(run, runs && !at_once ? "stop" : idle);
if (clicked !== run || runs) go(clicked === one ? 1 : runs && at_once ? portion : 0);

if (runs && !at_once) run_on(figure, 50, () => { // up to a hundred steps a second
  go(5);
  const more = kept.training.step < STEPS;
  if (!more) relabel(run, idle);
  return more;
});
