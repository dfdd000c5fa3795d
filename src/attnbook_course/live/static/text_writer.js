// A DecoderOnly of byte pairs goes on with the reader's text: the next token's probabilities, what is drawn from them, and
// how strongly a token reads those before it. What a figure has written is kept on the page: tokens, how many of them are
// read, keys and values, logits of the next, and the weights of each token that is in the cache, by layer and head.
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
    kept.weights = [];
    kept.read = kept.tokens.length > places ? kept.tokens.length - Math.floor(places / 2) : 0;
  }
  while (kept.read < kept.tokens.length) {
    const { logits, weights } = writer_step(transformer, kept.cache, kept.tokens[kept.read++]);
    kept.logits = logits;
    kept.weights.push(weights);
  }
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

// The weights of one token on those before it and itself: of the head that is chosen, or the mean of all.
function weights_of(by_layer) {
  const [layer, one] = head.value.split(" ").map(Number);
  const rows = head.value === "mean" ? by_layer.flat() : [by_layer[layer - 1][one - 1]];
  return Array.from(rows[0], (_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
}

function offer_heads({ num_layers, num_heads }) {
  head.disabled = reader.disabled = false; // nothing reads before the model is there
  if (head.options.length > 1) return;
  const numbers = (many) => Array.from({ length: many }, (_, k) => k + 1);
  const pairs = numbers(num_layers).flatMap((l) => numbers(num_heads).map((h) => [`${l} ${h}`, `layer ${l}, head ${h}`]));
  head.options = [...head.options, ...pairs];
}

// The text, its tokens coloured by how strongly the one that is chosen reads them.
function show_text(pairs) {
  const back = Math.min(Math.round(reader.value), kept.weights.length - 1);
  const first = kept.tokens.length - kept.weights.length; // the first token that is in the cache
  const asked = kept.tokens.length - 1 - back;
  const weights = weights_of(kept.weights[asked - first]), largest = Math.max(...weights);
  const marked = pairs.decode_each(kept.tokens).map((part, n) => {
    const weight = weights[n - first];
    if (weight === undefined || !part) return escaped(part);
    const colour = `background-color:rgb(213 94 0 / ${((65 * weight) / largest).toFixed(0)}%)`;
    const line_end = part.startsWith("\n") ? ";padding-left:1ch" : ""; // room for its colour
    return `<span style="${colour}${line_end}"${n === asked ? ' class="asked"' : ""}>${escaped(part)}</span>`;
  });
  written.text = `<strong>${marked.slice(0, kept.begun).join("")}</strong>${marked.slice(kept.begun).join("")}`;
  if (clicked) requestAnimationFrame(() => { // the end of a long text is in sight
    const view = window.Bokeh.index.find_one(written);
    if (view) view.el.scrollTop = view.el.scrollHeight;
  });
  const name = (n) => `'${shown(pairs.decode([kept.tokens[n]]))}'`;
  const strongest = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3);
  const read = strongest.map((j) => `${name(first + j)} ${weights[j].toFixed(2)}`).join(", ");
  const [, of] = head.options.find(([value]) => value === head.value);
  reading.text = `${of[0].toUpperCase()}${of.slice(1)}: ${name(asked)} reads ${read}.`;
}

function show(pairs) {
  const probabilities = shares(), all = shares(1);
  const order = [...all.keys()].sort((a, b) => all[b] - all[a]).slice(0, most);
  const token = (n) => shown(pairs.decode([n]));
  bars.data = { y: order.map((_, k) => k + 1), share: order.map((n) => probabilities[n]) };
  const cut = order.map((n, k) => [k + 1, all[n]]).filter(([k, share]) => share > 0 && bars.data.share[k - 1] === 0);
  outlines.data = { y: cut.map(([k]) => k), share: cut.map(([, share]) => share) };
  labels.major_label_overrides = new Map(order.map((n, k) => [k + 1, token(n)]));
  show_text(pairs);
  const [first, second] = order.map((n) => `'${token(n)}' ${probabilities[n].toFixed(2)}`);
  const its = kept.tokens.length - kept.begun;
  words.text = `${its ? `${its} tokens are written. ` : ""}` +
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
  offer_heads(transformer.sizes);
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
  if ([beginning, temperature, top_p].includes(cb_obj)) bars.data = { y: [], share: [] }; // they are of another text
  if (!bars.data.y.length) {
    const chosen = `Temperature ${temperature.value.toFixed(2)}, top-p ${top_p.value.toFixed(2)}`;
    words.text = `${chosen}: the page loads the model when you press a button.`;
  }
  if (clicked) load_model(model, write, notice, instead).then((transformer) => transformer && use(transformer));
}
