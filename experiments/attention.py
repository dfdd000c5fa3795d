"""What each score costs beside the dot product.

Single precision, two threads, 1024 queries and keys of width 64 and, for the additive score, 64
hidden values. The ways take turns; a ratio is formed within a round, and the median over the rounds
is stored. Takes about two minutes.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from attnbook import scores
from experiments.harness import Experiment, Ways, in_turns, ratios

N, D = 1024, 64
rng = np.random.default_rng(0)
Q, K = rng.normal(size=(3, N, D)).astype(np.float32)[:2]
W, W_Q, W_K = (rng.normal(size=(D, D)).astype(np.float32) / math.sqrt(D) for _ in range(3))
LAST = rng.normal(size=D).astype(np.float32)


def ways(array: Callable[[np.ndarray], Any], finish: Callable[[Any], Any], jit: Any) -> Ways:
    q, k, w, w_q, w_k, last = map(array, (Q, K, W, W_Q, W_K, LAST))
    chosen = {
        "dot": scores.dot,
        "scaled dot": scores.scaled_dot,
        "cosine": scores.cosine,
        "general": functools.partial(scores.general, weight=w),
        "Gaussian": scores.gaussian_score,
        "additive": functools.partial(scores.additive, w_q=w_q, w_k=w_k, v=last),
    }
    compiled = {name: jit(score) for name, score in chosen.items()}
    return {name: lambda f=f: finish(f(q, k)) for name, f in compiled.items()}


def main(experiment: Experiment) -> None:
    torch.set_num_threads(2)
    found = {}
    for library, of_library in {
        "torch": ways(torch.from_numpy, lambda a: a, lambda f: f),
        "JAX": ways(jnp.asarray, jax.block_until_ready, jax.jit),
    }.items():
        seconds = in_turns(of_library, 1 if experiment.quick else 21, calls=5)
        found[library] = ratios(seconds, "dot")
        print(library, found[library], flush=True)
    experiment.store(scores=found)
