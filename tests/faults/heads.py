"""Mistakes in positions, in heads, in layers of attention and in stacks of them."""

from __future__ import annotations

from faults.planting import Fault, fault

LAYERS, DROPOUT, STACK = "test_attention_layers.py", "test_attention_dropout.py", "test_stack.py"


def found(module: str, backends: str, tests: str, *words: str) -> Fault:
    return fault(module, *words, backends=backends, tests=tuple(tests.split()))


HEADS_LOOP = "test_multi_head_attention.py::test_multi_head_attention_equals_the_loop_over_heads"
LOOP = f"{LAYERS}::test_multi_head_attention_equals_the_loop"
ONE = f"{LAYERS}::test_self_attention_equals_the_loop"
COUNT = f"{DROPOUT}::test_a_weight_is_left_out_or_grows"
SEEDS = f"{DROPOUT}::test_a_seed_settles_what_is_left_out"
REST = f"{DROPOUT}::test_rate_0_and_rest_leave_nothing_out"
KEPT = f"{DROPOUT}::test_returned_weights_are_those_before_any_is_left_out"
COPIES = "test_attention_oracles.py::test_from_pytorch_copies"
PYTORCH = "test_attention_oracles.py::test_equals_pytorch"
REFUSES = "test_attention_oracles.py::test_from_pytorch_refuses"
MODE = "test_attention_oracles.py::test_from_pytorch_keeps_mode_and_dropout"
NAMES = f"{LAYERS}::test_names_and_shapes {LAYERS}::test_defaults"
STARTS = f"{LAYERS}::test_starts_differ_from_part_to_part"
MODEL = f"{STACK}::test_names_and_shapes"
MODELS = f"{STACK}::test_starts_differ_from_part_to_part"
TOKENS = f"{STACK}::test_bad_tokens"
MADE_WITH = f"{STACK}::test_equals_the_loop"
DRAWN = {
    "images": "photograph_is_the_luma_of_its_square photograph_of_another_size the_noise_of_the_photograph digits",
    "sequences": "digit_comparisons the_share_of_labels_is_the_exact_probability repeated_sequences_repeat repeated_sequences_are_random repeated_sequences_of_one_period repeated_sequences_bad_periods",
}  # fmt: skip
DRAWN = {m: " ".join(f"test_datasets.py::test_{t}" for t in ts.split()) for m, ts in DRAWN.items()}
ATTENDED = "attend(q, k, v, score=score, mask=mask, causal=causal)"
WITH_WEIGHTS = "attend(q, k, v, score=score, mask=mask, return_weights=True)"
DROPS = "return partial(nn.functional.dropout, p=layer.dropout)"
PASSED = "self, queries, keys, values, mask, return_weights, score, drop, causal"
ALONE = (
    "queries, keys, values, score=score, mask=mask, causal=causal, return_weights=return_weights"
)
PASSED_ONE = "self, x, score=score, mask=mask, causal=causal, return_weights=return_weights"
HEAD = "attend(linear(layer.query, x), linear(layer.key, x), linear(layer.value, x), **how)"
CAUSAL, CALLED = "test_causal.py::test_layers", "test_modules.py::test_hooks_of_every_part_act"

