// What an average cannot do: plane_attention.js has the weights of a query in a plane.
const KEYS = [[0, 1], [-0.87, -0.5], [0.87, -0.5]], VALUES = [[150, 30], [50, 150], [235, 185]], STAR = [300, 60];
const right = slider("query, to the right", { min: -12, max: 12, step: 0.5, value: 0, words: (at) => signed(at, 1) });
const up = slider("query, up", { min: -12, max: 12, step: 0.5, value: 0, words: (at) => signed(at, 1) });
const copies = choice("Each value is there", ["once", "ten times"]);
let nearest = Infinity;

/** The average of the values, each of them so many times. */
function average_of(query, times) {
  const all = (points) => points.flatMap((point) => Array(times).fill(point));
  const weights = plane_weights(query, all(KEYS), "dot", 1);
  return { weights, at: plane_average(weights, all(VALUES)) };
}

function show() {
  const times = copies.at === 1 ? 10 : 1, { weights, at } = average_of([right.at, up.at], times);
  nearest = Math.min(nearest, Math.hypot(at[0] - STAR[0], at[1] - STAR[1]));
  redraw(() => {
    draw("polygon", { points: VALUES.join(" "), class: "values fainter" });
    VALUES.forEach(([x, y], j) => {
      const w = weights[j * times] * times;
      draw("line", { x1: x, y1: y, x2: at[0], y2: at[1], class: "weights", "stroke-width": 0.5 + 6 * w });
      for (let copy = 0; copy < times; copy++) draw("circle", { cx: x + 2 * copy - times + 1, cy: y - copy / 2, r: 7, class: "values", "fill-opacity": times > 1 ? 0.35 : 1 });
      write(x, y > 100 ? y + 26 : y - 13, `${(100 * w).toFixed(0)} %`, "weights small");
    });
    write(...STAR, "★", "queries star");
    draw("circle", { cx: at[0], cy: at[1], r: 7, class: "output ringed" });
  });
  say(`Nearest to the star so far: ${nearest.toFixed(0)} away. No point of the triangle is nearer than ${edge.toFixed(0)}.`);
  if (nearest < edge + 8) made.tried = true;
  if (times === 10) made.copies = true;
  done(["tried", "copies"], "It cannot leave, and it cannot count.");
}

/** The star's distance from the side that faces it. */
const edge = (() => {
  const [[ax, ay], , [bx, by]] = VALUES, [cx, cy] = STAR;
  const along = Math.max(0, Math.min(1, ((cx - ax) * (bx - ax) + (cy - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)));
  return Math.hypot(cx - ax - along * (bx - ax), cy - ay - along * (by - ay));
})();
