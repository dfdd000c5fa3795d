// Gradient descent on θ = log h, θ ← θ − η dL/dθ: chapter 2's loop. kernel_average.js, before it, has L and its slope.
const clicked = cb_obj.event_name === "button_click" ? cb_obj.origin : null;
const opened = cb_obj.type === "Column"; // the figure is new
const { x, y } = data.data;

// The steps so far, each with the bandwidth that it is drawn at: a step may leave the picture.
const { start: least, end: most } = right.x_range;
const inside = (h) => Math.min(0.8 * most, Math.max(1.25 * least, h));
const stand = (theta) => ({ theta, h: inside(Math.exp(theta)), ...error_and_slope(x, y, theta) });
const steps = () => Array.from(trail.data.theta, (theta, t) =>
  Object.fromEntries(Object.entries(trail.data).map(([key, column]) => [key, column[t]])));
const next = ({ theta, slope }) => theta - Math.pow(10, rate.value) * slope;
function go(all, count) {
  for (let left = count; left > 0; left--) all.push(stand(next(all.at(-1))));
  trail.data = Object.fromEntries(Object.keys(trail.data).map((key) => [key, all.map((one) => one[key])]));
}

function draw() {
  const all = steps(), { theta, h, error, slope } = all.at(-1);
  curve.data = { ...curve.data, estimate: Array.from(curve.data.x, (at) => predict(x, y, at, Math.exp(theta)).f) };
  ball.data = { h: [h], error: [error] };
  const ends = [-0.8, 0.8]; // in log h; both axes are logarithmic, so that the tangent is one of log L
  tangent.data = { h: ends.map((way) => h * Math.exp(way)), error: ends.map((way) => error * Math.exp((way * slope) / error)) };

  const lowest = Math.log(valley.data.h[valley.data.error.indexOf(Math.min(...valley.data.error))]);
  const jumps = all.slice(1).filter((one, t) =>
    (one.theta - lowest) * (all[t].theta - lowest) < 0 && Math.abs(one.theta - all[t].theta) > 0.5);
  const [below, above] = [-0.4, 0.4].map((way) => error_and_slope(x, y, theta + way).slope);
  const steep = 0.01 * error; // both sides of a floor go up
  const spread = (Math.max(...x) - Math.min(...x)) / 2;
  const where = Math.abs(slope) < steep && below < -steep && above > steep ? " This is the floor of the valley."
    : Math.abs(slope) > 0.1 * steep ? ` The next step takes h to ${three(Math.exp(next(all.at(-1))))}.`
      : ` The slope is almost zero: ${Math.exp(theta) > spread ? "all weights are nearly equal" : "the nearest points have all the weight"}.`;
  words.text = `Step ${all.length - 1}: h = ${three(Math.exp(theta))}, error ${three(error)}, slope dL/dθ = ${three(slope)}.${where}` +
    (jumps.length ? ` ${jumps.length === 1 ? "One step" : `${jumps.length} steps`} jumped over the valley: the learning rate is too large.` : "");
}

if (opened) {
  const errors = Array.from(valley.data.h, (h) => error_and_slope(x, y, Math.log(h)).error);
  valley.data = { ...valley.data, error: errors };
  right.y_range.setv({ start: 0.85 * Math.min(...errors), end: 1.25 * Math.max(...errors) });
}
if (cb_obj === rate) { // what runs goes on, with another length of its steps
  draw();
  return;
}
end_run(figure);
const idle = at_once ? `${portion} steps` : "run", runs = clicked === run && run.label !== "stop";
relabel(run, runs && !at_once ? "stop" : idle);
if (opened || clicked === again || cb_obj === start) go([stand(start.value * Math.LN10)], 0);
else if (clicked === one) go(steps(), 1);
else if (runs && at_once) go(steps(), portion);
draw();
let left = longest;
if (runs && !at_once) run_on(figure, 100, () => { // ten steps a second
  go(steps(), 1);
  draw();
  left -= 1;
  if (left === 0) relabel(run, idle);
  return left > 0;
});
