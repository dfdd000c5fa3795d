"""A call of every public function of arrays, as test_parity and the tests on a GPU take them."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from attnbook import (
    attend,
    causal_mask,
    kernels,
    leave_one_out,
    nadaraya_watson,
    padding_mask,
    scores,
    softmax,
)
from attnbook._validation import common_namespace
from attnbook.attention import heads, positions
from attnbook.layers import activations, mlp, norms
from attnbook.models import blocks

RNG = np.random.default_rng(11)
Q, K, V = RNG.normal(size=(11, 3, 2)), RNG.normal(size=(11, 7, 2)), RNG.normal(size=(11, 7, 5))
H, U = np.array([0.7, 1.3]), RNG.uniform(0, 1.5, size=(3, 7))
MASK = RNG.random((11, 3, 7)) < 0.7
X, W = RNG.normal(size=(5, 7, 12)), RNG.normal(size=(4, 12, 12)) / 3
PLACES = np.array([0.0, 1.0, 2.0, 5.0, 11.0, 23.0, -3.5])

CASES = {  # "name" or "name, variant": a function of floating arrays, and these
    "attend": (attend, Q, K, V),
    "attend, masked": (
        lambda q, k, v: attend(q, k, v, mask=causal_mask(7, like=q)[4:, :]),
        *(Q, K, V),
    ),
    "attend, Gaussian": (lambda q, k, v: attend(q, k, v, score=scores.gaussian_score), Q, K, V),
    "attend, weights": (lambda q, k, v: attend(q, k, v, return_weights=True)[1], Q, K, V),
    "causal_mask": (lambda q: causal_mask(5, like=q), Q),
    "padding_mask": (lambda q: padding_mask(_lengths(q), 7), Q),
    "softmax": (softmax, U),
    "softmax, masked": (lambda u: softmax(u, u < 0.9), U),
    **{
        f"nadaraya_watson, {kernel.__name__}": (
            lambda q, k, v, h, f=kernel: nadaraya_watson(q, k, v, kernel=f, bandwidth=2 * h),
            *(Q, K, V, H),
        )
        for kernel in (kernels.gaussian, kernels.boxcar, kernels.triangular, kernels.epanechnikov)
    },
    "nadaraya_watson, one bandwidth": (
        lambda q, k, v, h: nadaraya_watson(q, k, v, bandwidth=h),
        *(Q, K, V, np.array(0.8)),
    ),
    "nadaraya_watson, masked": (
        lambda q, k, v: nadaraya_watson(q, k, v, mask=causal_mask(7, like=q)[4:, :]),
        *(Q, K, V),
    ),
    "nadaraya_watson, weights": (
        lambda q, k, v, h: nadaraya_watson(q, k, v, bandwidth=h, return_weights=True)[1],
        *(Q, K, V, H),
    ),
    "leave_one_out": (lambda k, v, h: leave_one_out(k, v, bandwidth=h), K, V, H),
    "leave_one_out, Epanechnikov": (
        lambda k, v, h: leave_one_out(k, v, kernel=kernels.epanechnikov, bandwidth=4 * h),
        *(K, V, H),
    ),
    "kernels.gaussian": (kernels.gaussian, U),
    "kernels.boxcar": (kernels.boxcar, U),
    "kernels.triangular": (kernels.triangular, U),
    "kernels.epanechnikov": (kernels.epanechnikov, U),
    "distances.distance": (kernels.distance, Q, K, H),
    "distances.squared_distance": (kernels.squared_distance, Q, K, H),
    "scores.dot": (scores.dot, Q, K),
    "scores.scaled_dot": (scores.scaled_dot, Q, K),
    "scores.gaussian_score": (scores.gaussian_score, Q, K, H),
    "scores.general": (scores.general, Q, K, RNG.normal(size=(2, 2))),
    "scores.cosine": (scores.cosine, Q, K),
    "scores.additive": (
        scores.additive,
        *(Q, K, RNG.normal(size=(13, 2)), RNG.normal(size=(13, 2)), RNG.normal(size=13)),
    ),
    "scores.additive_of_projected": (scores.additive_of_projected, X, X[:, :5], X[0, 0]),
    "heads.self_attention": (heads.self_attention, X, *W[:3]),
    "heads.self_attention, masked": (
        lambda x, *w: heads.self_attention(x, *w, mask=causal_mask(7, like=x)),
        *(X, *W[:3]),
    ),
    "heads.split_heads": (lambda x: heads.split_heads(x, 3), X),
    "heads.merge_heads": (heads.merge_heads, X),
    "heads.single_head": (lambda x, *w: heads.single_head(_layer(1, *w), x), *(X, *W)),
    "heads.multi_head_attention": (
        lambda q, k, *w: heads.multi_head_attention(_layer(4, *w), q, k),
        *(X, X[:, :5], *W),
    ),
    "heads.multi_head_attention, shared": (
        lambda x, w_q, w_k, w_v, w_o: heads.multi_head_attention(
            _layer(2, w_q, w_k[:6, :], w_v[:6, :], w_o), x, mask=causal_mask(7, like=x)
        ),
        *(X, *W),
    ),
    **{
        f"heads.project, {part}": (
            lambda q, k, v, *w, i=i: heads.project(_layer(2, *w), q, k, v)[i],
            *(X, X[:, :5], X[:, 2:], W[0], W[1][:6], W[2][:6], W[3]),
        )
        for i, part in enumerate(("queries", "keys", "values"))
    },
    **{
        f"heads.project, turned {part}": (
            lambda q, p, *w, i=i: heads.project(
                _layer(1, *w, num_heads=2, rotary_base=50.0), q, q, q, p, shared=True
            )[i],
            *(X, PLACES, W[0], W[1][:6], W[2][:6], W[3]),
        )
        for i, part in enumerate(("queries", "keys", "values"))
    },
    "positions.rotary": (positions.rotary, X, PLACES),
    "positions.rotary, rows": (
        lambda x, p: positions.rotary(x, p, base=50.0),
        X,
        PLACES + np.arange(5)[:, None],
    ),
    "activations.relu": (activations.relu, X),
    "activations.gelu": (activations.gelu, X),
    "activations.gelu_tanh": (activations.gelu_tanh, X),
    "activations.sigmoid": (activations.sigmoid, X),
    "activations.silu": (activations.silu, X),
    "norms.layer_norm": (norms.layer_norm, X, W[0, 0], W[1, 0]),
    "norms.rms_norm": (norms.rms_norm, X, W[0, 0]),
    "norms.apply_norm": (
        lambda x, g, b: norms.apply_norm(_norm(g, b), x),
        X,
        W[0, 0],
        W[1, 0],
    ),
    **{
        f"mlp.mlp, {activation}": (
            lambda x, *w, a=activation: mlp.mlp(_block(w, a).mlp, x),
            *(X, *W),
        )
        for activation in ("gelu", "gelu_tanh", "relu", "swiglu")
    },
    **{
        f"blocks.residual, {norm}": (
            lambda x, g, b, norm=norm: blocks.residual(_norm(g, b), norm, lambda x: x * x, x),
            *(X, W[0, 0], W[1, 0]),
        )
        for norm in ("pre", "post")
    },
    "blocks.encoder_block": (
        lambda x, *w: blocks.encoder_block(_block(w), x, blocks.AttentionSublayer(_layer(4, *w))),
        *(X, *W),
    ),
    "blocks.decoder_block": (
        lambda x, memory, *w: blocks.decoder_block(
            *(
                _block(w),
                x,
                blocks.AttentionSublayer(_layer(4, *w)),
                blocks.AttentionSublayer(_layer(4, *w), memory),
            ),
        ),
        *(X, X[:, :5], *W),
    ),
}


def _layer(num_kv_heads: int, *weights: Any, num_heads: int = 4, **how: Any) -> Any:
    """Heads of these projections, four of width 3."""
    parts = zip(("query", "key", "value", "output"), weights, strict=True)
    linear = {name: SimpleNamespace(weight=weight, bias=None) for name, weight in parts}
    return SimpleNamespace(
        embed_dim=12, num_heads=num_heads, num_kv_heads=num_kv_heads, **linear, **how
    )


def _norm(weight: Any = None, bias: Any = None) -> Any:
    return SimpleNamespace(weight=weight, bias=bias, eps=1e-5)


def _block(weights: Sequence[Any], activation: str = "gelu") -> Any:
    """A block of these matrices, before whose parts the norms have no parameters."""
    hidden, gate, output, _ = (SimpleNamespace(weight=w, bias=w[0, :]) for w in weights)
    inner = SimpleNamespace(hidden=hidden, gate=gate, output=output, activation=activation)
    norms = {name: _norm() for name in ("attention_norm", "cross_norm", "mlp_norm")}
    return SimpleNamespace(mlp=inner, norm="pre", **norms)


def _lengths(like: Any) -> Any:
    """The lengths 1, 4 and 7, of the library of `like`."""
    positions = causal_mask(3, like=like)
    xp = common_namespace(like=like)
    return 3 * xp.sum(xp.astype(positions, xp.int64), axis=-1) - 2
