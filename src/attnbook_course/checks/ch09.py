"""Checks for chapter 9. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook.datasets import smooth_functions
from attnbook.kernel.gaussian_process import covariance
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_pair, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, one_number, show


@build
def train_form(function: Function) -> str:
    """function(x, y, start, rate, steps): form (3, 3) and gain of a head, by gradient descent.

    The build: x and y (m, n + 1) are points of m functions. Each point but the first is predicted
    by the gain times a weighted average of the y before it, whose scores are the form of
    (1, x, x²). The loss is the mean square over all predictions; the gain starts at 1.
    """
    rng = np.random.default_rng(12)
    x, y = rng.uniform(-1.5, 1.5, (7, 5)), rng.normal(size=(7, 5))
    start, rate = rng.normal(size=(3, 3)), 0.3
    for steps in (1, 3):
        where = f"for seven functions of five points, rate {rate:g} and steps = {steps}"
        given = x, y, start, rate, steps
        _compare(function, given, where, _form_causes(*given))
    refuse_writing(function, x, y, start, rate, 1)
    large = "Exponentials overflow or vanish: subtract each query's own largest score first."
    _compare(function, (x, y, 1000 * start, rate, 1), "for scores of thousands", [], of_nan=large)
    drawn = smooth_functions(100, 13, length_scale=0.6)
    given = drawn.x, drawn.y, 0 * start, 0.7, 1000
    form, gain = _compare(function, given, "after 1000 steps from zeros", [])
    one, two = form[1, 1] ** -0.5, (-2 * form[0, 2]) ** -0.5
    return f"x x' and x'² say the bandwidths {one:.2f} and {two:.2f}, and the gain is {gain:.2f}."


Trained = tuple[np.ndarray, float]  # the form and the gain at its end
Loss = Callable[[np.ndarray, np.ndarray], float]  # of ten numbers, and of where the slope is taken


def _compare(
    function: Function,
    given: tuple[Any, ...],
    where: str,
    causes: list[tuple[Trained, str]],
    of_nan: str = "A query sees no pair at all: the first one sees the first pair.",
) -> Trained:
    """The pair that the function gives; Wrong unless both are right."""
    got, right = call_pair(function, *given), builds.train_form(*given)
    if got[0].size == 1 and got[1].shape == (3, 3):
        raise Wrong(f"{where} the first is the gain:", "return the form first.")
    if np.any(np.isnan(got[0])):
        raise Wrong(f"{where} you give NaN.", of_nan)
    for part, name in enumerate(("form", "gain")):
        mistakes = [(wrong[part], cause) for wrong, cause in causes]
        expect(got[part], right[part], f"{where}, in the {name},", mistakes, tolerance=1e-3)
    return got[0], float(got[1])


def _form_causes(
    x: np.ndarray, y: np.ndarray, start: np.ndarray, rate: float, steps: int
) -> list[tuple[Trained, str]]:
    """Where the usual mistakes arrive."""
    m, n = len(x), x.shape[1] - 1
    asked, known, values, targets = x[:, 1:], x[:, :-1], y[:, :-1], y[:, 1:]
    before = np.tri(n)

    def end(loss: Loss, by: float = 1.0, **how: Any) -> Trained:
        return _descended(loss, start, by * rate, steps, **how)

    right = _loss(asked, known, values, targets, before)
    own = _loss(asked, x, y, targets, np.tri(n, n + 1, k=1))
    late = _loss(asked, known, values, targets, np.tri(n, k=1))
    all_known = _loss(asked, known, values, targets, np.ones((n, n)))
    all_others = _loss(asked, x, y, targets, 1 - np.eye(n, n + 1, k=1))
    joined = np.hstack([known, asked]), known, values, np.hstack([values, targets])
    pairs_too = _loss(*joined, np.vstack([before, before]))
    whole = _loss(x, x, y, y, np.tri(n + 1))
    divided = _loss(asked, known, values, targets, before, over=3**0.5)
    turned = _loss(asked, known, values, targets, before, turned=True)
    held = _loss(asked, known, values, targets, before, sums_held=True)
    added = "The slopes of earlier steps are added up: set them to zero before each."
    new = "The form's slope has the new gain: find both slopes before you change either."
    rest = "The form has not moved: is every step taken, and does the gain start at 1?"
    return [
        (end(own), "A query sees its own y, which it is to predict: the mask goes one too far."),
        (end(late), "The mask goes one too far: among the pairs before it a query sees its own."),
        (end(all_known), "Every query sees all pairs, the later ones too: the mask is missing."),
        (end(all_others), "The own pair is hidden, but later ones are not."),
        (end(whole), "Every point sees its own y: points 1 to n ask, points 0 to n − 1 answer."),
        (end(pairs_too), "The loss counts the pairs too, which see their own y: queries alone."),
        (end(divided), "The scores are divided by √3: here the form is all of the score."),
        (end(right, slope_turned=True), "The form's slope is turned: rows are the query's."),
        (end(turned), "The form is turned: its rows are the query's, its columns the key's."),
        (end(held), "A softmax divides by a sum that moves as well: w (y − f̂), not w y."),
        (end(right, 0.5), "The square's derivative has a factor 2."),
        (end(right, m * n), "That is a sum over functions and queries: the loss is their mean."),
        (end(right, m), "That is a sum over the functions: the loss is their mean."),
        (end(right, n), "That is a sum over the queries: the loss is their mean."),
        (end(right, -1.0), "The sign is turned: that walks uphill."),
        (end(right, gain_learns=False), "The gain does not learn: it has a slope as well."),
        (
            end(right, with_gain=False),
            "The form's slope lacks the gain: it multiplies averages.",
        ),
        (end(right, gain_first=True), new),
        (end(right, kept=1.0), added),
        ((start, 1.0), rest),
    ]


def _loss(
    asked: np.ndarray,
    known: np.ndarray,
    values: np.ndarray,
    targets: np.ndarray,
    seen: np.ndarray,
    over: float = 1.0,
    turned: bool = False,
    sums_held: bool = False,
) -> Loss:
    """The mean squared error as a function of the form's nine numbers and the gain."""
    queries, keys = (np.stack([np.ones_like(z), z, z**2], axis=-1) for z in (asked, known))

    def scores(numbers: np.ndarray) -> np.ndarray:
        form = numbers[:9].reshape(3, 3)
        return queries @ (form.T if turned else form) @ keys.swapaxes(1, 2) / over

    def loss(numbers: np.ndarray, at: np.ndarray) -> float:
        s = scores(numbers)
        weights: Any = softmax(s, seen > 0)
        if sums_held:
            weights = softmax(scores(at), seen > 0) * np.exp(s - scores(at))
        answers = numbers[9] * (weights @ values[..., None])[..., 0]
        return float(np.mean((answers - targets) ** 2))

    return loss


