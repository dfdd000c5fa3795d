// A DecoderOnly's forward pass in plain JavaScript, with the functions of attnbook.models.blocks and attnbook.attention.heads: pre-
// or post-norm, GELU or ReLU, biases or none. A vector is a Float32Array; a matrix of shape (out, in) is one, row after row.
const plus = (x, y) => x.map((value, c) => value + y[c]);
const row = (matrix, i, width) => matrix.subarray(i * width, (i + 1) * width);

function linear({ weight, bias }, x) { // W x + b
  const out = new Float32Array(weight.length / x.length);
  for (let r = 0, at = 0; r < out.length; r++) {
    let sum = bias?.[r] ?? 0;
    for (let c = 0; c < x.length; c++) sum += weight[at++] * x[c];
    out[r] = sum;
  }
  return out;
}

function layer_norm({ weight, bias }, x, eps = 1e-5) {
  const mean = x.reduce((total, value) => total + value, 0) / x.length;
  const variance = x.reduce((total, value) => total + (value - mean) ** 2, 0) / x.length;
  return x.map((value, c) => (weight[c] * (value - mean)) / Math.sqrt(variance + eps) + (bias?.[c] ?? 0));
}

function erf(x) { // Abramowitz and Stegun (1964), equation 7.1.26: wrong by at most 1.5e-7
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const polynomial = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - polynomial * Math.exp(-x * x));
}
const ACTIVATIONS = { gelu: (x) => x * (0.5 + 0.5 * erf(x / Math.SQRT2)), relu: (x) => Math.max(0, x) };

function softmax(scores) {
  const largest = Math.max(...scores);
  const exponentials = scores.map((s) => Math.exp(s - largest)); // at most 1: none overflows
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}

function cached_attention(layer, heads, { keys, values }, x) { // key and value of x join those that are kept
  keys.push(linear(layer.key, x));
  values.push(linear(layer.value, x));
  const query = linear(layer.query, x), average = new Float32Array(query.length);
  const d = query.length / heads; // head h has the entries from h·d on
  for (let h = 0; h < heads; h++) {
    const scores = keys.map((key) => {
      let score = 0;
      for (let c = h * d; c < (h + 1) * d; c++) score += query[c] * key[c];
      return score / Math.sqrt(d);
    });
    softmax(scores).forEach((w, j) => {
      for (let c = h * d; c < (h + 1) * d; c++) average[c] += w * values[j][c];
    });
  }
  return linear(layer.output, average);
}

const init_cache = (model) => model.decoder.map(() => ({ keys: [], values: [] }));

// One more token; logits of the next.
function decoder_step(model, cache, token) {
  const { embed_dim, num_heads, norm, activation } = model.sizes;
  const residual = (parameters, x, part) =>
    norm === "pre" ? plus(x, part(layer_norm(parameters, x))) : layer_norm(parameters, plus(x, part(x)));
  let x = plus(row(model.embedding.weight, token, embed_dim), row(model.position, cache[0].keys.length, embed_dim));
  model.decoder.forEach((layer, number) => {
    x = residual(layer.attention_norm, x, (y) => cached_attention(layer.attention, num_heads, cache[number], y));
    x = residual(layer.mlp_norm, x, (y) => linear(layer.mlp.output, linear(layer.mlp.hidden, y).map(ACTIVATIONS[activation])));
  });
  return linear(model.readout, layer_norm(model.decoder_norm, x));
}

// As attnbook.generate.sampling: p ∝ exp(logit / T) over the fewest most probable tokens that together reach the share, up
// to rounding, whose analysis stands there. Of equal tokens the one with the smaller number comes first.
function next_probabilities(logits, temperature, top_p) {
  const largest = Math.max(...logits);
  const p = softmax(Array.from(logits, (logit) => (logit - largest) / temperature));
  const order = [...p.keys()].sort((a, b) => logits[b] - logits[a]);
  const off = p.reduce((total, share, n) => (share > 0 ? total + (share * Math.abs(logits[n])) / temperature : total), 0);
  const enough = top_p < 1 ? top_p - Math.min(Number.EPSILON * (off + 2 * p.length), 1e-3, top_p / 2) : Infinity;
  let sum = 0;
  for (const n of order) {
    sum += p[n];
    if (sum - p[n] >= enough) p[n] = 0;
  }
  const kept = p.reduce((total, share) => total + share, 0);
  return p.map((share) => share / kept);
}
