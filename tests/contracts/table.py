"""The contract: what every public function of arrays takes and gives, one row for each.

A row names the arguments with their domains, one oracle that shares no line with attnbook, and the
properties that hold. The tests in this folder are made from it.
"""

from __future__ import annotations

import inspect
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import reference
import reference_heads

import attnbook
from attnbook.attention import distances, heads, positions
from attnbook.exact import flash, online_softmax
from attnbook.generate import sampling, speculative
from attnbook.kernel import gaussian_process, kernels, non_local_means, random_features, regression
from attnbook.layers import activations, norms
from attnbook.linear_attention import forms, linear_heads, online_regression
from attnbook.models import losses

SIZES = {"m": 3, "n": 7, "d": 4, "p": 5, "r": 6, "e": 12, "heads": 2}
LIBRARIES = ("numpy", "strict", "torch", "jax-jit")
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Domain:
    """What an argument may be: its kind, and its shape in letters, and in numbers before them.

    Numbers are leading axes: any, where none has a letter. Data have one floating dtype, the library
    and the leading axes of the others; a parameter, a bandwidth and a rate are cast to that dtype, and
    the last two may be numbers.
    """

    kind: str
    shape: tuple[str | int, ...]

    @classmethod
    def of(cls, words: str) -> Domain:
        kind, _, letters = words.rpartition(":")
        shape = (int(a) if a.isdecimal() else a for a in letters.split())
        return cls(kind or "data", tuple(shape))

    @property
    def letters(self) -> list[str]:
        return [a for a in self.shape if isinstance(a, str)]

    def sizes(self, **other: int) -> tuple[int, ...]:
        return tuple(a if isinstance(a, int) else (SIZES | other)[a] for a in self.shape)

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        shape = self.sizes()
        draws: dict[str, Callable[[], np.ndarray]] = {
            "above 0": lambda: rng.uniform(0.6, 1.9, shape),
            "bandwidth": lambda: rng.uniform(0.6, 1.9, shape),
            "rate": lambda: rng.uniform(0.2, 1, shape),
            "share": lambda: rng.uniform(0.2, 1, shape),
            "bool": lambda: rng.random(shape) < 0.6,
            "lengths": lambda: rng.integers(0, SIZES["n"] + 1, shape),
            "labels": lambda: rng.integers(0, SIZES["e"], shape),
            "probabilities": lambda: rng.dirichlet(np.ones(shape[-1]), shape[:-1]),
            "keys": lambda: unit(rng.normal(size=shape)),
        }
        return draws.get(self.kind, lambda: rng.normal(size=shape))()


DATA = ("data", "above 0", "share", "keys")  # of one dtype
CAST = ("parameter", "bandwidth", "rate", "places")  # to that dtype
FLOATING = (*DATA, *CAST, "real", "probabilities")


