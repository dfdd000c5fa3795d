// A published model beside the page: it is fetched and checked once, and asked with a text and heads to cut.
importScripts("byte_pairs.js", "llama.js");
const KEPT = "attnbook-models";
let model, pairs, asked; // asked: the tokens of the last text, its logits, weights and streams
const tell = (kind, more, moved = []) => postMessage({ kind, ...more }, moved);

async function kept_or_fetched(url) { // where a browser has no such store, or no room, the file is fetched again next time
  const store = await globalThis.caches?.open(KEPT).catch(() => undefined);
  const there = await store?.match(url);
  return { store, there, answer: there ?? (await fetch(url)) };
}

async function load({ name, bytes, sha256 }) {
  const url = new URL(`${name}.gguf`, location.href).href;
  const compiled = await WebAssembly.compileStreaming(fetch("quantised.wasm"));
  const { store, there, answer } = await kept_or_fetched(url);
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
    if ([...found].map((byte) => byte.toString(16).padStart(2, "0")).join("") !== sha256) {
      await store?.delete(url);
      throw new Error("the file is not the published one");
    }
  }
  if (!there) await store?.put(url, new Response(room.file.slice())).catch(() => {});
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

// What a head's weights go with. The first key, a sink, is left out; the rest is divided by its mean for every query. A kind of
// distance puts pairs of query and key into groups, and explains the share of the variance that lies between their means.
function explained(relative, groups) {
  const of_group = new Map();
  let all = 0, squares = 0;
  relative.forEach((w, k) => {
    const one = of_group.get(groups[k]) ?? { n: 0, sum: 0 };
    of_group.set(groups[k], { n: one.n + 1, sum: one.sum + w });
    all += w;
    squares += w * w;
  });
  const n = relative.length, total = squares - (all * all) / n;
  const between = [...of_group.values()].reduce((sum, one) => sum + (one.sum * one.sum) / one.n, 0) - (all * all) / n;
  const free = n - of_group.size;
  return total > 1e-9 && free > 0 ? Math.max(0, 1 - ((total - between) / free) / (total / (n - 1))) : 0; // for the number of groups
}

function embedding_distances(tokens) { // squared, between the model's own vectors
  const { e } = model.sizes, { y } = model.kept;
  tokens.forEach((token, i) => model.embed(token, y.subarray(i * e)));
  return tokens.map((_, i) => tokens.map((_, j) => {
    let sum = 0;
    for (let c = 0; c < e; c++) sum += (y[i * e + c] - y[j * e + c]) ** 2;
    return sum;
  }));
}

function kernel({ layer, head }) {
  const { tokens, weights } = asked, n = tokens.length, size = (n * (n + 1)) / 2;
  const from = ((layer - 1) * model.sizes.heads + head - 1) * size;
  const apart = embedding_distances(tokens), digit = tokens.map((token) => (/^[0-9]$/.test(pairs.tokens[token]) ? Number(pairs.tokens[token]) : NaN));
  const relative = [], pair = [];
  for (let i = 2; i < n; i++) {
    const row = weights.subarray(from + (i * (i + 1)) / 2 + 1, from + ((i + 1) * (i + 2)) / 2); // without the first key
    const mean = row.reduce((sum, w) => sum + w, 0) / row.length;
    if (mean > 1e-6) row.forEach((w, k) => { relative.push(w / mean); pair.push([i, k + 1]); });
  }
  const cuts = pair.filter(([i, j]) => tokens[i] !== tokens[j]).map(([i, j]) => apart[i][j]).sort((a, b) => a - b);
  const eighth = (value) => [1, 2, 3, 4, 5, 6, 7].filter((k) => value > cuts[Math.floor((k * cuts.length) / 8)]).length;
  const kinds = {
    place: ([i, j]) => (i - j < 4 ? i - j : 2 + Math.floor(Math.log2(i - j))), // 0, 1, 2, 3, 4 to 7, 8 to 15, …
    digits: ([i, j]) => Math.abs(digit[i] - digit[j]), // NaN where one is no digit: a group of its own
    embedding: ([i, j]) => (tokens[i] === tokens[j] ? "the same" : eighth(apart[i][j])),
    before: ([i, j]) => tokens[j - 1] === tokens[i],
  };
  const shares = Object.fromEntries(Object.entries(kinds).map(([name, group]) => [name, explained(relative, pair.map(group))]));
  tell("kernel", { layer, head, shares });
}

let turn = 0; // a message that comes ends what runs
onmessage = async ({ data }) => {
  turn++;
  try {
    if (data.kind === "scan") scan(turn);
    else if (data.kind !== "rest") await { load, ask, kernel }[data.kind](data);
  } catch (error) {
    tell("failed", { words: error instanceof RangeError ? "this device has too little memory" : error.message });
  }
};
