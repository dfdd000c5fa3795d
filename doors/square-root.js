// Why √d: a query, eight keys and their weights, with the division and without.
const KEYS = 8, WIDTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const divides = choice("The scores are", ["as they are", "divided by √d"]);
const width = slider("width d", { min: 0, max: 10, value: 2, words: (at) => String(WIDTHS[at]) });
let seed = 6;
button("Other numbers", () => { seed += 1; });

/** Dot products of a random query with random keys, of entries with variance 1. */
function random_scores(d, from) {
  const next = normal(from), vector = () => Array.from({ length: WIDTHS.at(-1) }, next).slice(0, d), q = vector();
  return Array.from({ length: KEYS }, () => dot(q, vector())); // a wider query begins as a narrower one did
}

function show() {
  const d = WIDTHS[width.at], divided = divides.at === 1;
  const scores = random_scores(d, seed).map((score) => (divided ? score / Math.sqrt(d) : score));
  const weights = softmax(scores), largest = Math.max(...weights), most = Math.max(4, ...scores.map(Math.abs));
  redraw(() => {
    write(8, 20, divided ? "scores q·k / √d" : "scores q·k", "keys", { "text-anchor": "start" });
    const spread = Math.sqrt(dot(scores, scores) / KEYS);
    write(352, 20, `their size: ${spread.toFixed(1)}`, "keys", { "text-anchor": "end" });
    draw("line", { x1: 8, x2: 352, y1: 68.5, y2: 68.5, class: "line" });
    write(8, 128, "weights", "weights", { "text-anchor": "start" });
    draw("line", { x1: 8, x2: 352, y1: 216.5, y2: 216.5, class: "line" });
    scores.forEach((score, j) => {
      const at = 30 + 43 * j, height = (40 * score) / most;
      draw("rect", { x: at - 12, y: 68 - Math.max(0, height), width: 24, height: Math.abs(height), class: "keys" });
      draw("rect", { x: at - 12, y: 216 - 80 * weights[j], width: 24, height: 80 * weights[j], class: "weights" });
      if (Math.abs(score) > 0.3 * most) write(at, height > 0 ? 82 : 62, signed(score, most > 20 ? 0 : 1), "ink small");
    });
  });
  const percent = largest > 0.999 ? "above 99.9" : (100 * largest).toFixed(largest > 0.99 ? 1 : 0), slope = largest * (1 - largest);
  say(`The largest weight is ${percent} percent. Its slope w(1 − w) is ${slope < 0.001 ? "below 0.001" : slope.toFixed(3)}.`);
  if (width.at === 10) made[divided ? "divided" : "cold"] = true;
  done(["cold", "divided"], "Divided, the same numbers gave a mixture.");
}
