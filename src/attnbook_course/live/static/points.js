// Points (x, y) to move, add and take away, and a query to move: what the reader has done, before a figure draws it.
const opened = cb_obj.type === "Column"; // the figure is new
const event = cb_obj.event_name, clicked = event === "button_click" ? cb_obj.origin : null;
const x = Array.from(context.data.x), y = Array.from(context.data.y);
let i = Number(point.value) - 1; // the chosen point; a drag moves it, or the query where no point is near
const inside = (value, slider) => Math.round(100 * Math.min(slider.end, Math.max(slider.start, value))) / 100;

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
context.data = { x, y };
chosen.data = { x: [x[i]], y: [y[i]] };
point.options = x.map((_, j) => String(j + 1));
point.value = String(i + 1);
first.value = x[i];
second.value = y[i];
add.disabled = x.length >= most;
remove.disabled = x.length <= 1;
const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
const inner = (a, b) => a.reduce((sum, value, j) => sum + value * b[j], 0);
