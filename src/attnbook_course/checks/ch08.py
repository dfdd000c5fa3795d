"""Checks for chapter 8. Each knows the usual wrong answers by what they give."""

from collections.abc import Iterable

import numpy as np

from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, one_number, show


@check
def inverse_root_rate(function: Function) -> str:
    """function(step, embed_dim, warmup): the learning rate of Vaswani et al. (2017), equation 3."""
    steps = np.asarray([1, 3, 7, 8, 31])
    for e, w in ((5, 7), (64, 3)):
        up, down = steps / (w * (e * w) ** 0.5), 1 / (e * steps) ** 0.5
        right = np.where(steps <= w, up, down)
        where = f"for embed_dim = {e}, warmup = {w} and steps 1, 3, 7, 8, 31"
        got = np.asarray([one_number(call(function, int(s), e, w), where) for s in steps])
        late, slope = steps > w, got[steps <= w] / steps[steps <= w]
        straight = np.allclose(slope, slope[0], rtol=1e-4) and slope[0] > 0
        if np.allclose(got[late], down[late], rtol=1e-4) and straight and slope[0] > 1.001 * up[0]:
            jump = "It jumps after warmup: what is the slope before?"
            raise Wrong(f"{where}, at step 1 you give {show(slope[0])}. {jump}")
        from_two = np.minimum(up * (steps + 1) / steps, 1 / (e * (steps + 1)) ** 0.5)
        mistakes = [
            (np.maximum(up, down), "Of the two lines the lower one counts."),
            (up, "It rises for ever: from warmup on it falls."),
            (down, "There is no warm-up: it is largest at step 1."),
            (np.minimum(steps / w, down), "Line and fall meet at warmup."),
            (down * np.minimum(1, steps / w), "It rises in a line, without a root."),
            (np.minimum(1 / steps, steps / w**2) / e**0.5, "It falls with the root of the step."),
            (from_two, "Steps are counted from 1: do not add one."),
            (steps // w, "The quotient has a fraction: / and not //."),
            (np.where(steps <= w, up, 1 / (e * w) ** 0.5), "After warmup it stays as it is."),
            (np.where(steps <= w, up, w**0.5 / (e**0.5 * steps)), "It falls as 1/step."),
            (np.where(steps < w, 0, down), "There is nothing before warmup: it should rise."),
            (right * e**0.5, "The width is missing."),
            (right / e**0.5, "The width comes in by its root alone."),
        ]
        expect(got, right, where, mistakes)
    return "a line up to 1/√(embed_dim · warmup), and from there on down."


@check
def compressed_bytes(function: Function) -> str:
    """function(loss, characters): the bytes that a coder with this model writes."""
    for loss, n in ((1.3, 700), (0.4, 1100)):
        bits = loss * n / np.log(2)
        where = f"for a loss of {loss:g} nats and {n} characters"
        mistakes = [
            (bits, "These are bits: a byte has eight."),
            (loss * n / 8, "These are nats divided by eight: a nat is more than a bit."),
            (loss * n, "These are nats: first make bits of them."),
            (loss * n * np.log(2) / 8, "A nat is more than a bit: divide by log 2."),
            (loss * n * np.log(2), "A nat is more than a bit, and a byte has eight bits."),
            (bits / 8 / n, "That is for one character: the text has many."),
            (bits / n, "These are bits per character: what does the text take?"),
            (np.exp(loss) * n / 8, "That is the perplexity: the loss is a length already."),
            (np.log2(loss) * n / 8, "The loss is a logarithm already: take none of it."),
            (np.ceil(bits / 8), "Do not round: the last byte may be filled in part."),
            (np.floor(bits / 8), "Do not round: the last byte may be filled in part."),
        ]
        expect(call(function, loss, n), bits / 8, where, mistakes, secret=True)
    return "the better a model predicts a text, the shorter it can write it."


@check
def cut_patches(function: Function) -> str:
    """function(image, height, width): tokens (n, height · width · channels) of (H, W, channels)."""
    for (rows, columns, c), h, w in (((6, 10, 2), 3, 2), ((10, 6, 1), 2, 3)):
        image = np.arange(rows * columns * c, dtype=float).reshape(rows, columns, c)
        tall, wide = rows // h, columns // w
        grid = image.reshape(tall, h, wide, w, c)
        right = grid.transpose(0, 2, 1, 3, 4).reshape(-1, h * w * c)
        got = call(function, image, h, w)
        where = f"for an image {image.shape} in patches of {h} by {w}"
        n = len(right)
        shapes = {
            right.shape[::-1]: "Rows are tokens: it is transposed.",
            (n, h, w, c): "A token is one row of numbers: put those of a patch in a row.",
            (tall, wide, h * w * c): "Put the patches below each other, in one axis.",
            (tall, wide, h, w, c): "One axis for the patches, one for their numbers.",
            (n * c, h * w): "A patch has all channels of its pixels.",
            ((rows - h + 1) * (columns - w + 1), h * w * c): "Patches do not overlap.",
        }
        if got.shape != right.shape and got.shape in shapes:
            raise Wrong(f"{where} you give shape {got.shape}. {shapes[got.shape]}")
        down, inside, last, first = (
            grid.transpose(axes).reshape(right.shape)
            for axes in ((2, 0, 1, 3, 4), (0, 2, 3, 1, 4), (0, 2, 4, 1, 3), (0, 2, 1, 4, 3))
        )
        coarse = image.reshape(h, tall, w, wide, c).transpose(1, 3, 0, 2, 4)
        by_columns = inside if c == 1 else grid.transpose(0, 2, 4, 3, 1).reshape(right.shape)
        mistakes = [
            (image.reshape(right.shape), "That cuts a long strip: the second row is far away."),
            (down, "The patches go down first: take them row by row."),
            (inside, "The pixels of a patch go down first: take them row by row."),
            (last, "The channels of a pixel stand next to each other."),
            (first, "The channels of a pixel stand next to each other."),
            (right[::-1], "The patches come in the order of reading, from the top left."),
            (right[:, ::-1], "The numbers of a patch come in the order of reading."),
            (by_columns, "Each patch is flattened by columns: take its pixels row by row."),
            (image.transpose(2, 0, 1).reshape(right.shape), "That flattens channel after channel."),
            (coarse.reshape(right.shape), "Rows become two axes, rows of patches first."),
        ]
        expect(got, right, where, mistakes)
    return "a patch is a grid of pixels, and the patches are a grid of their own."


@check
def packed_row(function: Function) -> str:
    """function(documents): mask (n, n) and positions (n,) of documents packed in one row."""
    for documents in (np.asarray([3, 3, 3, 0, 0, 5, 5, 5, 5, 1]), np.asarray([2, 7, 7, 7, 4, 4])):
        n, place = len(documents), np.arange(len(documents))
        start = np.asarray([int(np.argmax(documents == d)) for d in documents])
        mask, positions = call_pair(function, documents)
        where = f"for documents {documents.tolist()}"
        same, past = documents[:, None] == documents, place[:, None] >= place
        if mask.shape == (n, n) and not np.all((mask == 0) | (mask == 1)):
            raise Wrong(f"{where} the mask has numbers in it: return True for may attend.")
        mistakes = [
            (same, "A token sees the tokens after it."),
            (past, "A token sees other documents: no number of a document is used."),
            ((documents[:, None] >= documents) & past, "Some see other documents: equal, not ≥."),
            (same & past.T, "It is transposed: rows are queries, and see what came before."),
            (same & past & ~np.eye(n, dtype=bool), "A token sees itself too."),
            (~(same & past), "True = may attend: yours is the other way round."),
            (same | past, "Both must hold, not one of the two."),
            ((documents[:, None] <= documents) & past, "Some see other documents: equal, not ≤."),
            (past & (documents > 0), "The number 0 is a document like the others."),
            (same & past & (documents > 0), "The number 0 is a document like the others."),
            (np.eye(n), "A token sees its own document up to itself, not itself alone."),
        ]
        expect(mask, same & past, f"{where}, in the mask,", mistakes)
        mistakes = [
            (place, "They run on: every document begins at 0."),
            (place - start + 1, "They begin at 0, not at 1."),
            (same.sum(1), "That is the length of the document: count those before."),
            ((same & past).sum(0) - 1, "They run backwards: count along the rows of the mask."),
            (place % 3, "Documents differ in length: no remainder."),
            (start, "That is where the document begins: how far is it from there?"),
            (documents, "That is the number of the document."),
        ]
        expect(positions, place - start, f"{where}, in the positions,", mistakes)
    return "each document is on its own, as if the row had no other."


NUCLEUS = '''
def nucleus(p, share):
    """Probabilities (n,): the fewest that together reach a share, rescaled to sum to 1."""
    order = np.argsort(-p)
    reached = np.cumsum(p[order])
    kept = order[reached <= share]
    cut = np.zeros(len(p))
    cut[kept] = p[kept]
    return cut / cut.sum()
'''


@check
def nucleus(function: Function) -> str:
    """function(p, share): (n,) to (n,), the fewest most probable that reach the share."""
    return repaired(
        function, NUCLEUS, fault="kept = order[reached <= share]", test=_keeps_the_fewest
    )


def _keeps_the_fewest(function: Function) -> str:
    for p, share, n in (
        ((0.0625, 0.375, 0.25, 0.1875, 0.125), 0.75, 3),
        ((0.05, 0.95), 0.9, 1),
        ((0.25, 0.5, 0.125, 0.125), 0.75, 2),
        ((0.2, 0.3, 0.4, 0.1), 1.0, 4),
    ):
        chances = np.asarray(p)
        order = np.argsort(-chances)

        def cut(kept: np.ndarray, chances: np.ndarray = chances) -> np.ndarray:
            found = np.zeros(len(chances))
            found[kept] = chances[kept]
            return found / max(found.sum(), 1e-300)

        with np.errstate(invalid="ignore"):
            got = call(function, chances, share)
        where = f"for p = {', '.join(f'{one:g}' for one in p)} and a share of {share:g}"
        if not np.all(np.isfinite(got)):
            raise Wrong(f"{where} you give NaN: nothing is kept, not even the most probable.")
        right = cut(order[:n])
        raw = np.where(right > 0, chances, 0)
        mistakes = [
            (cut(order[: n - 1]), "It stops one token before the share is reached."),
            (cut(order[: n + 1]), "The share is reached before the last one that you keep."),
            (cut(order[n - 1 :]), "It keeps the tail: from the most probable down, not up."),
            (cut(order[n:]), "It keeps the tail: from the most probable down, not up."),
            (cut(order[:1]), "It keeps the most probable alone."),
            (cut(np.arange(n)), "It keeps the first tokens: go by their probability."),
            (chances, "It keeps all."),
            (raw, "What is kept should sum to 1."),
        ]
        expect(got, right, where, mistakes)
    return "A token stays if those before it have not reached the share."


@check
def smoothed_loss(function: Function) -> str:
    """function(logits, targets, epsilon): mean cross-entropy with a mixed target, nats."""
    rng = np.random.default_rng(11)
    for n, k, epsilon, size in ((7, 5, 0.3, 2), (3, 11, 0.1, 1), (2, 5, 0.2, 4000)):
        logits, targets = size * rng.normal(size=(n, k)), rng.integers(0, k, n)
        top = logits.max(1, keepdims=True)
        log_p = logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))
        hit, even = -log_p[np.arange(n), targets].mean(), -log_p.mean()
        right = (1 - epsilon) * hit + epsilon * even
        got = call(function, logits, targets, epsilon)
        where = f"for {n} tokens of {k} kinds and ε = {epsilon}"
        if size > 1000:
            where += ", with logits of some thousands,"
        if got.shape == (n,):
            raise Wrong(f"{where} you give one loss a token: return their mean.")
        if got.size == 1 and not np.isfinite(got).all():
            cause = "Take log-softmax in one step, with the largest logit taken off."
            raise Wrong(f"{where} you give {show(got.item())}. {cause}")
        if got.size == 1 and size > 1000 and 0 <= got.item() < 0.5 * right:
            cause = "A small constant in the logarithm caps the loss: take log-softmax in one step."
            raise Wrong(f"{where} you give {show(got.item())}. {cause}")
        others = (k * even - hit) / (k - 1)
        shares = np.asarray([1 - epsilon + epsilon / k, *[epsilon / k] * (k - 1)])
        raw = -(1 - epsilon) * logits[np.arange(n), targets].mean() - epsilon * logits.mean()
        mistakes = [
            (hit, "That is the plain loss: ε has no effect."),
            (even, "That is the even part alone."),
            ((1 - epsilon) * hit + epsilon * others, "All K classes share ε, the target too."),
            (hit + epsilon * even, "The target sums to 1 + ε: the one-hot part gets 1 − ε."),
            (epsilon * hit + (1 - epsilon) * even, "1 − ε and ε have changed places."),
            ((1 - epsilon) * hit + epsilon * k * even, "Each class gets ε/K, and not ε."),
            ((1 - epsilon) * hit, "The even part is missing."),
            (-right, "The sign: a logarithm of a probability is negative."),
            (right * n, "That is the sum over tokens: take the mean."),
            (right / k, "That is the mean over classes too: sum over those."),
            (hit + epsilon, "ε is a share of the target, no number to add."),
            (raw, "These are logits: take log-softmax first."),
            (_smooth(np.exp(log_p), targets, epsilon), "The logarithm is missing."),
            ((1 - epsilon) * hit + epsilon * even * n * k, "The even part is a mean over classes."),
            (right / np.log(2), "These are bits: use the natural logarithm."),
            *(
                (
                    _smooth(np.log(np.exp(log_p) + c), targets, epsilon),
                    "A small constant in the logarithm changes the loss: log-softmax needs none.",
                )
                for c in (1e-3, 1e-4, 1e-5, 1e-6)
            ),
            (right + np.sum(shares * np.log(shares)), "You took the target's own entropy off."),
        ]
        expect(got, right, where, mistakes)
    return "the best logits are finite now, and the best loss is not 0."


