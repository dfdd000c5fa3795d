// A number in English words and, once the model is loaded, its translation as one more example of the browser.
if (number.value === null) {
  said.text = "Type a number from 0 to 999,999.";
  return;
}
const spoken = number_words(number.value);
const written = number.value.toLocaleString("en");
const unknown = spoken.find((word) => !source_vocabulary.includes(word));

function fits({ sizes }) {
  const { percent } = cases.data;
  return sizes.source_vocab === source_vocabulary.length && sizes.target_vocab === target_vocabulary.length &&
    sizes.num_heads === percent[0].length;
}

function translate(transformer) {
  if (unknown !== undefined) return `The model does not know the word '${unknown}'.`;
  if (!fits(transformer)) return "The model that is stored does not fit this figure.";
  const { tokens, weights } = greedy(transformer, spoken.map((word) => source_vocabulary.indexOf(word)), start, end);
  const letters = tokens.filter((token) => token !== end).map((token) => target_vocabulary[token]);
  if (letters.length === 0) return "The model writes nothing.";

  const title = `${written}, live`;
  const old = example.options.find(([, name]) => name === title);
  if (old) {
    example.value = old[0];
  } else {
    const height = letters.length * Math.min(24, Math.max(10, Math.floor(440 / letters.length))); // as for the others
    const percent = weights[0].map((_, h) =>
      letters.flatMap((_, i) => Array.from(weights[i][h], (w) => Math.round(100 * w))));
    const added = { rows: letters.map((letter) => (letter.trim() ? letter : "␣")), columns: spoken, percent, height };
    const { data } = cases;
    cases.data = Object.fromEntries(Object.keys(data).map((key) => [key, [...data[key], added[key]]]));
    example.options = [...example.options, [String(example.options.length), title]];
    example.setv({ value: String(example.options.length - 1), visible: true });
  }
  return `The model writes: ${letters.join("")}.`;
}

const show = (transformer) => {
  button.label = "Translate";
  said.text = `${written}: ${spoken.join(" ")}. ${translate(transformer)}`;
};
if (loaded(model)) {
  show(loaded(model));
} else if (cb_obj === number) {
  said.text = `${written}: ${spoken.join(" ")}.`;
} else {
  load_model(model, button, said, instead).then((transformer) => transformer && show(transformer));
}
