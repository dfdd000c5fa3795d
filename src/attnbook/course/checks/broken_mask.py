"""Chapter 5's code to mend: a causal mask that leaks."""

import numpy as np

from attnbook.attention import softmax
from attnbook.course.checks.call import call
from attnbook.course.checks.repair import repaired
from attnbook.course.checks.verdict import Function, check, expect

CAUSAL_WEIGHTS = '''
def causal_weights(s):
    """Weights under the causal mask, (n, n): row i has nothing after column i."""
    n = len(s)
    allowed = np.arange(n)[None, :] <= np.arange(1, n + 1)[:, None]
    masked = np.where(allowed, s, -np.inf)
    parts = np.exp(masked - masked.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)
'''


@check
def causal_weights(function: Function) -> str:
    """function(s): softmax of the scores under the causal mask, of shape (n, n)."""
    fault = "allowed = np.arange(n)[None, :] <= np.arange(1, n + 1)[:, None]"
    return repaired(function, CAUSAL_WEIGHTS, fault=fault, test=_without_leak)


def _without_leak(function: Function) -> str:
    s = np.random.default_rng(6).normal(size=(5, 5))
    seen = np.tri(5) > 0
    right = softmax(s, seen)
    finite = "A finite number hides a key only while all scores are far above it."
    expect(call(function, s), right, "for 5 by 5 scores", [
        (softmax(np.where(seen, s, 0.0)),
         "A hidden key has the score 0, which is a score like any other."),
        (softmax(np.where(seen, s, s.min())),
         "A hidden key has the lowest score of all, and its weight is not 0."),
        (softmax(s), "All keys are seen: the mask has no effect."),
        (softmax(s, seen.T), "The mask is turned round: it shows the future alone."),
        (softmax(s) * seen, "The rows no longer sum to 1: mask the scores, not the weights."),
        (softmax(s, np.tri(5, k=1) > 0), "A query sees the next key too."),
        *((softmax(np.where(seen, s, -low)), finite) for low in (1.0, 2.0, 5.0, 10.0)),
    ])  # fmt: skip
    for low in (100.0, 1000.0):
        leaks = [(softmax(np.where(seen, s - low, -much)), finite) for much in (0.0, low)]
        expect(call(function, s - low), right, f"for scores around −{low:g}", leaks)
    return "A query sees its own key and those before it, and no later one."
