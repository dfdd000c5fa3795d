"""Chapter 8's check of speculative decoding, where a draft's tokens are accepted or drawn anew."""

import numpy as np

from attnbook.course.checks.call import call_pair
from attnbook.course.checks.verdict import Function, Wrong, check, expect, show


@check
def speculative(function: Function) -> str:
    """function(p, q): which drafts of q to accept (n,), and what to draw instead (n,)."""
    rng = np.random.default_rng(14)
    two = np.asarray([0.5, 0.5, 0, 0])
    for where, p, q in (
        ("for random p and q", *rng.dirichlet(np.ones(7), 2)),
        ("where p and q are 0 in places", *np.asarray([[0.3, 0, 0.6, 0.1], [0.4, 0.35, 0, 0.25]])),
        ("where p and q share no token", two, two[::-1].copy()),
        ("where p = q", two, two.copy()),
    ):
        accept, residual = call_pair(function, p, q)
        if not accept.shape == residual.shape == p.shape:
            given = f"{where} you give shapes {accept.shape} and {residual.shape}"
            raise Wrong(f"{given}, expected ({len(p)},) twice.")
        ratio = np.divide(p, q, out=np.ones_like(p), where=q > 0)
        turned = np.divide(q, p, out=np.ones_like(p), where=p > 0)
        for bad in accept[~((accept >= -1e-6) & (accept <= 1 + 1e-6))]:
            raise Wrong(f"{where} an acceptance is {bad:.3g}: it is a probability, even at q = 0.")
        expect(q * accept, np.minimum(p, q), f"{where}, for q times the acceptance,", [
            (q * np.minimum(1, turned), "The fraction is upside down: drafts too likely are cut."),
            (q * np.minimum(p, q), "That is the share accepted: divide by q."),
            (q * (1 - np.minimum(1, ratio)), "That is the probability of a refusal."),
            (q * np.minimum(1, ratio) ** 0.5, "There is no root in the acceptance."),
            (q * np.minimum(1, p / (q + 1e-3)), "A small constant makes it inexact."),
            (q * p, "Do not accept with p itself: a good draft would mostly be refused."),
            (q, "You accept all drafts: that gives the distribution q."),
            (q * (p >= q), "You refuse every draft with p < q: accept it with some probability."),
            (q * ratio / ratio.max(), "Rejection sampling: exact, but it refuses too often."),
            (q * p / np.maximum(p + q, 1e-9), "That accepts a draft with p = q half of the time."),
            (q * np.minimum(p, q).sum(), "The share accepted is a mean: each token has its own."),
            (q * accept, _of_acceptance(q * accept, np.minimum(p, q))),
        ])  # fmt: skip
        if np.any(np.isnan(residual)):
            raise Wrong(f"{where} the residual is NaN: 0/0, as no draft is ever refused.")
        if np.array_equal(p, q):
            continue  # never drawn from
        rest, extra, above = np.maximum(p - q, 0), np.maximum(q - p, 0), p * (p > q)
        expect(residual, rest / rest.sum(), f"{where}, in the residual,", [
            (rest, "It sums to the share of refused drafts: a distribution sums to 1."),
            (p, "Drawn from p, what drafts bring already comes twice."),
            (q, "A second draft is no better than the first."),
            (extra / extra.sum(), "That is what q has too much: which tokens have too little?"),
            (np.abs(p - q) / np.abs(p - q).sum(), "Where q > p nothing is missing: 0 there."),
            (p - q, "A probability is not negative."),
            (np.full(len(p), 1 / len(p)), "Not even: which tokens have too little by drafts?"),
            ((p - q) / max(np.abs(p - q).sum(), 1e-9), "A probability is not negative."),
            (np.exp(p - q) / np.exp(p - q).sum(), "No softmax: p − q, where it is above 0."),
            (above / above.sum(), "Drafts bring q of these: only p − q is missing."),
            (residual, _of_residual(residual, rest)),
        ])  # fmt: skip
    return "what is accepted and what is drawn instead add up to p, exactly."


def _of_acceptance(accepted: np.ndarray, most: np.ndarray) -> str:
    """What is wrong with an acceptance of no known cause, told by its first wrong token."""
    wrong = ~np.isclose(accepted, most, rtol=0, atol=1e-5 * most.max(initial=1e-7))
    if np.any(wrong) and (accepted > most)[wrong][0]:
        return "Drafts alone bring more of this token than p has: nothing can take that back."
    return "You refuse more than is needed: q times the acceptance may reach p, or all of q."


def _of_residual(residual: np.ndarray, rest: np.ndarray) -> str:
    """What is wrong with a residual of no known cause."""
    if not np.isclose(residual.sum(), 1, rtol=0, atol=1e-5):
        return f"It sums to {show(residual.sum())}: a distribution sums to 1."
    if np.any(np.abs(residual[rest == 0]) > 1e-5):
        return "It draws a token of which drafts bring enough already: p − q is not above 0 there."
    return "It draws the right tokens, in other proportions than what is missing of each, p − q."
