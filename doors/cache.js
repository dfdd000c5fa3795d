// Why the cache: which rows of keys and values are computed at each step of writing.
const WORDS = ["once", "there", "was", "a", "model", "that", "wrote", "one", "word", "at", "a", "time"];
const kept = choice("Keys and values", ["computed each time", "kept in a cache"]);
let written = 3, was = 0;
const more = button("Write a word", () => { written = Math.min(WORDS.length, written + 1); });
const all = button("Write them all", () => { written = WORDS.length; });

/** How many rows of keys and values some words need. */
const rows_computed = (words, is_kept) => (is_kept ? words : (words * (words + 1)) / 2);

function show() {
  if (kept.at !== was) { was = kept.at; written = 0; }
  const is_kept = kept.at === 1, total = rows_computed(written, is_kept);
  more.disabled = all.disabled = written === WORDS.length;
  redraw(() => {
    write(66, 13, "after", "ink small", { "text-anchor": "end" });
    write(74, 13, "rows of keys and values", "ink small", { "text-anchor": "start" });
    WORDS.forEach((word, step) => {
      write(66, 34 + 16.5 * step, word, step < written ? "ink small" : "pale small", { "text-anchor": "end" });
      for (let j = 0; j <= step; j++) {
        const seen = step < written, fresh = seen && (!is_kept || j === step);
        draw("rect", { x: 74 + 23 * j, y: 23 + 16.5 * step, width: 21, height: 14, rx: 2, class: fresh ? "weights" : "keys", opacity: seen ? (fresh ? 1 : 0.35) : 0.06 });
      }
    });
    draw("rect", { x: 214, y: 34, width: 14, height: 12, rx: 2, class: "weights" });
    write(234, 45, "computed", "ink small", { "text-anchor": "start" });
    draw("rect", { x: 214, y: 54, width: 14, height: 12, rx: 2, class: "keys", opacity: 0.35 });
    write(234, 65, "kept", "ink small", { "text-anchor": "start" });
  });
  say(`${written === 1 ? "1 word" : `${written} words`}: ${total} rows of keys and values computed, ${is_kept ? written : 0} kept.`);
  if (written === WORDS.length) made[is_kept ? "cache" : "none"] = true;
  done(["none", "cache"], "78 rows without the cache, and 12 with it.");
}
