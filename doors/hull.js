// What an average cannot do: plane_attention.js has the weights of a query in a plane.
const KEYS = [[0, 1], [-0.87, -0.5], [0.87, -0.5]], VALUES = [[150, 30], [50, 150], [235, 185]], STAR = [300, 60], MIDDLE = [148, 122], LONG = 9;
const right = slider("query, to the right", { min: -12, max: 12, step: 0.5, value: 0, words: (at) => signed(at, 1) });
const up = slider("query, up", { min: -12, max: 12, step: 0.5, value: 0, words: (at) => signed(at, 1) });
const copies = choice("Each value is there", ["each value once", "each ten times"]);
const within = (at) => Math.max(-12, Math.min(12, at));
follow((x, y) => {
  right.at = within((x - MIDDLE[0]) / LONG);
  up.at = within((MIDDLE[1] - y) / LONG);
});

/** The average of the values, each of them so many times. */
function average_of(query, times) {
  const all = (points) => points.flatMap((point) => Array(times).fill(point));
  const weights = plane_weights(query, all(KEYS), "dot", 1);
  return { weights, at: plane_average(weights, all(VALUES)) };
}

function show() {
  const times = copies.at === 1 ? 10 : 1, { weights, at } = average_of([right.at, up.at], times);
  redraw(() => {
    draw("polygon", { points: VALUES.join(" "), class: "values fainter" });
    VALUES.forEach(([x, y], j) => {
      const w = weights[j * times] * times;
      draw("line", { x1: x, y1: y, x2: at[0], y2: at[1], class: "weights", "stroke-width": 0.5 + 6 * w });
      draw("circle", { cx: x, cy: y, r: 7, class: "values" });
      write(x, y > 100 ? y + 26 : y - 13, `${times > 1 ? "×10: " : ""}${(100 * w).toFixed(0)} %`, "weights small");
    });
    const tip = [MIDDLE[0] + LONG * right.at, MIDDLE[1] - LONG * up.at];
    draw("line", { x1: MIDDLE[0], y1: MIDDLE[1], x2: tip[0], y2: tip[1], class: "queries dashed" });
    write(tip[0], tip[1] - 9, "query", "queries small");
    draw("circle", { cx: tip[0], cy: tip[1], r: 4, class: "queries" });
    write(...STAR, "★", "queries star");
    draw("circle", { cx: at[0], cy: at[1], r: 7, class: "output ringed" });
    for (const [cx, cy] of [at, tip]) draw("circle", { cx, cy, r: 24, class: "handle" });
  });
  const now = Math.hypot(at[0] - STAR[0], at[1] - STAR[1]) / edge;
  say(now < 1.02 ? "As near to the star as the triangle allows." : `The average is ${now.toFixed(2)} times as far from the star as the triangle’s nearest side.`);
  if (now < 1.3) made.tried = true;
  if (times === 10) made.copies = true;
  done(["tried", "copies"], "It did not leave, and it did not count.");
}

/** The star's distance from the side that faces it. */
const edge = (() => {
  const [[ax, ay], , [bx, by]] = VALUES, [cx, cy] = STAR;
  const along = Math.max(0, Math.min(1, ((cx - ax) * (bx - ax) + (cy - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)));
  return Math.hypot(cx - ax - along * (bx - ax), cy - ay - along * (by - ay));
})();
