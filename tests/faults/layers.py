"""Mistakes in the layers, what they start from and their conversion."""

from __future__ import annotations

from faults.planting import Fault, fault


def both(module: str, words: str, original: str, changed: str, *tests: str) -> Fault:
    """A fault that only torch and JAX together show, in these tests of the module."""
    names = tuple(f"test_{'convert' if module == 'convert' else 'layers'}.py::{t}" for t in tests)
    return fault(module, words, original, changed, backends="torch,jax", tests=names)


KERNEL = ("test_layers_equal_the_function", "test_layers_take_a_mask")
HEADS = ("test_multi_head_layers_equal_the_loop",)
METRIC = ("test_metric_layers_equal_the_loop",)
ROUND = ("test_round_trip_is_exact",)

FAULTS = [
    # layers that learn a kernel
    *(
        both(module, *words, *tests)
        for module, log in (("torch/regression", "self.log_bandwidth.exp()"), ("jax/regression", "jnp.exp(self.log_bandwidth)"))
        for words, tests in (
            (("log h for h", f"return {log}\n", "return self.log_bandwidth\n"), KERNEL),
            (("mask dropped", "bandwidth=self.bandwidth, mask=mask)", "bandwidth=self.bandwidth)"), KERNEL),
            (("mask dropped, heads", "            mask=mask,\n", "            mask=None,\n"), HEADS),
            (("heads' bandwidths kept", "bandwidths=self.bandwidths,", "bandwidths=self.bandwidths * 0 + 1,"), HEADS),
            (("combination not used", "combination=self.combination,", "combination=self.combination * 0 + 1,"), HEADS),
            (("the heads' sum for their mean", "1 / len(start)", "1.0"), HEADS),
            (("mask dropped, metric", "metric=self.metric, mask=mask)", "metric=self.metric)"), METRIC),
            (("metric transposed", "metric=self.metric,", "metric=self.metric.mT,"), METRIC),
            (("metric does not matter", "metric=self.metric,", "metric=self.metric * 0 + 1,"), METRIC),
        )
    ),
    both("torch/regression", "the start learns", "torch.tensor(starting.metric(metric))", "torch.as_tensor(metric)", "test_what_a_layer_starts_from_does_not_learn"),
    # starting
    fault("starting", "bandwidth 0 let in", "np.all((array > 0) &", "np.all((array >= 0) &"),
    fault("starting", "infinity let in", "np.all((array > 0) & np.isfinite(array))", "np.all(array > 0)"),
    fault("starting", "empty bandwidths let in", "not in axes or array.size == 0 or", "not in axes or"),
    fault("starting", "one number for all heads", 'h, (1, 2), expected', 'h, (0, 1, 2), expected'),
    fault("starting", "a table of bandwidths for one head", '"bandwidth", h, (0, 1),', '"bandwidth", h, (0, 1, 2),'),
    fault("starting", "a vector for a matrix", "array.ndim != 2 or", "array.ndim > 2 or"),
    fault("starting", "NaN in a metric", " or not np.all(np.isfinite(array)):", ":"),
    fault("starting", "integers stay integers", "return array.astype(float) if", "return array if"),
    fault("starting", "words raise another error", "except (TypeError, ValueError):", "except TypeError:"),
    fault("sizes", "size 0 let in", "count(least=1, **argument)", "count(**argument)"),
    fault("sizes", "a size of NumPy's", "return integer", "return number"),
    fault("sizes", "the wrong bound in words", "expected an integer, {least} or more", "expected an integer, 0 or more"),
    fault("sizes", "what is no integer let in", "integer = least - 1", "integer = least"),
    # convert
    both("convert", "twins share memory", "np.array(to_numpy(array))", "to_numpy(array)", "test_twins_share_no_memory"),
    both("convert", "float64 rounded without a word", "if str(copied.dtype) != dtype:", "if False:", "test_float64_needs_x64"),
    both("convert", "a warning before the error", "copied = copied.astype(dtype) if half else copied", "copied = copied.astype(dtype)", "test_float64_needs_x64"),
    both("convert", "bfloat16 comes back as float32", "copied = copied.bfloat16() if half else copied", "copied = copied", *ROUND),
    both("convert", "what comes back does not learn", "torch.nn.Parameter(copied)", "torch.nn.Parameter(copied, requires_grad=False)", *ROUND),
    both("convert", "nested names lose their owner", "setattr(twin.get_submodule(owner), last,", "setattr(twin, last,", "test_twins_predict_the_same[AttentionPooling]"),
    both("convert", "parameters left behind", "twin = eqx.tree_at(partial(_part, name=name), twin, copied)", "eqx.tree_at(partial(_part, name=name), twin, copied)", *ROUND),
    both("convert", "every layer of a list its first", "layer[int(part)] if part", "layer[0] if part", "test_round_trip_is_exact[AttentionOnly-float32]"),
    both("convert", "sizes left behind", 'if argument != "key"]', 'if argument in ("bandwidth", "bandwidths", "metric", "vocab_size")]', "test_sizes_are_carried_over"),
    both("convert", "arguments through float32", ".cpu().double().numpy()", ".cpu().float().numpy()", "test_bandwidths_that_float32_does_not_hold"),
    both("convert", "a stranger of a known name", 'not type(layer).__module__.startswith("attnbook.") or name not in layers', "name not in layers", "test_what_cannot_be_converted"),
    both("convert", "train is no layer", " if inspect.isclass(getattr(module, n))]", "]", "test_the_error_names_the_layers_and_no_function"),
]  # fmt: skip
