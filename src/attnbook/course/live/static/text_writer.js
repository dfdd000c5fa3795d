// A DecoderOnly of byte pairs goes on with the reader's text: the next token's probabilities, and what is drawn from them.
// What a figure has written is kept on the page: tokens, how many of them are read, keys and values, logits of the next.
const clicked = cb_obj.event_name === "button_click" ? cb_obj.origin : null;
const kept = ((window.attnbookWritten ??= {})[figure] ??= { tokens: [] });
const shown = (text) => text.replaceAll("\n", "⏎").replaceAll(" ", "␣");
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function begin({ encode }) {
  const tokens = encode(beginning.value || "\n");
  Object.assign(kept, { tokens, begun: tokens.length, read: 0, cache: null, running: false });
}

function read(transformer) { // all tokens that it has not read; where its places end, half of them are read anew
  const places = transformer.sizes.max_length;
  if (!kept.cache || kept.cache[0].keys.length + kept.tokens.length - kept.read > places) {
    kept.cache = init_cache(transformer);
    kept.read = kept.tokens.length > places ? kept.tokens.length - Math.floor(places / 2) : 0;
  }
  while (kept.read < kept.tokens.length) kept.logits = writer_step(transformer, kept.cache, kept.tokens[kept.read++]);
}

function shares() { // probabilities of the next token
  if (temperature.value === 0) return Array.from(kept.logits, (_, n) => Number(n === best()));
  return [...softmax(kept.logits.map((logit) => logit / temperature.value))];
}
const best = () => kept.logits.indexOf(Math.max(...kept.logits));

function draw(probabilities) {
  let left = Math.random();
  const drawn = probabilities.findIndex((share) => (left -= share) < 0);
  return drawn < 0 ? best() : drawn; // the shares may sum to a little less than 1
}

function show(pairs) {
  const probabilities = shares();
  const order = probabilities.map((_, n) => n).sort((a, b) => probabilities[b] - probabilities[a]).slice(0, most);
  const token = (n) => shown(pairs.decode([n]));
  bars.data = { y: order.map((_, k) => k + 1), share: order.map((n) => probabilities[n]) };
  labels.major_label_overrides = new Map(order.map((n, k) => [k + 1, token(n)]));
  const [mine, its] = [kept.tokens.slice(0, kept.begun), kept.tokens.slice(kept.begun)].map((part) => pairs.decode(part));
  written.text = `<strong>${escaped(mine)}</strong>${escaped(its)}`;
  const [first, second] = order.map((n) => `'${token(n)}' ${probabilities[n].toFixed(2)}`);
  words.text = `${its ? `${kept.tokens.length - kept.begun} tokens are written. ` : ""}` +
    `The most probable next token is ${first}, then ${second}.`;
  write.label = kept.running ? "stop" : `write ${portion} tokens`;
}

function use(transformer) {
  if (!transformer.merges || transformer.readout.bias.length < 256) {
    notice.setv({ text: "The model that is stored does not fit this figure.", visible: true });
    return;
  }
  const pairs = (transformer.pairs ??= byte_pairs(transformer.merges));
  const next = () => {
    kept.tokens.push(draw(shares()));
    read(transformer);
  };
  if (!kept.tokens.length || clicked === again || cb_obj === beginning) begin(pairs);
  read(transformer);
  if (clicked === one) next();
  const running = clicked === write && !kept.running;
  if (clicked) kept.running = running; // a press of any button stops what runs
  show(pairs);
  if (!running) return;
  const run = (kept.run = {}), until = kept.tokens.length + portion;
  (function step() {
    if (kept.run !== run || !kept.running) return;
    next();
    kept.running = kept.tokens.length < until;
    show(pairs);
    if (kept.running) requestAnimationFrame(step);
  })();
}

if (loaded(model)) {
  use(loaded(model));
} else {
  written.text = `<strong>${escaped(beginning.value)}</strong>`;
  if (cb_obj === beginning || cb_obj === temperature) bars.data = { y: [], share: [] }; // they are of another text
  if (!bars.data.y.length) words.text = "The page loads the model when you press a button.";
  if (clicked) load_model(model, write, notice, instead).then((transformer) => transformer && use(transformer));
}
