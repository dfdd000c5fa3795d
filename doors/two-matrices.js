// Why two matrices: three queries in a plane, and three keys that a matrix of their own has turned.
const NAMES = ["rock", "paper", "scissors"], BEATS = [2, 0, 1];
const turned = slider("the keys’ matrix turns by", { min: 0, max: 355, step: 5, value: 0, words: (at) => `${at}°` });
const arrow = (degrees) => [Math.cos((Math.PI * degrees) / 180), Math.sin((Math.PI * degrees) / 180)];
const START = [90, 210, 330];

/** The scores of all pairs, a row for each that asks: the dot products of queries and turned keys. */
const table = (degrees) => START.map((q) => START.map((k) => dot(arrow(q), arrow(k + degrees))));

/** Whom each finds: the one of the others with the highest score, or nobody where both have the same. */
function finds(scores) {
  return scores.map((row, i) => {
    const [a, b] = [0, 1, 2].filter((j) => j !== i);
    return Math.abs(row[a] - row[b]) < 1e-9 ? null : row[a] > row[b] ? a : b;
  });
}

function show() {
  const scores = table(turned.at), found = finds(scores), right = found.filter((one, i) => one === BEATS[i]).length;
  redraw(() => {
    const [cx, cy, r] = [74, 118, 46];
    draw("circle", { cx, cy, r, class: "line hollow" });
    START.forEach((q, i) => {
      const [qx, qy] = arrow(q), [kx, ky] = arrow(q + turned.at);
      draw("line", { x1: cx, y1: cy, x2: cx + r * qx, y2: cy - r * qy, class: "queries thick" });
      draw("line", { x1: cx, y1: cy, x2: cx + 0.6 * r * kx, y2: cy - 0.6 * r * ky, class: "keys thick dashed" });
      write(cx + (r + 16) * qx, cy - (r + 14) * qy + 5, NAMES[i], "queries small");
      write(cx + 0.8 * r * kx, cy - 0.8 * r * ky + 5, NAMES[i][0], "keys small");
    });
    write(74, 216, "asks ——  is found - -", "ink small");
    write(285, 18, "scores: row asks column", "ink small");
    scores.forEach((row, i) => {
      write(206, 74 + 50 * i, NAMES[i], "queries small", { "text-anchor": "end" });
      write(235 + 49 * i, 42, NAMES[i], "keys small");
      row.forEach((score, j) => {
        draw("rect", { x: 212 + 49 * j, y: 48 + 50 * i, width: 46, height: 44, rx: 4, class: i === j ? "line hollow" : found[i] === j ? "weights faint" : "keys fainter" });
        write(235 + 49 * j, 79 + 50 * i, i === j ? "–" : signed(score, 2), "ink small");
        if (found[i] === j) write(248 + 49 * j, 62 + 50 * i, BEATS[i] === j ? "✓" : "✗", BEATS[i] === j ? "values small" : "weights small");
      });
    });
  });
  const tied = found.every((one) => one === null);
  say(tied ? "Each finds the other two alike: the table is the same on both sides of its diagonal." : `${right} of 3 find the one they beat.`);
  if (right === 3) made.all = true;
  done(["all"], "Now rock scores scissors high, and scissors scores rock low.");
}
