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
    [["asks", 0, "queries", 62], ["is found", turned.at, "keys", 176]].forEach(([words, by, colour, cy]) => {
      write(4, cy - 42, words, "ink small", { "text-anchor": "start" });
      draw("circle", { cx: 78, cy, r: 32, class: "line hollow" });
      START.forEach((start, i) => {
        const [x, y] = arrow(start + by);
        draw("line", { x1: 78, y1: cy, x2: 78 + 32 * x, y2: cy - 32 * y, class: `${colour} thick` });
        write(78 + 52 * x, cy - 42 * y + 4, NAMES[i], `${colour} tiny`);
      });
    });
    write(284, 18, "score: row asks column", "ink tiny");
    scores.forEach((row, i) => {
      write(207, 74 + 50 * i, NAMES[i], "queries tiny", { "text-anchor": "end" });
      write(235 + 49 * i, 42, NAMES[i], "keys tiny");
      row.forEach((score, j) => {
        draw("rect", { x: 212 + 49 * j, y: 48 + 50 * i, width: 46, height: 44, rx: 4, class: i === j ? "line hollow" : found[i] === j ? "weights faint" : "keys fainter" });
        write(235 + 49 * j, 79 + 50 * i, i === j ? "–" : signed(score, 2), "ink small");
        if (found[i] === j) write(248 + 49 * j, 62 + 50 * i, BEATS[i] === j ? "✓" : "✗", BEATS[i] === j ? "values small" : "weights small");
      });
    });
  });
  const tied = found.every((one) => one === null);
  say(tied ? "All others score the same: the table is the same on both sides of its diagonal." : `${right} of 3 find the one they beat, with a score of ${signed(scores[0][2], 2)}.`);
  if (right === 3 && scores[0][2] > 0.999) made.all = true;
  done(["all"], "At 120° rock scores scissors 1.00, and scissors scores rock −0.50.");
}
