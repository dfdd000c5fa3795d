"""Sampling: a text from a language model, token by token."""

from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from jaxtyping import Float, Int

from attnbook._validation import is_such, nonnegative_int, positive_int, to_numpy, token_list
from attnbook.attention import softmax
from attnbook.generate.decoding import without_graph


def probabilities(
    logits: Float[np.ndarray, "... vocab"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[np.ndarray, "... vocab"]:
    """What to draw the next token from: p ∝ exp(logit / T) over the tokens that are kept.

    Args:
        logits: of shape (..., vocab), of any library, whose gradient is not kept.
        temperature: T, 0 or more; at 0 only the most probable token is left, greedy decoding.
        top_k: keep so many of the most probable tokens.
        top_p: keep the fewest most probable tokens whose sum reaches this, above 0, at most 1. What
            is missing by the rounding of the logits counts as reached. With both, the sum is taken
            over what top_k keeps.

    Returns:
        Of the shape of the logits, float64, each row summing to 1. Of tokens that are equally
        probable the one with the smaller number comes first.

    Raises:
        ValueError: no logit, no real ones, or none of a row that is finite and the largest, a
            temperature below 0, a top_k below 1, a top_p outside (0, 1].

    Source: top_k: Fan, Lewis and Dauphin (2018); top_p: Holtzman et al. (2020), section 3.1.
    """
    given = to_numpy(logits) if is_array_api_obj(logits) else np.asarray(logits)
    if given.dtype.kind not in "iuf":
        raise ValueError(f"logits: got dtype {given.dtype}, expected a real one")
    logits = np.asarray(given, dtype=np.float64)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits: got shape {logits.shape}, expected (..., vocab)")
    if not np.all(np.isfinite(logits.max(axis=-1))):  # −∞ beside a finite one is a token ruled out
        raise ValueError(
            "logits: got NaN, infinity or a row of −infinity, expected a finite largest one per row"
        )
    if not is_such(temperature, lambda x: x >= 0):
        raise ValueError(f"temperature: got {temperature!r}, expected a number, 0 or more")
    if top_p is not None and not is_such(top_p, lambda x: 0 < x <= 1):
        raise ValueError(f"top_p: got {top_p!r}, expected a share above 0, at most 1")
    most = None if top_k is None else positive_int(top_k=top_k)
    if temperature == 0:  # the limit; of ties the first
        most, temperature = 1, 1.0
    order = np.argsort(-logits, axis=-1, kind="stable")  # the most probable first
    ranked = np.take_along_axis(logits, order, axis=-1)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        ranked = np.where(
            np.isneginf(ranked), -np.inf, (ranked - ranked[..., :1]) / temperature
        )  # −∞ / ∞ is no number
        place = np.arange(ranked.shape[-1])
        p: Any = softmax(ranked, None if most is None else place < most)
    if top_p is not None and top_p < 1:
        sizes = np.take_along_axis(np.abs(logits), order, axis=-1)
        rounding = _rounding_of_sums(p, sizes, temperature, given.dtype)
        rounding = np.minimum(rounding, top_p / 2)  # the first token is kept in any case
        p[np.cumsum(p, axis=-1) - p >= top_p - rounding] = 0
        p /= p.sum(axis=-1, keepdims=True)
    found = np.empty_like(p)
    np.put_along_axis(found, order, p, axis=-1)
    return found


def _rounding_of_sums(
    p: Float[np.ndarray, "... vocab"],
    sizes: Float[np.ndarray, "... vocab"],
    temperature: float,
    dtype: Any,
) -> Float[np.ndarray, "... 1"]:
    """How far rounding may move Σ_{j≤k} p_j, whatever k, of logits of these sizes |l| and a dtype.

    l / T is off by e = eps |l| / 2T. To first order the sum is off by |Σ_{j≤k} p_j (e_j − Σ_i p_i
    e_i)|, at most Σ p e; twice that has room for the exponentials. A sum of n terms in float64 is
    off by n eps of its own. Half precision and T near 0 would have much: no more than a thousandth.
    """
    own = np.finfo(np.float64).eps
    eps = np.finfo(dtype).eps if dtype.kind == "f" else own
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.sum(p * np.where(p > 0, sizes, 0), axis=-1, keepdims=True) * (eps / temperature)
    return np.fmin(off + 2 * p.shape[-1] * own, 1e-3)


def sample(
    model: Any,
    prompt: Int[np.ndarray, " n"],
    length: int,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Int[np.ndarray, " n_and_length"]:
    """A prompt and the tokens that a language model draws after it, each from all before it.

    Args:
        model: a DecoderOnly of either back end; its KV cache is used.
        prompt: token numbers of one text, at least one.
        length: how many to draw; with the prompt at most the model's max_length.
        seed: of NumPy's default generator, so that both back ends draw alike.
        temperature: as in probabilities.
        top_k: as in probabilities.
        top_p: as in probabilities.

    Returns:
        Token numbers, the prompt's and the new ones.

    Raises:
        ValueError: no prompt, what is no row of integers, more tokens than max_length.
        TypeError: another model.
    """
    if isinstance(model, type) or not (hasattr(model, "empty") and hasattr(model, "step")):
        raise TypeError(f"model: got a {type(model).__name__}, expected a DecoderOnly")
    known = token_list(prompt=prompt)
    total = len(known) + positive_int(length=length)
    if not known or total > model.max_length:
        raise ValueError(
            f"prompt, length: got {len(known)} and {length} tokens, expected one or more and at "
            f"most {model.max_length} together"
        )
    nonnegative_int(seed=seed)
    rng, cache, logits = np.random.default_rng(seed), model.empty(1), None
    with without_graph(cache.length):
        for token in known:
            cache, logits = model.step(cache, _token(cache, token))
        while len(known) < total:
            p = probabilities(
                to_numpy(logits)[0], temperature=temperature, top_k=top_k, top_p=top_p
            )
            known.append(int(rng.choice(len(p), p=p)))
            if len(known) < total:
                cache, logits = model.step(cache, _token(cache, known[-1]))
    return np.array(known)


def _token(cache: Any, token: int) -> Any:
    """A token number as an array of one token, of the cache's library and device."""
    return 0 * cache.length + token
