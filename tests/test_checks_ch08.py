"""Chapter 8's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from mending import mended

from attnbook.course.checks import ch08


def line(step, e, w):
    return step / (w * (e * w) ** 0.5)


def fall(step, e, w):
    return (e * step) ** -0.5


def rate(before=line, after=fall, width=0.0):
    """The right answer, and its neighbours, by what stands before and after the warm-up."""
    return lambda step, e, w: e**width * (before if step <= w else after)(step, e, w)


def patches(axes=(0, 2, 1, 3, 4), cut="outside", shape=None):
    """The right answer, and its neighbours, by the order of the axes."""

    def answer(image, height, width):
        rows, columns, channels = image.shape
        tall, wide = rows // height, columns // width
        if cut == "outside":
            grid = image.reshape(tall, height, wide, width, channels)
        else:
            grid = image.reshape(height, tall, width, wide, channels).transpose(1, 0, 3, 2, 4)
        ends = {
            None: (tall * wide, -1), "pixels": (tall * wide, height, width, channels),
            "grid": (tall, wide, -1), "both": (tall, wide, height, width, channels),
        }  # fmt: skip
        return grid.transpose(axes).reshape(ends[shape])

    return answer


def channels_apart(image, height, width):
    channels = [patches()(image[:, :, c : c + 1], height, width) for c in range(image.shape[2])]
    return np.concatenate(channels)


def overlapping(image, height, width):
    rows, columns, _ = image.shape
    corners = [(i, j) for i in range(rows - height + 1) for j in range(columns - width + 1)]
    return np.stack([image[i : i + height, j : j + width].ravel() for i, j in corners])


def past(documents):
    return np.tri(len(documents), dtype=bool)


def same(documents):
    return documents[:, None] == documents


def begins(documents):
    return np.asarray([list(documents).index(d) for d in documents])


def packed(mask=lambda d: same(d) & past(d), positions=lambda d: np.arange(len(d)) - begins(d)):
    return lambda documents: (mask(documents), positions(documents))


def log_softmax(logits):
    logits = logits - logits.max(1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def smoothed(target=None, log_p=log_softmax, end=np.mean):
    """The right answer, and its neighbours, by the target of a token."""
    target = target or (lambda hot, k, epsilon: (1 - epsilon) * hot + epsilon / k)

    def answer(logits, targets, epsilon):
        k = logits.shape[1]
        return end(-(target(np.eye(k)[targets], k, epsilon) * log_p(logits)).sum(1))

    return answer


def relative(logits, targets, epsilon):
    """The divergence, without the entropy of the target."""
    k = logits.shape[1]
    q = (1 - epsilon) * np.eye(k)[0] + epsilon / k
    return smoothed()(logits, targets, epsilon) + np.sum(q * np.log(q))


def weighted(s, tau):
    p = np.exp((s - s.max()) / tau)
    return p / p.sum()


def slope(power=3, p=weighted, end=lambda p, s: p @ (s - p @ s) ** 2):
    return lambda s, tau: end(p(s, tau), s) / tau**power


def entropy(s, tau):
    p = weighted(s, tau)
    return -p @ np.log(p)


def by_difference(s, tau):
    return (entropy(s, tau + 1e-5) - entropy(s, tau - 1e-5)) / 2e-5


def overflowing(s, tau):
    p = np.exp(s / tau)
    p = p / p.sum()
    return p @ (s - p @ s) ** 2 / tau**3


def fresh(losses, starts):
    """What each window judges and none before."""
    size = losses.shape[1]
    new = np.diff(starts, prepend=-size)
    return [row[size - k :] for row, k in zip(losses, new, strict=True)]


def later(losses, starts):
    new = [*np.diff(starts), losses.shape[1]]
    return [row[:k] for row, k in zip(losses, new, strict=True)]


def regular(losses, starts):
    step = starts[1] - starts[0] if len(starts) > 1 else 0
    return [losses[0], *(row[losses.shape[1] - step :] for row in losses[1:])]


def by_character(choose):
    def answer(losses, starts):
        at = starts[:, None] + np.arange(losses.shape[1])
        return [[choose(losses[at == i])] for i in range(at.max() + 1)]

    return answer


BIT = np.log(2)


def bits(pieces=fresh, unit=1 / BIT):
    return lambda *a: np.concatenate(pieces(*a)).mean() * unit


def accepted(p, q):
    return np.minimum(1, p / np.where(q > 0, q, 1))


def remaining(p, q):
    return normed(np.maximum(p - q, 0), p)


def normed(x, otherwise):
    return x / x.sum() if x.any() else otherwise


def drafts(accept=accepted, residual=remaining):
    return lambda p, q: (accept(p, q), residual(p, q))


def upside_down(p, q):
    return np.minimum(1, q / np.where(p > 0, p, 1))


def rejection(p, q):
    ratio = p / np.where(q > 0, q, 1)
    return ratio / ratio.max()


def bare_residual(p, q):
    return np.maximum(p - q, 0) / np.maximum(p - q, 0).sum()


R, C, K, S = ch08.inverse_root_rate, ch08.cut_patches, ch08.packed_row, ch08.smoothed_loss
E, J, D = ch08.entropy_slope, ch08.judged_once, ch08.speculative
WRONG = [
    (R, lambda *a: max(line(*a), fall(*a)), "the lower one counts"),
    (R, line, "rises for ever"),
    (R, fall, "no warm-up"),
    (R, rate(before=lambda step, e, w: step), "It jumps"),
    (R, rate(after=lambda step, e, w: fall(w, e, w)), "stays as it is"),
    (R, rate(after=lambda step, e, w: fall(w, e, w) * w / step), "falls as 1/step"),
    (R, lambda step, e, w: 0 if step < w else fall(step, e, w), "nothing before warmup"),
    (R, rate(width=0.5), "The width is missing"),
    (R, rate(width=-0.5), "by its root"),
    (R, lambda *a: 0, "expected 0.02415"),
    (C, lambda *a: patches()(*a).T, "it is transposed"),
    (C, patches(shape="pixels"), "put those of a patch in a row"),
    (C, patches(shape="grid"), "below each other"),
    (C, patches(shape="both"), "One axis for the patches"),
    (C, channels_apart, "has all channels"),
    (C, overlapping, "do not overlap"),
    (C, patches(axes=(0, 1, 2, 3, 4)), "long strip"),
    (C, patches(axes=(2, 0, 1, 3, 4)), "The patches go down first"),
    (C, patches(axes=(0, 2, 3, 1, 4)), "The pixels of a patch go down first"),
    (C, patches(axes=(0, 2, 4, 1, 3)), "next to each other"),
    (C, patches(axes=(0, 2, 1, 4, 3)), "next to each other"),
    (C, patches(cut="inside"), "rows of patches first"),
    (C, lambda image, h, w: patches()(image, h, w)[:-1], "(9, 12), expected (10, 12)"),
    (C, lambda *a: -patches()(*a), "you give −1, expected 1"),
    (K, packed(mask=same), "sees the tokens after it"),
    (K, packed(mask=past), "sees other documents"),
    (K, packed(mask=lambda d: (d[:, None] >= d) & past(d)), "equal, not ≥"),
    (K, packed(mask=lambda d: same(d) & past(d).T), "It is transposed"),
    (K, packed(mask=lambda d: same(d) & np.tri(len(d), k=-1, dtype=bool)), "sees itself too"),
    (K, packed(mask=lambda d: ~(same(d) & past(d))), "the other way round"),
    (K, packed(mask=lambda d: same(d) | past(d)), "Both must hold"),
    (K, packed(mask=lambda d: np.where(same(d) & past(d), 0, -np.inf)), "numbers in it"),
    (K, packed(mask=lambda d: np.ones((len(d), len(d)))), "in the mask, in entry [0, 1], counted from 0, you give 1, expected 0"),
    (K, packed(positions=lambda d: np.arange(len(d))), "They run on"),
    (K, packed(positions=lambda d: np.arange(len(d)) - begins(d) + 1), "not at 1"),
    (K, packed(positions=begins), "how far is it"),
    (K, packed(positions=lambda d: d), "the number of the document"),
    (K, packed(positions=lambda d: 0 * d), "in entry [1], counted from 0, you give 0, expected 1"),
    (K, lambda d: same(d) & past(d), "two arrays"),
    (S, smoothed(lambda hot, k, eps: hot), "the plain loss"),
    (S, smoothed(lambda hot, k, eps: 1 / k), "the even part alone"),
    (S, smoothed(lambda hot, k, eps: (1 - eps) * hot + eps * (1 - hot) / (k - 1)), "All K classes"),
    (S, smoothed(lambda hot, k, eps: hot + eps / k), "sums to 1 + ε"),
    (S, smoothed(lambda hot, k, eps: eps * hot + (1 - eps) / k), "changed places"),
    (S, smoothed(lambda hot, k, eps: (1 - eps) * hot + eps), "and not ε"),
    (S, smoothed(lambda hot, k, eps: (1 - eps) * hot), "even part is missing"),
    (S, lambda *a: -smoothed()(*a), "The sign"),
    (S, smoothed(end=np.sum), "sum over tokens"),
    (S, lambda *a: smoothed()(*a) / np.log(2), "These are bits"),
    (S, relative, "own entropy"),
    (S, smoothed(end=lambda loss: loss), "one loss a token"),
    (S, smoothed(log_p=lambda s: np.log(np.exp(log_softmax(s)))), "in one step"),
    (S, lambda *a: 0, "you give 0, expected"),
    (E, lambda *a: -slope()(*a), "The sign"),
    (E, slope(power=0), "brings powers of τ"),
    (E, slope(power=2), "The power of τ"),
    (E, lambda *a: -slope(power=1)(*a), "That is dH/dβ"),
    (E, slope(p=lambda s, tau: np.full(len(s), 1 / len(s))), "weight them by p"),
    (E, slope(end=lambda p, s: (p @ (s - p @ s) ** 2) ** 0.5), "the standard deviation"),
    (E, slope(p=lambda s, tau: weighted(s, 1)), "those at τ = 1"),
    (E, lambda *a: slope()(*a) / np.log(2), "These are bits"),
    (E, entropy, "That is the entropy"),
    (E, overflowing, "exponential overflow"),
    (E, weighted, "7 numbers"),
    (E, lambda *a: 0, "you give 0, expected"),
    (J, bits(unit=1), "These are nats"),
    (J, bits(unit=np.log(2)), "multiply by log 2"),
    (J, lambda *a: 2 ** bits()(*a), "the perplexity"),
    (J, lambda *a: np.concatenate(fresh(*a)).sum() / np.log(2), "That is the sum"),
    (J, bits(lambda losses, starts: losses), "twice"),
    (J, bits(later), "the later of two windows"),
    (J, bits(by_character(np.mean)), "average two judgements"),
    (J, bits(by_character(np.min)), "not by the loss"),
    (J, bits(lambda losses, starts: losses[:, losses.shape[1] // 2 :]), "The first half"),
    (J, bits(regular), "starts closer"),
    (J, bits(lambda *a: [[piece.mean()] for piece in fresh(*a)]), "counts the same"),
    (J, lambda losses, starts: losses, "give shape (4, 6), expected one number. Take the mean"),
    (J, lambda *a: 0, "you give 0, expected"),
    (D, drafts(accept=lambda p, q: p / np.where(q > 0, q, 1)), "for random p and q an acceptance"),
    (D, drafts(accept=lambda p, q: np.minimum(1, p / q)), "acceptance is nan"),
    (D, drafts(accept=upside_down), "upside down"),
    (D, drafts(accept=lambda p, q: p), "with p itself"),
    (D, drafts(accept=lambda p, q: np.ones_like(p)), "You accept all"),
    (D, drafts(accept=lambda p, q: (p >= q) * 1.0), "every draft with p < q"),
    (D, drafts(accept=rejection, residual=lambda p, q: p), "Rejection sampling"),
    (D, drafts(accept=lambda p, q: p / np.maximum(p + q, 1e-9)), "half of the time"),
    (D, drafts(accept=lambda p, q: 0 * p), "you give 0. You refuse more than is needed"),
    (D, drafts(accept=lambda p, q: accepted(p, q) ** 0.9), "nothing can take that back"),
    (D, drafts(accept=lambda p, q: 0 * p + np.minimum(p, q).sum()), "each token has its own"),
    (D, drafts(residual=bare_residual), "the residual is NaN"),
    (D, drafts(residual=lambda p, q: np.maximum(p - q, 0)), "the share of refused drafts"),
    (D, drafts(residual=lambda p, q: p), "comes twice"),
    (D, drafts(residual=lambda p, q: q), "no better than the first"),
    (D, drafts(residual=lambda p, q: normed(np.maximum(q - p, 0), p)), "has too much"),
    (D, drafts(residual=lambda p, q: normed(np.abs(p - q), p)), "nothing is missing"),
    (D, drafts(residual=lambda p, q: p - q), "is not negative"),
    (D, drafts(residual=lambda p, q: normed(p * (p > q), p)), "Drafts bring q"),
    (D, drafts(residual=lambda p, q: p[::-1]), "drafts bring enough"),
    (D, drafts(residual=lambda p, q: normed((p > q) * 1.0, p)), "in other proportions"),
    (D, drafts(residual=lambda p, q: 2 * remaining(p, q)), "It sums to 2"),
    (D, drafts(residual=lambda p, q: 0.0), "you give shapes (7,) and ()"),
    (D, accepted, "two arrays"),
]  # fmt: skip


def rowwise(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cut(image, h, w, order=(0, 2, 1, 3, 4)):
    rows, columns, c = image.shape
    grid = image.reshape(rows // h, h, columns // w, w, c)
    return grid.transpose(order).reshape(-1, h * w * c)


def mixed(log_p, targets, epsilon):
    hit = log_p[np.arange(len(targets)), targets].mean()
    return -((1 - epsilon) * hit + epsilon * log_p.mean())


def probabilities(logits):
    return np.exp(log_softmax(logits))


def heat(s, tau, answer):
    return answer(rowwise(s / tau), s, tau)


def spread(p, s):
    return p @ (s - p @ s) ** 2


WRONG += [
    (ch08.inverse_root_rate, lambda t, e, w: min(t / w, (e * t) ** (-0.5)), "Line and fall meet at warmup"),
    (ch08.inverse_root_rate, lambda t, e, w: e ** (-0.5) * min(1 / t, t / w ** 2), "It falls with the root of the step"),
    (ch08.inverse_root_rate, lambda t, e, w: t // w, "The quotient has a fraction: / and not //"),
    (ch08.inverse_root_rate, lambda t, e, w: e ** (-0.5) * t ** (-0.5) * min(1, t / w), "It rises in a line, without a root"),
    (ch08.inverse_root_rate, lambda t, e, w: e ** (-0.5) * min((t + 1) ** (-0.5), (t + 1) * w ** (-1.5)), "Steps are counted from 1: do not add one"),
    (ch08.cut_patches, lambda im, h, w: cut(im, h, w)[:, ::-1], "The numbers of a patch come in the order of reading"),
    (ch08.cut_patches, lambda im, h, w: im.transpose(2, 0, 1).reshape(-1, h * w * im.shape[2]), "That flattens channel after channel"),
    (ch08.cut_patches, lambda im, h, w: cut(im, h, w)[::-1], "The patches come in the order of reading, from the top left"),
    (ch08.cut_patches, lambda im, h, w: [im[i * h:i * h + h, j * w:j * w + w].ravel(order='F') for i in range(im.shape[0] // h) for j in range(im.shape[1] // w)], "Each patch is flattened by columns: take its pixels row"),
    (ch08.packed_row, lambda d: (same(d) & np.tri(len(d), dtype=bool), np.array([np.sum(d == x) for x in d])), "That is the length of the document: count those before"),
    (ch08.packed_row, lambda d: (same(d) & np.tri(len(d), dtype=bool), np.arange(len(d)) % 3), "Documents differ in length: no remainder"),
    (ch08.packed_row, lambda d: (same(d) & np.tri(len(d), dtype=bool), (same(d) & np.tri(len(d), dtype=bool)).sum(0) - 1), "They run backwards: count along the rows of the mask"),
    (ch08.packed_row, lambda d: ((d[:, None] <= d) & np.tri(len(d), dtype=bool), np.arange(len(d))), "Some see other documents: equal, not ≤"),
    (ch08.packed_row, lambda d: (np.tri(len(d)) * (d > 0), np.arange(len(d))), "The number 0 is a document like the others"),
    (ch08.packed_row, lambda d: (same(d) & np.tri(len(d), dtype=bool) & (d > 0), np.arange(len(d))), "The number 0 is a document like the others"),
    (ch08.packed_row, lambda d: (np.eye(len(d)), np.arange(len(d))), "A token sees its own document up to itself, not itself"),
    (ch08.smoothed_loss, lambda s, t, e: mixed(np.log(probabilities(s) + 1e-05), t, e), "A small constant in the logarithm changes the loss:"),
    (ch08.smoothed_loss, lambda s, t, e: mixed(probabilities(s), t, e), "The logarithm is missing"),
    (ch08.smoothed_loss, lambda s, t, e: mixed(s, t, e), "These are logits: take log-softmax first"),
    (ch08.smoothed_loss, lambda s, t, e: mixed(log_softmax(s), t, 0) + e, "for 7 tokens of 5 kinds and ε = 0.3 you give 3.044. ε is"),
    (ch08.smoothed_loss, lambda s, t, e: mixed(log_softmax(s), t, e) / s.shape[1], "That is the mean over classes too: sum over those"),
    (ch08.smoothed_loss, lambda s, t, e: -((1 - e) * log_softmax(s)[np.arange(len(t)), t].mean() + e * log_softmax(s).sum()), "The even part is a mean over classes"),
    (ch08.smoothed_loss, lambda s, t, e: -np.mean(((1 - e) * np.eye(s.shape[1])[t] + e / s.shape[1]) * log_softmax(s)), "That is the mean over classes too: sum over those"),
    (ch08.entropy_slope, lambda s, tau: heat(s, tau, lambda p, s, tau: spread(p, s / tau) / tau ** 3), "Take the variance of s, or of s/τ, and count its τ once"),
    (ch08.entropy_slope, lambda s, tau: heat(s, tau, lambda p, s, tau: spread(p, s) * tau ** 3), "Divide by τ³: heat makes differences smaller"),
    (ch08.entropy_slope, lambda s, tau: heat(s, tau, lambda p, s, tau: p @ s ** 2 / tau ** 3), "That is the mean square: subtract the squared mean"),
    (ch08.entropy_slope, lambda s, tau: heat(s, tau, lambda p, s, tau: p @ s / tau ** 2), "That is a part: the mean of s, without its change"),
    (ch08.entropy_slope, lambda s, tau: heat(s, tau, lambda p, s, tau: p @ (s - s.mean()) ** 2 / tau ** 3), "The mean of the logits is weighted by p too"),
    (ch08.judged_once, lambda losses, s: losses[0].mean() / np.log(2), "That is the first window alone"),
    (ch08.judged_once, lambda losses, s: np.concatenate([losses[0]] + [r[-(b - a):] for r, a, b in zip(losses[1:], s[:-1], s[1:], strict=True)]).mean() / np.log(10), "A bit is a logarithm to base 2, not to base 10"),
    (ch08.judged_once, lambda losses, s: np.concatenate([losses[0]] + [r[:b - a] for r, a, b in zip(losses[1:], s[:-1], s[1:], strict=True)]).mean() / np.log(2), "What is new stands at the end of a window"),
    (ch08.judged_once, lambda losses, s: np.concatenate([losses[0]] + [r[b - a:] for r, a, b in zip(losses[1:], s[:-1], s[1:], strict=True)]).mean() / np.log(2), "Keep as many as are new: you leave out as many"),
    (ch08.judged_once, lambda losses, s: np.concatenate([r[-(b - a):] for r, a, b in zip(losses[1:], s[:-1], s[1:], strict=True)] or [losses[0]]).mean() / np.log(2), "The first window is missing: all of it is new"),
    (ch08.judged_once, lambda losses, s: np.concatenate([losses[0]] + [r[-(b - a):] for r, a, b in zip(losses[1:], s[:-1], s[1:], strict=True)]).sum() / np.log(2) / losses.size, "Divide by the characters, not by all entries"),
    (ch08.judged_once, lambda losses, s: np.log2(np.concatenate([losses[0]] + [r[-(b - a):] for r, a, b in zip(losses[1:], s[:-1], s[1:], strict=True)])).mean(), "Losses are logarithms already"),
    (ch08.judged_once, lambda losses, s: losses[:, -1].mean() / np.log(2), "That is the last entry of each window alone"),
    (ch08.speculative, lambda p, q: (np.minimum(p, q), remaining(p, q)), "That is the share accepted: divide by q"),
    (ch08.speculative, lambda p, q: (accepted(p, q), rowwise(p - q)), "No softmax: p − q, where it is above 0"),
    (ch08.speculative, lambda p, q: (np.sqrt(accepted(p, q)), remaining(p, q)), "There is no root in the acceptance"),
    (ch08.speculative, lambda p, q: (accepted(p, q), np.full(len(p), 1 / len(p))), "Not even: which tokens have too little by drafts?"),
    (ch08.speculative, lambda p, q: (np.minimum(1, p / (q + 0.001)), remaining(p, q)), "A small constant makes it inexact"),
    (ch08.speculative, lambda p, q: (1 - accepted(p, q), remaining(p, q)), "That is the probability of a refusal"),
]  # fmt: skip


def torch_patches(image, height, width):
    import torch

    rows = torch.stack(image.split(height))  # (tall, height, columns, channels)
    cut = torch.stack(rows.split(width, dim=2), dim=1)
    return cut.flatten(2).flatten(0, 1)


def loop_patches(image, height, width):
    rows, columns, _ = image.shape
    return np.stack([
        image[i : i + height, j : j + width].ravel()
        for i in range(0, rows, height) for j in range(0, columns, width)
    ])  # fmt: skip


def jax_packed(documents):
    import jax.numpy as jnp

    n = documents.shape[0]
    mask = (documents[:, None] == documents[None, :]) & jnp.tri(n, dtype=bool)
    return mask, jnp.sum(mask, axis=1) - 1


def torch_packed(documents):
    import torch

    _, lengths = torch.unique_consecutive(documents, return_counts=True)
    blocks = [torch.ones(m, m, dtype=torch.bool).tril() for m in lengths.tolist()]
    return torch.block_diag(*blocks), torch.cat([torch.arange(m) for m in lengths.tolist()])


def torch_smoothed(logits, targets, epsilon):
    from torch.nn.functional import cross_entropy

    return cross_entropy(logits, targets, label_smoothing=epsilon)


def jax_smoothed(logits, targets, epsilon):
    import jax

    log_p = jax.nn.log_softmax(logits)
    target = (1 - epsilon) * jax.nn.one_hot(targets, logits.shape[1]) + epsilon / logits.shape[1]
    return -(target * log_p).sum(axis=1).mean()


def torch_slope(logits, temperature):
    import torch

    tau = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    h = torch.distributions.Categorical(logits=logits / tau).entropy()
    return torch.autograd.grad(h, tau)[0]


def jax_slope(logits, temperature):
    import jax

    p = jax.nn.softmax(logits / temperature)
    return p @ (logits - p @ logits) ** 2 / temperature**3


def torch_judged(losses, starts):
    import torch

    best = {}
    for start, row in zip(starts.tolist(), losses, strict=True):
        for t, loss in enumerate(row):
            best.setdefault(start + t, loss)
    return torch.stack(list(best.values())).mean() / np.log(2)


def torch_drafts(p, q):
    accept = (p / q.clamp(min=1e-12)).clamp(max=1)
    rest = (p - q).clamp(min=0)
    return accept, rest / rest.sum().clamp(min=1e-12)


def jax_drafts(p, q):
    import jax.numpy as jnp

    both = jnp.minimum(p, q)
    rest = p - both
    total = rest.sum()
    residual = jnp.where(total > 0, rest / jnp.where(total > 0, total, 1), p)
    return jnp.where(q > 0, both / jnp.where(q > 0, q, 1), 0), residual


def cutting(line, old="kept = order[reached <= share]"):
    """The broken cut with one of its lines changed."""
    return mended(ch08.NUCLEUS, "nucleus", (old, line))


def nats(loss, n):
    return loss * n


B, N = ch08.compressed_bytes, ch08.nucleus
WRONG += [
    (B, lambda loss, n: nats(loss, n) / np.log(2), "These are bits: a byte has eight"),
    (B, lambda loss, n: nats(loss, n) / 8, "These are nats divided by eight"),
    (B, nats, "first make bits of them"),
    (B, lambda loss, n: nats(loss, n) * np.log(2) / 8, "divide by log 2"),
    (B, lambda loss, n: nats(loss, n) * np.log(2), "and a byte has eight bits"),
    (B, lambda loss, n: loss / np.log(2) / 8, "That is for one character"),
    (B, lambda loss, n: loss / np.log(2), "These are bits per character"),
    (B, lambda loss, n: np.exp(loss) * n / 8, "That is the perplexity"),
    (B, lambda loss, n: np.log2(loss) * n / 8, "The loss is a logarithm already"),
    (B, lambda loss, n: nats(loss, n) / np.log(2) // 8, "Do not round"),
    (N, cutting("kept = order[reached < share]"), "It stops one token before the share is reached"),
    (N, cutting("kept = order[reached - p[order] <= share]"), "The share is reached before the last one that you keep"),
    (N, cutting("kept = order[reached >= share]"), "It keeps the tail"),
    (N, cutting("kept = order[:1]"), "It keeps the most probable alone"),
    (N, cutting("kept = np.arange(len(p))[reached - p[order] < share]"), "It keeps the first tokens"),
    (N, cutting("kept = order"), "It keeps all."),
    (N, cutting("kept = order[reached <= share - 1]"), "you give NaN: nothing is kept"),
    (N, cutting("order = np.argsort(p)", "order = np.argsort(-p)"), "the fault is in another line than you changed"),
    (N, cutting("reached = np.cumsum(p[order]) - p[order] + 1e-9", "reached = np.cumsum(p[order])"), "the answers are right, but the faulty line still stands"),
]  # fmt: skip


RIGHT = [
    (B, lambda loss, n: -n * np.log2(np.exp(-loss)) / 8),
    (N, cutting("kept = order[reached - p[order] < share]")),
    (N, cutting("kept = order[: np.searchsorted(reached, share) + 1]")),
    (R, rate()),
    (R, lambda step, e, w: e**-0.5 * min(step**-0.5, step * w**-1.5)),
    (C, patches()),
    (C, torch_patches),
    (C, loop_patches),
    (C, lambda image, h, w: patches()(image.astype(np.float32), h, w)),
    (K, packed()),
    (K, jax_packed),
    (K, torch_packed),
    (K, packed(mask=lambda d: (same(d) & past(d)).astype(int))),
    (S, smoothed()),
    (S, torch_smoothed),
    (S, jax_smoothed),
    (E, slope()),
    (E, by_difference),
    (E, torch_slope),
    (E, jax_slope),
    (J, bits()),
    (J, torch_judged),
    (J, bits(by_character(lambda of_one: of_one[0]))),
    (D, drafts()),
    (D, drafts(residual=lambda p, q: normed(np.maximum(p - q, 0), np.ones_like(p) / len(p)))),
    (D, torch_drafts),
    (D, jax_drafts),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


def test_accepted_and_redrawn_tokens_have_the_model_s_distribution():
    p, q = np.random.default_rng(0).dirichlet(np.ones(11), 2)
    accept, residual = drafts()(p, q)
    np.testing.assert_allclose(q * accept + (1 - q @ accept) * residual, p, rtol=1e-12)
    np.testing.assert_allclose(q @ accept, 1 - np.abs(p - q).sum() / 2, rtol=1e-12)


@pytest.mark.parametrize("check", [B, R, C, K, S, E, J, D])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert check.__name__ in verdict.message
