"""The last checks of chapter 8: bits a character, and speculative decoding."""

from collections.abc import Iterable

import numpy as np

from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check, expect, one_number


@check
def judged_once(function: Function) -> str:
    """function(losses, starts): bits a character from overlapping windows, the longest context."""
    rng = np.random.default_rng(13)
    for starts, size in (([0, 3, 6, 9], 6), ([0, 4, 8, 9], 8), ([0, 5, 10], 5), ([0], 4)):
        windows, new = len(starts), np.diff(starts, prepend=-size)
        at = np.add.outer(np.asarray(starts), np.arange(size))  # which character, less 1
        losses = rng.gamma(4 - 3 * np.arange(size) / size, size=(windows, size))
        kept = [row[size - k :] for row, k in zip(losses, new, strict=True)]
        right = _bits(kept)
        where = f"for windows of {size} that start at {starts}"
        got = one_number(call(function, losses, np.asarray(starts)), where, "Take the mean.")
        late = [row[:k] for row, k in zip(losses, [*new[1:], size], strict=True)]
        each = [losses[at == i] for i in range(at.max() + 1)]
        even = [losses[0], *(row[size - k :] for row in losses[1:] for k in new[1:2])]
        expect(got, right, where, [
            (right * np.log(2), "These are nats."),
            (right * np.log(2) ** 2, "You multiply by log 2: nats are larger than bits."),
            (2**right, "That is the perplexity of a character: leave the bits as they are."),
            (right * len(each), "That is the sum: take the mean over characters."),
            (losses.mean(), "You count some twice, and these are nats."),
            (_bits(losses[:1]), "That is the first window alone."),
            (_bits(kept[1:] or kept), "The first window is missing: all of it is new."),
            (right * np.log(2) / np.log(10), "A bit is a logarithm to base 2, not to base 10."),
            (right * len(each) / losses.size, "Divide by the characters, not by all entries."),
            (_bits([losses[0], *(row[:k] for row, k in zip(losses[1:], new[1:], strict=True))]),
             "What is new stands at the end of a window."),
            (_bits([losses[0], *(row[k:] for row, k in zip(losses[1:], new[1:], strict=True))]),
             "Keep as many as are new: you leave out as many."),
            (float(np.log2(np.concatenate(kept)).mean()), "Losses are logarithms already."),
            (_bits(losses[:, -1:]), "That is the last entry of each window alone."),
            (_bits(losses), "You count the characters twice that two windows judge."),
            (_bits(late), "You take the later of two windows: the earlier has more context."),
            (_bits([e.mean(keepdims=True) for e in each]), "You average two judgements of one."),
            (_bits([e.min(keepdims=True) for e in each]), "Choose by context, not by the loss."),
            (_bits(losses[:, size // 2 :]), "The first half of the first window is missing."),
            (_bits(even), "The last window starts closer to the one before: less in it is new."),
            (_bits([k.mean(keepdims=True) for k in kept]), "Each character counts the same."),
        ])  # fmt: skip
    return "each window judges what the one before has not seen."


def _bits(losses: Iterable[np.ndarray]) -> float:
    """The mean of some pieces' losses, in bits."""
    return float(np.concatenate(list(losses)).mean() / np.log(2))


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
        ])  # fmt: skip
    return "what is accepted and what is drawn instead add up to p, exactly."
