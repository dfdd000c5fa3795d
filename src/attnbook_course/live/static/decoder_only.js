// A DecoderOnly with the functions of transformer.js, which stands before it.
// One more token: its keys and values join the cache. Logits of the next, and the token's weights by layer and head.
function writer_step(model, cache, token) {
  const { embed_dim, num_heads } = model.sizes;
  const place = cache[0].keys.length;
  const weights = [];
  let x = plus([row(model.embedding.weight, token, embed_dim)], [row(model.position, place, embed_dim)]);
  model.decoder.forEach((layer, number) => {
    x = encoder_block(layer, model.sizes, x, (y) => {
      const found = cached_attention(layer.attention, num_heads, cache[number], y);
      weights.push(found.weights.map(([only]) => only));
      return found.output;
    });
  });
  return { logits: linear(model.readout, layer_norm(model.decoder_norm, x))[0], weights };
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
