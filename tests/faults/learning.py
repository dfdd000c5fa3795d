"""Mistakes in attention pooling and in training."""

from __future__ import annotations

from faults.planting import Fault, fault


def in_torch(
    module: str, words: str, original: str, changed: str, tests: tuple[str, ...] = ()
) -> Fault:
    return fault(f"torch/{module}", words, original, changed, backends="torch", tests=tests)


def in_jax(
    module: str, words: str, original: str, changed: str, tests: tuple[str, ...] = ()
) -> Fault:
    return fault(f"jax/{module}", words, original, changed, backends="jax", tests=tests)


TOKENS = ("test_pooling.py::test_bad_tokens",)
SEQUENCES = ("test_pooling.py::test_equals_the_loop",)
SIZES = ("test_pooling.py::test_sizes_and_their_names", "test_pooling.py::test_bad_sizes")
STARTS = ("test_pooling.py::test_starts_differ_from_part_to_part",)
GATE = ("test_training.py::test_the_gate_through_the_layers",)
BAR = ("test_training.py::test_progress_goes_to_stderr",)
PRECISION = ("test_modules.py::test_inputs_of_another_precision",)
HEAD, POOLED = (
    "perceptron(layer.head_hidden, layer.head_out, pooled)",
    "values.mean(-2, keepdims=True)",
)
FAULTS = [
    # pooling
    fault("linear", "no bias", "else product + bias", "else product", tests=("test_pooling.py",)),
    fault("linear", "parameters as they are", "if weight.dtype != x.dtype or isinstance(x, np.ndarray):", "if False:", backends="torch", tests=("test_layer_arguments.py",)),
    fault("linear", "parameters as they are, in JAX", "if weight.dtype != x.dtype or isinstance(x, np.ndarray):", "if False:", backends="jax", tests=("test_layer_arguments.py",)),
    fault("linear", "NumPy let in", " or isinstance(x, np.ndarray):", ":", backends="jax", tests=("test_layer_arguments.py",)),
    fault("pooling", "mask dropped", "keys, values, mask=mask, return", "keys, values, return"),
    *(
        fault("linear", words, *change, backends=library, tests=tests)
        for tests, library, words, *change in (
            (("test_modules.py::test_an_adapter_in_place_of_a_linear_layer_acts",), "torch", "a module that is not called", "if is_module(layer) and is_torch_array(x):", "if False:"),
            (PRECISION, "torch", "the dtype of the wider", "(x.to(wide),)).to(x.dtype)", "(x.to(wide),))"),
            (PRECISION, "torch", "in the parameters' dtype", "wide = torch.promote_types(x.dtype, weight.dtype)", "wide = weight.dtype"),
            (("test_modules.py::test_half_precision_is_rounded_once",), "torch", "in the input's dtype", "wide = torch.promote_types(x.dtype, weight.dtype)", "wide = x.dtype"),
            (("test_modules.py::test_a_sequence_in_place_of_a_linear_layer",), "torch", "every module has a weight", "alike = not is_torch_array(weight) or weight.dtype == x.dtype", "alike = weight.dtype == x.dtype"),
            (("test_modules.py::test_dynamic_quantisation",), "torch", "every weight is a tensor", "not is_torch_array(weight) or", "weight is None or"),
            (("test_modules.py::test_the_gradient_of_a_padding_token_stays_0",), "torch", "an embedding that is not called", "if is_module(layer) and is_torch_array(tokens):", "if False:"),
            (("test_stack.py::test_equals_the_loop",), "jax", "the row before", "layer.weight[tokens]", "layer.weight[tokens - 1]"),
        )
    ),
    fault("linear", "a linear network", "relu(linear(hidden, x))", "linear(hidden, x)", tests=("test_pooling.py",)),
    fault("linear", "a leak", "relu(linear(hidden, x))", "relu(linear(hidden, x)) + 0.01 * linear(hidden, x)", tests=("test_pooling.py",)),
    fault("pooling", "no scale", "attend(layer.query,", "attend(layer.query * layer.query.shape[-1] ** 0.5,"),
    fault("pooling", "no head", HEAD, "pooled"),
    fault("pooling", "a mean, no attention", HEAD, HEAD.replace("pooled", POOLED)),
    fault("pooling", "the head before the average", HEAD, f"({HEAD.replace('pooled', 'values')} * weights.mT).sum(-2, keepdims=True)"),
    fault("pooling", "values for weights", "weights[..., 0, :], values[..., 0]", "values[..., 0], weights[..., 0, :]"),
    fault("pooling", "the head reads the values' network", "layer.value_out, embedded)", "layer.head_out, embedded)"),
    *(
        fault(f"{library}/pooling", *words, backends=library, tests=tests)
        for library in ("torch", "jax")
        for tests, *words in (
            (TOKENS, "tokens not looked at", "check.numbers(self.vocab_size, tokens=tokens)", "pass"),
            (SEQUENCES, "mask dropped", ", mask)\n", ")\n"),
            (SEQUENCES, "values for weights", "(logits, weights, values) if", "(logits, values, weights) if"),
            (SEQUENCES, "weights for logits", "else logits", "else weights"),
            (SIZES, "a token too many", "nn.Embedding(", "nn.Embedding(1 + "),
            (SIZES, "any size", "sizes.size(embed_dim=embed_dim)", "embed_dim"),
            (SIZES, "sizes mistaken", "self.hidden_dim = sizes", "self.hidden_dim = 1 + sizes"),
        )
    ),
    in_torch("pooling", "small integers as they are", "tokens.long()", "tokens", ("test_pooling.py::test_every_kind_of_integer",)),
    in_torch("pooling", "the query starts at 0", "torch.randn(1, key_dim)", "torch.zeros(1, key_dim)", STARTS),
    in_jax("pooling", "two parts start alike", "key=keys[6]", "key=keys[4]", STARTS),
    in_jax("pooling", "the query starts at 0", "jax.random.normal(keys[1], (1, self.key_dim))", "jax.numpy.zeros((1, self.key_dim))", STARTS),
    # training
    fault("training", "rows repeated in a batch", "replace=False", "replace=True"),
    fault("training", "the same rows at every step", "(rng.choice(n,", "(np.random.default_rng(seed).choice(n,"),
    fault("training", "the seed ignored", "rng = np.random.default_rng(seed)", "rng = np.random.default_rng(0)"),
    fault("training", "labels of other rows", "tuple(a[batch] for a in arrays)", "tuple(a[np.sort(batch)] if a.ndim > 1 else a[batch] for a in arrays)"),
    fault("training", "batches of no row", "1 <= sizes.count(size=size)", "0 <= sizes.count(size=size)"),
    fault("training", "the first rate for all steps", "rates[min(number, len(rates) - 1)]", "rates[0]"),
    fault("training", "a step late", "rates[min(number, len(rates) - 1)]", "rates[max(0, min(number, len(rates)) - 1)]"),
    fault("training", "too few rates let in", "if len(rates) > 1 and number >= len(rates):", "if False:"),
    fault("training", "no rate let in", " or rates.size == 0", ""),
    fault("training", "the gate upside down", "if loss > least:", "if loss < least:"),
    fault("training", "the gate a step late", "number + 1 == gate[0]", "number == gate[0]"),
    fault("training", "the gate looks at one loss", "_known(losses[-SHOWN:], number)", "_known(losses[-1:], number)"),
    fault("training", "the gate looks at all losses", "_known(losses[-SHOWN:], number)", "_known(losses, number)"),
    fault("training", "NaN not seen", "if not math.isfinite(mean):", "if False:"),
    fault("training", "NaN seen at the end alone", "if number % SHOWN == 0:", "if False:"),
    fault("training", "no last look", "    _known(losses, len(losses))", "    pass"),
    fault("training", "no batch is no error", "if not losses:", "if False:"),
    *(
        fault(f"{library}/training", *words, backends=library, tests=tests)
        for library in ("torch", "jax")
        for *words, tests in (
            ("gate dropped", "learning_rate, gate, name)", "learning_rate, None, name)", GATE),
            ("name dropped", "learning_rate, gate, name)", "learning_rate, gate, '')", BAR),
        )
    ),
    in_torch("training", "gradients add up", "optimiser.zero_grad()", "pass"),
    in_torch("training", "no step", "optimiser.step()", "pass"),
    in_torch("training", "gradient descent for Adam", "torch.optim.Adam(", "torch.optim.SGD("),
    in_torch("training", "weights decay", "torch.optim.Adam(", "torch.optim.AdamW("),
    in_torch("training", "another memory", "lr=0.0)", "lr=0.0, betas=(0.9, 0.99))"),
    in_torch("training", "one rate", '["lr"] = rate', '["lr"] = 0.1'),
    in_torch("training", "frozen arrays", "torch.tensor(array, device=device)", "torch.from_numpy(array).to(device)"),
    fault("training", "too few rates let in, at the start", "if isinstance(batches, Sized) and len(batches) > 0:", "if False:"),
    fault("training", "too many rates let in", "if len(rates) > 1 and len(rates) != steps:", "if False:"),
    fault("training", "a gate beyond the end", "if gate is not None and gate[0] > steps:", "if False:"),
    fault("training", "a gate of the last step refused", "gate[0] > steps:", "gate[0] >= steps:"),
    fault("training", "any gate", "        _known_gate(gate)", "        pass"),
    fault("training", "a row for a batch", "            _of_arrays(batch)\n", ""),
    fault("training", "an array for a list of arrays", "if not isinstance(arrays, list | tuple):", "if False:"),
    fault("training", "a rise beyond the end", "if sizes.count(warmup=warmup) > steps:", "if False:"),
    in_torch("training", "tensors copied with a warning", "if isinstance(array, Tensor):", "if False:", ("test_training.py::test_a_data_loader",)),
    in_torch("training", "a frozen model", "if not any(parameter.requires_grad for", "if not any(True for", ("test_training.py::test_a_model_has_something_to_learn",)),
    in_torch("training", "the loss after the step", "return value.detach()", "return loss(model, *map(torch.tensor, batch)).detach()"),
    in_jax("training", "uphill", "p - rate * d", "p + rate * d"),
    in_jax("training", "gradient descent for Adam", "optax.scale_by_adam()", "optax.identity()"),
    in_jax("training", "Nesterov's Adam", "optax.scale_by_adam()", "optax.scale_by_adam(nesterov=True)"),
    in_jax("training", "another memory", "optax.scale_by_adam()", "optax.scale_by_adam(b2=0.99)"),
    in_jax("training", "one rate", "p - rate * d", "p - 0.1 * d"),
    in_jax("training", "Adam forgets", "learned, state, value = change(", "learned, _, value = change("),
    in_jax("training", "parameters forgotten", "learned, state, value = change(", "_, state, value = change("),
    in_jax("training", "the model as it was", "return eqx.combine(learned, fixed), history", "return model, history"),
]  # fmt: skip