def _descended(
    loss: Loss,
    start: np.ndarray,
    rate: float,
    steps: int,
    *,
    kept: float = 0.0,
    gain_learns: bool = True,
    with_gain: bool = True,
    gain_first: bool = False,
    slope_turned: bool = False,
) -> Trained:
    """Gradient descent whose slopes are differences; kept is what stays of the slopes before."""
    numbers, slopes = np.append(start, 1.0), np.zeros(10)
    for _ in range(steps):
        new = _differences(loss, numbers)
        if gain_first:
            new[:9] *= (numbers[9] - rate * new[9]) / numbers[9]
        if slope_turned:
            new[:9] = new[:9].reshape(3, 3).T.ravel()
        new[:9] /= 1.0 if with_gain else numbers[9]
        new[9] *= gain_learns
        slopes = kept * slopes + new
        numbers = numbers - rate * slopes
    return numbers[:9].reshape(3, 3), float(numbers[9])


def _differences(loss: Loss, at: np.ndarray) -> np.ndarray:
    steps = 1e-5 * np.eye(len(at))
    return np.asarray([(loss(at + step, at) - loss(at - step, at)) / 2e-5 for step in steps])


@check
def one_pair(function: Function) -> str:
    """function(distance, value, length_scale, noise): posterior mean and variance, one pair."""
    for r, y, scale, noise in ((0.4, 1.5, 0.7, 0.5), (0.3, -2.0, 0.4, 0.3)):
        k, s = np.exp(-0.5 * (r / scale) ** 2), 1 + noise**2
        mean, variance = k * y / s, 1 - k**2 / s
        first, second = call_pair(function, r, y, scale, noise)
        where = f"for ({r}, {y}, {scale}, {noise})"
        first, second = (one_number(part, where) for part in (first, second))
        if np.allclose([first, second], [variance, mean], atol=1e-5):
            raise Wrong(f"{where} the first is the variance:", "return the mean first.")
        mistakes = [
            (y, "That is Nadaraya–Watson: with one key its weight is 1 at any distance."),
            (k * y, "The noise is missing."),
            (k * y / (1 + noise), "The noise is a standard deviation: square it."),
        ]
        expect(first, mean, f"{where}, in the mean,", mistakes, secret=True)
        mistakes = [
            (1 - k / s, "The covariance stands there twice, on the left and on the right."),
            (variance + noise**2, "That is for a noisy value: the function itself has no noise."),
        ]
        expect(second, variance, f"{where}, in the variance,", mistakes, secret=True)
    return "far from its key a value says nothing, and close to it noise still counts."


