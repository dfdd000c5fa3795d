"""The last checks of chapter 9: a mask, a layer as a step, and unknown length scales."""

import numpy as np

from attnbook.checks._numbers import gauss, softmax
from attnbook.checks.answers import call
from attnbook.checks.verdict import Function, Wrong, check, expect


@check
def prefix_mask(function: Function) -> str:
    """function(n): mask (2n, 2n) of n pairs, then n queries: query i knows the pairs before it."""
    for n in (5, 3, 1):
        got = call(function, n)
        where = f"for n = {n}"
        if got.shape != (2 * n, 2 * n):
            tokens = f"{n} pairs and {n} queries are {2 * n} tokens"
            raise Wrong(f"{where} you give shape {got.shape}: {tokens}.")
        if not np.all((got == 0) | (got == 1)):
            raise Wrong(f"{where} some entries are neither True nor False: nothing is added here.")
        causal, before, own = np.tri(n), np.tri(n, k=-1), np.eye(n)
        right = np.block([[causal, 0 * own], [before, own]])
        order = np.arange(2 * n).reshape(2, n).T.ravel()
        for wrong, cause in (
            (1 - right, "It is the other way round: True = may attend."),
            (right.T, "It is transposed: rows attend, columns are attended to."),
            (right[order][:, order], "Pairs and queries alternate: first come all pairs."),
        ):
            if n > 1 and np.array_equal(got, wrong):
                raise Wrong(f"{where}: {cause}")
        if np.any(got[:n, n:]):
            raise Wrong(f"{where} a pair attends to a query: none may but that query itself.")
        expect(got[n:, :n], before, f"{where}, queries on pairs,", [
            (causal, "Query i sees pair i: that pair holds the answer."),
            (np.ones((n, n)), "Every query sees every pair, its own answer too."),
            (np.triu(np.ones((n, n))), "The triangle is the other one: pairs before."),
            (np.triu(np.ones((n, n)), 1), "Query i sees later pairs: it is to know those before."),
            (np.tri(n, k=-2), "Pair i − 1 may be seen too: it is before pair i."),
            (0 * own, "A query sees no pair: it may see those before its own."),
            (own, "Query i sees pair i alone: that is the answer, and nothing before it."),
            (1 - own, "Query i sees later pairs: it is to predict from the first i alone."),
        ])  # fmt: skip
        expect(got[n:, n:], own, f"{where}, queries on queries,", [
            (0 * own, "Query 0 has nothing to attend to: let a query see itself."),
            (causal, "A query may not attend to another one."),
            (before, "A query may attend to itself, and to no other query."),
            (np.ones((n, n)), "A query may not attend to another one."),
        ])  # fmt: skip
        leak = "Pair 0 sees a later pair; query 1 sees pair 0 a layer later, and with it its answer"
        expect(got[:n, :n], causal, f"{where}, pairs on pairs,", [
            (np.ones((n, n)), f"{leak}."),
            (1 - own, f"{leak}. A pair may see itself, too."),
            (np.triu(np.ones((n, n))), f"{leak}. The triangle is the other one."),
            (0 * own, "Pairs see nothing: those before them do no harm."),
            (own, "Pairs may see more than themselves: which pairs do no harm?"),
            (before, "Pair 0 has nothing to attend to: let a pair see itself."),
        ])  # fmt: skip
    return "n context sizes in one pass, and no answer leaks through the layers."


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
            raise Wrong(f"{where} the layer changes x: values may have a last entry alone.")
        step = rate * x @ (x[:n].T @ y[:n]) / n  # x · β after one step from 0
        expect(added[n:, p], -step[n:], f"{where}, in the last entry of the queries,", [
            (step[n:], "The sign: it should hold minus the prediction."),
            (-step[n:] * n, "The loss is a mean: divide by n."),
            (-step[n:] / 2, "The ½ goes: a square has the derivative 2(…)."),
            (-step[n:] * n * n, "The loss is a mean: divide by n, once."),
            (-step[n:] * n / p, "The mean is over the n pairs, not over the p inputs."),
            (-step[n:] * n / (n + 1), "There are n pairs: divide by n."),
            (-step[n:] * 2, "The loss has a ½: its gradient has no 2."),
            (-step[n:] / rate, "The learning rate is missing."),
            (-step[n:] * rate, "The learning rate is in it twice."),
            (-step[n:] * (p + 1) ** 0.5, "This layer does not divide scores by √d: undo nothing."),
            (0 * step[n:], "Nothing is added: do keys and values read the right entries?"),
        ])  # fmt: skip
        expect(added[:n, p], -step[:n], f"{where}, in the last entry of the pairs,", [
            (-step[:n] - rate * y[:n] * (y[:n] @ y[:n]) / n, "Scores of pairs may not contain y."),
        ])  # fmt: skip
    return "what is left of y goes through the layers: as many steps as layers."


