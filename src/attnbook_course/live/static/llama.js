// A published model of Llama's kind out of a GGUF file, with the names of attnbook.models.blocks: its matrices stay quantised,
// and quantised.wat multiplies with them. Sequences are float32 rows in the memory that both share.
const BLOCKS = { 3: [20, 32], 8: [34, 32] }; // Q4_1 and Q8_0: bytes, weights
const HALVES = 65_536; // float16 numbers, whose float32 stand at the beginning of the memory
const MOST = 120; // tokens of a text

// What the file says: fields by name, and of every tensor its place, its shape (columns first) and the bytes of a block.
function read_gguf(memory, from) {
  const view = new DataView(memory), decoder = new TextDecoder();
  let at = from;
  const u32 = () => view.getUint32((at += 4) - 4, true), u64 = () => Number(view.getBigUint64((at += 8) - 8, true));
  const string = () => { const length = u64(); return decoder.decode(new Uint8Array(memory, (at += length) - length, length)); };
  const READ = {
    0: () => view.getUint8(at++), 1: () => view.getInt8(at++), 4: u32, 5: () => view.getInt32((at += 4) - 4, true),
    6: () => view.getFloat32((at += 4) - 4, true), 7: () => Boolean(view.getUint8(at++)), 8: string,
    9: () => { const kind = u32(), length = u64(); return Array.from({ length }, READ[kind]); }, 10: u64,
  };
  if (u32() !== 0x46554747) throw new Error("the file is no GGUF file");
  u32(); // its version
  const count = u64(), fields = {}, tensors = {};
  for (let left = u64(); left > 0; left--) {
    const name = string();
    fields[name] = READ[u32()]();
  }
  for (let left = count; left > 0; left--) {
    const name = string(), shape = Array.from({ length: u32() }, u64), block = BLOCKS[u32()]?.[0] ?? 0;
    tensors[name] = { shape, block, at: u64() };
  }
  const data = from + Math.ceil((at - from) / 32) * 32;
  for (const tensor of Object.values(tensors)) tensor.at += data;
  return { fields, tensors };
}

// The memory for a file of so many bytes, which are to be written into `file`; then `open` makes the model.
function make_room(bytes) {
  const from = 4 * HALVES, scratch = 48 * 2 ** 20;
  const memory = new WebAssembly.Memory({ initial: Math.ceil((from + bytes + scratch) / 65_536) });
  new Float32Array(memory.buffer, 0, HALVES).set(Float32Array.from({ length: HALVES }, (_, bits) => half(bits)));
  return { memory, from, file: new Uint8Array(memory.buffer, from, bytes) };
}

function open_llama({ memory, from, file }, compiled) {
  const { buffer } = memory, { fields, tensors } = read_gguf(buffer, from);
  const { product, row } = new WebAssembly.Instance(compiled, { page: { memory } }).exports;
  const of = (name) => fields[`llama.${name}`];
  const e = of("embedding_length"), heads = of("attention.head_count"), kv_heads = of("attention.head_count_kv");
  const sizes = { e, d: e / heads, heads, kv_heads, mlp: of("feed_forward_length"), layers: of("block_count"), vocab: fields["tokenizer.ggml.tokens"].length };
  let free = from + Math.ceil(file.length / 16) * 16;
  const rows = (count, width) => { const at = free; free += 4 * count * width; return new Float32Array(buffer, at, count * width); };
  const line = rows(1, Math.max(e, sizes.mlp));
  const kept = { x: rows(MOST, e), z: rows(MOST, e), y: rows(MOST, e), q: rows(MOST, e), k: rows(MOST, e), v: rows(MOST, e) };
  Object.assign(kept, { hidden: rows(MOST, sizes.mlp), gate: rows(MOST, sizes.mlp), logits: rows(4, sizes.vocab) });
  const linear = (name, x, n, y) => { // y = x Wᵀ
    const { at, shape: [width, out], block } = tensors[`${name}.weight`];
    product(block, at, out, width / 32, x.byteOffset, n, y.byteOffset, line.byteOffset);
  };
  const gain = (name) => { const { at, shape: [width] } = tensors[`${name}.weight`]; return new Float32Array(buffer, at, width); };
  const embed = (token, to) => {
    const { at, block } = tensors["token_embd.weight"], bytes = (e / 32) * block;
    row(block, at + token * bytes, bytes, to.byteOffset);
  };
  const norms = { eps: of("attention.layer_norm_rms_epsilon") };
  for (const name of Object.keys(tensors)) if (name.includes("norm")) norms[name] = gain(name.replace(".weight", ""));
  return { sizes, fields, kept, linear, embed, norms, base: of("rope.freq_base") };
}

