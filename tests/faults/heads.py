"""Mistakes in positions, in heads, in dropout and in stacks of attention alone."""

from faults.fault import faults

FAULTS = faults(r"""
attention/positions | numpy
    turned the other way | ⟦- odd * sin, even * sin + odd * cos→+ odd * sin, odd * cos - even * sin⟧
    halves for pairs | (xp.astype⟦(x[..., start::2], wide) for start in (0, 1)
        →(x[..., start : start + x.shape[-1] // 2], wide) for start in (0, x.shape[-1] // 2)⟧)
    turned pairs not put back in place | odd * cos], axis=-⟦1→2⟧)
    frequencies that fall half as fast | -np.arange(⟦0, d,→d //⟧ 2) / d
    another base | BASE = ⟦10_000→1_000⟧.0
    cosines first | [np.⟦sin(angles), np.cos→cos(angles), np.sin⟧(angles)]
    all sines, then all cosines | axis=-⟦1→2⟧).reshape(n, d)
    counted from 1 |
        = ⟦np.arange(numbers.nonnegative_int(n=n))→(1 + np.arange(numbers.nonnegative_int(n=n)))⟧[:,
    the order for the positions |
        angles = xp.⟦astype(positions, wide)[..., None]→arange(x.shape[-2], dtype=wide)[:, None]⟧ *
    another base than the one given | _frequencies(x.shape[-1]⟦, base→⟧)
    float16 angles | return ⟦xp.float64 if x.dtype == xp.float64 else xp.float32→x.dtype⟧
    float32 angles of float64 | return xp.⟦float64 if x.dtype == xp.float64 else xp.→⟧float32
    slopes from 1 on | -8 * np.arange(⟦1, power + 1→power⟧) / power
    slopes of 8 heads for all | -⟦8 * np.arange(1, power + 1) / power→1.0 * np.arange(1, power + 1)⟧
    slopes that another head has | np.arange(⟦1→2⟧, 2 * power + 1, 2)
    the flattest slopes first | between⟦[: num_heads - power]→[::-1][: num_heads - power]⟧
    a bias towards what is far | return ⟦-→⟧_slopes
    the future is near | ⟦np.abs→⟧(position[:, None] - position[None, :])
attention/heads | numpy
    not moved back | xp.reshape(⟦xp.moveaxis(x, (-3,), (-2,))→x⟧, (*lead, n, heads * d))
    cut, not moved |
        xp.⟦moveaxis(xp.reshape(x, (*lead, n, num_heads, e // num_heads)), (-2,), (-3,))
        →reshape(x, (*lead, num_heads, n, e // num_heads))⟧
    every so many columns a head |
        (*lead, n, ⟦num_heads, e // num_heads)), (-2→e // num_heads, num_heads)), (-1⟧,), (-3,))
    queries for keys | x @ ⟦w_q.mT, x @ w_k→w_k.mT, x @ w_q⟧.mT,
    keys for values | x @ w_k.mT, x @ ⟦w_v→w_k⟧.mT
    no output projection | return ⟦linear(layer.output, _merge_heads(heads))→_merge_heads(heads)⟧
    no output projection beside weights |
        output = ⟦linear(layer.output, _merge_heads(heads))→_merge_heads(heads)⟧
    mask dropped | fast_average(q, k, v, ⟦mask→None⟧, causal, drop)
    mask dropped beside weights | attention_weights(q, k, v, ⟦mask→None⟧, causal, score)
    mask not lifted over heads | mask = mask⟦[..., None, :, :]→⟧ if
    mask of a sequence not lifted | mask.ndim > ⟦2→3⟧ else mask
    scale of the whole width | (layer.query, queries), layer.num_heads)⟦→ / layer.num_heads**0.5⟧
    neighbours do not share | (x).⟦repeat(x, times, axis=-3)→concat([x] * times, axis=-3)⟧
    values of the queries | values = ⟦keys→queries⟧ if values is None
    values from keys | linear(layer.value, ⟦values→keys⟧)
    values projected as keys | linear(layer.⟦value→key⟧, values)
attention/heads | torch | attention/test_attention_layers.py::test_self_attention_equals_the_loop
    keys for values, a layer of one head | , linear(layer.key, x), linear(layer.⟦value→key⟧, x), **
    queries and keys exchanged, a layer of one head |
        ⟦(layer.query, x), linear(layer.key, x)→(layer.key, x), linear(layer.query, x)⟧, linear
attention/heads | torch | attention/test_causal.py::test_layers
    causal ignored, heads | fast_average(q, k, v, mask, ⟦causal→False⟧, drop)
    causal ignored beside weights and dropout | (q, k, v, mask, ⟦causal→False⟧, score)
attention/heads | torch |
        attention/test_attention_dropout.py::test_returned_weights_are_those_before_any_is_left_out
    mask dropped beside dropout | (q, k, v, mask⟦→ if drop is None else None⟧, causal, score)
    weights after some were left out | (weights ⟦→:= weights ⟧if drop is None else drop(weights), v)
    coordinates left out, not weights |
        ⟦weighted_average(weights if drop is None else drop(weights), v)
        →(drop or (lambda a: a))(weighted_average(weights, v))⟧
attention/heads | torch | attention/test_attention_dropout.py::test_a_score_while_training
    score dropped beside dropout | (q, k, v, mask, causal, ⟦score→scores.scaled_dot⟧)
attention/heads | torch | models/test_block_layers.py::test_project_equals_the_loop
    keys for values, projected | (q, _repeat_kv(k, times), _repeat_kv(⟦v→k⟧, times))
    values not shared, projected | (q, _repeat_kv(k, times), ⟦_repeat_kv(v, times)→v⟧)
jax/attention | jax | attention/test_attention_layers.py::test_starts_differ_from_part_to_part
    keys start as queries | use_bias=bias, key=keys[⟦1→0⟧]
_fast/sdpa | torch | attention/test_attention_dropout.py::test_a_weight_is_left_out_or_grows
    nothing left out, fused | dropout_p=⟦dropout→0.0⟧,
    the share that stays left out, fused | dropout_p=⟦dropout→1 - dropout if dropout else 0.0⟧,
torch/attention | torch |
        attention/test_attention_dropout.py::test_returned_weights_are_those_before_any_is_left_out
    heads lose the same, weights | return ⟦nn.functional.dropout(x, p=self.share)
        →x * nn.functional.dropout(x[..., :1, :, :] * 0 + 1, self.share)⟧
torch/attention | torch | models/test_block_layers.py::test_a_seed_settles_what_is_left_out
    dropout at rest | if ⟦not layer.training or →⟧layer.dropout == 0:
torch/attention | torch | models/test_block_layers.py::test_an_entry_is_left_out_twice_or_grows
    the others do not grow | .dropout⟦(x, p=self.share)→(x, self.share) * (1 - self.share)⟧
    the share that stays left out | return Dropout(⟦→1 - ⟧layer.dropout)
    tokens left out whole | return ⟦nn.functional.dropout(x, p=self.share)
        →x * nn.functional.dropout(x[..., :1] * 0 + 1, self.share)⟧
jax/dropout | jax | attention/test_attention_dropout.py::test_a_weight_is_left_out_or_grows
    heads lose the same, weights | ⟦x.shape→(*x.shape[:-3], 1, *x.shape[-2:])⟧
jax/dropout | jax | models/test_block_layers.py::test_a_seed_settles_what_is_left_out
    dropout at rest | ⟦if key is None or→key = jax.random.key(0) if key is None else key\n    if⟧
jax/dropout | jax | models/test_block_layers.py::test_the_parts_leave_out_each_its_own
    one key for all parts |
        ⟦self.remaining, now = jax.random.split(self.remaining)→now = self.remaining⟧
jax/dropout | jax | models/test_block_layers.py::test_an_entry_is_left_out_twice_or_grows
    the others do not grow | x⟦ / (1 - share)→⟧, 0
    the share that stays left out | key, ⟦1 - →⟧share,
    tokens left out whole | share, ⟦x.shape→(*x.shape[:-1], 1)⟧
models/transformer | torch | models/test_attention_only.py::test_equals_the_loop
    nothing is added to | x = ⟦x + →⟧change
    the last layer alone is read | logits = linear(model.readout, ⟦x→change⟧)
models/transformer | torch | models/test_attention_only.py::test_shorter_sequences_and_leading_axes
    the last positions, attention alone | [⟦: tokens.shape[-1]→-tokens.shape[-1] :⟧]\n    kept
models/transformer | torch | models/test_attention_only.py::test_the_future_does_not_count_at_all
    causal dropped | layer(x, ⟦causal=True, →⟧return_weights=return_weights)
""")
