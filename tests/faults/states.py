"""Mistakes in layers with a state of fixed size: their forms, their heads, their place."""

from faults.fault import faults

FAULTS = faults(r"""
linear_attention/forms | numpy
    the state does not decay | kept = state⟦ if decay is None else decay[..., None, None] * state→⟧
    β compares with the state before its decay | v - _read(⟦kept→state⟧, k)
    the value itself where there is a β | beta[..., None] * ⟦(v - _read(kept, k))→v⟧
    read before it is written | return state, _read(⟦state→kept⟧, q)
    what is written decays at once |
        u[..., None, :]\n⟦→    state = state if decay is None else decay[..., None, None] * state\n⟧
    a chunk forgets the one before | asked, told = ⟦→0 * ⟧since * (q @ state),
    a chunk's first decay left out | since = ⟦decay[..., :1, None] * →⟧products[..., :, :1]
    the state of a chunk does not decay | ⟦since[..., -1:, :] * →⟧state
    writes of a chunk do not decay | k⟦ * products[..., -1, :, None]→⟧
    writes of a chunk decay as if read at its start | k * products[..., ⟦-1, :→:, 0⟧, None]
    β does not see the state of the chunks before | gram, v⟦ - known→⟧,
    β sees it without decay | known = k @ state⟦ if decay is None else since * (k @ state)→⟧
    what fills the last chunk forgets | _cut(xp, decay, chunk, missing, ⟦1→0⟧, axis=-1)
    a token's own decay counts | place[:, None] >⟦→=⟧ place
    the future is seen, with decays |
        return xp.⟦tril(xp.cumulative_prod(factors, axis=-2))→cumulative_prod(factors, axis=-2)⟧
    the future is seen | ⟦array_namespace(q).tril→⟧(q @ k.mT)
    decays left out of the triangle | k @ k.mT⟦ if products is None else (k @ k.mT) * products→⟧
    the state of a chunk is corrected fully | v - known, ⟦beta[..., None]→1.0⟧
    β left out of the weights | identity, ⟦beta[..., None]→1.0⟧
    maps in the other order | return ⟦then[0] @ first[0], then[0] @ first[1] + then
        →first[0] @ then[0], first[0] @ then[1] + first⟧[1]
    the first map adds nothing | then⟦[0] @ first[1] + then[1]→[1]⟧
    the scan does one round | step *= ⟦2→n⟧
    maps without decay | maps = ⟦decay[..., None, None]→1⟧ * maps
    no state to start from |
        = xp.⟦broadcast_to(state, shape)→zeros(shape, dtype=tokens[0].dtype, device=device(k))⟧
linear_attention/forms | torch |
        linear_attention/test_linear_attention.py::test_half_precision_is_computed_in_float32
    outputs stay wide | return ⟦xp.astype(outputs, q.dtype)→outputs⟧, last\n\n\ndef _write
linear_attention/online_regression | torch |
        linear_attention/test_linear_attention.py::test_every_form_equals_the_loop
    a triangle with its diagonal doubled | upper=False, unitriangular=⟦True→False⟧
linear_attention/online_regression | jax |
        linear_attention/test_linear_attention.py::test_every_form_equals_the_loop
    the upper triangle | lower=⟦True→False⟧, unit_diagonal=True
linear_attention/linear_heads | torch | linear_attention/test_linear_layers.py::test_equals_the_loop
    elu without the 1 | x > 0, x⟦ + 1→⟧, xp.exp
    not divided by the sum | sums ⟦/ xp.where(total == 0, xp.ones_like(total), total)→+ 0 * total⟧
    weights of the sums without the last | _divided(sums[..., :-1], sums[..., ⟦-1:→:1⟧])
    hidden keys are written, linear |
        if ⟦seen is not None:\n        k = xp.where(seen, k, xp.zeros_like(k))\n    if →⟧return
    hidden keys are written, delta | ⟦k = xp.where(seen, k, xp.zeros_like(k))\n        →⟧decay
    hidden tokens let the state decay | ⟦xp.where(seen[..., 0], decay, xp.ones_like(decay))→decay⟧
    keys of any length | unit_length(silu(q)), ⟦unit_length(silu(k))→silu(k)⟧
    no activation | unit_length⟦(silu(q)), unit_length(silu(k))→(q), unit_length(k)⟧
    values of length 1 | q, k, wide = upcast_half(xp, q, k, ⟦v→unit_length(v)⟧)\n    q, k = unit
    decay for β | _rate(⟦layer.beta→getattr(layer, 'decay', layer.beta)⟧, queries) if layer.delta
    rates that are no shares |
        ⟦sigmoid(*upcast_half(xp, linear(layer, x)))→upcast_half(xp, linear(layer, x))[0]⟧
    no norm of heads | ⟦apply_norm(layer.head_norm, array_namespace(v).astype(heads, v.dtype))
        →array_namespace(v).astype(heads, v.dtype)⟧
linear_attention/linear_heads | torch |
        linear_attention/test_linear_layers.py::test_linear_attention_in_both_directions
    causal in any case | chunked(q, k, with_one)[0]⟦ if causal else q @ (k.mT @ with_one)→⟧
    weights causal in any case | weights(q, k)⟦ if causal else q @ k.mT→⟧
    nothing in sight is 0 / 0 | ⟦xp.where(total == 0, xp.ones_like(total), total)→total⟧
models/blocks | jax | linear_attention/test_linear_layers.py::test_a_writer_with_it
    every layer of JAX with the softmax | if ⟦softmax and →⟧not is_module(layer):
torch/linear_attention | torch | linear_attention/test_linear_layers.py::test_decay_starts_near_one
    decays start at a half | nn.init.constant_(self.decay.bias, ⟦linear_heads.DECAY_START→0⟧)
jax/linear_attention | jax | linear_attention/test_linear_layers.py::test_decay_starts_near_one
    decays start at a half |
        jnp.⟦full((self.num_heads,), linear_heads.DECAY_START)→zeros((self.num_heads,))⟧
jax/slices | jax | models/test_slices.py
    every rank adds the output's bias | linear.bias⟦ if rank == 0 else None→⟧
    every rank has the first heads | here = slice(⟦rank * size, (rank + 1) *→0,⟧ size)
    the output's columns are those of the rank before |
        [:, ⟦rank * size : (rank + 1)→(rank - 1) % world * size : ((rank - 1) % world + 1)⟧ * size]
    the gate stays whole | ("query", "key", "value", "hidden"⟦, "gate"→⟧)
    as many heads as before | arguments(type(layer), layer)⟦ | sizes_per_device(layer, world)→⟧
""")
