"""Mistakes in the encoder and decoder with a GRU."""

from faults.fault import faults

FAULTS = faults(r"""
models/recurrent | torch | models/test_recurrent.py::test_gru_equals_the_loop |
        models/test_recurrent.py::test_gru_by_hand
    z and 1 − z exchanged | ⟦candidate + z * (state - candidate)→state + z * (candidate - state)⟧
    r before the product | ⟦r * from_state→linear(cell.hidden, r * state)⟧[..., 2 * h :]
    the second bias outside r | r * ⟦from_state[..., 2 * h :]
        →(from_state - cell.hidden.bias)[..., 2 * h :] + cell.hidden.bias[2 * h :]⟧
    r and z exchanged | ⟦r, z→z, r⟧ = gates
    gates twice as steep | ⟦→2 * ⟧(from_input + from_state)
models/recurrent | torch | models/test_recurrent.py::test_equals_the_loop
    padding updates the state | ⟦xp.where(is_word, cell(word, state), state)→cell(word, state)⟧
    padding clears the state | xp.where(is_word, cell(word, state), ⟦state→xp.zeros_like(state)⟧)
    backward not turned back | backward = ⟦xp.flip→(lambda states, axis: states)⟧
    backward with the mask forward | ⟦xp.flip(real, axis=0)→real⟧
    one cell for both directions | model.⟦backward_cell→forward_cell⟧
    the summary ← of the last word | backward[⟦0→-1⟧]
    the summary → of the first word | forward[⟦-1→0⟧], backward
    no tanh at the start | ⟦xp.tanh(linear(model.start, summary))→linear(model.start, summary)⟧
    mask dropped | ⟦mask[..., None, :]→None⟧
    keys for values | keys, ⟦states→keys⟧,
    without a score all states |
        (⟦summary[..., None, :], summary[..., None, :], None→states, states, mask[..., None, :]⟧)
    general's keys not multiplied | if model.score ⟦== "dot"→in ("dot", "general")⟧ else linear
    the dot product scaled | query, score = state[..., None, :], scores.⟦dot→scaled_dot⟧
    W_k for W_q | linear(model.⟦query→key⟧, query)
    the state after asks |
        = ⟦state→model.decoder_cell(xp.concat([previous, state], axis=-1), state)⟧[..., None, :],
    v left out | v=⟦model.combine→0 * model.combine + 1⟧
    context before the character | [⟦previous, context→context, previous⟧]
    the decoder starts from 0 | at, start⟦→ * 0⟧,
    the next character is seen | start, (⟦previous→xp.roll(previous, -1, axis=0)⟧,)
models/recurrent | torch | models/test_recurrent.py::test_teacher_forcing_is_writing_step_by_step
    writing goes on from the state before | ⟦state→after⟧, (_, context, weights) = step
torch/recurrent | torch | models/test_recurrent_layers.py::test_starts_differ_from_part_to_part
    v starts large | torch.randn(hidden_dim)⟦ / math.sqrt(hidden_dim)→⟧
torch/recurrent | torch | models/test_recurrent.py::test_equals_the_loop
    the carry thrown away | ⟦carry→_⟧, output = step(carry, at)
jax/recurrent | jax | models/test_recurrent_layers.py::test_starts_differ_from_part_to_part
    a cell starts small | limit, keys = 1 / ⟦math.sqrt(self.hidden_dim)→self.hidden_dim⟧,
jax/recurrent | jax | models/test_recurrent.py::test_equals_the_loop
    time runs backwards | jax.lax.scan(step, carry, inputs⟦→, reverse=True⟧)
""")
