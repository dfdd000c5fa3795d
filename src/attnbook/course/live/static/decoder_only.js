// A DecoderOnly with the functions of transformer.js, which stands before it.
function writer_step(model, cache, token) { // a DecoderOnly, one more token: the logits of the next
  const { embed_dim, num_heads } = model.sizes;
  const place = cache[0].keys.length;
  let x = plus([row(model.embedding.weight, token, embed_dim)], [row(model.position, place, embed_dim)]);
  model.decoder.forEach((layer, number) => {
    x = encoder_block(layer, model.sizes, x, (y) => cached_attention(layer.attention, num_heads, cache[number], y));
  });
  return linear(model.readout, layer_norm(model.decoder_norm, x))[0];
}