IN_TURN = '''
def answers_in_turn(x, y, bandwidth):
    """Predict y[1:] by kernel regression, each from the pairs before it."""
    squares = (x[1:, None] - x[None, :]) ** 2
    allowed = np.tri(len(x) - 1, len(x), k=1, dtype=bool)
    s = np.where(allowed, -squares / (2 * bandwidth**2), -np.inf)
    return softmax(s) @ y
'''


@check
def mended_in_turn(function: Function) -> str:
    """function(x, y, bandwidth): IN_TURN, mended so that no answer sees its own value."""
    fault = "allowed = np.tri(len(x) - 1, len(x), k=1, dtype=bool)"
    return repaired(function, IN_TURN, fault=fault, test=_in_turn)


def _in_turn(function: Function) -> str:
    (x, y), h = np.random.default_rng(7).uniform(-1, 1, (2, 6)), 0.4
    s = -((x[1:, None] - x) ** 2) / (2 * h**2)

    def by(seen: np.ndarray) -> np.ndarray:
        kernel = np.exp(s) * seen
        return kernel @ y / kernel.sum(axis=1)

    got = call(function, x, y, h)
    first = np.where(np.arange(5) == 0, np.nan, by(np.tri(5, 6, k=-1)))
    mistakes = [
        (by(np.tri(5, 6, k=1)), "Each answer still sees the pair that it is to predict."),
        (first, "The pair directly before is hidden too, and the first answer has nothing to see."),
        (by(1 - np.eye(5, 6, k=1)), "Its own pair is hidden, but the later ones are not."),
        (by(np.ones((5, 6))), "Every answer sees every pair."),
    ]
    expect(got, by(np.tri(5, 6)), "for 6 pairs", mistakes)
    return "An error below the noise is too good to be true: look for the answer in the input."