function rms_norm(x, gain, eps, n, z) {
  const width = gain.length;
  for (let i = 0; i < n * width; i += width) {
    let squares = 0;
    for (let c = 0; c < width; c++) squares += x[i + c] ** 2;
    const scale = 1 / Math.sqrt(squares / width + eps);
    for (let c = 0; c < width; c++) z[i + c] = gain[c] * x[i + c] * scale;
  }
}

function rotary(x, n, heads, d, base) { // neighbours of a head are a pair
  for (let i = 0; i < n; i++)
    for (let c = 0; c < d; c += 2) {
      const angle = i * base ** (-c / d), cos = Math.cos(angle), sin = Math.sin(angle);
      for (let h = 0; h < heads; h++) {
        const at = (i * heads + h) * d + c, [a, b] = [x[at], x[at + 1]];
        x[at] = a * cos - b * sin;
        x[at + 1] = a * sin + b * cos;
      }
    }
}

// Averages of a layer's heads, into z, and their weights from `to` on: a triangle for each head, row after row.
function attend({ sizes: { d, heads, kv_heads }, kept: { q, k, v, z } }, n, weights, to) {
  z.fill(0);
  for (let h = 0; h < heads; h++) {
    const shared = Math.floor((h * kv_heads) / heads);
    for (let i = 0; i < n; i++) {
      const mine = (i * heads + h) * d;
      let largest = -Infinity, total = 0;
      for (let j = 0; j <= i; j++) {
        const its = (j * kv_heads + shared) * d;
        let score = 0;
        for (let c = 0; c < d; c++) score += q[mine + c] * k[its + c];
        weights[to + j] = score / Math.sqrt(d);
        largest = Math.max(largest, weights[to + j]);
      }
      for (let j = 0; j <= i; j++) total += weights[to + j] = Math.exp(weights[to + j] - largest);
      for (let j = 0; j <= i; j++) {
        const w = (weights[to + j] /= total), its = (j * kv_heads + shared) * d;
        for (let c = 0; c < d; c++) z[mine + c] += w * v[its + c];
      }
      to += i + 1;
    }
  }
  return to;
}

// Logits of what comes after the tokens, and all weights. A head that is cut, [19, 7], adds nothing to the stream. `streams` keeps
// the stream before each layer; from a layer's on, a second pass has only the rest to do.
function forward(model, tokens, cut = [], { streams = [], first = 0 } = {}) {
  const { sizes: { e, d, heads, kv_heads, mlp, layers }, kept: { x, z, y, q, k, v, hidden, gate, logits }, linear, norms } = model;
  const n = tokens.length, four = 4 * Math.ceil(n / 4), weights = new Float32Array((layers * heads * n * (n + 1)) / 2);
  for (const array of [x, z]) array.fill(0);
  if (first) x.set(streams[first]);
  else tokens.forEach((token, i) => model.embed(token, x.subarray(i * e)));
  let to = first * heads * ((n * (n + 1)) / 2);
  for (let layer = first; layer < layers; layer++) {
    streams[layer] ??= x.slice(0, n * e);
    const part = (name) => `blk.${layer}.${name}`, add = () => { for (let c = 0; c < n * e; c++) x[c] += y[c]; };
    rms_norm(x, norms[part("attn_norm.weight")], norms.eps, n, z);
    for (const [name, found] of [["q", q], ["k", k], ["v", v]]) linear(part(`attn_${name}`), z, four, found);
    rotary(q, n, heads, d, model.base);
    rotary(k, n, kv_heads, d, model.base);
    to = attend(model, n, weights, to);
    for (const [deep, head] of cut)
      if (deep === layer + 1) for (let i = 0; i < n; i++) z.fill(0, (i * heads + head - 1) * d, (i * heads + head) * d);
    linear(part("attn_output"), z, four, y);
    add();
    rms_norm(x, norms[part("ffn_norm.weight")], norms.eps, n, z);
    linear(part("ffn_gate"), z, four, gate);
    linear(part("ffn_up"), z, four, hidden);
    for (let c = 0; c < n * mlp; c++) hidden[c] *= gate[c] / (1 + Math.exp(-gate[c]));
    linear(part("ffn_down"), hidden, four, y);
    add();
  }
  rms_norm(x.subarray((n - 1) * e), norms["output_norm.weight"], norms.eps, 1, z);
  linear("token_embd", z, 4, logits);
  return { logits: logits.slice(0, model.sizes.vocab), weights };
}