@check
def unknown_scale(function: Function) -> str:
    """function(queries, keys, values, length_scales, noise): mean over all length scales (m,)."""
    rng = np.random.default_rng(8)
    scales = np.asarray([0.15, 0.3, 0.6, 1.2])
    for m, n, noise, size in ((3, 5, 0.4, 1.0), (2, 41, 0.5, 50.0)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        values = size * (np.sin(3 * keys) + rng.normal(size=n))
        noisy = [gauss(keys, keys, scale) + noise**2 * np.eye(n) for scale in scales]
        solved = [np.linalg.solve(a, values) for a in noisy]
        means = np.stack([gauss(queries, keys, scales[i]) @ x for i, x in enumerate(solved)])
        fit = np.asarray([values @ x for x in solved])
        volume = np.linalg.slogdet(np.stack(noisy))[1]
        got = call(function, queries, keys, values, scales, noise)
        where = f"for {m} queries, {n} pairs and {len(scales)} length scales"
        if got.shape == (len(scales), m):
            raise Wrong(f"{where} you give shape {got.shape}: average over the length scales.")
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN: do all exponentials underflow to 0?")
        if size > 1 and got.shape == (m,) and not np.any(got):
            raise Wrong(f"{where} you give 0: do all exponentials underflow?")
        expect(got, softmax(-(fit + volume) / 2) @ means, where, [
            (np.median(means, axis=0), "All length scales count the same: the data should tell."),
            (means[np.argmax(fit + volume)], "That is the least likely one: mind the sign."),
            (softmax(-fit - volume / 2) @ means, "yᵀA⁻¹y has a ½."),
            (softmax(-(fit + volume) / 4) @ means, "Each term has one ½."),
            (softmax(-(fit + volume) / 2 / n) @ means, "The evidence is no mean over pairs."),
            (softmax(-(fit + np.exp(volume)) / 2) @ means, "Take log |A|, not |A|."),
            (softmax(-(fit + volume) / 2 + np.log(scales)) @ means,
             "All length scales are equally likely beforehand: no weight for the grid."),
            (softmax(-(fit + volume) / 2) @ means**2, "The means are averaged, without squares."),
            (np.exp(-(fit + volume) / 2) @ means, "The weights must sum to 1: a softmax."),
            (_one_scale(queries, keys, values, float(scales.mean()), noise),
             "Average the predictions, not the length scales."),
            (means.mean(0), "All length scales count the same: the data should tell."),
            (means[np.argmin(fit + volume)], "That is the likeliest one alone: average."),
            (softmax(-fit / 2) @ means, "log |A| / 2 is missing: every short scale fits."),
            (softmax(-volume / 2) @ means, "yᵀA⁻¹y / 2 is missing: do the values matter?"),
            (softmax(-fit - volume) @ means, "Both terms have a ½."),
            (softmax(-fit / 2 - volume) @ means, "log |A| has a ½."),
            (softmax((volume - fit) / 2) @ means, "The sign of log |A|."),
            (softmax((fit + volume) / 2) @ means, "The sign: the better fit has less weight."),
            ((fit + volume) / (fit + volume).sum() @ means, "That is no weight yet: take exp."),
        ], tolerance=1e-4)  # fmt: skip
    return "attention once more: keys are hypotheses, values what each predicts."


def _one_scale(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, scale: float, noise: float
) -> np.ndarray:
    noisy = gauss(keys, keys, scale) + noise**2 * np.eye(len(keys))
    return np.asarray(gauss(queries, keys, scale) @ np.linalg.solve(noisy, values))