@check
def posterior_weights(function: Function) -> str:
    """function(queries, keys, length_scale, noise): weights (m, n) of the posterior mean."""
    rng = np.random.default_rng(2)
    for m, n, scale, noise in ((3, 5, 0.3, 0.4), (2, 7, 0.5, 0.2)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        between, among = covariance(queries, keys, scale), covariance(keys, keys, scale)
        noisy = among + noise**2 * np.eye(n)
        right = between @ np.linalg.inv(noisy)
        got = call(function, queries, keys, scale, noise)
        where = f"for {m} queries and {n} keys"
        sd = np.linalg.inv(among + noise * np.eye(n))
        mistakes = [
            (right / right.sum(1, keepdims=True), "These weights need not sum to 1: no division."),
            (between / between.sum(1, keepdims=True), "Those are Nadaraya–Watson's weights."),
            (between @ np.linalg.inv(among), "The noise is missing."),
            (between @ sd, "The noise is a standard deviation: square it."),
        ]
        expect(got, right, where, mistakes)
    return "a weighted average whose keys know of each other."


@check
def weights_error(function: Function) -> str:
    """function(weights, queries, keys, length_scale, noise): expected squared error (m,)."""
    rng = np.random.default_rng(4)
    for m, n, scale, noise in ((3, 5, 0.4, 0.5), (5, 2, 0.3, 0.3)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        w = rng.dirichlet(np.ones(n), size=m) + rng.normal(size=(m, n)) / 3
        between = covariance(queries, keys, scale)
        noisy = covariance(keys, keys, scale) + noise**2 * np.eye(n)
        right, by_key = ((w @ noisy * w - 2 * w * between).sum(axis) + 1 for axis in (1, 0))
        got = call(function, w, queries, keys, scale, noise)
        where = f"for {m} queries and {n} keys"
        least = 1 - (between * np.linalg.solve(noisy, between.T).T).sum(1)
        squares = noise**2 * (w**2).sum(1)
        mistakes = [
            (right - squares, "The noise of the values is missing."),
            (right - squares + noise * (w**2).sum(1), "Its standard deviation is σ: square it."),
            (right + noise**2, "The target is the function, without noise."),
            (by_key, "You sum over the queries: each query has an error, summed over its keys."),
            (least, "That is for the posterior's own weights: use the weights given."),
        ]
        expect(got, right, where, mistakes)
    return "an error curve without a single function drawn."


@check
def posterior_left_out(function: Function) -> str:
    """function(keys, values, length_scale, noise): mean and variance of y_i from the others."""
    rng = np.random.default_rng(5)
    for n, scale, noise in ((5, 0.5, 0.4), (7, 0.3, 0.3)):
        keys = np.linspace(-1, 1, n) + rng.uniform(-0.1, 0.1, n)
        values = rng.normal(size=n)
        noisy = covariance(keys, keys, scale) + noise**2 * np.eye(n)
        inverse = np.linalg.inv(noisy)
        variance = 1 / np.diag(inverse)
        solved = inverse @ values
        residual = solved * variance
        first, second = call_pair(function, keys, values, scale, noise)
        where = f"for {n} keys"
        if first.shape == second.shape == (n,) and np.allclose(first, variance, atol=1e-5):
            raise Wrong(f"{where} the first is the variance:", "return the mean first.")
        mistakes = [
            (residual, "That is y − mean: what is left, not the prediction."),
            (values - noise**2 * solved, "That is with all keys: key i still sees its own value."),
            (values - solved, "Divide by the diagonal of the inverse."),
        ]
        expect(first, values - residual, f"{where}, in the mean,", mistakes)
        mistakes = [
            (np.diag(inverse), "Turn it over: that is one over the variance."),
            (variance - noise**2, "That is the function's: a noisy value has σ² more."),
        ]
        expect(second, variance, f"{where}, in the variance,", mistakes)
    return "n refits for the price of one inverse."


def _gauss_weights(queries: np.ndarray, keys: np.ndarray, scale: float, noise: float) -> np.ndarray:
    noisy = covariance(keys, keys, scale) + noise**2 * np.eye(len(keys))
    return np.asarray(covariance(queries, keys, scale) @ np.linalg.inv(noisy))


@check
def gradient_layer(function: Function) -> str:
    """function(p, n, rate): W_q, W_k, W_v, each (p + 1, p + 1): a layer that is one step."""
    rng = np.random.default_rng(7)
    for p, n, rate in ((2, 5, 0.3), (3, 7, 0.7)):
        got = call(function, p, n, rate)
        where = f"for p = {p}, n = {n}, rate = {rate}"
        if got.shape != (3, p + 1, p + 1):
            form = f"expected three matrices of shape ({p + 1}, {p + 1})"
            raise Wrong(f"{where} you give shape {got.shape}, {form}.")
        x, y = rng.normal(size=(n + 4, p)), np.append(rng.normal(size=n), np.zeros(4))
        tokens = np.column_stack([x, y])
        q, k, v = (tokens @ w.T for w in got)
        added = q @ k[:n].T @ v[:n]
        if not np.allclose(added[:, :p], 0, atol=1e-5):
            raise Wrong(f"{where} the layer changes x:", "values may have a last entry alone.")
        step = rate * x @ (x[:n].T @ y[:n]) / n  # x · β after one step from 0
        mistakes = [
            (step[n:], "The sign: it should hold minus the prediction."),
            (-step[n:] * n, "The loss is a mean: divide by n."),
            (-step[n:] / rate, "The learning rate is missing."),
            (added[n:, p], _of_step(added[n:, p], -step[n:])),
        ]
        expect(added[n:, p], -step[n:], f"{where}, in the last entry of the queries,", mistakes)
        mistakes = [(added[:n, p], "The queries are right: y may enter no score of a pair.")]
        expect(added[:n, p], -step[:n], f"{where}, in the last entry of the pairs,", mistakes)
    return "what is left of y goes through the layers: as many steps as layers."


def _of_step(added: np.ndarray, right: np.ndarray) -> str:
    """What is wrong with a step of no known cause."""
    times = float(added @ right / (right @ right))
    if np.allclose(added, times * right, rtol=0, atol=1e-5 * np.abs(right).max()):
        return f"That is {show(times)} times one step: the factor should be −rate/n, once."
    return "That is no multiple of a step: scores are x · x_j, and values the last entry alone."


@check
def unknown_scale(function: Function) -> str:
    """function(queries, keys, values, length_scales, noise): mean and variance (m,) over all."""
    rng = np.random.default_rng(8)
    scales = np.asarray([0.15, 0.3, 0.6, 1.2])
    for m, n, noise, size in ((3, 5, 0.4, 1.0), (2, 41, 0.5, 50.0)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        values = size * (np.sin(3 * keys) + rng.normal(size=n))
        noisy = [covariance(keys, keys, scale) + noise**2 * np.eye(n) for scale in scales]
        solved = [np.linalg.solve(a, values) for a in noisy]
        means = np.stack([covariance(queries, keys, scales[i]) @ x for i, x in enumerate(solved)])
        fit = np.asarray([values @ x for x in solved])
        volume = np.linalg.slogdet(np.stack(noisy))[1]
        got, spread = call_pair(function, queries, keys, values, scales, noise)
        where = f"for {m} queries, {n} pairs and {len(scales)} length scales"
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN:", "do all exponentials underflow to 0?")
        if size > 1 and got.shape == (m,) and not np.any(got):
            raise Wrong(f"{where} you give 0:", "do all exponentials underflow?")
        share: Any = softmax(-(fit + volume) / 2)
        mean = share @ means
        mistakes = [
            (means.mean(0), "All length scales count the same: the data should tell."),
            (means[np.argmin(fit + volume)], "That is the likeliest one alone: average."),
            (softmax(-fit / 2) @ means, "log |A| / 2 is missing: every short scale fits."),
        ]
        expect(got, mean, f"{where}, in the mean,", mistakes, tolerance=1e-4)
        if size > 1:
            continue  # in float32 the squares of such values drown their difference
        inner = np.stack([_variance(queries, keys, float(s), noise) for s in scales])
        apart = share @ (means - mean) ** 2
        right = share @ inner + apart
        mistakes = [(share @ inner, "The hypotheses' means differ too: that is missing.")]
        expect(spread, right, f"{where}, in the variance,", mistakes, tolerance=1e-4)
    return "what a mixture does not know is what its parts do not know, and which part is true."


def _variance(queries: np.ndarray, keys: np.ndarray, scale: float, noise: float) -> np.ndarray:
    taken = _gauss_weights(queries, keys, scale, noise) * covariance(queries, keys, scale)
    return np.asarray(1 - taken.sum(1))
