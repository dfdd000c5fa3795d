"""Mistakes in activations, norms, the MLP, the residual stream, and the layers made of them."""

from __future__ import annotations

from faults.heads import found
from faults.planting import fault

LAYERS, ORACLES = "test_block_layers.py", "test_block_oracles.py"
LOOP = f"{LAYERS}::test_blocks_equal_the_loop"
LEFT_OUT = f"{LAYERS}::test_an_entry_is_left_out_twice_or_grows"
APART = f"{LAYERS}::test_the_parts_leave_out_each_its_own"
SEEDS = f"{LAYERS}::test_a_seed_settles_what_is_left_out"
SIZES = f"{LAYERS}::test_bad_sizes"
INPUT = f"{LAYERS}::test_bad_input"
NAMES = f"{LAYERS}::test_names_and_shapes"
TOLD = f"{LAYERS}::test_defaults_and_what_parts_are_told"
STARTS = f"{LAYERS}::test_starts_differ_from_part_to_part"
PROJECT = f"{LAYERS}::test_project_equals_the_loop"
EQUAL = f"{ORACLES}::test_equals_pytorch"
COPIES = f"{ORACLES}::test_from_pytorch_copies"
REFUSES = f"{ORACLES}::test_from_pytorch_refuses"
STRANGERS = f"{ORACLES}::test_from_pytorch_refuses_strangers"
MODE = f"{ORACLES}::test_from_pytorch_keeps_mode_and_dropout"
SPELT = f"{ORACLES}::test_every_spelling_of_an_activation"

ERF = "np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x) / math.sqrt(2))"
RELU = "xp.where(x <= 0, xp.zeros_like(x), x)"
SILU = "x * (0.5 + 0.5 * xp.tanh(0.5 * x))"
VARIANCE = "variance = xp.mean(centred * centred, axis=-1, keepdims=True)"
HIDDEN = "hidden if drop is None else drop(hidden)"
OWN = "residual(layer.attention_norm, layer.norm, attention, x, drop)"
CROSS = "residual(layer.cross_norm, layer.norm, cross_attention, x, drop)"
MLP_PART = "_mlp_part(layer.mlp, drop), x, drop)"
PROJECTED = "return q, _shared(k, times), _shared(v, times)"
TO_MEMORY = {
    "torch": "Reader(self.cross_attention, memory, memory_mask, return_weights)",
    "jax": "Reader(self.cross_attention, memory, memory_mask, return_weights, drop)",
}
ITSELF = {
    "torch": "Reader(self.attention, mask=mask, keep=return_weights, causal=causal)",
    "jax": "Reader(self.attention, None, mask, return_weights, drop, causal)",
}
UNMASKED = {
    k: v.replace("=mask", "=None").replace("None, mask", "None, None") for k, v in ITSELF.items()
}
DROP = {"torch": "dropping(self)", "jax": "drop"}
CAUSAL, MASKED_TOO = "test_causal.py::test_layers", "test_causal.py::test_layers_take_a_mask_too"
HOOKS = "test_modules.py::test_hooks_of_every_part_act"
DROPS = "return partial(nn.functional.dropout, p=layer.dropout)"

