// A published model beside the page: it is fetched and checked once, and asked with a text and heads to cut.
importScripts("byte_pairs.js", "float16.js", "llama.js");
let model, pairs, asked; // asked: the tokens of the last text, its logits, weights and streams
const tell = (kind, more) => postMessage({ kind, ...more });

async function load({ name, bytes, sha256 }) {
  const compiled = await WebAssembly.compileStreaming(fetch("quantised.wasm"));
  const answer = await fetch(`${name}.gguf`);
  if (!answer.ok) throw new Error(answer.status === 404 ? "this site has no copy of it" : `the host answers ${answer.status}`);
  const room = make_room(bytes);
  let at = 0;
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > bytes) throw new Error("the file is too long");
    room.file.set(value, at);
    at += value.length;
    tell("loading", { share: at / bytes });
  }
  if (globalThis.crypto?.subtle) { // a page without https has none
    const found = new Uint8Array(await crypto.subtle.digest("SHA-256", room.file));
    const hexadecimal = [...found].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (hexadecimal !== sha256) throw new Error("the file is not the published one");
  }
  model = open_llama(room, compiled);
  pairs = pairs_of(model.fields);
  tell("loaded", {});
}

function pairs_of(fields) {
  const of = (name) => fields[`tokenizer.ggml.${name}`];
  return byte_pairs(of("merges").map((merge) => merge.split(" ")), { tokens: of("tokens"), digits: of("pre") === "smollm" });
}

function softmax(logits) {
  const largest = logits.reduce((most, logit) => Math.max(most, logit)), found = Float64Array.from(logits, (logit) => Math.exp(logit - largest));
  const total = found.reduce((sum, value) => sum + value, 0);
  return found.map((value) => value / total);
}

// The text's first tokens, after the one that stands before every text; the largest probabilities of the next, with and
// without the heads that are cut; the weights of the whole model.
function ask({ text, cut, most }) {
  const all = [0, ...pairs.encode(text)], tokens = all.slice(0, MOST), same = asked?.tokens.join() === tokens.join();
  if (!same) {
    const streams = [];
    asked = { tokens, streams, ...forward(model, tokens, [], { streams }) };
  }
  const whole = softmax(asked.logits);
  const first = Math.min(...cut.map(([layer]) => layer)) - 1;
  const less = cut.length ? softmax(forward(model, tokens, cut, { streams: asked.streams, first }).logits) : whole;
  const order = [...whole.keys()].sort((a, b) => whole[b] - whole[a]).slice(0, most);
  const best = less.reduce((most, share, token) => (share > less[most] ? token : most), 0);
  const said = (token) => pairs.decode([token]);
  tell("said", {
    tokens: tokens.map((token, i) => (i ? said(token) : "<s>")), left: all.length - tokens.length, weights: same ? null : asked.weights.slice(),
    next: order.map((token) => ({ text: said(token), whole: whole[token], cut: less[token] })),
    best: { text: said(best), whole: whole[best], cut: less[best] }, moved: distance(whole, less),
  });
}

const distance = (p, q) => p.reduce((sum, share, token) => sum + Math.abs(share - q[token]) / 2, 0); // total variation

// How much of the next token's probability moves if one head is cut, head after head; another message ends it.
function scan(until) {
  const { layers, heads } = model.sizes, whole = softmax(asked.logits), moved = new Float32Array(layers * heads);
  let h = layers * heads - 1; // the last layers first: they are soon done
  (function next() {
    if (until !== turn) return;
    const [layer, head] = [Math.floor(h / heads) + 1, (h % heads) + 1];
    const { logits } = forward(model, asked.tokens, [[layer, head]], { streams: asked.streams, first: layer - 1 });
    moved[h] = distance(whole, softmax(logits));
    tell("cut", { moved: moved.slice(), left: h });
    if (h--) setTimeout(next);
  })();
}

let turn = 0; // a message that comes ends what runs
onmessage = async ({ data }) => {
  turn++;
  try {
    if (data.kind === "scan") scan(turn);
    else if (data.kind !== "rest") await { load, ask }[data.kind](data);
  } catch (error) {
    tell("failed", { words: error instanceof RangeError ? "this device has too little memory" : error.message });
  }
};
