// Why many heads: one head brings the mean of two numbers, two heads bring both.
const heads = choice("Attention with", ["one head", "two heads"]);
const first = slider("the word before", { min: 0, max: 10, value: 3, words: (at) => `holds ${at}` });
const second = slider("the word after", { min: 0, max: 10, value: 7, words: (at) => `holds ${at}` });
const pairs = new Map(); // of each mean: the pairs that were seen

function show() {
  const a = first.at, b = second.at, mean = (a + b) / 2, two = heads.at === 1;
  if (!two) pairs.set(mean, new Set(pairs.get(mean)).add(`${a} and ${b}`));
  const alike = [...(pairs.get(mean) ?? [])];
  redraw(() => {
    const bar = (x, value, colour, label) => {
      draw("rect", { x: x - 22, y: 190 - 15 * value, width: 44, height: 15 * value, class: colour });
      draw("line", { x1: x - 30, x2: x + 30, y1: 190.5, y2: 190.5, class: "line" });
      write(x, 182 - 15 * value, signed(value, value % 1 ? 1 : 0), "ink");
      write(x, 208, label, colour);
    };
    bar(50, a, "values", "before");
    bar(120, b, "values", "after");
    write(182, 110, "→", "ink large");
    if (two) {
      bar(240, a, "output", "head 1");
      bar(310, b, "output", "head 2");
      write(275, 226, "looks at one word each", "ink small");
    } else {
      bar(275, mean, "output", "one head");
      write(275, 226, "weights ½ and ½", "ink small");
    }
  });
  if (alike.length >= 3) made.confused = true;
  if (made.confused && two) made.two = true;
  if (two) say(`Two heads bring ${a} and ${b}: every pair is told apart.`);
  else say(`One head brings ${signed(mean, mean % 1 ? 1 : 0)}. Tried with the same result: ${alike.join(", ")}.`);
  done(["confused", "two"], "Side by side, both were there.");
}
