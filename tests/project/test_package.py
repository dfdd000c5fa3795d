"""The package as a whole: imports, docstrings, annotations."""

import inspect
import re
import typing
from collections.abc import Callable
from types import SimpleNamespace, UnionType

import numpy as np
import pytest
from jaxtyping import jaxtyped
from processes import run_python

import attnbook
from attnbook import convert, datasets, devices, kernels, pretrained, scores
from attnbook._validation import arrays, to_numpy
from attnbook.attention import distances, heads, masks, positions, weighted_average
from attnbook.distributed import communication_time, layout, plan, traffic
from attnbook.exact import flash, online_softmax
from attnbook.generate import decoding, ngrams, sampling
from attnbook.kernel import gaussian_process, non_local_means, random_features, regression
from attnbook.layers import activations, norms
from attnbook.layers import mlp as mlp_of_a_block
from attnbook.linear_attention import forms, linear_heads, online_regression
from attnbook.models import blocks, kv_cache, losses, recurrent, transformer
from attnbook.train import training

FORMULAS = (
    blocks, communication_time, distances, flash, forms, gaussian_process, heads, kernels,
    kv_cache, linear_heads, losses, masks, mlp_of_a_block, ngrams,
    non_local_means, norms, online_regression, online_softmax, plan, positions, random_features,
    recurrent, regression, sampling, scores, traffic, transformer, weighted_average,
)  # fmt: skip
# these functions have their modules' names
number_words, python_reference = map(
    inspect.getmodule, (datasets.number_words, datasets.python_reference)
)
DATASETS = (
    datasets.curves, datasets.functions, datasets.images, number_words, python_reference,
    datasets.sequences, datasets.stored_results,
)  # fmt: skip
PUBLIC = {
    f"{module.__name__}.{name}": function
    for module in (
        *FORMULAS,
        activations,
        convert,
        to_numpy,
        *DATASETS,
        decoding,
        devices,
        training,
    )
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
    and not name.startswith(("_", "unchecked_", "call_", "check_"))
} | {
    f"attnbook.pretrained.{name}": function
    for name, function in inspect.getmembers(pretrained, inspect.isfunction)
}
# formulas with a paper behind them
SOURCED = {
    "attnbook.layers.activations.gelu",
    "attnbook.layers.activations.gelu_tanh",
    "attnbook.layers.activations.relu",
    "attnbook.layers.activations.silu",
    "attnbook.attention.weighted_average.attend",
    "attnbook.models.blocks.decoder_block",
    "attnbook.models.blocks.encoder_block",
    "attnbook.layers.norms.layer_norm",
    "attnbook.layers.mlp.mlp",
    "attnbook.models.blocks.residual",
    "attnbook.layers.norms.rms_norm",
    "attnbook.kernel.random_features.fourier",
    "attnbook.kernel.random_features.positive",
    "attnbook.exact.flash.backward",
    "attnbook.exact.flash.forward",
    "attnbook.kernel.gaussian_process.covariance",
    "attnbook.kernel.gaussian_process.posterior",
    "attnbook.kernel.kernels.gaussian",
    "attnbook.kernel.kernels.epanechnikov",
    "attnbook.kernel.regression.nadaraya_watson",
    "attnbook.kernel.regression.in_metric",
    "attnbook.kernel.regression.leave_one_out",
    "attnbook.attention.scores.dot",
    "attnbook.attention.scores.scaled_dot",
    "attnbook.attention.scores.general",
    "attnbook.attention.scores.cosine",
    "attnbook.attention.scores.additive",
    "attnbook.attention.scores.additive_of_projected",
    "attnbook.attention.heads.self_attention",
    "attnbook.attention.heads.multi_head_attention",
    "attnbook.attention.positions.sinusoidal",
    "attnbook.attention.positions.rotary",
    "attnbook.attention.positions.alibi",
    "attnbook.models.transformer.attention_only",
    "attnbook.exact.online_softmax.combine",
    "attnbook.exact.online_softmax.partial",
    "attnbook.linear_attention.online_regression.one_pass",
    "attnbook.linear_attention.online_regression.passes",
    "attnbook.linear_attention.online_regression.recursive",
    "attnbook.train.training.warm_cosine",
    "attnbook.datasets.curves.engel",
    "attnbook.datasets.images.digits",
    "attnbook.datasets.images.photograph",
    "attnbook.datasets.python_reference.python_reference",
    "attnbook.generate.decoding.beam",
    "attnbook.kernel.non_local_means.non_local_means",
    "attnbook.generate.ngrams.bits",
    "attnbook.models.recurrent.gru",
    "attnbook.models.recurrent.bidirectional_states",
    "attnbook.models.recurrent.step",
    "attnbook.models.recurrent.translate",
    "attnbook.generate.sampling.probabilities",
    "attnbook.models.transformer.decoder_only",
    "attnbook.models.transformer.encoder_decoder",
    "attnbook.models.kv_cache.decode_step",
    "attnbook.linear_attention.forms.affine_scan",
    "attnbook.linear_attention.forms.chunked",
    "attnbook.linear_attention.forms.recurrent",
    "attnbook.linear_attention.forms.weights",
    "attnbook.linear_attention.linear_heads.delta_heads",
    "attnbook.linear_attention.linear_heads.elu_plus_one",
    "attnbook.linear_attention.linear_heads.linear_heads",
    "attnbook.distributed.communication_time.data_parallel_efficiency",
    "attnbook.distributed.communication_time.least_tokens",
    "attnbook.distributed.communication_time.least_block",
    "attnbook.distributed.communication_time.ring_efficiency",
    "attnbook.distributed.communication_time.seconds",
    "attnbook.distributed.plan.activations",
    "attnbook.distributed.plan.operations",
    "attnbook.distributed.plan.plan",
    "attnbook.distributed.traffic.all_reduce",
    "attnbook.distributed.traffic.all_to_all",
    "attnbook.distributed.traffic.causal_imbalance",
    "attnbook.distributed.traffic.heads_split",
    "attnbook.distributed.traffic.pipeline_bubble",
    "attnbook.distributed.traffic.ring",
    "attnbook.distributed.traffic.zero",
    "attnbook.distributed.traffic.zero_traffic",
    "attnbook.pretrained.albert",
    "attnbook.pretrained.bert",
    "attnbook.pretrained.fetch",
    "attnbook.pretrained.gpt2",
    "attnbook.pretrained.llama",
    "attnbook.pretrained.tabpfn",
    "attnbook.pretrained.vit",
}
# used inside the package; public by spelling only
INNER = {
    "attnbook.attention.weighted_average.attention_weights",
    "attnbook.attention.weighted_average.fast_average",
    "attnbook.attention.weighted_average.fused_repays",
    "attnbook.attention.weighted_average.masked_softmax",
    "attnbook.attention.weighted_average.weighted_average",
    "attnbook.attention.masks.with_causal",
    "attnbook.layers.norms.apply_norm",
    "attnbook.attention.heads.head_shape",
    "attnbook.attention.heads.rotary_base_or_none",
    "attnbook.attention.heads.single_head",
    "attnbook.kernel.regression.kernel_weights",
    "attnbook.models.kv_cache.init_cache",
    "attnbook.models.kv_cache.cache_shape",
    "attnbook.models.kv_cache.lm_step",
    "attnbook.models.kv_cache.seq2seq_step",
    "attnbook.models.recurrent.decoder_score",
    "attnbook.attention.positions.unchecked_rotary",
    "attnbook.models.transformer.read_out",
}