@dataclass(frozen=True)
class Row:
    """A public function.

    Args:
        name: the last module and the function, and after a comma what is special.
        call: the function, which is called with its arguments by their names.
        domains: of the arrays, by argument.
        oracle: the same from NumPy's float64 arrays by name.
        fixed: arguments that are no arrays.
        numbers: what those may be, where a wrong one is refused.
        holds: "sums" (rows of weights sum to 1), "causal" (no later token changes a row), "keys" (the
            order of keys does not matter), "tokens" (the order of tokens is that of the outputs),
            "half" (half precision is kept, and computed in float32), "slopes" (it is differentiated).
        roundings: how many of them a result may have gone through, in units of its dtype and of
            numbers as large as the largest result.
        libraries: those whose arrays it takes.
        own_names: whether the arrays are arguments of the function itself, so that it names them.
        instead: who is named in place of an argument whose shape does not fit.
    """

    name: str
    call: Callable[..., Any]
    domains: Mapping[str, str]
    oracle: Callable[..., Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)
    holds: str = "slopes"
    roundings: int = 64
    libraries: tuple[str, ...] = LIBRARIES
    own_names: bool = True
    instead: Mapping[str, str] = field(default_factory=dict)
    parsed: dict[str, Domain] = field(init=False)

    def __post_init__(self) -> None:
        parsed = {name: Domain.of(words) for name, words in self.domains.items()}
        object.__setattr__(self, "parsed", parsed)

    def arrays(self) -> Arrays:
        """Inputs from a seed of the row's own."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {name: domain.drawn(rng) for name, domain in self.parsed.items()}

    def floating(self) -> list[str]:
        """The arguments that have a slope."""
        return [name for name, domain in self.parsed.items() if domain.kind in FLOATING]


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def pairs(score: Callable[..., float], *parameters: str) -> Callable[..., np.ndarray]:
    """An oracle of scores, pair by pair, from a score that has parameters."""

    def oracle(q: np.ndarray, k: np.ndarray, **given: Any) -> np.ndarray:
        more = [given[name] for name in parameters]
        return reference.pairs(lambda a, b: score(a, b, *more), q, k)

    return oracle


def points(score: Callable[..., float]) -> Callable[..., np.ndarray]:
    """The same for queries and keys."""

    def oracle(queries: np.ndarray, keys: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
        return reference.pairs(lambda a, b: score(a, b, bandwidth), queries, keys)

    return oracle


def entry_by_entry(function: Callable[[float], float], name: str = "x") -> Callable[..., Any]:
    return lambda **given: np.vectorize(function)(given[name])


def first(oracle: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **given: oracle(*args, **given)[0]


def of_torch(path: str, **how: Any) -> Callable[..., Any]:
    """A function of torch.nn.functional, of the arrays in their order."""

    def oracle(**given: np.ndarray) -> np.ndarray:
        import torch

        found: np.ndarray = getattr(torch.nn.functional, path)(
            *map(torch.from_numpy, given.values()), **how
        ).numpy()
        return found

    return oracle


def of_scipy(path: str, **how: Any) -> Callable[..., Any]:
    def oracle(**given: np.ndarray) -> Any:
        import scipy.special

        return getattr(scipy.special, path)(*given.values(), **how)

    return oracle


# attention


def softmax_rows(scores: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
    found = [reference.softmax(scores[i].tolist(), allowed[i].tolist()) for i in rows_of(scores)]
    return np.reshape(found, scores.shape)


def rows_of(a: np.ndarray) -> Any:
    return np.ndindex(a.shape[:-1])


def causal_attend(queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> Any:
    return reference.attend(queries, keys, values, mask=np.tri(keys.shape[-2], dtype=bool))


def rotary(x: np.ndarray, positions: np.ndarray, base: float = 10_000.0) -> np.ndarray:
    places: Any = np.broadcast_to(positions, x.shape[:-1])
    found = [
        reference_heads.rotary(places[i], x[i].tolist(), base) for i in np.ndindex(places.shape)
    ]
    return np.reshape(found, x.shape)


def sines() -> np.ndarray:
    waves = [(math.sin, math.cos)[c % 2] for c in range(SIZES["r"])]
    return np.array(
        [[w(p / 10_000 ** (c // 2 * 2 / 6)) for c, w in enumerate(waves)] for p in range(13)]
    )


def head_by_head(x: np.ndarray, num_heads: int) -> np.ndarray:
    return np.stack(np.split(x, num_heads, axis=-1), axis=-3)


def one_head(**given: np.ndarray) -> Any:
    x, mask = given["x"], given.get("mask")
    names = {"query.weight": "w_q", "key.weight": "w_k", "value.weight": "w_v"}
    parameters = {name: given[short] for name, short in names.items()}
    each = [reference_heads.self_attention(parameters, row, mask) for row in x]
    return tuple(np.array(part) for part in zip(*each, strict=True))


PARTS = ("query", "key", "value", "output")
SHORT = ("w_q", "b_q", "w_k", "b_k", "w_v", "b_v", "w_o", "b_o")


def layer_of(num_kv_heads: int, arrays: tuple[Any, ...]) -> Any:
    """A layer that is nothing but its parameters: four heads of width 3."""
    linear = {
        part: SimpleNamespace(weight=arrays[2 * i], bias=arrays[2 * i + 1])
        for i, part in enumerate(PARTS)
    }
    return SimpleNamespace(embed_dim=12, num_heads=4, num_kv_heads=num_kv_heads, **linear)


def several_heads(queries: Any, keys: Any, values: Any, mask: Any, **weights: Any) -> Any:
    layer = layer_of(2, tuple(weights[name] for name in SHORT))
    return heads.multi_head_attention(layer, queries, keys, values, mask, return_weights=True)


def several_heads_loop(queries: Any, keys: Any, values: Any, mask: Any, **weights: Any) -> Any:
    names = (f"{part}.{kind}" for part in PARTS for kind in ("weight", "bias"))
    parameters = dict(zip(names, (weights[name] for name in SHORT), strict=True))
    each = [
        reference_heads.multi_head_attention(parameters, [0, 0, 1, 1], q, k, v, mask[i])
        for i, (q, k, v) in enumerate(zip(queries, keys, values, strict=True))
    ]
    return tuple(np.array(part) for part in zip(*each, strict=True))


QKV = {"queries": "2 1 m d", "keys": "3 n d", "values": "n p"}
SELF = {"queries": "2 1 n d", "keys": "3 n d", "values": "n p"}
QK = {"q": "2 1 m d", "k": "3 n d"}
MASKED = {"mask": "bool: 2 3 m n"}
H = {"bandwidth": "bandwidth: d"}
ONE_HEAD = {"x": "2 n e", "w_q": "parameter: d e", "w_k": "parameter: d e", "w_v": "parameter: p e"}
SEVERAL = {
    "queries": "2 m e",
    "keys": "2 n e",
    "values": "2 n e",
    "mask": "bool: 2 m n",
    "w_q": "parameter: e e",
    "b_q": "parameter: e",
    "w_k": "parameter: r e",
    "b_k": "parameter: r",
    "w_v": "parameter: r e",
    "b_v": "parameter: r",
    "w_o": "parameter: e e",
    "b_o": "parameter: e",
}
WEIGHTS = {"return_weights": True}
ATTENTION = [
    Row("scores.dot", attnbook.scores.dot, QK, pairs(reference.dot)),
    Row("scores.scaled_dot", attnbook.scores.scaled_dot, QK, pairs(reference.scaled_dot)),
    Row(
        "scores.gaussian_score",
        attnbook.scores.gaussian_score,
        QK | H,
        pairs(reference.gaussian_score, "bandwidth"),
        numbers={"bandwidth": "above 0"},
    ),
    Row(
        "scores.general",
        attnbook.scores.general,
        {"q": "2 1 m d", "k": "3 n p", "weight": "parameter: d p"},
        pairs(reference.general, "weight"),
    ),
    Row("scores.cosine", attnbook.scores.cosine, QK, pairs(reference.cosine)),
    Row(
        "scores.additive",
        attnbook.scores.additive,
        {
            "q": "2 1 m d",
            "k": "3 n p",
            "w_q": "parameter: r d",
            "w_k": "parameter: r p",
            "v": "parameter: r",
        },
        pairs(reference.additive, "w_q", "w_k", "v"),
    ),
    Row(
        "scores.additive_of_projected",
        attnbook.scores.additive_of_projected,
        {"q": "2 1 m r", "k": "3 n r", "v": "parameter: r"},
        lambda q, k, v: np.tanh(q[..., :, None, :] + k[..., None, :, :]) @ v,
    ),
    Row(
        "distances.distance",
        distances.distance,
        {"queries": "2 1 m d", "keys": "3 n d"} | H,
        points(reference.distance),
        numbers={"bandwidth": "above 0"},
    ),
    Row(
        "softmax",
        attnbook.softmax,
        {"scores": "2 3 n", "mask": "bool: 3 n"},
        softmax_rows,
        holds="slopes half",
    ),
    Row(
        "softmax, of all",
        attnbook.softmax,
        {"scores": "2 m n"},
        softmax_rows,
        holds="slopes sums half",
    ),
    Row("attend, of all", attnbook.attend, QKV, first(reference.attend), holds="slopes keys half"),
    Row(
        "attend, weights",
        attnbook.attend,
        QKV,
        reference.attend,
        fixed=WEIGHTS,
        holds="slopes sums half",
    ),
    Row("attend", attnbook.attend, QKV | MASKED, first(reference.attend), holds="slopes keys half"),
    Row(
        "attend, masked weights",
        attnbook.attend,
        QKV | MASKED,
        reference.attend,
        fixed=WEIGHTS,
        holds="half",
    ),
    Row(
        "attend, causal",
        attnbook.attend,
        SELF,
        first(causal_attend),
        fixed={"causal": True},
        holds="slopes causal half",
    ),
    Row(
        "attend, causal weights",
        attnbook.attend,
        SELF,
        causal_attend,
        fixed={"causal": True, **WEIGHTS},
        holds="slopes sums causal",
    ),
    Row(
        "attend, of another score",
        attnbook.attend,
        QKV | MASKED,
        lambda **given: reference.attend(score=reference.gaussian_score, **given),
        fixed={"score": attnbook.scores.gaussian_score, **WEIGHTS},
        holds="half",
    ),
    Row(
        "causal_mask",
        attnbook.causal_mask,
        {"like": "5 n"},
        lambda like: np.array([[j <= i for j in range(5)] for i in range(5)]),
        fixed={"n": 5},
        numbers={"n": "integer from 0"},
        holds="",
        own_names=False,
    ),
    Row(
        "padding_mask",
        attnbook.padding_mask,
        {"lengths": "lengths: 2 3"},
        lambda lengths: np.array([[[[j < n for j in range(7)]] for n in row] for row in lengths]),
        fixed={"n": 7},
        numbers={"n": "integer from 0"},
        holds="",
    ),
    Row(
        "positions.rotary",
        positions.rotary,
        {"x": "2 3 n d", "positions": "places: 2 1 n"},
        rotary,
        numbers={"base": "above 0"},
        instead={"x": "positions"},
        holds="slopes half",
    ),
    Row(
        "positions.rotary, of another base",
        positions.rotary,
        {"x": "2 n r", "positions": "places: n"},
        lambda x, positions: rotary(x, positions, 20.0),
        fixed={"base": 20.0},
    ),
    Row(
        "positions.sinusoidal",
        positions.sinusoidal,
        {},
        sines,
        fixed={"n": 13, "d": 6},
        numbers={"n": "integer from 0", "d": "even"},
        holds="",
        libraries=("numpy",),
    ),
    Row(
        "positions.alibi",
        positions.alibi,
        {},
        lambda: np.array(
            # the slopes of three heads in Press, Smith and Lewis' code
            [
                [[-s * abs(i - j) for j in range(7)] for i in range(7)]
                for s in (1 / 16, 1 / 256, 1 / 4)
            ]
        ),
        fixed={"num_heads": 3, "n": 7},
        numbers={"num_heads": "integer from 1", "n": "integer from 0"},
        holds="",
        libraries=("numpy",),
    ),
    Row(
        "heads.split_heads",
        heads.split_heads,
        {"x": "2 3 n e"},
        lambda x: head_by_head(x, 3),
        fixed={"num_heads": 3},
        numbers={"num_heads": "divisor of 12"},
    ),
    Row(
        "heads.merge_heads",
        heads.merge_heads,
        {"x": "2 heads n d"},
        lambda x: np.concatenate([x[:, 0], x[:, 1]], axis=-1),
    ),
    Row(
        "heads.self_attention",
        heads.self_attention,
        ONE_HEAD,
        first(one_head),
        instead={"w_k": "keys"},
        holds="slopes tokens",
        roundings=512,
    ),
    Row(
        "heads.self_attention, masked weights",
        heads.self_attention,
        ONE_HEAD | {"mask": "bool: n n"},
        one_head,
        fixed=WEIGHTS,
        roundings=512,
    ),
    Row(
        "heads.multi_head_attention",
        several_heads,
        SEVERAL,
        several_heads_loop,
        roundings=512,
        own_names=False,
    ),
]

# kernel regression


def neighbours(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, kernel: str) -> Any:
    """scikit-learn's neighbours within 2.5, or all of them with weights."""
    from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor

    if kernel == "boxcar":
        model = RadiusNeighborsRegressor(radius=2.5)
    else:
        loop = reference.KERNELS[kernel]
        weigh = lambda r: np.vectorize(loop)(r / 2.5)  # noqa: E731
        model = KNeighborsRegressor(len(keys), weights=weigh)
    return model.fit(keys, values).predict(queries)


