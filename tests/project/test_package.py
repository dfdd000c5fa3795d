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
from attnbook._validation import is_concretely_true, to_numpy
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

FORMULAS = [
    blocks,
    communication_time,
    distances,
    flash,
    forms,
    gaussian_process,
    heads,
    kernels,
    kv_cache,
    linear_heads,
    losses,
    masks,
    mlp_of_a_block,
    ngrams,
    non_local_means,
    norms,
    online_regression,
    online_softmax,
    plan,
    positions,
    random_features,
    recurrent,
    regression,
    sampling,
    scores,
    traffic,
    transformer,
    weighted_average,
]
OTHERS = [
    activations,
    convert,
    to_numpy,
    decoding,
    devices,
    training,
    datasets.curves,
    datasets.functions,
    datasets.images,
    datasets.sequences,
    datasets.stored_results,
]
# these functions have their modules' names
OTHERS += map(inspect.getmodule, (datasets.number_words, datasets.python_reference))
PUBLIC = {
    f"{module.__name__}.{name}": function
    for module in (*FORMULAS, *OTHERS)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if function.__module__ == module.__name__
    and not name.startswith(("_", "unchecked_", "call_", "check_"))
} | {
    f"attnbook.pretrained.{name}": function
    for name, function in inspect.getmembers(pretrained, inspect.isfunction)
}


def named(text):
    """The full names of functions, each behind its module's."""
    names = set()
    for word in text.split():
        if word.endswith(":"):
            module = word.removesuffix(":")
        else:
            names.add(f"attnbook.{module}.{word}")
    return names


# formulas with a paper behind them
SOURCED = named(
    """
    attention.heads: multi_head_attention self_attention
    attention.positions: alibi rotary sinusoidal
    attention.scores: additive additive_of_projected cosine dot general scaled_dot
    attention.weighted_average: attend
    datasets.curves: engel
    datasets.images: digits photograph
    datasets.python_reference: python_reference
    distributed.communication_time: data_parallel_efficiency least_block least_tokens
      ring_efficiency seconds
    distributed.plan: activations operations plan
    distributed.traffic: all_reduce all_to_all causal_imbalance heads_split pipeline_bubble ring
      zero zero_traffic
    exact.flash: backward forward
    exact.online_softmax: combine partial
    generate.decoding: beam
    generate.ngrams: bits
    generate.sampling: probabilities
    kernel.gaussian_process: covariance posterior
    kernel.kernels: epanechnikov gaussian
    kernel.non_local_means: non_local_means
    kernel.random_features: fourier positive
    kernel.regression: in_metric leave_one_out nadaraya_watson
    layers.activations: gelu gelu_tanh relu silu
    layers.mlp: mlp
    layers.norms: layer_norm rms_norm
    linear_attention.forms: affine_scan chunked recurrent weights
    linear_attention.linear_heads: delta_heads elu_plus_one linear_heads
    linear_attention.online_regression: one_pass passes recursive
    models.blocks: decoder_block encoder_block residual
    models.kv_cache: decode_step
    models.recurrent: bidirectional_states gru step translate
    models.transformer: attention_only decoder_only encoder_decoder
    pretrained: albert bert fetch gpt2 llama tabpfn vit
    train.training: warm_cosine
    """
)
# used inside the package; public by spelling only
INNER = named(
    """
    attention.heads: head_shape rotary_base_or_none single_head
    attention.masks: with_causal
    attention.positions: unchecked_rotary
    attention.weighted_average: attention_weights fast_average fused_repays masked_softmax
      weighted_average
    kernel.regression: kernel_weights
    layers.norms: apply_norm
    models.kv_cache: cache_shape init_cache lm_step seq2seq_step
    models.recurrent: decoder_score
    models.transformer: read_out
    """
)