def test_importing_attnbook_imports_no_back_end():
    printed = run_python(
        "import sys, attnbook, attnbook.datasets, attnbook.devices, attnbook.convert\n"
        "import attnbook.models.transformer, attnbook.generate.sampling, attnbook.generate.ngrams, attnbook.kernel.gaussian_process\n"
        "import attnbook.pretrained\n"
        "print({'torch', 'jax', 'equinox', 'statsmodels', 'sklearn'} & set(sys.modules))"
    )
    assert printed.strip() == "set()"


@pytest.mark.parametrize("other", ["torch", "jax"])
def test_numpy_needs_no_back_end_at_all(other):
    run_python(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name.split('.')[0] == {other!r}: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import numpy as np, attnbook\n"
        "x = np.ones((3, 2))\n"
        "assert (attnbook.nadaraya_watson(x, x, x) == 1).all()\n"
        "assert (attnbook.attend(x, x, x, mask=attnbook.causal_mask(3, x)) == 1).all()"
    )


def test_version_and_names():
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", attnbook.__version__)
    assert attnbook.__all__ == sorted(attnbook.__all__)
    for name in attnbook.__all__:
        assert hasattr(attnbook, name)


@pytest.mark.parametrize("name", sorted(set(PUBLIC) - INNER))
def test_docstring(name):
    """A sentence; Args for every argument, in order; Returns where something comes back."""
    function = PUBLIC[name]
    text = inspect.getdoc(function)
    assert text
    first = text.split("\n\n")[0]
    assert first.endswith((".", "]")), "the first paragraph is a sentence"
    parameters = list(inspect.signature(function).parameters)
    documented = re.findall(r"^    (\w+): ", _section(text, "Args"), flags=re.MULTILINE)
    if len(parameters) > 1 or documented:
        assert documented == parameters
    if function.__module__ in {module.__name__ for module in FORMULAS}:
        assert _section(text, "Returns")
    assert ("Source: " in text) == (name in SOURCED)


