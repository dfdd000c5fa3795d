// A number in English words and, once the model is loaded, its translation as one more example of the browser.
const LARGEST = 999_999, SURE = 0.9;
const written = number.value?.toLocaleString("en").replace("-", "−");
if (number.value === null) {
  said.text = `Type a number from 0 to ${LARGEST.toLocaleString("en")}.`;
  return;
}
if (!(number.value >= 0 && number.value <= LARGEST)) {
  said.text = `${written} is out of range: the model has learned the numbers from 0 to ${LARGEST.toLocaleString("en")}.`;
  return;
}
const spoken = number_words(number.value);
const unknown = spoken.find((word) => !source_vocabulary.includes(word));

function fits({ sizes }) {
  const { percent } = cases.data;
  return sizes.source_vocab === source_vocabulary.length && sizes.target_vocab === target_vocabulary.length &&
    sizes.num_heads === percent[0].length;
}

function translate(transformer) {
  if (unknown !== undefined) return `The model does not know the word '${unknown}'.`;
  if (!fits(transformer)) return "The model that is stored does not fit this figure.";
  const { tokens, weights, probabilities } = greedy(transformer, spoken.map((word) => source_vocabulary.indexOf(word)), start, end);
  const letters = tokens.filter((token) => token !== end).map((token) => target_vocabulary[token]);
  if (letters.length === 0) return "The model writes nothing.";

  const title = `${written}, live`;
  const old = example.options.find(([, name]) => name === title);
  if (old) {
    example.value = old[0];
  } else {
    const height = letters.length * Math.min(24, Math.max(11, Math.floor(440 / letters.length))); // as for the others
    const percent = weights[0].map((_, h) =>
      letters.flatMap((_, i) => Array.from(weights[i][h], (w) => Math.round(100 * w))));
    const added = { rows: letters.map((letter) => (letter.trim() ? letter : "␣")), columns: spoken, percent, height };
    const { data } = cases;
    cases.data = Object.fromEntries(Object.keys(data).map((key) => [key, [...data[key], added[key]]]));
    example.options = [...example.options, [String(example.options.length), title]];
    example.setv({ value: String(example.options.length - 1), visible: true });
  }
  const all = probabilities.reduce((product, one) => product * one, 1);
  const least = probabilities.indexOf(Math.min(...probabilities));
  const where = least < letters.length ? `about '${letters[least]}' (letter ${least + 1})` : "about ending there";
  const doubt = all < SURE ? `: it is in doubt, most ${where}, ${probabilities[least].toFixed(2)}` : "";
  return `The model writes: ${letters.join("")}. The probability that it gives to this answer is ${all.toFixed(2)}${doubt}.`;
}

const show = (transformer) => {
  button.label = "Translate";
  said.text = `${written}: ${spoken.join(" ")}. ${translate(transformer)}`;
};
if (loaded(model)) {
  show(loaded(model));
} else {
  said.text = `${written}: ${spoken.join(" ")}.`;
  load_model(model, button, said, instead).then((transformer) => transformer && show(transformer));
}