def test_no_back_end_is_imported_for_numpy():
    printed = run_python(
        "import sys, attnbook, attnbook.datasets, attnbook.devices, attnbook.convert\n"
        "import attnbook.models.transformer, attnbook.generate.sampling, attnbook.generate.ngrams, attnbook.kernel.gaussian_process\n"
        "import attnbook.pretrained, numpy\n"
        "x = numpy.ones((67, 2))\n"
        "attnbook.attend(x, x, x, mask=attnbook.causal_mask(67, x))\n"
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


def linear(*shape):
    return SimpleNamespace(weight=np.ones(shape), bias=None)


Q, K, V, H, U = np.ones((11, 3, 2)), np.ones((7, 2)), np.ones((7, 5)), np.ones(2), np.ones((3, 7))
X, W = np.ones((11, 7, 6)), np.ones((5, 6))
SQUARE, PAIRS, MEMORY = np.ones((11, 3, 3)), np.ones((11, 3, 5)), np.ones((11, 5, 6))
LINEAR, RATE = linear(6, 6), linear(3, 6)
PROJECTIONS = dict.fromkeys(("query", "key", "value", "output"), LINEAR)
HEADS = SimpleNamespace(embed_dim=6, num_heads=3, num_kv_heads=3, **PROJECTIONS)
NORM = SimpleNamespace(**vars(linear(6)), eps=1e-5)
DELTA = SimpleNamespace(**vars(HEADS), gate=True, delta=True, decay=RATE, beta=RATE)
DELTA.head_norm = SimpleNamespace(**vars(linear(2)), eps=1e-5)
MLP = SimpleNamespace(hidden=LINEAR, gate=None, output=LINEAR, activation="gelu")
BLOCK = SimpleNamespace(attention=HEADS, cross_attention=HEADS, mlp=MLP, norm="pre", embed_dim=6)
BLOCK.attention_norm = BLOCK.cross_norm = BLOCK.mlp_norm = NORM
CELL = SimpleNamespace(input=LINEAR, hidden=linear(6, 2), input_dim=6, hidden_dim=2)
PART = online_softmax.partial(U, V)
SPEED = {"flops": 1e12, "link": communication_time.Link(0.0, 1e9)}
LLAMA, H100 = layout.MODELS["Llama 3 8B"], layout.Cluster(1, **layout.DEVICES["H100"])
GRID, RNG = np.arange(21.0).reshape(3, 7), np.random.default_rng(0)
ADDITIVE = np.ones((13, 2)), np.ones((13, 5)), np.ones(13)
CALLS = [
    (attnbook.softmax, (U, np.ones(7, bool)), {}),
    (attnbook.attend, (Q, K, V), {}),
    (attnbook.attend, (Q, K, V), {"mask": np.ones((3, 7), bool)}),
    (attnbook.causal_mask, (5, K), {}),
    (attnbook.padding_mask, (np.array([[1, 2]]), 5), {}),
    (regression.nadaraya_watson, (Q, K, V), {"bandwidth": H}),
    (regression.leave_one_out, (K, V), {"bandwidth": H}),
    (regression.in_metric, (Q, K, V), {"metric": np.ones((5, 2))}),
    (regression.multi_head, (Q, K, V), {"bandwidths": np.ones((3, 2)), "combination": np.ones(3)}),
    (scores.general, (Q[0], V, np.ones((2, 5))), {}),
    (scores.additive, (Q[0], V, *ADDITIVE), {}),
    (scores.additive_of_projected, (Q[0], K, np.ones(2)), {}),
    (datasets.digit_comparisons, (11,), {"length": 13}),
    (datasets.means_of_even, (11,), {"length": 13}),
    (datasets.heteroskedastic, (13,), {}),
    (datasets.engel, (), {}),
    (datasets.photograph, (13,), {"noise": 0.2, "seed": 1}),
    (datasets.repeated_sequences, (11,), {"periods": (3, 5), "length": 13}),
    (datasets.number_words, (), {"train": 11, "held_out": 3}),
    (datasets.shifted, (np.ones((3, 4)), np.zeros((3, 2), int), 5), {}),
    (datasets.smooth_functions, (3,), {"points": 5, "length_scale": (0.1, 0.5), "seed": 1}),
    (datasets.python_reference, (), {"held_out": 0.2, "whole_topics": True}),
    (heads.self_attention, (X, W, W, np.ones((13, 6))), {}),
    (heads.split_heads, (X, 3), {}),
    (heads.multi_head_attention, (HEADS, MEMORY, X, X, np.ones((5, 7), bool)), {}),
    (heads.project, (HEADS, MEMORY, X, X), {}),
    (heads.project, (HEADS, X, X, X, np.ones((11, 7)), True), {}),
    (forms.recurrent, (X, X, X[..., :5]), {"decay": X[0, :, 0]}),
    (forms.chunked, (X, X, X[..., :5]), {"state": np.ones((6, 5)), "chunk": 3}),
    (forms.weights, (X, X), {"beta": X[0, :, 0]}),
    (forms.affine_scan, (X, X, X[..., :5]), {"beta": X[0, :, 0]}),
    (linear_heads.linear_heads, (HEADS, X), {"mask": np.ones(7, bool)}),
    (linear_heads.delta_heads, (DELTA, X), {"causal": True}),
    (positions.sinusoidal, (7, 2), {}),
    (positions.rotary, (X, np.arange(7)), {}),
    (positions.rotary, (X, np.ones((11, 7)), 5.0), {}),
    (positions.alibi, (3, 7), {}),
    (non_local_means.patches, (X[0], 3), {}),
    (non_local_means.non_local_means, (X[0], 0.5), {}),
    (losses.cross_entropy, (X, np.ones((11, 7), int)), {}),
    (losses.cross_entropy, (X, np.ones((11, 7), int), np.ones((11, 7), bool)), {}),
    (recurrent.gru, (CELL, np.ones((11, 6)), np.ones((11, 2))), {}),
    (norms.layer_norm, (X, np.ones(6), np.ones(6)), {}),
    (norms.rms_norm, (X, np.ones(6)), {}),
    (mlp_of_a_block.mlp, (MLP, X), {}),
    (blocks.residual, (NORM, "post", np.tanh, X), {}),
    (blocks.encoder_block, (BLOCK, X, np.tanh), {}),
    (blocks.decoder_block, (BLOCK, X, np.tanh, np.tanh), {}),
    (flash.forward, (Q, K, V), {"block": 2}),
    (flash.backward, (PAIRS, Q, K, V, PAIRS, np.ones((11, 3))), {}),
    (flash.block_kinds, (np.greater_equal, 7, 5, 2), {}),
    (online_softmax.partial, (U, V, np.ones(7, bool)), {}),
    (online_softmax.empty, (3, 5, U), {}),
    (online_softmax.combine, (PART, PART), {}),
    (online_softmax.finish, (PART,), {}),
    (gaussian_process.covariance, (K.T, np.ones((2, 3)), np.ones(2)), {}),
    (gaussian_process.covariance, (K.T, np.ones((2, 3)), 0.5), {}),
    (gaussian_process.draw, (GRID, 0.5, RNG), {}),
    (gaussian_process.draw, (GRID, np.ones(3), RNG), {}),
    (gaussian_process.posterior, (U[:, :5], U, U), {"length_scale": 0.5, "noise": 0.1}),
    (random_features.fourier, (Q, np.ones((5, 2))), {}),
    (random_features.positive, (Q, np.ones((5, 2))), {}),
    (random_features.regular, (U, 5), {"length_scale": 0.3, "period": 5.2}),
    (online_regression.one_pass, (SQUARE, Q), {}),
    (online_regression.one_pass, (SQUARE, Q), {"beta": np.ones((11, 3))}),
    (online_regression.passes, (SQUARE, Q, 2), {"noise": 0.1}),
    (online_regression.recursive, (PAIRS, Q), {"noise": 0.1}),
    (communication_time.data_parallel_efficiency, (1, 1, 2), SPEED),
    (communication_time.least_tokens, (), SPEED),
    (communication_time.least_block, (), SPEED),
    (communication_time.ring_efficiency, (1, 1, 2), SPEED),
    (communication_time.seconds, (1, 1, SPEED["link"]), {}),
    (plan.activations, (LLAMA, "all"), {}),
    (plan.operations, (LLAMA,), {}),
    (plan.plan, (LLAMA, 2**13, H100, layout.Layout()), {}),
    (traffic.causal_imbalance, (2,), {"zigzag": True}),
    (traffic.heads_split, (1, 1, 1, 4), {}),
    (traffic.split_attention, (1, 1, 4), {}),
    (traffic.padded, ((5,), 2), {}),
    (traffic.pipeline_bubble, (2, 2), {}),
    (ngrams.bits, (np.arange(7), np.arange(5), 2), {"vocab_size": 7, "discount": 0.5}),
    (sampling.probabilities, (U,), {"temperature": 0.5, "top_k": 3, "top_p": 0.5}),
]
SHARES = attnbook.softmax, kernels.gaussian, kernels.boxcar, kernels.triangular
CURVES = kernels.epanechnikov, datasets.curve, datasets.noise_level
BENT = activations.relu, activations.gelu, activations.gelu_tanh, activations.sigmoid
OF_X = activations.silu, heads.merge_heads, linear_heads.elu_plus_one, linear_heads.unit_length
EVERY = traffic.all_gather, traffic.all_reduce, traffic.all_to_all, traffic.reduce_scatter
for args, functions in (
    ((U,), (*SHARES, *CURVES)),
    ((X,), (*BENT, *OF_X, losses.log_softmax)),
    ((Q[0], K), (scores.dot, scores.scaled_dot, scores.cosine)),
    ((Q[0], K, H), (kernels.distance, kernels.squared_distance, scores.gaussian_score)),
    ((1, 2), (*EVERY, traffic.ring, traffic.ring_backward)),
    ((1, 2, 3), (traffic.zero, traffic.zero_traffic)),
):
    CALLS += [(function, args, {}) for function in functions]


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
    assert formulas - INNER - called == named(
        """
        generate.sampling: sample
        models.kv_cache: decode_step
        models.recurrent: bidirectional_states decode_step encode logits step translate
        models.transformer: attention_only decoder_only encode_source encoder_decoder encoder_only
          run_blocks
        """
    )


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


def test_known_true_does_not_look_into_a_fake_tensor():
    """A model that checks its tokens runs where tensors have shapes and no numbers."""
    assert is_concretely_true(np.array(True))
    assert not is_concretely_true(np.array(False))
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    import torch

    with fake.FakeTensorMode():
        assert not is_concretely_true(torch.ones((), dtype=torch.bool))
    assert is_concretely_true(torch.ones((), dtype=torch.bool))
