"""Checks for chapter 8. Each knows the usual wrong answers by what they give."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from attnbook_course import builds
from attnbook_course.checks import writers
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, call_by_torch, call_pair, call_training
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, one_number, show

NUMPYS = "Your block is NumPy's alone: mine.use('block') makes one of it that PyTorch can train."


@build
def logits(function: Function) -> str:
    """function(tokens, weights, num_heads): (..., n) to logits (..., n, vocab), in PyTorch.

    The build, first of three: embedding and position, the blocks of chapter 7's build under a
    causal mask, a last layer norm, the readout. The weights, by name: embedding (vocab, e),
    position (window, e), blocks, a list of dictionaries, norm (e,) and readout (vocab, e).
    """
    rng, weights = np.random.default_rng(8), writers.weights(18)
    one, several = rng.integers(writers.VOCAB, size=5), rng.integers(writers.VOCAB, size=(3, 8))
    for tokens, where in ((one, "for five tokens"), (several, "for three rows of tokens")):
        got = call_by_torch(function, tokens, weights, writers.HEADS)
        right = builds.logits(tokens, weights, writers.HEADS)
        expect(got, right, where, writers.wrong_logits(tokens, weights))
    return "one pass says what follows every token, of all rows at once."


@build
def train(function: Function) -> str:
    """function(weights, text, num_heads, starts, rate): each step's bits, (steps,), in PyTorch.

    The build, second of three: Adam changes the weights of logits in place. In a step, rows of
    window + 1 tokens begin in the text where a row of starts says, and all but the first token of
    each are predicted. The bits are the mean of their cross-entropy, before the step.
    """
    rng, weights = np.random.default_rng(28), writers.weights(38)
    text, starts = rng.integers(writers.VOCAB, size=60), rng.integers(51, size=(4, 3))
    try:
        got = call_training(function, weights, text, writers.HEADS, starts, 0.01)
    except RuntimeError as error:
        raise Wrong(NUMPYS) if "Can't call numpy() on Tensor" in str(error) else error from None

    def path(**mistake: Any) -> np.ndarray:
        return writers.trained(weights, text, starts, 0.01, **mistake)

    mistakes = [
        (path(ahead=0), "Each token is to predict itself: its label is the next one."),
        (path(softmax=True), "A softmax stands before cross_entropy, which has one itself."),
        (path(forget=False), "Slopes of earlier steps are added up: zero_grad before backward."),
        (path(blocks=False), "The blocks' weights stay as they were: put them into the list, too."),
        (path(length=writers.WINDOW - 1), "The rows are one token short: window + 1 of them."),
    ]
    factor = "That is a multiple: take the mean of all losses, and divide by log 2.", 0
    expect(got, path(), "for four steps", mistakes, tolerance=1e-4, but_for_a_factor=factor)
    return "it reads, is wrong, and is a little less wrong."


@build
def generate(function: Function) -> str:
    """function(tokens, weights, num_heads, draws, temperature): tokens (n,), and one a draw.

    The build, last of three: a draw, evenly spread over [0, 1), chooses the first token whose
    probability, with those of all tokens before it, is above the draw. A text that is longer than
    the window is read from its last tokens alone.
    """
    rng, weights = np.random.default_rng(48), writers.weights(58)
    tokens, long = np.asarray([3, 1]), "for a text longer than the window"
    for draws, where in ((rng.random(3), "for three draws"), (rng.random(12), long)):
        given = tokens, weights, writers.HEADS, draws, 0.7
        try:
            got = call_by_torch(function, *given)
        except (IndexError, RuntimeError) as error:
            if where is not long:
                raise
            cut = f"let the model read the last {writers.WINDOW}, for which there are positions"
            raise Wrong(f"{where} your function stops:", f"{cut}. ({error})") from None

        def text(temperature: float = 0.7, draws: Any = draws, **mistake: Any) -> np.ndarray:
            return writers.written(tokens, weights, draws, temperature, **mistake)

        if got.shape == draws.shape:
            raise Wrong(
                f"{where} you return {len(draws)} tokens:", "the given ones belong to them."
            )
        mistakes = [
            (text(best=True), "That is the likeliest token: the draw is to decide."),
            (text(1 / 0.7), "Divide the logits by the temperature: a cold one makes it surer."),
            (text(1.0), "The temperature is missing."),
            (text(at=0), "What follows the last token is in the last row of the logits."),
            (text(first=True), "It reads the first tokens for ever: cut the last ones out."),
        ]
        right = text()
        if got.shape == right.shape and np.any(got != call_by_torch(function, *given)):
            raise Wrong(f"{where} you write another text each time:", "the draws are to decide.")
        expect(got, right, where, mistakes)
    return "a draw and a row of probabilities give the next token."


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
            (bits / 8 / n, "That is for one character: the text has many."),
            (np.exp(loss) * n / 8, "That is the perplexity: the loss is a length already."),
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
            (n, h, w, c): "A token is one row of numbers: put those of a patch in a row.",
            (tall, wide, h * w * c): "Put the patches below each other, in one axis.",
        }
        if got.shape != right.shape and got.shape in shapes:
            raise Wrong(f"{where} you give shape {got.shape}.", shapes[got.shape])
        down = grid.transpose(2, 0, 1, 3, 4).reshape(right.shape)
        inside = grid.transpose(0, 2, 3, 1, 4).reshape(right.shape)
        mistakes = [
            (image.reshape(right.shape), "That cuts a long strip: the second row is far away."),
            (down, "The patches go down first: take them row by row."),
            (inside, "The pixels of a patch go down first: take them row by row."),
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
        mistakes = [
            (same, "A token sees the tokens after it."),
            (past, "A token sees other documents: no number of a document is used."),
            (same & past & ~np.eye(n, dtype=bool), "A token sees itself too."),
        ]
        expect(mask, same & past, f"{where}, in the mask,", mistakes)
        mistakes = [(place, "They run on: every document begins at 0.")]
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

        got = call(function, chances, share)
        where = f"for p = {', '.join(f'{one:g}' for one in p)} and a share of {share:g}"
        if not np.all(np.isfinite(got)):
            raise Wrong(f"{where} you give NaN:", "nothing is kept, not even the most probable.")
        right = cut(order[:n])
        raw = np.where(right > 0, chances, 0)
        mistakes = [
            (cut(order[: n - 1]), "It stops one token before the share is reached."),
            (cut(order[: n + 1]), "The share is reached before the last one that you keep."),
            (cut(order[n - 1 :]), "It keeps the tail: from the most probable down, not up."),
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
        if got.size == 1 and not np.isfinite(got).all():
            cause = "Take log-softmax in one step, with the largest logit taken off."
            raise Wrong(f"{where} you give {show(got.item())}.", cause)
        if got.size == 1 and size > 1000 and 0 <= got.item() < 0.5 * right:
            cause = "A small constant in the logarithm caps the loss: take log-softmax in one step."
            raise Wrong(f"{where} you give {show(got.item())}.", cause)
        others = (k * even - hit) / (k - 1)
        raw = -(1 - epsilon) * logits[np.arange(n), targets].mean() - epsilon * logits.mean()
        mistakes = [
            ((1 - epsilon) * hit + epsilon * others, "All K classes share ε, the target too."),
            ((1 - epsilon) * hit + epsilon * k * even, "Each class gets ε/K, and not ε."),
            (raw, "These are logits: take log-softmax first."),
        ]
        expect(got, right, where, mistakes)
    return "the best logits are finite now, and the best loss is not 0."


@check
def judged_once(function: Function) -> str:
    """function(losses, starts): bits a character from overlapping windows, the longest context."""
    rng = np.random.default_rng(13)
    for starts, size in (([0, 3, 6, 9], 6), ([0, 4, 8, 9], 8), ([0, 5, 10], 5), ([0], 4)):
        windows, new = len(starts), np.diff(starts, prepend=-size)
        losses = rng.gamma(4 - 3 * np.arange(size) / size, size=(windows, size))
        kept = [row[size - k :] for row, k in zip(losses, new, strict=True)]
        right = _bits(kept)
        where = f"for windows of {size} that start at {starts}"
        got = one_number(call(function, losses, np.asarray(starts)), where, "Take the mean.")
        late = [row[:k] for row, k in zip(losses, [*new[1:], size], strict=True)]
        first = [row[:k] for row, k in zip(losses[1:], new[1:], strict=True)]
        mistakes = [
            (right * np.log(2), "These are nats."),
            (_bits(kept[1:] or kept), "The first window is missing: all of it is new."),
            (_bits([losses[0], *first]), "What is new stands at the end of a window."),
            (_bits(losses), "You count the characters twice that two windows judge."),
            (_bits(late), "You take the later of two windows: the earlier has more context."),
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
        turned = np.divide(q, p, out=np.ones_like(p), where=p > 0)
        for bad in accept[~((accept >= -1e-6) & (accept <= 1 + 1e-6))]:
            raise Wrong(
                f"{where} an acceptance is {bad:.3g}:", "it is a probability, even at q = 0."
            )
        mistakes = [
            (q * np.minimum(1, turned), "The fraction is upside down: drafts too likely are cut."),
            (q, "You accept all drafts: that gives the distribution q."),
        ]
        expect(q * accept, np.minimum(p, q), f"{where}, for q times the acceptance,", mistakes)
        if np.any(np.isnan(residual)):
            raise Wrong(f"{where} the residual is NaN:", "0/0, as no draft is ever refused.")
        if np.array_equal(p, q):
            continue  # never drawn from
        rest = np.maximum(p - q, 0)
        mistakes = [
            (rest, "It sums to the share of refused drafts: a distribution sums to 1."),
            (p, "Drawn from p, what drafts bring already comes twice."),
        ]
        expect(residual, rest / rest.sum(), f"{where}, in the residual,", mistakes)
    return "what is accepted and what is drawn instead add up to p, exactly."