def kernel_reg(queries: Any, keys: Any, values: Any, bandwidth: Any) -> np.ndarray:
    """statsmodels' Nadaraya–Watson ("local constant") estimator, column by column."""
    import warnings

    from statsmodels.nonparametric.kernel_regression import KernelReg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about a generator unused here
        how = {"reg_type": "lc", "ckertype": "gaussian", "bw": bandwidth}
        fits = [KernelReg(column, keys, "c" * keys.shape[1], **how) for column in values.T]
        return np.stack([fit.fit(queries)[0] for fit in fits], axis=-1)


def refits(keys: np.ndarray, values: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
    """Every key predicted from the others."""
    others = ~np.eye(keys.shape[-2], dtype=bool)
    return reference.nadaraya_watson(keys, keys, values, bandwidth=bandwidth, mask=others)[0]


def in_metric(queries: Any, keys: Any, values: Any, metric: Any, mask: Any) -> Any:
    q, k = (np.einsum("rd,...nd->...nr", metric, a) for a in (queries, keys))
    return reference.nadaraya_watson(q, k, values, mask=mask)[0]


def gaussian_posterior(queries: Any, keys: Any, values: Any) -> Any:
    """scikit-learn's Gaussian process, function by function."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    each = []
    for q, k, v in zip(queries, keys, values, strict=True):
        model = GaussianProcessRegressor(RBF(0.5), alpha=0.3**2, optimizer=None)
        mean, deviation = model.fit(k[:, None], v).predict(q[:, None], return_std=True)
        each.append((mean, deviation**2))
    return tuple(np.array(part) for part in zip(*each, strict=True))


def patches(image: np.ndarray) -> Any:
    from sklearn.feature_extraction.image import extract_patches_2d

    return extract_patches_2d(np.pad(image, 1, mode="reflect"), (3, 3)).reshape(image.size, 9)


def non_local(image: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import rbf_kernel

    weights = rbf_kernel(patches(image), gamma=1 / (2 * 0.7**2 * 9))
    return (weights @ image.ravel() / weights.sum(-1)).reshape(image.shape)


def waves(x: np.ndarray, frequencies: np.ndarray) -> Any:
    angles = [[sum(o * a for o, a in zip(w, row, strict=True)) for w in frequencies] for row in x]
    return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(len(frequencies))


def exponentials(x: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    found = [[math.exp(w @ row - row @ row / 2) for w in frequencies] for row in x]
    return np.array(found) / math.sqrt(len(frequencies))


def fourier_series(x: np.ndarray) -> np.ndarray:
    """The Gaussian's Fourier series of period 5 and length scale 0.8, three frequencies of it."""
    found = []
    for wave in (math.cos, math.sin):
        for j in range(3):
            omega = 2 * math.pi * j / 5
            share = math.sqrt(2 * math.pi) * 0.8 / 5 * math.exp(-((omega * 0.8) ** 2) / 2)
            found.append(math.sqrt(share * (2 if j else 1)) * np.vectorize(wave)(omega * x))
    return np.stack(found, axis=-1)


PLAIN = {"queries": "m d", "keys": "n d", "values": "n p"}
LINE = {"queries": "real: 2 m", "keys": "real: 2 n", "values": "real: 2 n"}
NUMPY = ("numpy",)
KERNEL = [
    *(
        Row(
            f"kernels.{name}",
            getattr(kernels, name),
            {"u": "above 0: 2 3 7"},
            entry_by_entry(loop, "u"),
            holds="half" if name == "boxcar" else "slopes half",
        )
        for name, loop in reference.KERNELS.items()
    ),
    Row(
        "nadaraya_watson, of all",
        attnbook.nadaraya_watson,
        PLAIN | H,
        kernel_reg,
        holds="slopes keys half",
    ),
    *(
        Row(
            f"nadaraya_watson, {name}",
            attnbook.nadaraya_watson,
            PLAIN,
            lambda name=name, **given: neighbours(**given, kernel=name),
            fixed={"kernel": getattr(kernels, name), "bandwidth": 2.5},
            holds="keys" if name == "boxcar" else "slopes keys",
        )
        for name in ("boxcar", "triangular", "epanechnikov")
    ),
    Row(
        "nadaraya_watson, weights",
        attnbook.nadaraya_watson,
        QKV | H,
        reference.nadaraya_watson,
        fixed=WEIGHTS,
        holds="slopes sums half",
    ),
    Row(
        "nadaraya_watson",
        attnbook.nadaraya_watson,
        QKV | MASKED | H,
        first(reference.nadaraya_watson),
        numbers={"bandwidth": "above 0"},
        holds="slopes keys",
    ),
    Row(
        "nadaraya_watson, masked weights of another kernel",
        attnbook.nadaraya_watson,
        QKV | MASKED,
        lambda **given: reference.nadaraya_watson(kernel="epanechnikov", bandwidth=4.0, **given),
        fixed={"kernel": kernels.epanechnikov, "bandwidth": 4.0, **WEIGHTS},
        holds="",
    ),
    Row(
        "leave_one_out",
        attnbook.leave_one_out,
        {"keys": "3 n d", "values": "2 1 n p"} | H,
        refits,
        numbers={"bandwidth": "above 0"},
        holds="slopes tokens half",
    ),
    Row(
        "regression.multi_head",
        regression.multi_head,
        QKV | {"bandwidths": "rate: heads d", "combination": "parameter: heads"} | MASKED,
        reference.multi_head,
        instead={"combination": "bandwidths"},
        holds="slopes keys",
    ),
    Row(
        "regression.in_metric",
        regression.in_metric,
        QKV | {"metric": "parameter: r d"} | MASKED,
        in_metric,
        holds="slopes keys",
    ),
    Row(
        "gaussian_process.covariance",
        gaussian_process.covariance,
        {"x": "real: 2 m", "z": "real: 2 n"},
        lambda x, z: np.array(
            [
                [[math.exp(-((a - b) ** 2) / 2 / 0.5**2) for b in w] for a in v]
                for v, w in zip(x, z, strict=True)
            ]
        ),
        fixed={"length_scale": 0.5},
        numbers={"length_scale": "above 0"},
        holds="",
        libraries=NUMPY,
    ),
    Row(
        "gaussian_process.posterior",
        gaussian_process.posterior,
        LINE,
        gaussian_posterior,
        fixed={"length_scale": 0.5, "noise": 0.3},
        numbers={"length_scale": "above 0", "noise": "0 or more"},
        holds="",
        roundings=2048,  # K + σ²I has a condition number of some n / σ²
        libraries=NUMPY,
    ),
    Row(
        "non_local_means.patches",
        non_local_means.patches,
        {"image": "p n"},
        patches,
        fixed={"width": 3},
        numbers={"width": "odd"},
        holds="",
        libraries=NUMPY,
        own_names=False,
    ),
    Row(
        "non_local_means.non_local_means",
        non_local_means.non_local_means,
        {"image": "p n"},
        non_local,
        fixed={"bandwidth": 0.7, "width": 3},
        numbers={"bandwidth": "above 0", "width": "odd"},
        holds="",
        libraries=NUMPY,
    ),
    Row(
        "random_features.fourier",
        random_features.fourier,
        {"x": "n d", "frequencies": "parameter: r d"},
        waves,
        holds="slopes half",
    ),
    Row(
        "random_features.positive",
        random_features.positive,
        {"x": "n d", "frequencies": "parameter: r d"},
        exponentials,
        holds="slopes half",
    ),
    Row(
        "random_features.regular",
        random_features.regular,
        {"x": "2 n"},
        fourier_series,
        fixed={"count": 3, "length_scale": 0.8, "period": 5.0},
        numbers={"count": "integer from 1", "length_scale": "above 0", "period": "above 0"},
        holds="slopes half",
    ),
]

# layers, losses and probabilities


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return of_torch("rms_norm", normalized_shape=weight.shape, weight=_tensor(weight), eps=1e-3)(
        x=x
    )


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    how = {"weight": _tensor(weight), "bias": _tensor(bias), "eps": 1e-3}
    return of_torch("layer_norm", normalized_shape=weight.shape, **how)(x=x)


def _tensor(a: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(a)


def cross_entropy(logits: np.ndarray, labels: np.ndarray, mask: np.ndarray) -> Any:
    import torch

    flat = _tensor(logits[mask]), _tensor(labels[mask])
    return torch.nn.functional.cross_entropy(*flat)[None].numpy()


TOKEN, ENTRY = {"x": "2 3 e"}, {"x": "2 3 12"}
LAYERS = [
    Row("activations.relu", activations.relu, ENTRY, of_torch("relu"), holds="slopes half"),
    Row("activations.gelu", activations.gelu, ENTRY, of_torch("gelu"), holds="slopes half"),
    Row(
        "activations.gelu_tanh",
        activations.gelu_tanh,
        ENTRY,
        of_torch("gelu", approximate="tanh"),
        holds="slopes half",
    ),
    Row("activations.silu", activations.silu, ENTRY, of_torch("silu"), holds="slopes half"),
    Row("activations.sigmoid", activations.sigmoid, ENTRY, of_scipy("expit"), own_names=False),
    Row(
        "norms.layer_norm",
        norms.layer_norm,
        TOKEN | {"weight": "parameter: e", "bias": "parameter: e"},
        layer_norm,
        fixed={"eps": 1e-3},
        numbers={"eps": "above 0"},
        holds="slopes half",
    ),
    Row(
        "norms.rms_norm",
        norms.rms_norm,
        TOKEN | {"weight": "parameter: e"},
        rms_norm,
        fixed={"eps": 1e-3},
        numbers={"eps": "above 0"},
        holds="slopes half",
    ),
    Row(
        "losses.log_softmax",
        losses.log_softmax,
        {"logits": "2 3 e"},
        of_scipy("log_softmax", axis=-1),
    ),
    Row(
        "losses.cross_entropy",
        lambda **given: losses.cross_entropy(**given)[None],
        {"logits": "2 n e", "labels": "labels: 2 n", "mask": "bool: 2 n"},
        cross_entropy,
        holds="slopes half",
    ),
    Row(
        "sampling.probabilities",
        sampling.probabilities,
        {"logits": "2 m e"},
        lambda logits: of_scipy("softmax", axis=-1)(logits=logits / 0.7),
        fixed={"temperature": 0.7},
        numbers={"temperature": "0 or more", "top_k": "integer from 1", "top_p": "above 0"},
        holds="",
        libraries=NUMPY,
        own_names=False,
    ),
    Row(
        "speculative.accepted_share",
        speculative.accepted_share,
        {"target": "probabilities: 2 e", "draft": "probabilities: 2 e"},
        lambda target, draft: 1 - np.abs(target - draft).sum(-1) / 2,
        holds="",
        libraries=NUMPY,
        own_names=False,
    ),
    Row(
        "speculative.residual",
        speculative.residual,
        {"target": "probabilities: e", "draft": "probabilities: e"},
        lambda target, draft: (
            np.where(target > draft, target - draft, 0)
            / sum(max(p - q, 0) for p, q in zip(target, draft, strict=True))
        ),
        holds="",
        libraries=NUMPY,
        own_names=False,
    ),
    Row(
        "speculative.tokens_per_pass",
        lambda **given: np.array(speculative.tokens_per_pass(**given)),
        {},
        lambda: np.array((1 - 0.7**4) / (1 - 0.7)),
        fixed={"share": 0.7, "drafts": 3},
        numbers={"drafts": "integer from 0"},
        holds="",
        libraries=NUMPY,
    ),
]

# states, and regression while reading


def state_loop(**given: Any) -> Any:
    """Token by token, with leading axes broadcast."""
    names = ("q", "k", "v", "decay", "beta", "state")
    core = {"q": 2, "k": 2, "v": 2, "decay": 1, "beta": 1, "state": 2}
    here = {n: given[n] for n in names if n in given}
    lead = np.broadcast_shapes(*(a.shape[: a.ndim - core[n]] for n, a in here.items()))
    here = {n: np.broadcast_to(a, lead + a.shape[a.ndim - core[n] :]) for n, a in here.items()}
    each = {i: _one_state(**{n: a[i] for n, a in here.items()}) for i in np.ndindex(lead)}
    return tuple(
        np.reshape(
            [pair[part] for pair in each.values()], lead + each[(0,) * len(lead)][part].shape
        )
        for part in (0, 1)
    )


def _one_state(
    q: Any, k: Any, v: Any, decay: Any = None, beta: Any = None, state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    s = np.zeros((k.shape[-1], v.shape[-1])) if state is None else state
    outputs = []
    for t in range(len(q)):
        s = s if decay is None else decay[t] * s
        u = v[t] if beta is None else beta[t] * (v[t] - s.T @ k[t])
        s = s + np.outer(k[t], u)
        outputs.append(s.T @ q[t])
    return np.array(outputs), s


def state_weights(**given: Any) -> Any:
    """What values that are one-hot read."""
    return state_loop(**given, v=np.eye(SIZES["n"]))[0]


def gauss_seidel(gram: np.ndarray, values: np.ndarray) -> np.ndarray:
    u = np.zeros(values.shape)
    for _ in range(3):
        for i in range(len(gram)):
            others = gram[i] @ u - gram[i, i] * u[i]
            u[i] = (values[i] - others) / (gram[i, i] + 0.5**2)
    return u


def delta_rule(gram: np.ndarray, values: np.ndarray, beta: np.ndarray) -> Any:
    import scipy.linalg

    column = beta[:, None]
    below = np.eye(len(gram)) + column * np.tril(gram, -1)
    return scipy.linalg.solve_triangular(below, column * values, lower=True)


def bayes(features: np.ndarray, values: np.ndarray) -> Any:
    matrix = features.mT @ features + 0.5**2 * np.eye(features.shape[-1])
    return np.linalg.solve(matrix, features.mT @ values), 0.5**2 * np.linalg.inv(matrix)


STATE = {"q": "2 1 n d", "k": "keys: 3 n d", "v": "n p"}
DECAY, BETA = {"decay": "share: 2 1 n"}, {"beta": "share: n"}
START = {"state": "3 d p"}
RATES = {"": DECAY | BETA, ", sums": {}, ", decay": DECAY, ", delta": BETA}
LINEAR = [
    *(
        Row(
            f"forms.{name}{kind}",
            call,
            STATE | rates | start,
            state_loop,
            fixed=fixed,
            holds=holds,
            instead={"k": "v"},
        )
        for name, call, start, fixed, holds in (
            ("recurrent", forms.recurrent, START, {}, "slopes causal half"),
            ("chunked", forms.chunked, START, {"chunk": 4}, "slopes causal half"),
            ("affine_scan", forms.affine_scan, {}, {}, "slopes causal"),
        )
        for kind, rates in RATES.items()
    ),
    Row(
        "forms.weights",
        forms.weights,
        {"q": "2 1 n d", "k": "keys: 3 n d"} | DECAY | BETA,
        state_weights,
    ),
    Row(
        "linear_heads.elu_plus_one",
        linear_heads.elu_plus_one,
        TOKEN,
        lambda x: 1 + of_torch("elu")(x=x),
        own_names=False,
    ),
    Row(
        "linear_heads.unit_length",
        linear_heads.unit_length,
        TOKEN,
        lambda x: x / np.sqrt(np.square(x).sum(-1, keepdims=True) + 1e-6),
        own_names=False,
    ),
    Row(
        "online_regression.one_pass",
        online_regression.one_pass,
        {"gram": "n n", "values": "n p", "beta": "rate: n"},
        delta_rule,
        holds="slopes",
        roundings=512,
    ),
    Row(
        "online_regression.passes",
        lambda gram, values, **how: online_regression.passes(_gram(gram), values, **how),
        {"gram": "n r", "values": "n p"},
        lambda gram, values: gauss_seidel(_gram(gram), values),
        fixed={"count": 3, "noise": 0.5},
        numbers={"count": "integer from 0", "noise": "0 or more"},
        roundings=2048,
        own_names=False,
    ),
    Row(
        "online_regression.recursive",
        online_regression.recursive,
        {"features": "2 n r", "values": "2 n p"},
        bayes,
        fixed={"noise": 0.5},
        numbers={"noise": "above 0"},
        roundings=2048,  # ΦᵀΦ + σ²I has a condition number of some hundreds
    ),
]


def _gram(rows: Any) -> Any:
    return rows @ rows.mT


# exact attention


def flash_forward(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    """The averages, and scipy's log-sum-exp of the scores."""
    import scipy.special

    mask: Any = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if causal else np.bool_(True)
    scores = reference.pairs(reference.scaled_dot, q, k)
    logs = scipy.special.logsumexp(np.where(mask, scores, -np.inf), axis=-1)
    return reference.attend(q, k, v, mask=mask if causal else None)[0], logs


def flash_gradients(g: Any, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    """PyTorch's own, of its kernel."""
    import torch

    leaves = [_tensor(a).requires_grad_() for a in (q, k, v)]
    attend: Any = torch.nn.functional.scaled_dot_product_attention
    wide = [a.expand(2, 3, -1, -1) for a in leaves]
    out = attend(*wide, is_causal=causal)
    return tuple(a.numpy() for a in torch.autograd.grad(out, leaves, _tensor(g)))


def both_ways(g: Any, q: Any, k: Any, v: Any, **how: Any) -> Any:
    return flash.backward(g, q, k, v, *flash.forward(q, k, v, **how), **how)


def in_two_parts(scores: Any, values: Any, mask: Any) -> Any:
    halves = [
        online_softmax.partial(scores[..., cut], values[..., cut, :], mask[..., cut])
        for cut in (slice(0, 3), slice(3, 7))
    ]
    start = online_softmax.empty(SIZES["m"], SIZES["p"], scores)
    return online_softmax.finish(
        online_softmax.combine(online_softmax.combine(halves[1], start), halves[0])
    )


def streamed(scores: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Any:
    import scipy.special

    allowed = np.where(mask, scores, -np.inf)
    average = softmax_rows(np.broadcast_to(scores, (2, 3, 3, 7)), mask) @ values
    return average, np.broadcast_to(scipy.special.logsumexp(allowed, axis=-1), (2, 3, 3))


def part_loop(scores: np.ndarray, values: np.ndarray) -> Any:
    top = np.array([[max(row) for row in page] for page in scores.tolist()])
    weights = np.exp(scores - top[..., None])
    return top, weights.sum(-1), np.einsum("bmn,np->bmp", weights, values)


FLASH = {"q": "2 1 m d", "k": "3 n d", "v": "n p"}
SQUARE = {"q": "2 1 n d", "k": "3 n d", "v": "n p"}
CAUSAL = {"block": 2, "causal": True}
EXACT = [
    Row(
        "flash.forward",
        flash.forward,
        FLASH,
        flash_forward,
        fixed={"block": 2},
        numbers={"block": "integer from 1"},
        holds="slopes keys",
    ),
    Row(
        "flash.forward, causal",
        flash.forward,
        SQUARE,
        lambda **given: flash_forward(**given, causal=True),
        fixed=CAUSAL,
        holds="causal",
    ),
    Row(
        "flash.backward",
        both_ways,
        {"g": "2 3 m p"} | FLASH,
        flash_gradients,
        fixed={"block": 2},
        holds="",
        own_names=False,
    ),
    Row(
        "flash.backward, causal",
        both_ways,
        {"g": "2 3 n p"} | SQUARE,
        lambda **given: flash_gradients(**given, causal=True),
        fixed=CAUSAL,
        holds="",
        own_names=False,
    ),
    Row(
        "online_softmax.partial",
        online_softmax.partial,
        {"scores": "2 3 n", "values": "n p"},
        part_loop,
        holds="",
    ),
    *(
        Row(
            f"online_softmax.{name}",
            in_two_parts,
            {"scores": "2 1 m n", "values": "3 n p", "mask": "bool: 3 m n"},
            streamed,
            holds="",
            own_names=False,
        )
        for name in ("combine",)
    ),
]

ROWS = {row.name: row for row in (*ATTENTION, *KERNEL, *LAYERS, *LINEAR, *EXACT)}
SHOWN_BESIDE = {  # a public function that no row fits, and the file that shows it
    "flash.block_kinds": "exact/test_flash.py",
    "online_softmax.empty": "contracts/table.py, combine",
    "online_softmax.finish": "contracts/table.py, combine",
    "chunked.map_query_chunks": "kernel/test_regression.py",
    "dropout.dropout": "attention/test_attention_layers.py",
    "gaussian_process.draw": "kernel/test_gaussian_process.py",
    "scores.from_nearest": "kernel/test_regression_far.py",
    "ngrams.bits": "generate/test_ngrams.py",
    "sampling.sample": "generate/test_sampling.py",
    "decoding.greedy": "generate/test_decoding.py",
    "decoding.beam": "generate/test_decoding.py",
    "decoding.without_graph": "generate/test_decoding.py",
    "speculative.keep": "generate/test_speculative.py",
}


def takes_a_layer(function: Callable[..., Any]) -> bool:
    """Whether it is what a layer computes, whose own row shows it."""
    return next(iter(inspect.signature(function).parameters), "") in ("layer", "model", "norm")
