// A DecoderOnly goes on with the reader's text: the next token's probabilities, and what is drawn from them. What it has written is
// kept on the page: tokens, how many of them are read, keys and values, logits of the next; and a model of the reader's own.
const clicked = cb_obj.event_name === "button_click" ? cb_obj.origin : null;
const kept = ((window.attnbookWritten ??= {})[figure] ??= { tokens: [] });
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const current = () => kept.own ?? loaded(model);

function begin({ encode, unknown }) {
  const tokens = encode(beginning.value || "\n");
  if (!tokens.length) tokens.push(0); // it knows no character of the text
  const strange = unknown?.(beginning.value).map((one) => `'${as_signs(one)}'`) ?? [];
  notice.setv({ text: strange.length ? `The model leaves out what it has never seen: ${strange.join(", ")}.` : "", visible: strange.length > 0 });
  Object.assign(kept, { tokens, begun: tokens.length, read: 0, cache: null, running: false });
}

function read(transformer) { // all tokens that it has not read; where its places end, half of them are read anew
  const places = transformer.sizes.max_length;
  if (!kept.cache || kept.cache[0].keys.length + kept.tokens.length - kept.read > places) {
    kept.cache = init_cache(transformer);
    kept.read = kept.tokens.length > places ? kept.tokens.length - Math.ceil(places / 2) : 0;
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

function show(tokenizer) {
  const part = (from, to) => escaped(tokenizer.decode(kept.tokens.slice(from, to)));
  written.text = `<strong>${part(0, kept.begun)}</strong>${part(kept.begun)}`;
  if (clicked) requestAnimationFrame(() => { // the end of a long text is in sight
    const view = window.Bokeh.index.find_one(written);
    if (view) view.el.scrollTop = view.el.scrollHeight;
  });
  const probabilities = shares(), all = shares(1);
  const order = [...all.keys()].sort((a, b) => all[b] - all[a]).slice(0, most);
  const token = (n) => as_signs(tokenizer.decode([n]));
  bars.data = { y: order.map((_, k) => k + 1), share: order.map((n) => probabilities[n]) };
  labels.major_label_overrides = new Map(order.map((n, k) => [k + 1, token(n)]));
  const [first, second] = order.map((n) => `'${token(n)}' ${probabilities[n].toFixed(2)}`);
  const its = kept.tokens.length - kept.begun;
  const whose = kept.own ? ` of ${kept.own.name}` : "", rest = second ? `, then ${second}` : "";
  words.text = `${its ? `${its} tokens are written. ` : ""}The most probable next token${whose} is ${first}${rest}.`;
  write.label = kept.running ? "stop" : `write ${portion} tokens`;
}

function use(transformer) {
  const tokenizer = (transformer.tokenizer ??= byte_pairs(transformer.merges));
  const next = () => {
    kept.tokens.push(draw(shares()));
    read(transformer);
  };
  if (!kept.tokens.length || clicked === again || cb_obj === beginning) begin(tokenizer);
  read(transformer);
  if (clicked === one) next();
  const running = clicked === write && !kept.running;
  if (clicked) kept.running = running; // a press of any button stops what runs
  show(tokenizer);
  if (!running) return;
  const run = (kept.run = {}), until = kept.tokens.length + portion;
  (function step() {
    if (kept.run !== run || !kept.running) return;
    next();
    kept.running = kept.tokens.length < until;
    show(tokenizer);
    if (kept.running) requestAnimationFrame(step);
  })();
}

async function open_own(file) {
  try {
    kept.own = Object.assign(await open_model(file), { name: file.name });
    kept.tokens = []; // it begins anew
    use(kept.own);
  } catch (error) {
    notice.setv({ text: `${file.name} was not opened: ${error.message}. Nothing has changed.`, visible: true });
  }
}

if (cb_obj.type === "Column") { // once: Bokeh keeps this node when it draws the file's button anew
  const node = window.Bokeh.index.find_one(own).shadow_el;
  node.addEventListener("click", ({ target }) => { target.value = ""; }); // the same file may be chosen again
  node.addEventListener("change", ({ target }) => { if (target.files.length) open_own(target.files[0]); });
}
if (current()) {
  use(current());
} else {
  written.text = `<strong>${escaped(beginning.value)}</strong>`;
  if (cb_obj.type !== "Column") { // the bars are of another text, or drawn in another way
    bars.data = { y: [], share: [] };
    words.text = "The page loads the model when you press a button.";
  }
  if (clicked) load_model(model, write, notice, instead).then((transformer) => transformer && use(current()));
}
