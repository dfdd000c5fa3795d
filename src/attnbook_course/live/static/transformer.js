// A transformer's forward pass in plain JavaScript, with the functions of attnbook.models.blocks, attnbook.attention.heads and
// attnbook.models.transformer. A sequence is an array of tokens, a token a Float32Array; a matrix of shape (out, in) is one
// Float32Array, row after row. A mask is a function of a query's and a key's number, true = may attend.
const plus = (x, y) => x.map((token, i) => token.map((value, c) => value + y[i][c]));
const row = (matrix, i, width) => matrix.subarray(i * width, (i + 1) * width);

function linear({ weight, bias }, x) { // W x + b
  return x.map((token) => {
    const out = new Float32Array(bias.length);
    for (let r = 0, at = 0; r < out.length; r++) {
      let sum = bias[r];
      for (let c = 0; c < token.length; c++) sum += weight[at++] * token[c];
      out[r] = sum;
    }
    return out;
  });
}

function layer_norm({ weight, bias }, x, eps = 1e-5) {
  return x.map((token) => {
    const mean = token.reduce((sum, value) => sum + value, 0) / token.length;
    const variance = token.reduce((sum, value) => sum + (value - mean) ** 2, 0) / token.length;
    return token.map((value, c) => (weight[c] * (value - mean)) / Math.sqrt(variance + eps) + bias[c]);
  });
}

function erf(x) { // Abramowitz and Stegun (1964), equation 7.1.26: wrong by at most 1.5e-7
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const polynomial = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - polynomial * Math.exp(-x * x));
}
const gelu = (x) => x * (0.5 + 0.5 * erf(x / Math.SQRT2));
const relu = (x) => Math.max(0, x);
const silu = (x) => x / (1 + Math.exp(-x));

function mlp(layer, activation, x) {
  const hidden = linear(layer.hidden, x);
  if (activation !== "swiglu") return linear(layer.output, hidden.map((token) => token.map({ gelu, relu }[activation])));
  const gate = linear(layer.gate, x);
  return linear(layer.output, hidden.map((token, i) => token.map((value, c) => silu(gate[i][c]) * value)));
}

function softmax(scores) {
  const largest = Math.max(...scores);
  const exponentials = scores.map((s) => Math.exp(s - largest)); // at most 1: none overflows
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}

const project = (layer, x) => ({ keys: linear(layer.key, x), values: linear(layer.value, x) });

function multi_head_attention(layer, heads, x, { keys, values }, mask = () => true) {
  const queries = linear(layer.query, x);
  const d = queries[0].length / heads; // head h has the entries from h·d on
  const weights = Array.from({ length: heads }, () => queries.map(() => new Float32Array(keys.length)));
  const averages = queries.map((q, i) => {
    const seen = keys.map((_, j) => j).filter((j) => mask(i, j));
    const average = new Float32Array(q.length);
    for (let h = 0; h < heads; h++) {
      const scores = seen.map((j) => {
        let score = 0;
        for (let c = h * d; c < (h + 1) * d; c++) score += q[c] * keys[j][c];
        return score / Math.sqrt(d);
      });
      softmax(scores).forEach((w, s) => {
        weights[h][i][seen[s]] = w;
        for (let c = h * d; c < (h + 1) * d; c++) average[c] += w * values[seen[s]][c];
      });
    }
    return average;
  });
  return { output: linear(layer.output, averages), weights };
}

const residual = (norm, placement, part, x) =>
  placement === "pre" ? plus(x, part(layer_norm(norm, x))) : layer_norm(norm, plus(x, part(x)));

function encoder_block(layer, sizes, x, attention) {
  x = residual(layer.attention_norm, sizes.norm, attention, x);
  return residual(layer.mlp_norm, sizes.norm, (y) => mlp(layer.mlp, sizes.activation, y), x);
}

function decoder_block(layer, sizes, x, attention, cross_attention) {
  x = residual(layer.attention_norm, sizes.norm, attention, x);
  x = residual(layer.cross_norm, sizes.norm, cross_attention, x);
  return residual(layer.mlp_norm, sizes.norm, (y) => mlp(layer.mlp, sizes.activation, y), x);
}

function run_blocks(model, x, mask) {
  for (const layer of model.encoder) {
    const attention = (y) =>
      multi_head_attention(layer.attention, model.sizes.num_heads, y, project(layer.attention, y), mask).output;
    x = encoder_block(layer, model.sizes, x, attention);
  }
  return layer_norm(model.encoder_norm, x);
}

function encoder_only(model, x, mask) { // an EncoderOnly: what it says of each of its tokens
  const { position, sizes } = model;
  const embedded = linear(model.embedding, x.map((token) => Float32Array.from(token)));
  const placed = position ? plus(embedded, x.map((_, i) => row(position, i, sizes.embed_dim))) : embedded;
  return linear(model.readout, run_blocks(model, placed, mask));
}

function encode_source(model, source) { // a Transformer: for each layer, keys and values of what its encoder has read
  const e = model.sizes.embed_dim;
  const embedded = source.map((token) => row(model.source_embedding.weight, token, e));
  const memory = run_blocks(model, plus(embedded, source.map((_, i) => row(model.source_position, i, e))));
  return model.decoder.map((layer) => project(layer.cross_attention, memory));
}

const init_cache = (model) => model.decoder.map(() => ({ keys: [], values: [] }));

function cached_attention(layer, heads, kept, x) { // keys and values of x join those that are kept
  const { keys, values } = project(layer, x);
  kept.keys.push(...keys);
  kept.values.push(...values);
  return multi_head_attention(layer, heads, x, kept);
}

// One more token: its keys and values join the cache. Logits of the next, and each head's weights in the last layer.
function seq2seq_step(model, memory, cache, token) {
  const { embed_dim, num_heads } = model.sizes;
  const place = cache[0].keys.length;
  let weights;
  let x = plus([row(model.target_embedding.weight, token, embed_dim)], [row(model.target_position, place, embed_dim)]);
  model.decoder.forEach((layer, number) => {
    const attention = (y) => cached_attention(layer.attention, num_heads, cache[number], y).output;
    const cross_attention = (y) => {
      const found = multi_head_attention(layer.cross_attention, num_heads, y, memory[number]);
      weights = found.weights.map(([only]) => only);
      return found.output;
    };
    x = decoder_block(layer, model.sizes, x, attention, cross_attention);
  });
  return { logits: linear(model.output, layer_norm(model.decoder_norm, x))[0], weights };
}

// The tokens without start, up to end; for each its probability and the weights by head.
function greedy(model, source, start, end) {
  const memory = encode_source(model, source), cache = init_cache(model);
  const tokens = [], weights = [], probabilities = [];
  while (tokens.at(-1) !== end && tokens.length < model.sizes.max_length) {
    const found = seq2seq_step(model, memory, cache, tokens.at(-1) ?? start);
    tokens.push(found.logits.indexOf(Math.max(...found.logits)));
    weights.push(found.weights);
    probabilities.push(softmax(found.logits)[tokens.at(-1)]);
  }
  return { tokens, weights, probabilities };
}
