"""Mistakes in the transformers and their cache, in what they start from, and in their tasks."""

from faults.fault import faults

FAULTS = faults(r"""
models/transformer | torch | models/test_block_options.py::test_decoder_only_equals_the_loop
    no last norm | return ⟦apply_norm(norm, x)→x⟧, kept
    one block again and again | in enumerate(⟦layers→[layers[0]] * len(layers)⟧):
    blocks in the other order | in enumerate(layers⟦→[::-1]⟧):
    the future is seen | x, mask, return_weights⟦, causal=True→⟧
    the future is seen in every block | x, mask, return_weights=return_weights, ⟦causal=causal, →⟧**
    weights of the last layer first |
        x, weights = x\n            kept.⟦append(weights)→insert(0, weights)⟧
    the last positions | return position[⟦: tokens.shape[-1]→-tokens.shape[-1] :⟧]
models/transformer | torch | models/test_block_options.py::test_encoder_only_equals_the_loop
    mask ignored | x = layer(x, ⟦mask→None⟧, return_weights=return_weights, causal=causal, **random)
    positions from the end | model.position[⟦: x.shape[-2]→-x.shape[-2] :⟧]
    an encoder that sees no future | return_weights: bool = False,\n    causal: bool = ⟦False→True⟧,
models/transformer | torch | models/test_transformer.py::test_transformer_equals_the_loop
    padding is read | mask = mask[..., None, :]⟦→ | True⟧\n    return Memory
    padding is read by the decoder | x, memory.values, None, ⟦memory.mask→None⟧, return_weights=
    padding is read by the encoder | embedded, ⟦mask→None⟧)[0], mask)
    the target's positions for the source | model.⟦source_position→target_position⟧
    the target's embedding for the source | ⟦source_embedding, source→target_embedding, source % 11⟧
    the encoder's norm for the decoder | apply_norm(model.⟦decoder_norm→encoder_norm⟧, x)
    what is written sees the future | , memory.mask, return_weights=return_weights⟦, causal=True→⟧
    the source is not read | x, ⟦memory.values, None, memory.mask→x, None, None⟧, return_weights=
    weights to what is written | x, ⟦_, weights→weights, _⟧ = x
models/transformer | torch | models/test_block_options.py::test_padding_does_not_count
    padding takes a place | if mask is None⟦→ or True⟧:\n        return position
models/kv_cache | torch | models/test_block_options.py::test_the_cache_equals_the_full_pass
    the position of the token before | embedded + model.position[cache.length⟦→ - 1⟧]
    a token does not see itself, cache | (⟦slots <= cache.length[:, None]
        →(slots < cache.length[:, None]) | (cache.length[:, None] == 0)⟧)
    places not written are seen | (slots <= cache.length[:, None]⟦→ + 1⟧)
    written over the token before | == ⟦cache.length→xp.clip(cache.length - 1, 0, None)⟧[:, None]
    written everywhere | xp.where(here⟦→ | True⟧, k, cache.keys[:, number])
    keys for values | xp.where(here, ⟦v→k⟧, cache.values[:, number])
    the first layer's keys for all | cache.keys[:, ⟦number→0⟧]
    the first layer's values for all | cache.values[:, ⟦number→0⟧]
    the length stays | cache.length⟦ + 1→⟧
    no last norm, cache | ⟦apply_norm(model.decoder_norm, x)→x⟧[:, 0], kept
    heads not merged by their output |
        ⟦linear(layer.output, merge_heads(xp.reshape(found, q.shape)))
        →merge_heads(xp.reshape(found, q.shape))⟧
models/kv_cache | torch |
        models/test_transformer.py::test_the_cache_of_a_translation_equals_the_full_pass
    always the first position, translation | + model.target_position[⟦→0 * ⟧cache.length]
    the source's positions | + model.⟦target_position→source_position⟧[cache.length]
    the memory is not read | if ⟦memory is None→True⟧:
    padding is read in a step | memory.values, ⟦memory.mask→None⟧, return_weights=True
    weights of the first layer | mean(kept[⟦-1→0⟧], axis=1)
    weights of one head | ⟦array_namespace(x).mean(kept[-1], axis=1)[:, 0]→kept[-1][:, 0, 0]⟧
models/kv_cache | torch | models/test_block_options.py::test_rows_of_different_lengths
    one length for all rows | here = (slots == cache.length[:⟦→1⟧, None])
    one length for all queries | so_far = (slots <= cache.length[:⟦→1⟧, None])
models/transformer | torch | models/test_transformer_layers.py::test_starts_differ_from_part_to_part
    a small start, torch | INIT_STD = ⟦0.3→0.02⟧
torch/transformer | torch | models/test_transformer_layers.py::test_starts_differ_from_part_to_part
    embeddings start large | _weight=⟦INIT_STD * →⟧torch.randn
jax/transformer | jax | models/test_transformer_layers.py::test_starts_differ_from_part_to_part
    blocks start alike | for one in ⟦jax.random.split(key, num_layers)→[key] * num_layers⟧
    small numbers are even | jax.random.⟦normal→uniform⟧(key, shape)
torch/transformer | torch | models/test_transformer_layers.py::test_starts_differ_from_part_to_part
    positions start large | self.position = nn.Parameter(⟦INIT_STD * →⟧torch.randn(max_length
attention/heads | torch | models/test_block_options.py::test_rotary_attention_by_hand
    keys not turned |
        q⟦, k = _turn(q, places, base), _turn(k, places, base)→ = _turn(q, places, base)⟧
    values turned too | q, k⟦ = _turn(q, places, base), _turn(k, places, base)
        →, v = (_turn(a, places, base) for a in (q, k, v))⟧
attention/heads | torch | models/test_block_options.py::test_a_row_of_places_for_every_sequence
    the order for the places | if ⟦places is None→True⟧:
models/kv_cache | torch | models/test_block_options.py::test_rows_of_different_lengths
    one rotary position for all rows | x, x, x, cache.length[:⟦→1⟧, None],
    the keys of other heads | reshape⟦(q, (*k.shape[:2], -1, k.shape[-1]))
        →(q, (k.shape[0], -1, k.shape[1], k.shape[-1])).swapaxes(1, 2)⟧
models/transformer | torch | models/test_block_options.py::test_padding_does_not_count
    padding is read in a text | mask = ⟦mask[..., None, :]  # for every query→None⟧
torch/transformer | torch |
        models/test_block_options.py::test_a_tied_readout_learns_with_the_embedding
    a copy for the tie | readout.weight⟦ = self.embedding.weight→.data.copy_(self.embedding.weight)⟧
torch/blocks | torch | models/test_block_options.py::test_decoder_only_equals_the_loop
    always 1e-5 | config.embed_dim,⟦ eps=config.eps,→⟧
    layer norm for RMS norm | nn.⟦RMSNorm(config.embed_dim→LayerNorm(config.embed_dim, bias=False⟧
layers/norms | jax | models/test_block_options.py::test_decoder_only_equals_the_loop
    layer norm for RMS norm, JAX | ⟦isinstance(norm, equinox.nn.RMSNorm)→False⟧
convert | torch,jax | models/test_convert.py::test_another_eps_than_the_layers_is_an_error
    eps is not looked at | if ⟦got[name] != eps→False⟧:
convert | torch,jax | models/test_convert.py::test_a_tied_readout_stays_tied
    a readout of its own is lost | if ⟦readout is not embedding→False⟧:
datasets/regression_prompts | numpy
    queries known | ⟦np.zeros_like(queries)→queries⟧, np.ones_like(queries)
    queries unmarked | np.zeros_like(queries), np.⟦ones_like→zeros_like⟧(queries)
    pairs marked | values, np.⟦zeros_like→ones_like⟧(keys)
    x and y swapped | [⟦keys, values→values, keys⟧,
    pairs see all pairs | np.⟦tri(n, dtype=bool)→ones((n, n), dtype=bool)⟧
    pairs do not see themselves | np.tri(n, ⟦→k=-1, ⟧dtype=bool)
    pairs see queries | np.⟦zeros→ones⟧((n, m), dtype=bool)
    one pair too many | np.arange(n) <⟦→=⟧ seen
    queries see each other | np.⟦eye(m, dtype=bool)→ones((m, m), dtype=bool)⟧
    queries see all | before = np.⟦arange(n) < seen[:, None]→ones((m, n), dtype=bool)⟧
""")