def _section(text, title):
    found = re.search(rf"^{title}:\n((?:    .*\n|\n)*)", text + "\n", flags=re.MULTILINE)
    return found.group(1) if found else ""


Q, K, V, H, U = np.ones((11, 3, 2)), np.ones((7, 2)), np.ones((7, 5)), np.ones(2), np.ones((3, 7))
BOTH = {"return_weights": True}
X, W = np.ones((11, 7, 6)), np.ones((5, 6))
LINEAR = SimpleNamespace(weight=np.ones((6, 6)), bias=None)
HEADS = SimpleNamespace(embed_dim=6, num_heads=3, num_kv_heads=3, query=LINEAR, key=LINEAR, value=LINEAR, output=LINEAR)  # fmt: skip
NORM = SimpleNamespace(weight=np.ones(6), bias=None, eps=1e-5)
RATE = SimpleNamespace(weight=np.ones((3, 6)), bias=None)
DELTA = SimpleNamespace(
    **vars(HEADS), gate=True, delta=True, decay=RATE, beta=RATE,
    head_norm=SimpleNamespace(weight=np.ones(2), bias=None, eps=1e-5),
)  # fmt: skip
MLP = SimpleNamespace(hidden=LINEAR, gate=None, output=LINEAR, activation="gelu")
BLOCK = SimpleNamespace(
    attention=HEADS, cross_attention=HEADS, mlp=MLP, attention_norm=NORM, cross_norm=NORM,
    mlp_norm=NORM, norm="pre", embed_dim=6,
)  # fmt: skip
CELL = SimpleNamespace(
    input=LINEAR, hidden=SimpleNamespace(weight=np.ones((6, 2)), bias=None),
    input_dim=6, hidden_dim=2,
)  # fmt: skip
PART = online_softmax.partial(U, V)
SPEED = {"flops": 1e12, "link": communication_time.Link(0.0, 1e9)}
CALLS = [
    (attnbook.softmax, (U,), {}),
    (attnbook.softmax, (U, np.ones(7, bool)), {}),
    (attnbook.attend, (Q, K, V), {}),
    (attnbook.attend, (Q, K, V), {"mask": np.ones((3, 7), bool)}),
    (attnbook.causal_mask, (5, K), {}),
    (attnbook.padding_mask, (np.array([[1, 2]]), 5), {}),
    (regression.nadaraya_watson, (Q, K, V), {"bandwidth": H}),
    (regression.leave_one_out, (K, V), {"bandwidth": H}),
    (regression.in_metric, (Q, K, V), {"metric": np.ones((5, 2))}),
    (kernels.gaussian, (U,), {}),
    (kernels.boxcar, (U,), {}),
    (kernels.triangular, (U,), {}),
    (kernels.epanechnikov, (U,), {}),
    (kernels.distance, (Q[0], K, H), {}),
    (kernels.squared_distance, (Q[0], K, H), {}),
    (scores.dot, (Q[0], K), {}),
    (scores.scaled_dot, (Q[0], K), {}),
    (scores.gaussian_score, (Q[0], K, H), {}),
    (scores.from_nearest, (Q[0], K, H, None), {}),
    (scores.general, (Q[0], np.ones((7, 5)), np.ones((2, 5))), {}),
    (scores.cosine, (Q[0], K), {}),
    (scores.additive, (Q[0], np.ones((7, 5)), np.ones((13, 2)), np.ones((13, 5)), np.ones(13)), {}),
    (scores.additive_of_projected, (Q[0], K, np.ones(2)), {}),
    (regression.multi_head, (Q, K, V), {"bandwidths": np.ones((3, 2)), "combination": np.ones(3)}),
    (datasets.digit_comparisons, (11,), {"length": 13}),
    (datasets.means_of_even, (11,), {"length": 13}),
    (datasets.curve, (U,), {}),
    (datasets.noise_level, (U,), {}),
    (datasets.heteroskedastic, (13,), {}),
    (datasets.engel, (), {}),
    (datasets.photograph, (13,), {"noise": 0.2, "seed": 1}),
    (datasets.repeated_sequences, (11,), {"periods": (3, 5), "length": 13}),
    (heads.self_attention, (X, W, W, np.ones((13, 6))), {}),
    (heads.split_heads, (X, 3), {}),
    (heads.merge_heads, (X,), {}),
    (heads.multi_head_attention, (HEADS, np.ones((11, 5, 6)), X, X, np.ones((5, 7), bool)), {}),
    (forms.recurrent, (X, X, X[..., :5]), {"decay": X[0, :, 0]}),
    (forms.chunked, (X, X, X[..., :5]), {"state": np.ones((6, 5)), "chunk": 3}),
    (forms.weights, (X, X), {"beta": X[0, :, 0]}),
    (forms.affine_scan, (X, X, X[..., :5]), {"beta": X[0, :, 0]}),
    (linear_heads.elu_plus_one, (X,), {}),
    (linear_heads.unit_length, (X,), {}),
    (linear_heads.linear_heads, (HEADS, X), {"mask": np.ones(7, bool)}),
    (linear_heads.delta_heads, (DELTA, X), {"causal": True}),
    (positions.sinusoidal, (7, 2), {}),
    (positions.rotary, (X, np.arange(7)), {}),
    (positions.rotary, (X, np.ones((11, 7)), 5.0), {}),
    (positions.alibi, (3, 7), {}),
    (non_local_means.patches, (X[0], 3), {}),
    (non_local_means.non_local_means, (X[0], 0.5), {}),
    (losses.log_softmax, (X,), {}),
    (losses.cross_entropy, (X, np.ones((11, 7), int)), {}),
    (losses.cross_entropy, (X, np.ones((11, 7), int), np.ones((11, 7), bool)), {}),
    (recurrent.gru, (CELL, np.ones((11, 6)), np.ones((11, 2))), {}),
    (datasets.number_words, (), {"train": 11, "held_out": 3}),
    (heads.project, (HEADS, np.ones((11, 5, 6)), X, X), {}),
    (heads.project, (HEADS, X, X, X, np.ones((11, 7)), True), {}),
    (activations.relu, (X,), {}),
    (activations.gelu, (X,), {}),
    (activations.gelu_tanh, (X,), {}),
    (activations.sigmoid, (X,), {}),
    (activations.silu, (X,), {}),
    (norms.layer_norm, (X, np.ones(6), np.ones(6)), {}),
    (norms.rms_norm, (X, np.ones(6)), {}),
    (mlp_of_a_block.mlp, (MLP, X), {}),
    (blocks.residual, (NORM, "post", np.tanh, X), {}),
    (blocks.encoder_block, (BLOCK, X, np.tanh), {}),
    (blocks.decoder_block, (BLOCK, X, np.tanh, np.tanh), {}),
    (flash.forward, (Q, K, V), {"block": 2}),
    (flash.backward, (np.ones((11, 3, 5)), Q, K, V, np.ones((11, 3, 5)), np.ones((11, 3))), {}),
    (flash.block_kinds, (np.greater_equal, 7, 5, 2), {}),
    (online_softmax.partial, (U, V, np.ones(7, bool)), {}),
    (online_softmax.empty, (3, 5, U), {}), (online_softmax.combine, (PART,) * 2, {}), (online_softmax.finish, (PART,), {}),
    (gaussian_process.covariance, (K.T, np.ones((2, 3)), np.ones(2)), {}),
    (gaussian_process.covariance, (K.T, np.ones((2, 3)), 0.5), {}),
    (gaussian_process.draw, (np.arange(21.0).reshape(3, 7), 0.5, np.random.default_rng(0)), {}),
    (gaussian_process.draw, (np.arange(21.0).reshape(3, 7), np.ones(3), np.random.default_rng(0)), {}),
    (gaussian_process.posterior, (U[:, :5], U, U), {"length_scale": 0.5, "noise": 0.1}),
    (random_features.fourier, (Q, np.ones((5, 2))), {}),
    (random_features.positive, (Q, np.ones((5, 2))), {}),
    (random_features.regular, (U, 5), {"length_scale": 0.3, "period": 5.2}),
    (online_regression.one_pass, (np.ones((11, 3, 3)), Q), {}),
    (online_regression.one_pass, (np.ones((11, 3, 3)), Q), {"beta": np.ones((11, 3))}),
    (online_regression.passes, (np.ones((11, 3, 3)), Q, 2), {"noise": 0.1}),
    (online_regression.recursive, (np.ones((11, 3, 5)), Q), {"noise": 0.1}),
    (communication_time.data_parallel_efficiency, (1, 1, 2), SPEED),
    (communication_time.least_tokens, (), SPEED), (communication_time.least_block, (), SPEED),
    (communication_time.ring_efficiency, (1, 1, 2), SPEED),
    (communication_time.seconds, (1, 1, SPEED["link"]), {}),
    (traffic.all_gather, (1, 2), {}), (traffic.all_reduce, (1, 2), {}),
    (traffic.all_to_all, (1, 2), {}),
    (plan.activations, (layout.MODELS["Llama 3 8B"], "all"), {}), (plan.operations, (layout.MODELS["Llama 3 8B"],), {}),
    (plan.plan, (layout.MODELS["Llama 3 8B"], 2**13, layout.Cluster(1, **layout.DEVICES["H100"]), layout.Layout()), {}),
    (traffic.causal_imbalance, (2,), {"zigzag": True}),
    (traffic.heads_split, (1, 1, 1, 4), {}), (traffic.split_attention, (1, 1, 4), {}),
    (traffic.padded, ((5,), 2), {}), (traffic.pipeline_bubble, (2, 2), {}),
    (traffic.reduce_scatter, (1, 2), {}), (traffic.ring, (1, 2), {}),
    (traffic.ring_backward, (1, 2), {}), (traffic.zero, (1, 2, 3), {}),
    (traffic.zero_traffic, (1, 2, 3), {}),
    (ngrams.bits, (np.arange(7), np.arange(5), 2), {"vocab_size": 7, "discount": 0.5}),
    (sampling.probabilities, (U,), {"temperature": 0.5, "top_k": 3, "top_p": 0.5}),
    (datasets.shifted, (np.ones((3, 4)), np.zeros((3, 2), int), 5), {}),
    (datasets.smooth_functions, (3,), {"points": 5, "length_scale": (0.1, 0.5), "seed": 1}),
    (datasets.python_reference, (), {"held_out": 0.2, "whole_topics": True}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args", "how"), CALLS, ids=[c[0].__name__ for c in CALLS])
def test_annotations_are_true(function, args, how):
    """The shapes in the signature hold, each letter meaning one size throughout a call."""
    hints = typing.get_type_hints(function)
    bound = inspect.signature(function).bind(*args, **how).arguments
    out = function(*args, **how)
    with jaxtyped("context"):
        for name, value in {**bound, "return": out}.items():
            assert fits(value, hints[name]), f"{name}: {np.shape(value)} is no {hints[name]}"


def test_every_formula_is_called():
    """But those of a model, which NumPy does not have."""
    called = {f"{function.__module__}.{function.__name__}" for function, *_ in CALLS}
    formulas = {n for n, f in PUBLIC.items() if f.__module__ in {m.__name__ for m in FORMULAS}}
    assert formulas - INNER - called == {
        "attnbook.models.recurrent.encode",
        "attnbook.models.recurrent.logits",
        "attnbook.models.recurrent.bidirectional_states",
        "attnbook.models.recurrent.step",
        "attnbook.models.recurrent.translate",
        "attnbook.models.recurrent.decode_step",
        "attnbook.generate.sampling.sample",
        "attnbook.models.transformer.attention_only",
        "attnbook.models.transformer.run_blocks",
        "attnbook.models.transformer.decoder_only",
        "attnbook.models.transformer.encode_source",
        "attnbook.models.transformer.encoder_only",
        "attnbook.models.transformer.encoder_decoder",
        "attnbook.models.kv_cache.decode_step",
    }


def test_annotations_are_checked():
    """The check above can fail."""
    hints = typing.get_type_hints(scores.dot)
    with jaxtyped("context"):
        assert fits(np.ones((3, 2)), hints["q"])
        assert not fits(np.ones((7, 5)), hints["k"])
        assert not fits(np.ones((7, 2), int), hints["k"])


def fits(value, hint):
    """isinstance for the hints used here: jaxtyping's, unions and tuples of them, and Any."""
    if hint is typing.Any or hint in (int, bool) or typing.get_origin(hint) is Callable:
        return True
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        return any(fits(value, option) for option in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return all(map(fits, value, typing.get_args(hint)))
    if getattr(hint, "_is_protocol", False):
        hint = typing.runtime_checkable(hint)  # has the layer what the formula reads?
    return isinstance(value, hint)


def test_py_typed_is_shipped():
    from importlib.resources import files

    assert files("attnbook").joinpath("py.typed").is_file()


def test_known_true_does_not_look_where_it_cannot():
    """Concrete conditions count; hidden ones do not."""
    assert arrays.is_concretely_true(np.array(True))
    assert not arrays.is_concretely_true(np.array(False))


def test_known_true_does_not_look_into_a_fake_tensor():
    """A model that checks its tokens runs where tensors have shapes and no numbers."""
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    import torch

    with fake.FakeTensorMode():
        assert not arrays.is_concretely_true(torch.ones((), dtype=torch.bool))
    assert arrays.is_concretely_true(torch.ones((), dtype=torch.bool))
