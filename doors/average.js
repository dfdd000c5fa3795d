// A weighted average is attention: kernel_average.js has the weights, and attention's are a softmax of scores.
const x = [-2.8, -2.5, -2.2, -1.8, -1.5, -1.1, -0.8, -0.3, 0.1, 0.5, 0.8, 1.3, 1.6, 2.0, 2.3, 2.7], noise = normal(1);
const y = x.map((at) => Math.sin(1.5 * at) + 0.25 * noise());
const right = (at) => 180 + 57 * at, up = (value) => 88 - 48 * value;
const names = choice("Names", ["as kernel regression", "as attention"]);
const query = slider("query", { min: -2.9, max: 2.9, step: 0.1, value: 1.2, words: (at) => signed(at, 1) });
const width = slider("bandwidth h", { min: 0.1, max: 2, step: 0.05, value: 0.4, words: (at) => at.toFixed(2) });
follow((at) => { query.at = (at - 180) / 57; });

/** Attention's weights of the keys: a softmax of minus the squared distances over 2h². */
const attention_weights = (keys, at, h) => softmax(keys.map((key) => -((at - key) ** 2) / (2 * h * h)));

function show() {
  const as_attention = names.at === 1, q = query.at, h = width.at;
  const weights = as_attention ? attention_weights(x, q, h) : kernel_weights(x, q, h, "gaussian");
  const average = dot(weights, y), largest = Math.max(...weights);
  redraw(() => {
    draw("line", { x1: right(q), x2: right(q), y1: 8, y2: 208, class: "queries dashed" });
    x.forEach((key, j) => {
      draw("circle", { cx: right(key), cy: up(y[j]), r: 3 + (7 * weights[j]) / largest, class: "values" });
      draw("rect", { x: right(key) - 5, y: 208 - 50 * weights[j] / Math.max(0.5, largest), width: 10, height: 50 * weights[j] / Math.max(0.5, largest), class: "weights" });
    });
    draw("line", { x1: 8, x2: 352, y1: 208.5, y2: 208.5, class: "line" });
    draw("circle", { cx: right(q), cy: up(average), r: 6, class: "output ringed" });
    write(right(q), 224, "query", "queries");
    draw("rect", { x: right(q) - 22, y: 0, width: 44, height: 230, class: "handle" });
    write(8, 20, as_attention ? "values" : "y", "values", { "text-anchor": "start" });
    write(352, 20, as_attention ? "weights: softmax(scores)" : "weights: K / ΣK", "weights", { "text-anchor": "end" });
  });
  const numbers = `${signed(average, 3)}; largest weight ${largest.toFixed(3)}.`;
  say(as_attention ? `attend(query, keys, values) = ${numbers}` : `Nadaraya–Watson at the query: ${numbers}`);
  if (!as_attention) made.kernel = Math.abs(q + 1) < 0.15;
  else if (made.kernel) made.attention = true;
  done(["kernel", "attention"], "The names changed, and not one number.");
}
