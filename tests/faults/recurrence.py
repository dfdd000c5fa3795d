"""Mistakes in the encoder–decoder, in decoding, in the loss and in the data of chapter 4."""

from __future__ import annotations

from faults.planting import Fault, fault

LOOP = ("test_recurrent.py::test_equals_the_loop",)
CELL = ("test_recurrent.py::test_gru_equals_the_loop", "test_recurrent.py::test_gru_by_hand")
WRITE = ("test_recurrent.py::test_teacher_forcing_is_writing_step_by_step",)
DECODES = ("test_translation.py::test_the_encoder_decoder_decodes",)
INTEGERS = ("test_translation.py::test_every_kind_of_integer",)
LOSS_GRADIENT = ("test_losses.py::test_what_is_masked_has_no_gradient",)
UNDER_JIT = ("test_tokens.py::test_shapes_are_looked_at_under_jit",)
CLIP = ("test_training.py::test_clipped_gradients_by_hand",)
BAD_CLIP = ("test_training.py::test_bad_clips",)
SEARCH_SIZES = ("test_decoding.py::test_a_width_and_a_limit_are_sizes",)
RATES = ("test_training_run.py",)


def layers(*names: str) -> tuple[str, ...]:
    return tuple(f"test_recurrent_layers.py::test_{name}" for name in names)


def formula(words: str, original: str, changed: str, tests: tuple[str, ...] = LOOP) -> Fault:
    return fault("recurrent", words, original, changed, backends="torch", tests=tests)


def search(words: str, original: str, changed: str, tests: tuple[str, ...] = ()) -> Fault:
    return fault("decoding", words, original, changed, backends="torch", tests=tests)


BAD, SIZES = layers("bad_sentences"), layers("sizes_and_their_names")
STARTS = layers("starts_differ_from_part_to_part")
BOTH = [  # the module of either back end
    (BAD, "what is written not looked at", "tokens.sentences(source, mask, written, self.source_vocab, self.target_vocab)", "pass"),
    (BAD, "what is read not looked at", "tokens.sentences(source, mask, source, self.source_vocab, self.source_vocab)", "pass"),
    (BAD, "vocabularies exchanged", "written, self.source_vocab, self.target_vocab)", "written, self.target_vocab, self.source_vocab)"),
    (layers("an_odd_state_has_no_halves"), "an odd state", "sizes.halves(hidden_dim=hidden_dim)", "sizes.size(hidden_dim=hidden_dim)"),
    (layers("unknown_scores"), "any score", "self.score = starting.decoder_score(score)", "self.score = score"),
    (layers("bad_sizes"), "any size", "sizes.size(embed_dim=embed_dim)", "embed_dim"),
    (layers("bad_sizes"), "any size, cell", "sizes.size(input_dim=input_dim)", "input_dim"),
    (SIZES, "the dot product by default", '| None = "additive"', '| None = "dot"'),
    (LOOP, "weights for logits", "return_weights else logits", "return_weights else weights"),
]  # fmt: skip
ASKS = "query, score = state[..., None, :], scores.dot"
CALLED = ("test_modules.py::test_hooks_of_every_part_act",)
LAYER_ARGUMENTS = ("test_layer_arguments.py",)
DROPPED = ("test_training.py::test_dropout_while_training",)