def _smooth(log_p: np.ndarray, targets: np.ndarray, epsilon: float) -> float:
    hit = log_p[np.arange(len(targets)), targets]
    return float(-(1 - epsilon) * hit.mean() - epsilon * log_p.mean())


@check
def entropy_slope(function: Function) -> str:
    """function(logits, temperature): dH/dτ in nats of softmax(logits / τ)."""
    rng = np.random.default_rng(12)
    for n, tau, base in ((7, 2.0, 0), (5, 0.6, 0), (3, 3.0, 4000)):
        s = base + rng.integers(-16, 16, n) / 8
        weights = [np.exp((s - s.max()) / t) for t in (tau, 1)]
        p, at_one = (w / w.sum() for w in weights)
        variance, variance_at_one = (w @ (s - w @ s) ** 2 for w in (p, at_one))
        right = variance / tau**3
        got = call(function, s, tau)
        where = f"at τ = {tau} for {n} logits" + (f" around {base}" if base else "")
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN. Does an exponential overflow?")
        if got.shape == (n,):
            raise Wrong(f"{where} you give {n} numbers: the entropy is one, and so is its slope.")
        mistakes = [
            (-right, "The sign: a warmer softmax is more even."),
            (variance, "That is the variance of the logits: the chain rule brings powers of τ."),
            (variance / tau, "The power of τ: dH/dβ = −β Var, and dβ/dτ = −1/τ²."),
            (variance / tau**4, "The power of τ is one too many."),
            (variance / tau**5, "Take the variance of s, or of s/τ, and count its τ once."),
            (variance * tau**3, "Divide by τ³: heat makes differences smaller."),
            (p @ s**2 / tau**3, "That is the mean square: subtract the squared mean."),
            (p @ s / tau**2, "That is a part: the mean of s, without its change."),
            (np.sum((s - p @ s) ** 2) / tau**3, "All logits count the same: weight them by p."),
            (p @ (s - s.mean()) ** 2 / tau**3, "The mean of the logits is weighted by p too."),
            (variance / tau**2, "The power of τ: besides the variance, dH/dβ has a factor β."),
            (-variance / tau, "That is dH/dβ, with β = 1/τ."),
            (np.var(s) / tau**3, "All logits count the same: weight them by p."),
            (variance**0.5 / tau**3, "That has the standard deviation for the variance."),
            (variance_at_one / tau**3, "The probabilities are those at τ = 1."),
            (right / np.log(2), "These are bits: use the natural logarithm."),
            (-p @ np.log(p), "That is the entropy: give its slope."),
        ]
        expect(got, right, where, mistakes, tolerance=1e-4)
    return "a variance is never negative, so the entropy never falls with τ."


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
        first = [row[:k] for row, k in zip(losses[1:], new[1:], strict=True)]
        rest = [row[k:] for row, k in zip(losses[1:], new[1:], strict=True)]
        mistakes = [
            (right * np.log(2), "These are nats."),
            (right * np.log(2) ** 2, "You multiply by log 2: nats are larger than bits."),
            (2**right, "That is the perplexity of a character: leave the bits as they are."),
            (right * len(each), "That is the sum: take the mean over characters."),
            (losses.mean(), "You count some twice, and these are nats."),
            (_bits(losses[:1]), "That is the first window alone."),
            (_bits(kept[1:] or kept), "The first window is missing: all of it is new."),
            (right * np.log(2) / np.log(10), "A bit is a logarithm to base 2, not to base 10."),
            (right * len(each) / losses.size, "Divide by the characters, not by all entries."),
            (_bits([losses[0], *first]), "What is new stands at the end of a window."),
            (_bits([losses[0], *rest]), "Keep as many as are new: you leave out as many."),
            (float(np.log2(np.concatenate(kept)).mean()), "Losses are logarithms already."),
            (_bits(losses[:, -1:]), "That is the last entry of each window alone."),
            (_bits(losses), "You count the characters twice that two windows judge."),
            (_bits(late), "You take the later of two windows: the earlier has more context."),
            (_bits([e.mean(keepdims=True) for e in each]), "You average two judgements of one."),
            (_bits([e.min(keepdims=True) for e in each]), "Choose by context, not by the loss."),
            (_bits(losses[:, size // 2 :]), "The first half of the first window is missing."),
            (_bits(even), "The last window starts closer to the one before: less in it is new."),
            (_bits([k.mean(keepdims=True) for k in kept]), "Each character counts the same."),
        ]
        expect(got, right, where, mistakes)
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
        mistakes = [
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
        ]
        expect(q * accept, np.minimum(p, q), f"{where}, for q times the acceptance,", mistakes)
        if np.any(np.isnan(residual)):
            raise Wrong(f"{where} the residual is NaN: 0/0, as no draft is ever refused.")
        if np.array_equal(p, q):
            continue  # never drawn from
        rest, extra, above = np.maximum(p - q, 0), np.maximum(q - p, 0), p * (p > q)
        mistakes = [
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
        ]
        expect(residual, rest / rest.sum(), f"{where}, in the residual,", mistakes)
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
