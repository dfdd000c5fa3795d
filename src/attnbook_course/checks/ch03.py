"""Checks for chapter 3. Each knows the usual wrong answers by what they give."""

from importlib import import_module
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_pair, call_with_memory_limit, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, show


@build
def attention(function: Function) -> str:
    """function(q, k, v, mask=None): a pair, the output (..., m, p) and the weights (..., m, n).

    The build: scaled dot-product attention; where the mask is true, a query may attend to a key.
    """
    rng = np.random.default_rng(9)
    q, k, v = (rng.normal(size=size) for size in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
    mask = np.asarray([[1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 1, 1, 0, 0]], dtype=bool)
    sizes = "m, n, d, p = 3, 5, 4, 6"
    _compare(function, f"for {sizes}", 1.5 * q[0], k[0], v[0])
    _compare(function, f"for {sizes} and a mask", q[0], k[0], v[0], mask)
    axes = "Leading axes must stay: k.swapaxes(-1, -2) exchanges the last two, k.T turns all round."
    lacks = "The mask lacks the leading axis: np.where(mask, s, -np.inf) repeats it, s[~mask] not."
    for given, cause in (((q, k, v), axes), ((q, k, v, mask), lacks)):
        try:
            _compare(function, f"for a batch of 2 with {sizes}", *given)
        except Wrong:
            raise
        except Exception as error:
            words = f"one sequence is right, a batch of 2 stops with {type(error).__name__}"
            raise Wrong(f"{words}.", cause) from None
    large = 100 * np.linalg.norm(q[0], axis=1).max()
    got = call_pair(function, large * q[0], large * k[0], v[0])
    expected = builds.attention(large * q[0], large * k[0], v[0])
    lost = "The exponentials overflow: subtract each query's largest score first."
    for one, right in zip(got, expected, strict=True):
        mistakes = [(np.where(np.isnan(one), np.nan, right), lost)]
        expect(one, right, "for scores of 10⁴ and more", mistakes, tolerance=1e-3)
    own = np.eye(5)  # each query may attend to one key, whose score is far below the hidden ones' 0
    leaks = (1 - own) / 4, "A finite number instead of −∞ leaks when scores are low: hide with −∞."
    visible = np.full((5, 5), np.nan), "Mask first: the largest score must be one of the visible."
    got = call_pair(function, -1e17 * own, 1e17 * own, v[0], own > 0)
    expect(got[1], own, "for visible scores below all others, in the weights", [leaks, visible])
    refuse_writing(function, q, k, v, mask)
    before = call_pair(function, q, k, v, mask)
    hidden = ~np.any(mask, axis=0, keepdims=True).T  # from all queries
    after = call_pair(function, q, np.where(hidden, 1e3, k), np.where(hidden, -1e3, v), mask)
    if not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
        words = "a key that the mask hides from all queries changes the answer when it is changed."
        raise Wrong(words, "Only a score of −∞ gives the weight 0.")
    return "one sequence or many, masked to the last bit, and finite for scores of ten thousand."


def _compare(
    function: Function,
    where: str,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
) -> None:
    """Wrong unless weights and output are right, with the mask if there is one."""
    m, (n, d), p = q.shape[-2], k.shape[-2:], v.shape[-1]
    s = q @ k.swapaxes(-1, -2)
    root, divisors = d**0.5, [(1, "nothing"), (d, "d"), (d**-0.5, "1/√d"), (p**0.5, "√p")]
    divisors += [(n**0.5, "√n, n the number of keys"), (m**0.5, "√m, m the number of queries")]
    over_queries = np.exp(s / root) if mask is None else np.where(mask, np.exp(s / root), 0.0)
    over_queries = over_queries / over_queries.sum(axis=-2, keepdims=True)
    over = "That softmax runs over the queries: the weights of each query sum to 1, axis=-1."
    causes: list[tuple[Any, str]] = [(over_queries, over), (s / root, "The softmax is missing.")]
    causes += [
        (softmax(s / by, mask), f"The scores are divided by {name}: it should be √d.")
        for by, name in divisors
    ]
    if mask is not None:
        inverted = "The mask is inverted: true says that a query may attend to the key."
        causes += [
            (softmax(np.where(mask, s / root, 0.0)), "A hidden key has the score 0, and e⁰ = 1."),
            (softmax(s / root + mask), "An added mask adds 1 or 0: a hidden key needs −∞."),
            (softmax(s / root) * mask, "Masked after the softmax, rows no longer sum to 1."),
            (softmax(s / root, ~mask), inverted),
            (softmax(s / root), "The mask has no effect."),
        ]
    arguments = (q, k, v) if mask is None else (q, k, v, mask)
    output, weights = call_pair(function, *arguments)
    if output.shape == s.shape and weights.shape == (*s.shape[:-1], p):
        raise Wrong(f"{where} you give the weights first:", "output, then weights.")
    right = builds.attention(q, k, v, mask)
    expect(weights, right[1], f"{where}, in the weights", causes)
    expect(output, _fused(q, k, v, mask), f"{where}, in the output")


def _fused(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The output by PyTorch's fused kernel; where PyTorch is missing, by the package."""
    try:
        torch = import_module("torch")
    except ImportError:
        output: np.ndarray = builds.attention(q, k, v, mask)[0]
        return output
    given = [None if a is None else torch.from_numpy(a) for a in (q, k, v, mask)]
    fused: np.ndarray = torch.nn.functional.scaled_dot_product_attention(*given).numpy()
    return fused


@check
def unit_variance_scale(function: Function) -> str:
    """function(d, a, b): what q · k must be divided by for variance 1."""
    for d, a, b in ((64, 3.0, 0.5), (7, 0.2, 1.5)):
        got = call(function, np.asarray(d), np.asarray(a), np.asarray(b))
        mistakes = [
            (d, "What grows like d is the variance, not its root; and a and b count too."),
            (d**0.5, "That is right where a = b = 1 only."),
            (a**2 * b**2 * d, "That is the variance of q · k: divided by it, it is not 1."),
            (a * b * d, "Independent terms add their variances, not their standard deviations."),
            ((a * b * d) ** 0.5, "You take a and b for variances: they are the roots of them."),
        ]
        expect(got, a * b * d**0.5, f"for d = {d}, a = {a:g}, b = {b:g}", mistakes, secret=True)
    return "√d is the special case of entries with standard deviation 1."


@check
def lead_for(function: Function) -> str:
    """function(weight, n): by how much one score must exceed n − 1 equal ones for this weight."""
    for w, n in ((0.9, 20), (0.3, 5)):
        others, rest = n - 1, 1 - w
        right = np.log(w * others / rest)
        where = f"for the weight {w:g} among {n} keys"
        mistakes = [
            (w * others / rest, "That is the ratio of the exponentials: take its logarithm."),
            (-right, "The sign is turned: the key needs a higher score than the others."),
            (np.log(w / rest), "That is the lead over one other key: there are n − 1."),
            (np.log(w * n / rest), "One too many: the key itself is not among the others."),
            (np.log(w * others), "The others share 1 − w: it is missing."),
        ]
        expect(call(function, w, n), right, where, mistakes, secret=True)
    return "a lead of log(n − 1) gets half of the weight."


LEAKY = '''
def causal_attention(q, k, v):
    """Attention (n, p) from q, k (n, d) and v (n, p); no query sees a later key."""
    later = np.triu(np.ones((len(q), len(k)), dtype=bool), k=1)
    s = q @ k.T / q.shape[1] ** 0.5
    s = np.where(later, 0.0, s)
    s = s - s.max(axis=1, keepdims=True)
    weights = np.exp(s)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ v
'''


@check
def causal_attention(function: Function) -> str:
    """function(q, k, v): the code of the exercise, in which later keys are hidden by a score."""
    return repaired(function, LEAKY, fault="s = np.where(later, 0.0, s)", test=_causal)


def _causal(function: Function) -> str:
    rng = np.random.default_rng(4)
    q, k, v = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    s, later = q @ k.T / 3**0.5, np.triu(np.ones((5, 5), dtype=bool), k=1)

    def hidden(score: float) -> np.ndarray:
        return softmax(np.where(later, score, s)) @ v

    got = call(function, q, k, v)
    mistakes = [
        (hidden(0.0), "A hidden key still has the score 0, and e⁰ = 1."),
        (softmax(s) @ v, "No key is hidden at all."),
        (softmax(s, ~np.triu(np.ones((5, 5), dtype=bool), k=2)) @ v, "The next key is not hidden."),
        (hidden(-10.0), "Through a score of −10 a little weight comes: which score gives 0?"),
    ]
    expect(got, softmax(s, ~later) @ v, "for five tokens", mistakes)
    q, s = 300 * q, -9e4 * q @ q.T / 3**0.5  # no query matches its own key
    large = call(function, q, -q, v)
    finite = [hidden(score) for score in (-100.0, -1e3, -1e4)]
    mistakes = [(weighted, "A finite number is not low enough there.") for weighted in finite]
    expect(large, softmax(s, ~later) @ v, "for entries of size 300", mistakes)
    return "only a score of −∞ gives the weight 0, whatever the other scores are."


@check
def softmax_backward(function: Function) -> str:
    """function(p, gradient): ∂L/∂s from p, the softmax of s, and ∂L/∂p, without an (n, n) array."""
    p: Any
    p, g = np.asarray([0.5, 0.3, 0.15, 0.05]), np.asarray([1.0, -2.0, 0.5, 3.0])
    mean = p @ g
    where = "for p = (0.5, 0.3, 0.15, 0.05) and ∂L/∂p = (1, −2, 0.5, 3)"
    mistakes = [
        (p * g, "The mean p · g is not subtracted: a score that rises lowers other weights."),
        (p * (g - g.mean()), "That is the plain mean of ∂L/∂p: the mean to subtract is p · g."),
        (p * (1 - p) * g, "That is the diagonal alone: p_i depends on the other scores too."),
        (p * (mean - g), "The sign is turned."),
        (g - mean, "The factor p is missing: a key of small weight gets a small derivative."),
    ]
    expect(call(function, p, g), p * (g - mean), where, mistakes)
    rng = np.random.default_rng(8)
    p, g = softmax(rng.normal(size=3000)), rng.normal(size=3000)
    expect(call_with_memory_limit(function, p, g), p * (g - p @ g), "for n = 3000", tolerance=1e-3)
    return "each score gets what its ∂L/∂p has over the mean p · g, times its weight."


@check
def combined_mask(function: Function) -> str:
    """function(lengths, n): (b, n, n), True where key j is not later than i and not padding."""
    lengths, n = np.asarray([3, 5, 1]), 5
    j = np.arange(n)
    shape, causal, real = (3, n, n), j <= j[:, None], j < lengths[:, None, None]
    right = causal & real
    causes: list[tuple[np.ndarray, str]] = [
        (causal | real, "Or in place of and: a key must pass both masks."),
        (causal.T & real, "The causal part is transposed: a query sees what comes after it."),
        (causal & real.mT, "Padded queries are shut out: it is padded keys that must be."),
        (~right, "It is inverted: in this book, True means may attend."),
        (np.where(right, 0, -np.inf), "That is for adding to scores: return True and False."),
        (
            causal & (j <= lengths[:, None, None]),
            "One token too many: lengths[l] tokens have the numbers 0 to lengths[l] − 1.",
        ),
    ]
    got = call(function, lengths, n)
    where = "for lengths 3, 5, 1 and n = 5"
    words = f"{where} you give shape {got.shape}, expected {shape}."
    is_right = got.shape == shape and np.all(got == right)
    if got.shape == shape and not is_right:
        b, i, key = np.argwhere(got != right)[0]
        given = {0.0: "False", 1.0: "True"}.get(got[b, i, key]) or show(got[b, i, key])
        words = f"{where}, sequence {b}, query {i}, key {key}, counted from 0, you give {given}, "
        words += f"expected {bool(right[b, i, key])}."
    for wrong, cause in causes:
        if got.shape in (shape, (1, n, n), (n, n), (3, 1, n)) and np.all(got == wrong):
            raise Wrong(words, cause)
    if not is_right:
        raise Wrong(words)
    return "each query sees itself and what is before it, and never padding."


@check
def fused_gaussian(function: Function) -> str:
    """function(q, k, h): queries (m, d + 1) and keys (n, d + 1) whose dot products are Gaussian."""
    rng = np.random.default_rng(6)
    q, k, h = rng.normal(size=(5, 2)), rng.normal(size=(7, 2)), 0.7
    new_q, new_k = call_pair(function, q, k, h)
    where = f"for m, n, d = 5, 7, 2 and h = 0.7 you give shapes {new_q.shape} and {new_k.shape}"
    if (new_q.shape, new_k.shape) == ((7, 3), (5, 3)):
        raise Wrong(f"{where}:", "queries first, then keys.")
    if (new_q.shape, new_k.shape) == ((5, 4), (7, 4)):
        raise Wrong(f"{where}:", "one coordinate more is enough. What does a softmax not notice?")
    if (new_q.shape, new_k.shape) != ((5, 3), (7, 3)):
        raise Wrong(f"{where}, expected (5, 3) and (7, 3).")
    dot, norm, c = q @ k.T, (k**2).sum(-1), h**-2
    right = c * dot - c * norm / 2
    causes = [
        (c * dot, "The norms of the keys have no effect: forgotten, or one for all?"),
        (c * dot + c * norm / 2, "The norm has the wrong sign: far keys gain by it."),
        (c * dot - c * norm, "The factor ½ of the norm is missing."),
        (2 * right, "The 2 of 2h² is missing: all scores are doubled."),
        (-right, "The sign: near keys have the largest scores."),
    ]
    got: Any
    got, weights = softmax(new_q @ new_k.T), [(softmax(s), cause) for s, cause in causes]
    expect(got, softmax(right), "After the softmax of their dot products", weights, tolerance=1e-4)
    return "one coordinate more, and a distance is a dot product."


@check
def counting_scores(function: Function) -> str:
    """function(digits): n + 1 scores and values, the anchor's last; p/(1 − p) counts the 4s."""
    mixed = np.repeat(np.arange(10), [3, 7, 1, 9, 5, 2, 15, 6, 8, 4])
    others = [np.repeat(a, n) for a, n in (([4, 9], 30), ([4], 60), ([4], 1), ([9], 31), ([9], 0))]
    seen = []
    for bag in (np.random.default_rng(7).permutation(mixed), mixed[::3].copy(), *others):
        n, fours = len(bag), bag == 4
        s, v = call_pair(function, bag)
        where = f"for {n} digits, {fours.sum()} of them 4s, you give"
        if not s.shape == v.shape == (n + 1,):
            raise Wrong(f"{where} shapes {s.shape} and {v.shape}, expected ({n + 1},) for both.")
        w = softmax(s)
        p = w @ v
        seen.append(np.stack([s[:-1] - s[-1], v[:-1], v[-1] + np.zeros(n)])[:, fours])
        wrong = _miscount(bag, w, p, p / (1 - p))
        if wrong:
            raise Wrong(f"{where} p = {p:.4g}.", wrong)
    table = np.concatenate(seen, axis=1)
    if not np.allclose(table, table[:, :1], atol=1e-3):
        raise Wrong("the counts are right, but a 4 or the anchor varies.", "Is the anchor last?")
    return "from no 4 to 60 of them: the anchor tells a mean how many it averages."


def _miscount(bag: np.ndarray, w: Any, p: float, odds: float) -> str:
    """Why the odds p/(1 − p) are not the number of 4s; nothing where they are."""
    counts = np.bincount(bag, minlength=10)
    if abs(odds - counts[4]) < 1e-3:
        return ""
    if w[-1] < 1e-6:
        return "The anchor has no weight: p is a mean over the digits, a frequency and no count."
    if np.isnan(p):
        return "0 times ∞ is NaN, and so is a softmax of −∞ alone."
    if not -1e-9 < p < 1 - 1e-9:
        return "p must be at least 0 and below 1: which values have a 4 and the anchor?"
    if abs(odds * counts[4] - 1) < 1e-3:
        return "p/(1 − p) is one over the number: the values of a 4 and the anchor are swapped."
    words = f"p/(1 − p) is {odds:.5g}, not {counts[4]}"
    if (leak := w[:-1][bag != 4].sum()) > 1e-7:
        return f"{words}: the other digits hold {leak:.2%} of the weight, more if there are more."
    return f"{words}: do a 4 and the anchor weigh the same, and are their values 1 apart?"