FAULTS = [
    # recurrent
    formula("z and 1 − z exchanged", "candidate + z * (state - candidate)", "state + z * (candidate - state)", CELL),
    formula("r before the product", "r * from_state[..., 2 * h :]", "linear(cell.hidden, r * state)[..., 2 * h :]", CELL),
    formula("the second bias outside r", "r * from_state[..., 2 * h :]", "r * (from_state - cell.hidden.bias)[..., 2 * h :] + cell.hidden.bias[2 * h :]", CELL),
    formula("r and z exchanged", "r, z = gates", "z, r = gates", CELL),
    formula("gates twice as steep", "xp.tanh(0.5 * (from", "xp.tanh((from", CELL),
    formula("padding updates the state", "xp.where(is_word, cell(word, state), state)", "cell(word, state)"),
    formula("padding clears the state", "xp.where(is_word, cell(word, state), state)", "xp.where(is_word, cell(word, state), xp.zeros_like(state))"),
    formula("backward not turned back", "backward = xp.flip(\n", "backward = (lambda states, axis: states)(\n"),
    formula("backward reads forward", "walk(model.backward_cell, xp.flip(words, axis=0)", "walk(model.backward_cell, words"),
    formula("backward with the mask forward", "xp.flip(real, axis=0)", "real"),
    formula("one cell for both directions", "walk(model.backward_cell", "walk(model.forward_cell"),
    formula("the summary ← of the last word", "backward[0]]", "backward[-1]]"),
    formula("the summary → of the first word", "[forward[-1], backward", "[forward[0], backward"),
    formula("no tanh at the start", "xp.tanh(linear(model.start, summary))", "linear(model.start, summary)"),
    formula("mask dropped", "mask[..., None, :]), start", "None), start"),
    formula("keys for values", "Memory(keys, states,", "Memory(keys, keys,"),
    formula("without a score all states", "Memory(summary[..., None, :], summary[..., None, :], None)", "Memory(states, states, mask[..., None, :])"),
    formula("general's keys not multiplied", 'if model.score == "dot" else linear(', 'if model.score in ("dot", "general") else linear('),
    formula("the dot product scaled", ASKS, ASKS.replace("scores.dot", "scores.scaled_dot")),
    formula("W_k for W_q", "linear(model.query, query)", "linear(model.key, query)"),
    formula("the state after asks", ASKS, ASKS.replace("state", "model.decoder_cell(xp.concat([written, state], axis=-1), state)")),
    formula("W_q left out", "        query = linear(model.query, query)\n", ""),
    formula("v left out", "v=model.combine)", "v=0 * model.combine + 1)"),
    *(
        fault("scores", words, *change, backends="torch", tests=LOOP)
        for words, *change in (
            ("no tanh, projected", "xp.tanh(hidden) @ v", "hidden @ v"),
            ("queries lost, projected", "hidden = q[..., :, None, :] +", "hidden = 0 * q[..., :, None, :] +"),
        )
    ),
    formula("a cell that is not called", "cell(word, state), state)", "gru(cell, word, state), state)", CALLED),
    formula("a decoder's cell that is not called", "model.decoder_cell(xp.concat([written, context], axis=-1), state)", "gru(model.decoder_cell, xp.concat([written, context], axis=-1), state)", CALLED),
    formula("context before the character", "[written, context]", "[context, written]"),
    formula("the state before is read out", "    return state, (state, context, weights)", "    return state, (written[..., :1] * 0 + state * 0, context, weights)"),
    formula("no context in the logits", "linear(model.output, xp.concat([state, context]", "linear(model.output, xp.concat([state, context * 0]"),
    formula("the decoder starts from 0", "model.unroll(at, start,", "model.unroll(at, start * 0,"),
    formula("the next character is seen", "start, (embedded,))", "start, (xp.roll(embedded, -1, axis=0),))"),
    formula("writing goes on from the state before", "    state, (_, context, weights) = step(model, memory, state, written)\n    return state,", "    after, (_, context, weights) = step(model, memory, state, written)\n    return state,", WRITE),
    # decoding
    search("ended rows go on", "xp.where(ended, xp.full_like(best, end), best)", "best"),
    search("the least probable token", "xp.argmax(", "xp.argmin("),
    search("a token too many", "len(written) < limit", "len(written) <= limit"),
    search("no stop when all have ended", " and not bool(xp.all(ended))", ""),
    search("stops when one has ended", "xp.all(ended)", "xp.any(ended)"),
    search("begins with the end", "xp.full(source.shape[:1], start,", "xp.full(source.shape[:1], end,"),
    search("weights of another row", "read.append(to_numpy(weights))", "read.append(to_numpy(weights)[::-1])"),
    search("the beam keeps the least probable", "np.argsort(-longer", "np.argsort(longer"),
    search("probabilities not accumulated", "so_far + _log_softmax(", "_log_softmax("),
    search("logits for probabilities", "_log_softmax(to_numpy(logits))", "to_numpy(logits).astype(np.float64)"),
    search("a beginning too long", "len(beginnings[0][0]) < limit", "len(beginnings[0][0]) <= limit"),
    search("an end's place filled again", "[: width - len(ended)]", "[:width]"),
    search("the state of another beginning", "xp.asarray(rows[tokens != end],", "xp.asarray(0 * rows[tokens != end],"),
    search("in the order of their ends", "sorted(ended or beginnings, key=lambda pair: -pair[1])", "ended or beginnings"),
    search("the least probable first", "lambda pair: -pair[1]", "lambda pair: pair[1]"),
    search("what has not ended beside", "sorted(ended or beginnings", "sorted(ended + beginnings"),
    search("a beam begins with the end", "as_array([start])", "as_array([end])"),
    search("a beam of any width", "sizes.size(width=width)", "pass", SEARCH_SIZES),
    search("any length", "    sizes.size(limit=limit)\n", "", SEARCH_SIZES),
    *(
        fault("decoding", words, *change, backends="torch", tests=(f"test_decoding.py::{test}",))
        for words, *change, test in (
            ("a graph is kept", 'sys.modules["torch"].no_grad() if is_torch_array(like) else nullcontext()', "nullcontext()", "test_writing_keeps_no_graph"),
            ("targets of the source's dtype", "return xp, check.widened(source)", "return xp, source", "test_targets_are_not_of_the_sources_dtype"),
            ("targets of the source's dtype, in a beam", "xp, like = array_namespace(source), check.widened(source)", "xp, like = array_namespace(source), source", "test_targets_are_not_of_the_sources_dtype"),
            ("any end", "sizes.count(end=end) if vocab is None else sizes.within(0, vocab - 1, end=end)", "pass", "test_starts_and_ends_are_tokens"),
            ("any start", "    sizes.integer(start=start)\n", "", "test_starts_and_ends_are_tokens"),
            ("a sentence for a batch", "    check.batch(source=source)\n", "", "test_sources_of_other_shapes"),
            ("a batch for a sentence", "if source.ndim != 1:", "if False:", "test_sources_of_other_shapes"),
        )
    ),
    search("an overflow", "logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)", "logits.astype(np.float64)"),
    search("probabilities in float32", "logits.astype(np.float64) -", "logits -"),
    search("small integers as places", "xp.asarray(rows[tokens != end], device=device(source))", "xp.asarray(rows[tokens != end], dtype=source.dtype, device=device(source))", DECODES),
    # losses
    fault("losses", "mask dropped", "xp.where(mask, normaliser - xp.sum(chosen, axis=-1), xp.zeros_like(normaliser))", "normaliser - xp.sum(chosen, axis=-1)"),
    fault("losses", "a mean over all", "count = xp.sum(xp.astype(mask, logits.dtype))", "count = xp.sum(xp.ones_like(normaliser))"),
    fault("losses", "a sum", "count > 0, count,", "count < 0, count,"),
    fault("losses", "infinity behind the mask", "    logits = xp.where(mask[..., None], logits, xp.zeros_like(logits))\n", ""),
    fault("losses", "NaN behind the mask", "    logits = xp.where(mask[..., None], logits, xp.zeros_like(logits))\n", "", backends="torch", tests=LOSS_GRADIENT),
    fault("losses", "an overflow", "shifted = logits - xp.max(logits, axis=-1, keepdims=True)", "shifted = logits"),
    fault("losses", "one largest for all rows", "xp.max(logits, axis=-1, keepdims=True)", "xp.max(logits)"),
    fault("losses", "0 / 0", "xp.where(count > 0, count, xp.ones_like(count))", "count"),
    fault("losses", "in bits", "normaliser = xp.log(", "normaliser = xp.log2("),
    fault("losses", "the label beside", "number == xp.astype", "number + 1 == xp.astype"),
    fault("losses", "half precision as it is", "    (logits,) = widen(xp, logits)\n", ""),
    fault("losses", "half precision not given back", "xp.ones_like(count)), dtype)", "xp.ones_like(count)), logits.dtype)"),
    fault("losses", "labels not looked at", "tokens.labels(logits, labels, mask)", "pass"),
    fault("losses", "labels of another integer", "xp.astype(labels, number.dtype)[", "labels[", backends="jax", tests=("test_losses.py::test_float32_stays_and_labels_are_any_integers",)),
    # tokens
    fault("tokens", "negative numbers", "(tokens < 0) | (tokens > largest)", "tokens > largest"),
    fault("tokens", "a number too many", "min(vocab_size - 1,", "min(vocab_size,"),
    fault("tokens", "no integers", 'not xp.isdtype(tokens.dtype, "integral") or tokens.ndim == 0', "tokens.ndim == 0"),
    fault("tokens", "a single number", " or tokens.ndim == 0", ""),
    fault("tokens", "the longest is too long", "tokens.shape[-1] > longest", "tokens.shape[-1] >= longest"),
    fault("tokens", "any length", "if longest is not None and tokens", "if False and tokens"),
    fault("tokens", "one vocabulary", "numbers(vocab, written=written)", "numbers(source_vocab, written=written)"),
    fault("tokens", "one sentence without a word", "~xp.all(xp.any(mask, axis=-1))", "~xp.any(mask)"),
    fault("tokens", "a text of no token", "if written.shape[-1] == 0:", "if False:"),
    fault("tokens", "a text of one token", "if written.shape[-1] == 0:", "if written.shape[-1] <= 1:"),
    fault("tokens", "no words under jit", "source.shape[-1] == 0 or ", "", backends="jax", tests=UNDER_JIT),
    fault("tokens", "a text for no sentence", "if tuple(written.shape[:-1]) != tuple(source.shape[:-1]):", "if False:"),
    fault("tokens", "a mask of any shape", " or tuple(mask.shape) != tuple(tokens.shape)", ""),
    fault("tokens", "a mask of numbers", 'not xp.isdtype(mask.dtype, "bool") or ', ""),
    fault("tokens", "any labels", "    numbers(logits.shape[-1], labels=labels)\n", ""),
    fault("tokens", "labels of any shape", "if tuple(labels.shape) != tuple(logits.shape[:-1]):", "if False:"),
    fault("tokens", "any mask of labels", '        _mask(labels, mask, "labels")', "        pass"),
    fault("tokens", "no vocabulary", " or logits.shape[-1] == 0:", ":"),
    # the layers
    *(fault(f"{name}/recurrent", *words, backends=name, tests=t) for name in ("torch", "jax") for t, *words in BOTH),
    *(
        fault("torch/recurrent", words, *change, backends="torch", tests=tests)
        for tests, words, *change in (
            (INTEGERS, "small integers as they are", "source.long(), mask, written.long()", "source, mask, written"),
            (INTEGERS, "a small integer as it is", "token.long()", "token"),
            (STARTS, "a cell starts as a linear layer", "for parameter in self.parameters():", "for parameter in ():"),
            (SIZES, "one cell for both directions", "self.backward_cell = GRUCell(embed_dim, hidden_dim // 2)", "self.backward_cell = self.forward_cell"),
            (SIZES, "keys with a bias", "self.key = nn.Linear(hidden_dim, hidden_dim, bias=False)", "self.key = nn.Linear(hidden_dim, hidden_dim)"),
            (STARTS, "v starts at 0", "torch.randn(hidden_dim) /", "torch.zeros(hidden_dim) /"),
            (STARTS, "v starts large", "torch.randn(hidden_dim) / math.sqrt(hidden_dim)", "torch.randn(hidden_dim)"),
            (LOOP, "the carry thrown away", "carry, output = step(carry, at)", "_, output = step(carry, at)"),
            (layers("unroll_is_a_loop"), "the first carry comes back", "        return carry, torch.stack(outputs)", "        return outputs[0], torch.stack(outputs)"),
        )
    ),
    *(
        fault("jax/recurrent", words, *change, backends="jax", tests=tests)
        for tests, words, *change in (
            (STARTS, "two cells start alike", "key=keys[3]", "key=keys[2]"),
            (STARTS, "one key for a cell", "jax.random.split(to_draw, len(parameters))", "[to_draw] * len(parameters)"),
            (STARTS, "a cell starts small", "limit, keys = 1 / math.sqrt(self.hidden_dim),", "limit, keys = 1 / self.hidden_dim,"),
            (SIZES, "keys with a bias", "eqx.nn.Linear(h, h, use_bias=False, key=keys[7])", "eqx.nn.Linear(h, h, key=keys[7])"),
            (SIZES, "a query without a score that asks", "key=keys[8]) if additive", "key=keys[8]) if multiplied"),
            (STARTS, "v starts at 0", "jax.random.normal(keys[9], (h,))", "jax.numpy.zeros((h,))"),
            (LOOP, "time runs backwards", "jax.lax.scan(step, carry, inputs)", "jax.lax.scan(step, carry, inputs, reverse=True)"),
        )
    ),
    # the data
    *(
        fault("datasets/number_words", *words)
        for words in (
            ("held-out numbers seen in training", "Pairs(drawn[:train], sources[:train], targets[:train])", "Pairs(drawn[-train:], sources[-train:], targets[-train:])"),
            ("numbers twice", "numbers[np.sort(first)][:total]", "numbers[:total]"),
            ("small numbers first", "rng.permutation(numbers[np.sort(first)][:total])", "numbers[np.sort(first)][:total]"),
            ("the largest held out", "rng.permutation(numbers[np.sort(first)][:total])", "np.sort(numbers[np.sort(first)][:total])"),
            ("the smallest of the draws", "numbers[np.sort(first)]", "np.sort(numbers[first])"),
            ("the seed ignored", "np.random.default_rng(seed)", "np.random.default_rng(0)"),
            ("no small numbers", "p=[0.1, 0.1, 0.8]", "p=[0, 0, 1]"),
            ("hyphens kept", '.replace("-", " ")', ""),
            ("commas kept", '.replace(",", "")', ""),
            ("no END", "[SPECIAL[START], *t, SPECIAL[END]]", "[SPECIAL[START], *t]"),
            ("no START", "[SPECIAL[START], *t, SPECIAL[END]]", "[*t, SPECIAL[END]]"),
            ("padding in front", "row[: len(sentence)] =", "row[len(row) - len(sentence) :] ="),
            ("spelt beyond END", "for t in rows[:ends]", "for t in rows"),
            ("START spelt", "not in (PAD, START)", "!= PAD"),
            ("padding read", " for t in tokens if t != PAD]", " for t in tokens]"),
            ("a beginning is right", "(said[:n], true[1 : n + 1])", "(said[: n - 1], true[1:n])"),
            ("START is to be written", "true[1 : n + 1]", "true[:n]"),
            ("what stands behind END counts", "(said[:n], true[1 : n + 1])", "(said[: len(true) - 1], true[1:])"),
            ("padding is to be written", "np.sum(target != PAD, axis=1) - 1", "np.sum(target != PAD, axis=1)"),
            ("the text alone counts", "np.array_equal(said[:n], true[1 : n + 1])", "self.spell(said) == self.spell(true)"),
            ("other words", "_words(int(n), language)", '_words(int(n), "nl")'),
            ("nothing held out", "train >= 1 and held_out >= 1 and", "train >= 1 and"),
            ("too many numbers", "total <= 300_000", "total <= 400_000"),
            ("English to English", 'language not in ("de", "fr")', 'language not in ("de", "fr", "en")'),
            ("a vocabulary in any order", "SPECIAL + sorted({", "SPECIAL + list({"),
        )
    ),
    # what chapter 4 adds to older modules
    fault("scores", "keys of any width", "elif k.shape[-1] != r:", "elif False:"),
    fault("sizes", "a limit of 0", "not 0 < real(number) < math.inf:\n        raise ValueError(f\"{name}: got {number!r}, expected a number above 0, or", "not 0 <= real(number) < math.inf:\n        raise ValueError(f\"{name}: got {number!r}, expected a number above 0, or", tests=layers("limits")),
    fault("sizes", "halves of an odd width", "if size(**argument) % 2:\n        raise ValueError(f\"{name}: got {number}", "if False:\n        raise ValueError(f\"{name}: got {number}", tests=layers("two_halves")),
    fault("sizes", "half a width of NumPy's", 'half for each direction")\n    return int(number)', 'half for each direction")\n    return number', tests=layers("two_halves")),
    fault("starting", "no decoder without attention", '"dot", None):', '"dot"):', tests=layers("known_scores")),
    fault("training", "no rise", "peak * rise *", "peak *", tests=RATES),
    fault("training", "a rise from 0", "(t + 1) / max(", "t / max(", tests=RATES),
    fault("training", "a whole cosine", "np.cos(np.pi * t", "np.cos(2 * np.pi * t", tests=RATES),
    fault("training", "twice the peak", "(np.pi * t / steps)) / 2", "(np.pi * t / steps))", tests=RATES),
    fault("training", "a peak of 0", "if not 0 < sizes.real(peak) <", "if not 0 <= sizes.real(peak) <", tests=RATES),
    fault("training", "rates for no step", "sizes.count(steps=steps) < 1", "sizes.count(steps=steps) < 0", tests=RATES),
    *(fault(f"{name}/training", "any clip", "limit = sizes.limit(clip=clip)", "limit = clip", backends=name, tests=BAD_CLIP) for name in ("torch", "jax")),
    *(
        fault(f"{name}/training", words, original, changed, backends=name, tests=CLIP)
        for name, words, original, changed in (
            ("torch", "clip dropped", "if limit is not None:", "if False:"),
            ("torch", "every parameter clipped by itself", "nn.utils.clip_grad_norm_(model.parameters(), limit)", "[nn.utils.clip_grad_norm_([p], limit) for p in model.parameters()]"),
            ("torch", "every entry clipped", "nn.utils.clip_grad_norm_(", "nn.utils.clip_grad_value_("),
            ("torch", "always of the limit's length", "nn.utils.clip_grad_norm_(model.parameters(), limit)", "[p.grad.mul_(limit / (1e-9 + sum((q.grad**2).sum() for q in model.parameters()) ** 0.5)) for p in [*model.parameters()][:1]]"),
            ("jax", "clip dropped", "clipped = [] if limit is None else", "clipped = [] if True else"),
            ("jax", "every entry clipped", "optax.clip_by_global_norm(limit)", "optax.clip(limit)"),
            ("jax", "steps clipped", "optax.chain(*clipped, adam)", "optax.chain(adam, *clipped)"),
            ("jax", "every parameter clipped by itself", "optax.clip_by_global_norm(limit)", "optax.clip_by_block_rms(limit)"),
        )
    ),
    *(
        fault(f"{library}/recurrent", *words, backends=library, tests=LAYER_ARGUMENTS)
        for library in ("torch", "jax")
        for words in (
            ("any token is written", "tokens.one(self, memory, state, token)", "pass"),
            ("any state of a cell", "tokens.cell(self, inputs, state)", "pass"),
        )
    ),
    fault("tokens", "tokens for other rows", "if tuple(token.shape) != tuple(state.shape[:-1]):", "if False:", backends="torch", tests=LAYER_ARGUMENTS),
    fault("jax/training", "the same key every step", "key, now = jax.random.split(key)", "now = key", backends="jax", tests=DROPPED),
    fault("jax/training", "no key for the loss", '{} if now is None else {"key": now}', "{}", backends="jax", tests=DROPPED),
    fault("convert", "bfloat16 as NumPy's", 'if str(array.dtype) == "torch.bfloat16" else array', "if False else array", backends="torch", tests=("test_decoding.py::test_models_in_bfloat16_write",)),
]  # fmt: skip