FAULTS = [
    # positions
    fault("positions", "turned the other way", "even * cos - odd * sin, even * sin + odd * cos", "even * cos + odd * sin, odd * cos - even * sin"),
    fault("positions", "halves for pairs", "(xp.astype(x[..., start::2], wide) for start in (0, 1))", "(xp.astype(x[..., start : start + d // 2], wide) for start in (0, d // 2))"),
    fault("positions", "turned pairs not put back in place", "odd * cos], axis=-1)", "odd * cos], axis=-2)"),
    fault("positions", "one angle for all pairs", "theta = xp.asarray(_frequencies(d)", "theta = xp.asarray(_frequencies(d) ** 0"),
    fault("positions", "frequencies that fall half as fast", "-np.arange(0, d, 2) / d", "-np.arange(d // 2) / d"),
    fault("positions", "frequencies that grow", "(-np.arange(0, d, 2) / d)", "(np.arange(0, d, 2) / d)"),
    fault("positions", "another base", "BASE = 10_000.0", "BASE = 1_000.0"),
    fault("positions", "cosines first", "[np.sin(angles), np.cos(angles)]", "[np.cos(angles), np.sin(angles)]"),
    fault("positions", "all sines, then all cosines", "axis=-1).reshape(n, d)", "axis=-2).reshape(n, d)"),
    fault("positions", "counted from 1", "angles = np.arange(sizes.count(n=n))[:, None]", "angles = (1 + np.arange(sizes.count(n=n)))[:, None]"),
    fault("positions", "the order for the positions", "angles = positions[:, None] * theta", "angles = xp.arange(x.shape[-2], dtype=wide)[:, None] * theta"),
    fault("positions", "float16 angles", "wide = xp.float64 if x.dtype == xp.float64 else xp.float32", "wide = x.dtype"),
    fault("positions", "float32 angles of float64", "wide = xp.float64 if x.dtype == xp.float64 else xp.float32", "wide = xp.float32"),
    fault("positions", "half precision grows", "xp.astype(xp.reshape(turned, x.shape), x.dtype)", "xp.reshape(turned, x.shape)"),
    fault("positions", "any number of positions", " or tuple(positions.shape) != (x.shape[-2],):", ":"),
    fault("positions", "odd widths", "d = sizes.pairs(x=x.shape[-1])", "d = x.shape[-1]"),
    fault("positions", "libraries not compared", "arguments.one_library(x=x, positions=positions)", "pass"),
    fault("positions", "slopes from 1 on", "-8 * np.arange(1, power + 1) / power", "-8 * np.arange(power) / power"),
    fault("positions", "slopes of 8 heads for all", "-8 * np.arange(1, power + 1) / power", "-1.0 * np.arange(1, power + 1)"),
    fault("positions", "slopes that another head has", "np.arange(1, 2 * power + 1, 2)", "np.arange(2, 2 * power + 1, 2)"),
    fault("positions", "the flattest slopes first", "between[: num_heads - power]", "between[::-1][: num_heads - power]"),
    fault("positions", "a bias towards what is far", "return -_slopes(", "return _slopes("),
    fault("positions", "the future is near", "np.abs(position[:, None] - position[None, :])", "(position[:, None] - position[None, :])"),
    fault("positions", "no heads let in", "sizes.size(num_heads=num_heads)", "sizes.count(num_heads=num_heads)"),
    # heads
    fault("heads", "not moved back", "xp.reshape(xp.moveaxis(x, (-3,), (-2,)), (*lead, n, heads * d))", "xp.reshape(x, (*lead, n, heads * d))"),
    fault("heads", "cut, not moved", "xp.moveaxis(xp.reshape(x, (*lead, n, num_heads, width)), (-2,), (-3,))", "xp.reshape(x, (*lead, num_heads, n, width))"),
    fault("heads", "every so many columns a head", "(*lead, n, num_heads, width)), (-2,), (-3,))", "(*lead, n, width, num_heads)), (-1,), (-3,))"),
    fault("heads", "two axes merged", "if x.ndim < 3:", "if x.ndim < 2:"),
    fault("heads", "queries for keys", "x @ w_q.mT, x @ w_k.mT,", "x @ w_k.mT, x @ w_q.mT,"),
    fault("heads", "keys for values", "x @ w_k.mT, x @ w_v.mT", "x @ w_k.mT, x @ w_k.mT"),
    fault("heads", "mask dropped, one head", ALONE, ALONE.replace(" mask=mask,", "")),
    fault("heads", "score dropped, one head", ALONE, ALONE.replace(" score=score,", "")),
    fault("heads", "causal ignored, one head", ALONE, ALONE.replace(" causal=causal,", ""), tests=("test_causal.py::test_self_attention",)),
    found("heads", "torch", ONE, "keys for values, a layer of one head", HEAD, HEAD.replace("layer.value", "layer.key")),
    found("heads", "torch", ONE, "queries for keys, a layer of one head", HEAD, HEAD.replace("layer.query", "layer.key", 1)),
    found("heads", "torch", ONE, "queries and keys exchanged, a layer of one head", HEAD, "attend(linear(layer.key, x), linear(layer.query, x), linear(layer.value, x), **how)"),
    found("heads", "jax", ONE, "keys for values, a layer of one head in JAX", HEAD, HEAD.replace("layer.value", "layer.key")),
    found("heads", "jax", ONE, "queries and keys exchanged, a layer of one head in JAX", HEAD, "attend(linear(layer.key, x), linear(layer.query, x), linear(layer.value, x), **how)"),
    *(found("heads", library, f"{LAYERS}::test_bad_input", f"widths not looked at, a layer of one head, {library}", "    arguments.widths(layer.embed_dim, x=x)\n", "") for library in ("torch", "jax")),
    found("heads", "torch", CAUSAL, "causal ignored, heads", ATTENDED, "attend(q, k, v, score=score, mask=mask)"),
    found("heads", "torch", CAUSAL, "causal ignored beside weights and dropout", "    mask = with_causal(mask, causal, q)\n", ""),
    found("heads", "torch", CALLED, "a projection that is not called", "linear(layer.query, queries)", "(queries @ layer.query.weight.mT + layer.query.bias)"),
    fault("heads", "no output projection", f"linear(\n            layer.output, merge_heads({ATTENDED})\n        )", f"merge_heads({ATTENDED})"),
    fault("heads", "no output projection beside weights", "output = linear(layer.output, merge_heads(averages))", "output = merge_heads(averages)"),
    fault("heads", "mask dropped", ATTENDED, "attend(q, k, v, score=score, causal=causal)"),
    fault("heads", "mask dropped beside weights", WITH_WEIGHTS, "attend(q, k, v, score=score, return_weights=True)"),
    fault("heads", "score dropped", ATTENDED, "attend(q, k, v, mask=mask, causal=causal)"),
    fault("heads", "score dropped beside weights", WITH_WEIGHTS, "attend(q, k, v, mask=mask, return_weights=True)"),
    fault("heads", "mask not lifted over heads", "mask = mask[..., None, :, :] if", "mask = mask if"),
    fault("heads", "mask of a sequence not lifted", "mask.ndim > 2 else mask", "mask.ndim > 3 else mask"),
    fault("heads", "scale of the whole width", "linear(layer.query, queries), layer.num_heads)", "linear(layer.query, queries), layer.num_heads) / layer.num_heads**0.5"),
    fault("heads", "neighbours do not share", "array_namespace(x).repeat(x, times, axis=-3)", "array_namespace(x).concat([x] * times, axis=-3)"),
    fault("heads", "values of the queries", "values = keys if values is None", "values = queries if values is None"),
    fault("heads", "keys from queries", "linear(layer.key, keys)", "linear(layer.key, queries)"),
    fault("heads", "values from keys", "linear(layer.value, values)", "linear(layer.value, keys)"),
    fault("heads", "values projected as keys", "linear(layer.value, values)", "linear(layer.key, values)"),
    fault("heads", "widths not looked at", "arguments.widths(layer.embed_dim, queries=queries, keys=keys, values=values)", "pass"),
    fault("heads", "float16 scores overflow", "score(*widen(xp, q, k))", "score(q, k)"),
    fault("heads", "half precision grows", "xp.astype(averages, q.dtype), xp.astype(weights, q.dtype)", "averages, weights"),
    found("heads", "torch", f"{DROPOUT} {LAYERS}", "mask dropped beside dropout", "softmax(found, mask)", "softmax(found, None)"),
    found("heads", "torch", KEPT, "weights after some were left out", "averages = drop(weights) @", "averages = (weights := drop(weights)) @"),
    found("heads", "torch", COUNT, "coordinates left out, not weights", "drop(weights) @ widen(xp, v)[0]", "drop(weights @ widen(xp, v)[0])"),
    found("heads", "torch", REST, "dropout forgotten", "if drop is None and not return_weights:", "if not return_weights:"),
    found("heads", "torch", f"{DROPOUT}::test_a_score_while_training", "score dropped beside dropout", "of_score(score(", "of_score(scores.scaled_dot("),
    # layers
    *(
        found(f"{library}/attention", library, *words)
        for library in ("torch", "jax")
        for words in (
            (ONE, "mask dropped, one head", PASSED_ONE, PASSED_ONE.replace(" mask=mask,", "")),
            (ONE, "score dropped, one head", PASSED_ONE, PASSED_ONE.replace(" score=score,", "")),
            (CAUSAL, "causal ignored, one head", PASSED_ONE, PASSED_ONE.replace(" causal=causal,", "")),
            (CAUSAL, "causal ignored", PASSED, PASSED.replace(", causal", "")),
            (LOOP, "mask dropped", PASSED, PASSED.replace("mask", "None")),
            (LOOP, "values of the keys", PASSED, PASSED.replace("values", "None")),
            (f"{LAYERS}::test_positions_as_a_score", "score dropped", PASSED, PASSED.replace("score", "scores.scaled_dot")),
            (COUNT, "nothing left out", PASSED, PASSED.replace("drop", "None")),
            (f"{LAYERS}::test_bad_sizes", "any share", "sizes.share(dropout=dropout)", "dropout"),
            (NAMES, "a head for every key", "kv_dim = self.num_kv_heads * head_dim", "kv_dim = embed_dim"),
            (TOKENS, "any length", "self.max_length, tokens=tokens)", "tokens=tokens)"),
            (TOKENS, "tokens not looked at", "check.numbers(self.vocab_size, self.max_length, tokens=tokens)", "pass"),
            (MADE_WITH, "no weights of the stack", "(logits, weights) if return_weights else logits", "logits"),
        )
    ),
    found("torch/dropout", "torch", REST, "dropout at rest, weights", "if not layer.training or layer.dropout == 0:", "if layer.dropout == 0:"),
    found("torch/dropout", "torch", COUNT, "the others do not grow, weights", DROPS, "return lambda a: nn.functional.dropout(a, layer.dropout) * (1 - layer.dropout)"),
    found("torch/dropout", "torch", COUNT, "the share that stays left out, weights", DROPS, "return partial(nn.functional.dropout, p=1 - layer.dropout)"),
    found("torch/dropout", "torch", COUNT, "heads lose the same, weights", DROPS, "return lambda a: a * nn.functional.dropout(a[..., :1, :, :] * 0 + 1, layer.dropout)"),
    found("torch/dropout", "torch", SEEDS, "sequences lose the same, weights", DROPS, "return lambda a: a * nn.functional.dropout(a[:1] * 0 + 1, layer.dropout)"),
    found("torch/attention", "torch", NAMES, "values with a bias, one head", "self.value = nn.Linear(self.embed_dim, self.head_dim, bias=False)", "self.value = nn.Linear(self.embed_dim, self.head_dim)"),
    found("torch/attention", "torch", NAMES, "output with a bias", "self.output = nn.Linear(embed_dim, embed_dim, bias=bias)", "self.output = nn.Linear(embed_dim, embed_dim)"),
    found("torch/attention", "torch", PYTORCH, "parts swapped", "parts = [layer.query, layer.key, layer.value]", "parts = [layer.key, layer.query, layer.value]"),
    found("torch/attention", "torch", PYTORCH, "biases not copied", "part.bias.copy_(b)", "pass"),
    found("torch/attention", "torch", PYTORCH, "output's bias not copied", "layer.output.bias.copy_(original.out_proj.bias)", "pass"),
    found("torch/attention", "torch", PYTORCH, "output not copied", "layer.output.weight.copy_(original.out_proj.weight)", "pass"),
    found("torch/attention", "torch", COPIES, "memory shared", "part.weight.copy_(weight)", "part.weight.data = weight.data"),
    found("torch/attention", "torch", COPIES, "what is copied does not learn", "return layer.train(original.training)", "return layer.train(original.training).requires_grad_(False)"),
    found("torch/attention", "torch", COPIES, "float32 whatever came", "            original.in_proj_weight\n        )\n", "            torch.float32\n        )\n"),
    found("torch/attention", "torch", MODE, "mode not kept", "return layer.train(original.training)", "return layer"),
    found("torch/attention", "torch", MODE, "dropout not kept", "dropout=original.dropout", "dropout=0.0"),
    found("torch/attention", "torch", REFUSES, "zeros added", "if not plain or original.add_zero_attn:", "if not plain:"),
    found("torch/attention", "torch", REFUSES, "biases added", " and original.bias_k is None", ""),
    found("torch/attention", "torch", REFUSES, "keys of another width", "original.in_proj_weight is not None and ", ""),
    found("torch/attention", "torch", f"{REFUSES}_strangers", "strangers", "if not isinstance(original, nn.MultiheadAttention):", "if False:"),
    found("torch/attention", "torch", MODELS, "no positions to start from", "torch.randn(max_length, embed_dim)", "torch.zeros(max_length, embed_dim)"),
    found("torch/attention", "torch", f"{STACK}::test_every_kind_of_integer", "bytes are masks", "tokens.long()", "tokens"),
    found("jax/attention", "jax", REST, "dropout at rest", "if key is None or self.dropout == 0 else partial(left_out, key, self.dropout)", "if self.dropout == 0 else partial(left_out, jax.random.key(0), self.dropout)"),
    found("jax/attention", "jax", SEEDS, "the key does not count", "partial(left_out, key,", "partial(left_out, jax.random.key(0),"),
    found("jax/dropout", "jax", COUNT, "the others do not grow, weights", "x / (1 - share), 0)", "x, 0)"),
    found("jax/dropout", "jax", COUNT, "the share that stays left out, weights", "bernoulli(key, 1 - share,", "bernoulli(key, share,"),
    found("jax/dropout", "jax", COUNT, "heads lose the same, weights", "x.shape)", "(*x.shape[:-3], 1, *x.shape[-2:]))"),
    found("jax/dropout", "jax", SEEDS, "sequences lose the same, weights", "x.shape)", "x.shape[1:])"),
    found("jax/attention", "jax", STARTS, "keys start as queries, one head", "use_bias=False, key=for_key)", "use_bias=False, key=for_query)"),
    found("torch/attention", "torch", MODEL, "heads not shared in the stack", "num_heads, num_kv_heads=num_kv_heads", "num_heads, num_kv_heads=None"),
    found("jax/attention", "jax", MODEL, "heads not shared in the stack", "num_kv_heads=self.num_kv_heads", "num_kv_heads=None"),
    found("jax/attention", "jax", STARTS, "keys start as queries", "use_bias=bias, key=keys[1])", "use_bias=bias, key=keys[0])"),
    found("jax/attention", "jax", STARTS, "the output starts as the values", "use_bias=bias, key=keys[3])", "use_bias=bias, key=keys[2])"),
    found("jax/attention", "jax", NAMES, "values with a bias, one head", "self.value = eqx.nn.Linear(e, d, use_bias=False,", "self.value = eqx.nn.Linear(e, d,"),
    found("jax/attention", "jax", NAMES, "output with a bias", "self.output = eqx.nn.Linear(self.embed_dim, self.embed_dim, use_bias=bias,", "self.output = eqx.nn.Linear(self.embed_dim, self.embed_dim,"),
    found("jax/attention", "jax", MODELS, "layers start alike", "key=one", "key=keys[3]"),
    found("jax/attention", "jax", MODELS, "no positions to start from", "jax.random.normal(keys[1], (self.max_length", "0 * jax.random.normal(keys[1], (self.max_length"),
    # stack
    *(
        found("stack", "torch", f"{STACK}::{test}", *words)
        for test, *words in (
            ("test_equals_the_loop", "nothing is added to", "x = x + change", "x = change"),
            ("test_equals_the_loop", "positions dropped", " + model.position[:n]", ""),
            ("test_shorter_sequences_and_leading_axes", "the last positions", "model.position[:n]", "model.position[-n:]"),
            ("test_equals_the_loop", "embeddings scaled", "embed(model.embedding, tokens)", "embed(model.embedding, tokens) * 12**0.5"),
            ("test_the_future_does_not_count_at_all", "causal dropped", "change = layer(x, causal=True)", "change = layer(x)"),
            ("test_equals_the_loop", "causal dropped beside weights", "layer(x, causal=True, return_weights=True)", "layer(x, return_weights=True)"),
            ("test_equals_the_loop", "weights of the last layer first", "kept.append(weights)", "kept.insert(0, weights)"),
            ("test_equals_the_loop", "weights nobody asked for", "        if return_weights:", "        if True:"),
            ("test_equals_the_loop", "no bias of the logits", "linear(model.readout, x), kept", "x @ model.readout.weight.mT, kept"),
            ("test_equals_the_loop", "a layer too few", "for layer in model.layers:", "for layer in list(model.layers)[:-1]:"),
            ("test_equals_the_loop", "the last layer alone is read", "linear(model.readout, x), kept", "linear(model.readout, change), kept"),
        )
    ),
    # what heads start from
    fault("sizes", "odd widths of pairs", "if (is_real(number) and number == 0) or size(**argument) % 2:\n        raise ValueError(f\"{name}: got a width", "if is_real(number) and number == 0:\n        raise ValueError(f\"{name}: got a width"),
    fault("sizes", "pairs without a width", "if (is_real(number) and number == 0) or size(**argument) % 2:", "if size(**argument) % 2:"),
    fault("sizes", "heads that do not divide", "if width % size(**argument):", "if size(**argument) < 1:"),
    fault("sizes", "a width of NumPy's", "return width // int(number)", "return width // number"),
    fault("starting", "shared heads that do not divide", "if num_heads % size(num_kv_heads=shared):", "if size(num_kv_heads=shared) > num_heads:"),
    fault("starting", "one shared head by default", "shared = num_heads if num_kv_heads is None", "shared = 1 if num_kv_heads is None"),
    fault("starting", "heads of NumPy's", "return width, int(num_heads), int(shared), head_dim", "return width, num_heads, shared, head_dim"),
    fault("sizes", "all weights left out", "if not 0 <= real(number) < 1:", "if not 0 <= real(number) <= 1:"),
    fault("sizes", "a share that is no number", "if not 0 <= real(number) < 1:", "if real(number) < 0 or real(number) >= 1:"),
    fault("sizes", "a share of NumPy's", '0 to below 1")\n    return float(number)', '0 to below 1")\n    return number'),
    # pictures and sequences
    *(
        found(f"datasets/{module}", "numpy", DRAWN[module], *words)
        for module, *words in (
            ("images", "the mean of the colours", "np.array([0.299, 0.587, 0.114])", "np.array([1, 1, 1]) / 3"),
            ("images", "blue for red", "np.array([0.299, 0.587, 0.114])", "np.array([0.114, 0.587, 0.299])"),
            ("images", "another corner", "[60 : 60 + size, 200 : 200 + size]", "[200 : 200 + size, 60 : 60 + size]"),
            ("images", "white is 255", "200 + size] / 255", "200 + size] / 1"),
            ("images", "noise in the clean square", "return clean, clean + noise", "return clean + noise, clean + noise"),
            ("images", "even noise", "standard_normal(clean.shape)", "uniform(-(3**0.5), 3**0.5, clean.shape)"),
            ("images", "noise of the rows", "standard_normal(clean.shape)", "standard_normal((size, 1))"),
            ("images", "a seed that does not count", "default_rng(seed).standard_normal", "default_rng(0).standard_normal"),
            ("images", "any size", "sizes.within(1, 300, size=size)", "sizes.size(size=size)"),
            ("images", "noise below 0", "    sizes.from_0(noise=noise)\n", ""),
            ("images", "a split of one seed", "random_state=seed", "random_state=0"),
            ("images", "a split that does not look at classes", "random_state=seed, stratify=labels", "random_state=seed"),
            ("sequences", "more 2s than 4s", "np.sum(digits == 4, axis=1) > np.sum(digits == 2, axis=1)", "np.sum(digits == 2, axis=1) > np.sum(digits == 4, axis=1)"),
            ("sequences", "as many are enough", "axis=1) > np.sum", "axis=1) >= np.sum"),
            ("sequences", "no 9", "integers(0, 10,", "integers(0, 9,"),
            ("sequences", "one period for all rows", "size=(n, 1))", "size=(1, 1)).repeat(n, axis=0)"),
            ("sequences", "the longest period left out", "rng.integers(least, most + 1,", "rng.integers(least, most,"),
            ("sequences", "a token twice in a period", "np.argsort(rng.random((n, vocab_size)), axis=1)", "rng.integers(0, vocab_size, size=(n, vocab_size))"),
            ("sequences", "one order for all rows", "np.argsort(rng.random((n, vocab_size)), axis=1)", "np.tile(rng.permutation(vocab_size), (n, 1))"),
            ("sequences", "foretold a place too late", "position >= period", "position > period"),
            ("sequences", "foretold where it is new", "position >= period", "position < period"),
            ("sequences", "a period as long as the row", "min(length - 1, vocab_size)", "min(length, vocab_size)"),
            ("sequences", "a period of more tokens than there are", "min(length - 1, vocab_size)", "length - 1"),
            ("sequences", "a period of 0", "if not 1 <= least", "if not 0 <= least"),
            ("sequences", "periods out of order", "least <= most <= largest", "max(least, most) <= largest"),
        )
    ),
]  # fmt: skip
