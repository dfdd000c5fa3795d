// A DecoderOnly of byte pairs goes on with the reader's text: the next token's probabilities, and what is drawn from them. What it
// has written is kept on the page: tokens, how many of them are read, keys and values, logits of the next.
const clicked = cb_obj.event_name === "button_click" ? cb_obj.origin : null;
const kept = ((window.attnbookWritten ??= {})[figure] ??= { tokens: [] });
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
  while (kept.read < kept.tokens.length) kept.logits = decoder_step(transformer, kept.cache, kept.tokens[kept.read++]);
}

function shares(share = top_p.value) { // probabilities of the next token
  if (temperature.value === 0) return Array.from(kept.logits, (_, n) => Number(n === best()));
  return next_probabilities(kept.logits, temperature.value, share);
}
const best = () => kept.logits.indexOf(Math.max(...kept.logits));

function draw(probabilities) {
  let left = Math.random();
  const drawn = probabilities.findIndex((share) => (left -= share) < 0);
  return drawn < 0 ? best() : drawn; // the shares may sum to a little less than 1
}

function show(pairs) {
  const part = (from, to) => escaped(pairs.decode(kept.tokens.slice(from, to)));
  written.text = `<strong>${part(0, kept.begun)}</strong>${part(kept.begun)}`;
  if (clicked) requestAnimationFrame(() => { // the end of a long text is in sight
    const view = window.Bokeh.index.find_one(written);
    if (view) view.el.scrollTop = view.el.scrollHeight;
  });
  const probabilities = shares(), all = shares(1);
  const order = [...all.keys()].sort((a, b) => all[b] - all[a]).slice(0, most);
  const token = (n) => as_signs(pairs.decode([n]));
  bars.data = { y: order.map((_, k) => k + 1), share: order.map((n) => probabilities[n]) };
  labels.major_label_overrides = new Map(order.map((n, k) => [k + 1, token(n)]));
  const [first, second] = order.map((n) => `'${token(n)}' ${probabilities[n].toFixed(2)}`);
  const its = kept.tokens.length - kept.begun;
  words.text = `${its ? `${its} tokens are written. ` : ""}The most probable next token is ${first}, then ${second}.`;
  write.label = kept.running ? "stop" : `write ${portion} tokens`;
}

function use(transformer) {
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
  if (cb_obj.type !== "Column") { // the bars are of another text, or drawn in another way
    bars.data = { y: [], share: [] };
    words.text = "The page loads the model when you press a button.";
  }
  if (clicked) load_model(model, write, notice, instead).then((transformer) => transformer && use(transformer));
}
