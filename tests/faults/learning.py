"""Mistakes in losses, in the rates of a training and in its steps."""

from faults.fault import faults

FAULTS = faults(r"""
models/losses | numpy
    mask dropped | -⟦xp.where(mask, log_p, xp.zeros_like(log_p))→log_p⟧
    a mean over all | count = xp.sum(xp.⟦astype(mask, logits.dtype)→ones_like(losses)⟧)
    infinity behind the mask |
        ⟦        logits = xp.where(mask[..., None], logits, xp.zeros_like(logits))\n→⟧
    an overflow | shifted = logits⟦ - xp.max(logits, axis=-1, keepdims=True)→⟧
    one largest for all rows | xp.max(logits⟦, axis=-1, keepdims=True→⟧)
    0 / 0 | ⟦xp.where(count > 0, count, xp.ones_like(count))→count⟧
    in bits | shifted - xp.⟦log→log2⟧
    the label beside | labels[..., None]⟦→ - 1⟧, axis=-1
    half precision as it is | ⟦    (logits,) = upcast_half(xp, logits)\n→⟧
models/losses | torch
    a softmax over the rows | torch.log_softmax(logits, dim=-⟦1→2⟧)
models/losses | torch | models/test_losses.py::test_what_is_masked_has_no_gradient
    NaN behind the mask |
        ⟦        logits = xp.where(mask[..., None], logits, xp.zeros_like(logits))\n→⟧
train/training | numpy
    rows repeated in a batch | replace=⟦False→True⟧
    the same rows at every step | ⟦rng→np.random.default_rng(seed)⟧.choice
    labels of other rows | (a⟦[batch]→[np.sort(batch)] if a.ndim > 1 else a[batch]⟧ for a in arrays)
    a step late | rates[⟦min(number, len(rates) - 1)→max(0, min(number, len(rates)) - 1)⟧]
train/training | numpy | train/test_train_lm.py::test_step_batch_is_the_loop
    one batch for all steps | ⟦numbers.nonnegative_int(step=step)→0 * step⟧
    one run for all seeds | start = [⟦numbers.nonnegative_int(seed=seed)→0 * seed⟧
    no token that follows | first + np.arange(window⟦ + 1→⟧)
    the last window never | 0, ⟦len(tokens) - window→max(1, len(tokens) - window - 1)⟧,
    windows one after the other | size=⟦(rows, 1))→1) + np.arange(rows)[:, None]⟧
train/language_model/workers | numpy | train/test_train_lm.py::test_workers_share_a_batch
    every rank the first rows | rows[⟦rank * each : (rank + 1) * →:⟧each]
train/language_model/checkpoints | numpy | train/test_train_lm.py::test_newest_checkpoint_is_whole
    sizes alone | return size, ⟦check→0⟧
    the oldest first | reverse=⟦True→False⟧
    none kept | (step_of(found) or 0) <⟦→=⟧ (keep or 0)
train/language_model/text | numpy |
        train/test_train_lm.py::test_held_out_windows_for_any_number_of_workers
    a window short of the end | len(text.held_out) - window - ⟦1→2⟧
train/byte_pairs | numpy | train/test_train_lm.py::test_byte_pairs_by_hand
    a word counts once | frequency[pair] += ⟦times→(times > 0) - (times < 0)⟧
    the rarest first | (⟦-→⟧frequency[found], found)
train/training | numpy | train/test_training_run.py
    no rise | peak *⟦ rise *→⟧
    a rise from 0 | ⟦(t + 1)→t⟧ / max
    a whole cosine | ⟦→2 * ⟧np.pi * t
    twice the peak | (np.pi * t / steps))⟦ / 2→⟧
torch/training | torch
    gradients add up | ⟦optimiser.zero_grad()→pass⟧
    weights decay | torch.optim.⟦Adam→AdamW⟧
    another memory | lr=0.0⟦→, betas=(0.9, 0.99)⟧
    the loss after the step | return ⟦value→loss(model, *map(torch.tensor, batch))⟧.detach()
torch/training | torch | train/test_training.py::test_clipped_gradients_by_hand
    every parameter clipped by itself | ⟦nn.utils.clip_grad_norm_(model.parameters(), limit)
        →[nn.utils.clip_grad_norm_([p], limit) for p in model.parameters()]⟧
    every entry clipped | nn.utils.⟦clip_grad_norm_→clip_grad_value_⟧
    always of the limit's length | ⟦nn.utils.clip_grad_norm_(model.parameters(), limit)
        →[p.grad.mul_(limit / (1e-9 + sum((q.grad**2).sum() for q in model.parameters()) ** 0.5))
         for p in [*model.parameters()][:1]]⟧
jax/training | jax
    Nesterov's Adam | optax.scale_by_adam(⟦→nesterov=True⟧)
    another memory | optax.scale_by_adam(⟦→b2=0.99⟧)
    Adam forgets | learned, ⟦state→_⟧, value = change
jax/training | jax | train/test_training.py::test_clipped_gradients_by_hand
    every entry clipped | optax.⟦clip_by_global_norm→clip⟧(limit)
    steps clipped | optax.chain(⟦*clipped, optax.scale_by_adam()→optax.scale_by_adam(), *clipped⟧)
    every parameter clipped by itself | optax.⟦clip_by_global_norm→clip_by_block_rms⟧(limit)
jax/training | jax | train/test_training.py::test_dropout_while_training
    the same key every step | ⟦key, now = jax.random.split(key)→now = key⟧
jax/pieces | jax | models/test_jax_pieces.py
    from the earlier of the starts | ⟦max→min⟧(a, b) for
    to the later of the ends | ⟦min→max⟧(a + n, b + m) for
    one axis in common is enough | if ⟦any→all⟧(a >= b for
    both counted from one origin | return within(start), within(⟦other→start⟧)
    every array from the first byte | .memmap(piece.file, np.uint8, "r", ⟦piece.offset→0⟧, (size,))
    what the file has and the model has not | ⟦[*wanted, *(found.keys() - wanted.keys())]→wanted⟧
jax/processes | jax | models/test_jax_pieces.py
    the cluster before its launchers | () or ⟦_torchrun() or _cluster→_cluster() or _torchrun⟧()
    all GPUs for each process | ⟦os.environ.get("LOCAL_WORLD_SIZE", "1") != "1"→False⟧
    rank W of W | if not 0 <= process <⟦→=⟧ count:
""")