FAULTS = [
    # activations
    fault("activations", "both sides, relu", RELU, "xp.abs(x)"),
    fault("activations", "a leak, relu", RELU, "xp.maximum(x, 0.01 * x)"),
    fault("activations", "no number becomes 0, relu", RELU, "xp.where(x > 0, x, xp.zeros_like(x))"),
    found("activations", "torch", "test_activations.py", "half a slope at 0, relu", RELU, "xp.maximum(x, xp.zeros_like(x))"),
    fault("activations", "integers let in", "xp = arguments.floating(x=x)\n    return xp.where", "xp = arguments.one_library(x=x)\n    return xp.where"),
    fault("activations", "another variance, gelu", "np.asarray(x) / math.sqrt(2)", "np.asarray(x)"),
    fault("activations", "gelu's constant", "/ math.sqrt(2)", "/ math.sqrt(math.pi / 2)"),
    fault("activations", "gelu by tanh", ERF, "np.tanh(math.sqrt(2 / math.pi) * (np.asarray(x) + 0.044715 * np.asarray(x) ** 3))"),
    fault("activations", "gelu by a sigmoid", ERF, "np.tanh(0.851 * np.asarray(x))"),
    fault("activations", "x left out, gelu", "x * xp.asarray(0.5", "xp.asarray(0.5"),
    fault("activations", "an odd function for a share, gelu", "0.5 + 0.5 * erf", "erf"),
    fault("activations", "half the slope forgotten, silu", "xp.tanh(0.5 * x)", "xp.tanh(x)"),
    fault("activations", "x left out, silu", SILU, SILU.removeprefix("x * ")),
    fault("activations", "the other side, silu", SILU, SILU.replace("+", "-")),
    fault("activations", "overflow far out, silu", SILU, "x / (1 + xp.exp(-x))"),
    fault("activations", "float32 of float64", "otypes=[np.float64]", "otypes=[np.float32]"),
    fault("activations", "float32 grows", "erf, dtype=x.dtype, device", "erf, device"),
    *(
        found("activations", library, "test_activations.py", *words)
        for library, *words in (
            ("torch", "gelu by tanh, torch", "functional.gelu(x)", 'functional.gelu(x, approximate="tanh")'),
            ("torch", "float32 of float64, torch", "functional.gelu(x)", "functional.gelu(x.float()).to(x.dtype)"),
            ("torch", "no slope, torch", "functional.gelu(x)", "functional.gelu(x.detach())"),
            ("jax", "gelu by tanh, JAX", "approximate=False", "approximate=True"),
            ("jax", "no slope, JAX", "jax.nn.gelu(x,", "jax.nn.gelu(jax.lax.stop_gradient(x),"),
        )
    ),
    # norms
    fault("blocks", "variance over the tokens", VARIANCE, VARIANCE.replace("-1", "0")),
    fault("blocks", "the variance of a sample", VARIANCE, "variance = xp.sum(centred * centred, axis=-1, keepdims=True) / max(x.shape[-1] - 1, 1)"),
    fault("blocks", "the mean square for the variance", VARIANCE, VARIANCE.replace("centred", "wide")),
    fault("blocks", "mean left in", "wide - xp.mean(wide, axis=-1, keepdims=True)", "wide"),
    fault("blocks", "mean over the tokens", "wide - xp.mean(wide, axis=-1,", "wide - xp.mean(wide, axis=0,"),
    fault("blocks", "eps outside the root", "xp.sqrt(variance + eps)", "(xp.sqrt(variance) + eps)"),
    fault("blocks", "no root", "xp.sqrt(variance + eps)", "(variance + eps)"),
    fault("blocks", "eps outside the root, rms", "xp.sqrt(square + eps)", "(xp.sqrt(square) + eps)"),
    fault("blocks", "sum for mean, rms", "square = xp.mean(", "square = xp.sum("),
    fault("blocks", "mean taken out, rms", "wide / xp.sqrt(square", "(wide - xp.mean(wide, axis=-1, keepdims=True)) / xp.sqrt(square"),
    fault("blocks", "another eps", 'eps: float = 1e-5,\n) -> Float[Array, "... e"]:', 'eps: float = 1e-6,\n) -> Float[Array, "... e"]:'),
    fault("blocks", "another eps, rms", "*, eps: float = 1e-5\n", "*, eps: float = 1e-6\n"),
    fault("blocks", "eps 0 let in", "    sizes.above_0(eps=eps)\n", "    sizes.from_0(eps=eps)\n"),
    fault("blocks", "no coordinates let in", " or x.shape[-1] == 0:", ":"),
    fault("blocks", "bias dropped", "if bias is not None:", "if False:"),
    fault("blocks", "weight dropped", "if weight is not None:", "if False:"),
    fault("blocks", "weights around 0", "normed * arguments.parameter(", "normed + normed * arguments.parameter("),
    fault("blocks", "float16 squares overflow", "return xp, widen(xp, x)[0]", "return xp, x"),
    fault("blocks", "half precision grows", "array_namespace(x).astype(normed, x.dtype)", "normed"),
    # the MLP
    fault("blocks", "gate and hidden swapped", "activation(linear(layer.gate, x)) * linear(layer.hidden, x)", "linear(layer.gate, x) * activation(linear(layer.hidden, x))"),
    fault("blocks", "a gate without its activation", "activation(linear(layer.gate, x)) *", "linear(layer.gate, x) *"),
    fault("blocks", "a gate alone", "activation(linear(layer.gate, x)) * linear(layer.hidden, x)", "activation(linear(layer.gate, x))"),
    fault("activations", "gelu in the gate", '"swiglu": silu', '"swiglu": gelu', tests=("test_blocks.py",)),
    fault("activations", "silu for gelu", '"gelu": gelu', '"gelu": silu', tests=("test_blocks.py",)),
    fault("activations", "gelu for relu", '"relu": relu', '"relu": gelu', tests=("test_blocks.py",)),
    fault("blocks", "no activation", "    hidden = activation(linear(layer.hidden, x))", "    hidden = linear(layer.hidden, x)"),
    fault("blocks", "output's bias dropped", f"linear(layer.output, {HIDDEN})", f"({HIDDEN}) @ layer.output.weight.mT"),
    fault("blocks", "hidden entries never left out", HIDDEN, "hidden"),
    fault("blocks", "outputs left out, not hidden entries", f"linear(layer.output, {HIDDEN})", "(drop or (lambda a: a))(linear(layer.output, hidden))"),
    # the stream
    fault("blocks", "residual dropped, pre", "x + change(normed(norm, x)) if", "change(normed(norm, x)) if"),
    fault("blocks", "residual dropped, post", "else normed(norm, x + change(x))", "else normed(norm, change(x))"),
    fault("blocks", "norm after instead of before", 'if placement == "pre"', 'if placement == "post"'),
    fault("blocks", "the stream normed too", "x + change(normed(norm, x)) if", "normed(norm, x) + change(normed(norm, x)) if"),
    fault("blocks", "no norm before", "x + change(normed(norm, x)) if", "x + change(x) if"),
    fault("blocks", "the change normed, not the sum", "else normed(norm, x + change(x))", "else x + normed(norm, change(x))"),
    fault("blocks", "what is added is never left out", "part(x) if drop is None else drop(part(x))", "part(x)"),
    fault("blocks", "what is read left out", "else drop(part(x))", "else part(drop(x))"),
    fault("blocks", "eps of the norm not asked", "norm.bias, eps=norm.eps)", "norm.bias)"),
    fault("blocks", "bias of the norm dropped", "norm.weight, norm.bias, eps", "norm.weight, eps"),
    # the blocks
    fault("blocks", "norms swapped", f"x = {OWN}\n    return residual(layer.mlp_norm,", f"x = {OWN.replace('attention_norm', 'mlp_norm')}\n    return residual(layer.attention_norm,"),
    fault("blocks", "MLP before attention", f"x = {OWN}\n    return residual(layer.mlp_norm, layer.norm, {MLP_PART}", f"x = residual(layer.mlp_norm, layer.norm, {MLP_PART}\n    return {OWN}"),
    fault("blocks", "MLP's dropout forgotten", MLP_PART + "\n\n\ndef decoder_block", MLP_PART.replace("drop", "None", 1) + "\n\n\ndef decoder_block"),
    fault("blocks", "norms swapped, decoder", f"x = {CROSS}\n    return residual(layer.mlp_norm,", f"x = {CROSS.replace('cross_norm', 'mlp_norm')}\n    return residual(layer.cross_norm,"),
    fault("blocks", "attentions swapped", f"x = {OWN}\n    x = {CROSS}", f"x = {CROSS}\n    x = {OWN}"),
    fault("blocks", "attention twice", CROSS, CROSS.replace("cross_attention", "attention")),
    fault("blocks", "no cross-attention", f"    x = {CROSS}\n", ""),
    fault("blocks", "cross-attention always before", CROSS, CROSS.replace("layer.norm", '"pre"')),
    fault("blocks", "MLP's dropout forgotten, decoder", MLP_PART + "\n\n\nclass Reader", MLP_PART.replace("drop", "None", 1) + "\n\n\nclass Reader"),
    # what reads
    fault("blocks", "memory not read", "attention(x, self.memory, **how)", "attention(x, None, **how)"),
    fault("blocks", "mask ignored", '{"mask": self.mask,', '{"mask": None,'),
    fault("blocks", "dropout ignored", "attention, drop=self.drop)", "attention, drop=None)"),
    fault("blocks", "the MLP's dropout lost on the way", "partial(mlp, layer, drop=drop)", "partial(mlp, layer)"),
    *(
        found("blocks", library, CAUSAL, f"{words}, {library}", *change)
        for library in ("torch", "jax")
        for words, *change in (
            ("causal ignored", '"causal": self.causal}', '"causal": False}'),
            ("always causal", '"causal": self.causal}', '"causal": True}'),
        )
    ),
    *(found("blocks", library, MASKED_TOO, f"causal in place of the mask, {library}", '{"mask": self.mask,', '{"mask": None if self.causal else self.mask,') for library in ("torch", "jax")),
    *(
        found("blocks", "torch", HOOKS, *words)
        for words in (
            ("an MLP that is not called", "return layer if is_module(layer) else partial", "return partial"),
            ("an attention that is not called", "if not is_module(attention):", "if True:"),
            ("a norm that is not called", "if is_module(norm) and is_torch_array(x):", "if False:"),
        )
    ),
    fault("blocks", "weights thrown away", "output, self.weights = found", "output, _ = found"),
    # queries, keys and values in heads
    *(
        found("heads", "torch", PROJECT, *words)
        for words in (
            ("keys for values, projected", PROJECTED, PROJECTED.replace("_shared(v", "_shared(k")),
            ("keys and values swapped, projected", PROJECTED, "return q, _shared(v, times), _shared(k, times)"),
            ("values not shared, projected", PROJECTED, PROJECTED.replace("_shared(v, times)", "v")),
            ("queries cut as keys", "linear(layer.query, queries), layer.num_heads)", "linear(layer.query, queries), layer.num_kv_heads)"),
        )
    ),
    # layers
    *(
        found(f"{library}/blocks", library, *words)
        for library in ("torch", "jax")
        for words in (
            (LOOP, "mask ignored", f"attention = {ITSELF[library]}", f"attention = {UNMASKED[library]}"),
            (LOOP, "mask ignored, decoder", f"own = {ITSELF[library]}", f"own = {UNMASKED[library]}"),
            (CAUSAL, "causal ignored", f"attention = {ITSELF[library]}", f"attention = {ITSELF[library].replace(', causal', '').replace('=causal', '')}"),
            (CAUSAL, "causal ignored, decoder", f"own = {ITSELF[library]}", f"own = {ITSELF[library].replace(', causal', '').replace('=causal', '')}"),
            (LOOP, "memory_mask ignored", TO_MEMORY[library], TO_MEMORY[library].replace("memory_mask", "None")),
            (LOOP, "cross-attention reads the stream", TO_MEMORY[library], TO_MEMORY[library].replace("memory, memory_mask", "x, mask")),
            (LOOP, "cross-attention without a memory", TO_MEMORY[library], TO_MEMORY[library].replace("memory, memory_mask", "None, mask")),
            (LOOP, "one attention for both", TO_MEMORY[library], TO_MEMORY[library].replace("cross_attention", "attention")),
            (LOOP, "weights swapped", "(x, own.weights, cross.weights)", "(x, cross.weights, own.weights)"),
            (LEFT_OUT, "dropout ignored", f"encoder_block(self, x, attention, {DROP[library]})", "encoder_block(self, x, attention)"),
            (LEFT_OUT, "dropout ignored, decoder", f"decoder_block(self, x, own, cross, {DROP[library]})", "decoder_block(self, x, own, cross)"),
            (INPUT, "memory not looked at", "x=x, memory=memory)", "x=x)"),
            (SIZES, "any activation", 'starting.known_activation(activation)', "activation"),
            (SIZES, "any share", "sizes.share(dropout=dropout)", "dropout"),
        )
    ),
    found("jax/blocks", "jax", LEFT_OUT, "weights never left out", f"attention = {ITSELF['jax']}", f"attention = {ITSELF['jax'].replace('drop', 'None')}"),
    found("jax/blocks", "jax", LEFT_OUT, "weights never left out, decoder", f"own = {ITSELF['jax']}", f"own = {ITSELF['jax'].replace('drop', 'None')}"),
    found("jax/blocks", "jax", LEFT_OUT, "weights to the memory never left out", TO_MEMORY["jax"], TO_MEMORY["jax"].replace(", drop", "")),
    found("torch/attention", "torch", LEFT_OUT, "weights never left out in a block", "drop = dropping(self)", "drop = None"),
    found("torch/blocks", "torch", LEFT_OUT, "attention of the decoder not told of dropout", "self.attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)\n        self.cross", "self.attention = MultiHeadAttention(embed_dim, num_heads)\n        self.cross"),
    found("torch/blocks", "torch", LEFT_OUT, "cross-attention not told of dropout", "self.cross_attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)", "self.cross_attention = MultiHeadAttention(embed_dim, num_heads)"),
    found("torch/blocks", "torch", SEEDS, "dropout of the MLP ignored", "blocks.mlp(self, x, dropping(self))", "blocks.mlp(self, x)"),
    found("torch/dropout", "torch", SEEDS, "dropout at rest", "if not layer.training or layer.dropout == 0:", "if layer.dropout == 0:"),
    found("torch/dropout", "torch", LEFT_OUT, "the others do not grow", DROPS, "return lambda a: nn.functional.dropout(a, layer.dropout) * (1 - layer.dropout)"),
    found("torch/dropout", "torch", LEFT_OUT, "the share that stays left out", DROPS, DROPS.replace("layer.dropout", "1 - layer.dropout")),
    found("torch/dropout", "torch", LEFT_OUT, "tokens left out whole", DROPS, "return lambda a: a * nn.functional.dropout(a[..., :1] * 0 + 1, layer.dropout)"),
    found("torch/dropout", "torch", LEFT_OUT, "sequences lose the same", DROPS, "return lambda a: a * nn.functional.dropout(a[:1] * 0 + 1, layer.dropout)"),
    found("torch/blocks", "torch", TOLD, "attention not told of dropout", "self.attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)\n        self.mlp", "self.attention = MultiHeadAttention(embed_dim, num_heads)\n        self.mlp"),
    found("torch/blocks", "torch", NAMES, "a gate for all", 'if activation == "swiglu":', "if True:"),
    found("torch/blocks", "torch", EQUAL, "norms of the original swapped", '"attention_norm": "norm1", "mlp_norm": "norm2"}', '"attention_norm": "norm2", "mlp_norm": "norm1"}'),
    found("torch/blocks", "torch", EQUAL, "norms of the original decoder swapped", '"cross_norm": "norm2", "mlp_norm": "norm3"', '"cross_norm": "norm3", "mlp_norm": "norm2"'),
    found("torch/blocks", "torch", EQUAL, "one of its attentions twice", '"cross_attention": "multihead_attn"', '"cross_attention": "self_attn"'),
    found("torch/blocks", "torch", STRANGERS, "strangers", "cls, nn.TransformerEncoderLayer, original", "cls, nn.Module, original"),
    found("jax/blocks", "jax", SEEDS, "dropout of the MLP ignored", "blocks.mlp(self, x, dropping(self, key))", "blocks.mlp(self, x)"),
    found("jax/dropout", "jax", SEEDS, "dropout at rest", "if key is None or layer.dropout == 0:", "key = jax.random.key(0) if key is None else key\n    if layer.dropout == 0:"),
    found("jax/dropout", "jax", SEEDS, "the key does not count", "remaining = [key]", "remaining = [jax.random.key(0)]"),
    found("jax/dropout", "jax", APART, "one key for all parts", "remaining[0], now = jax.random.split(remaining[0])", "now = remaining[0]"),
    found("jax/dropout", "jax", LEFT_OUT, "the others do not grow", "x / (1 - share), 0)", "x, 0)"),
    found("jax/dropout", "jax", LEFT_OUT, "the share that stays left out", "bernoulli(key, 1 - share,", "bernoulli(key, share,"),
    found("jax/dropout", "jax", LEFT_OUT, "tokens left out whole", "share, x.shape)", "share, (*x.shape[:-1], 1))"),
    found("jax/dropout", "jax", LEFT_OUT, "sequences lose the same", "share, x.shape)", "share, x.shape[1:])"),
    found("jax/blocks", "jax", STARTS, "the gate starts as the hidden layer", "mlp_dim, key=keys[1]) if gated", "mlp_dim, key=keys[0]) if gated"),
    found("jax/blocks", "jax", STARTS, "cross-attention starts as attention", "dropout=dropout, key=keys[1]\n", "dropout=dropout, key=keys[0]\n"),
    found("jax/blocks", "jax", NAMES, "a gate for all", " if gated else None", ""),
    # originals
    *(
        found("torch/originals", "torch", *words)
        for words in (
            (STRANGERS, "strangers", "if not isinstance(original, original_kind):", "if False:"),
            (REFUSES, "any eps", " or any(norm.eps != 1e-5 for norm in norms):", ":"),
            (REFUSES, "one right eps is enough", "any(norm.eps != 1e-5", "all(norm.eps != 1e-5"),
            (REFUSES, "no biases", "original.linear1.bias is None or any", "any"),
            (REFUSES, "gelu by tanh", ' and function.approximate == "none"', ""),
            (SPELT, "relu as a module refused", " or isinstance(function, nn.ReLU)", ""),
            (SPELT, "gelu as a function refused", "if function is functional.gelu or exact:", "if exact:"),
            (EQUAL, "pre for post", '"pre" if original.norm_first else "post"', '"post" if original.norm_first else "pre"'),
            (EQUAL, "always pre", '"pre" if original.norm_first else "post"', '"pre"'),
            (EQUAL, "always relu", "activation=_activation(original.activation)", 'activation="relu"'),
            (EQUAL, "norms not copied", "block.get_submodule(ours).load_state_dict(part.state_dict())", "pass"),
            (EQUAL, "attention not copied", "setattr(block, ours, MultiHeadAttention.from_pytorch(part))", "pass"),
            (EQUAL, "hidden layer not copied", "block.mlp.hidden.load_state_dict(original.linear1.state_dict())", "pass"),
            (EQUAL, "output not copied", "block.mlp.output.load_state_dict(original.linear2.state_dict())", "pass"),
            (COPIES, "memory shared", "block.mlp.hidden.load_state_dict(original.linear1.state_dict())", "block.mlp.hidden = original.linear1"),
            (COPIES, "norms shared", "block.get_submodule(ours).load_state_dict(part.state_dict())", "setattr(block, ours, part)"),
            (COPIES, "float32 whatever came", ".to(original.linear1.weight)", ""),
            (COPIES, "what is copied does not learn", "block.train(original.training)", "block.train(original.training).requires_grad_(False)"),
            (COPIES, "one head", "        attention.num_heads,\n", "        1,\n"),
            (MODE, "mode not kept", "return block.train(original.training)", "return block"),
            (MODE, "dropout not kept", "dropout=original.dropout.p", "dropout=0.0"),
        )
    ),
]  # fmt: skip
