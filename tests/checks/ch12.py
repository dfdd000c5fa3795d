"""Chapter 12's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended

from attnbook.course.checks import ch12
from attnbook.exact import online_softmax


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def merging(a, p, b, q):
    share = np.exp(q - np.logaddexp(p, q))[:, None]
    return a + share * (b - a), np.logaddexp(p, q)


def overflowing(a, p, b, q):
    e, f = np.exp(p)[:, None], np.exp(q)[:, None]
    return (e * a + f * b) / (e + f), np.log(e + f)[:, 0]


def torch_merging(a, p, b, q):
    lse = torch.logaddexp(p, q)
    return torch.exp(p - lse)[:, None] * a + torch.exp(q - lse)[:, None] * b, lse


def jax_merging(a, p, b, q):
    lse = jnp.logaddexp(p, q)
    return a + jnp.exp(q - lse)[:, None] * (b - a), lse


def visits(n, b, w):
    """By looking at every pair."""
    i, j = np.arange(n)[:, None], np.arange(n)
    seen = (j <= i) & (i - j < w)
    tiles = seen.reshape(n // b, b, n // b, b).swapaxes(1, 2).reshape(-1, b * b)
    return tiles.any(axis=1).sum()


def reaching(n, b, w):
    """By how many blocks before its own a row of blocks reaches."""
    return sum(min(row, -(-(w - 1) // b)) + 1 for row in range(n // b))


OLD, NEW = "weighted = weighted + kernel @ v", "weighted = shrink * weighted + kernel @ v"
SHRINK = "np.exp(top - highest)\n"


def running(new, *others):
    return mended(ch12.RUNNING_AVERAGE, "running_average", (OLD, new), *others)


def taking(whole, total, part, p):
    w = np.exp(p - total)[:, None]
    return (whole - w * part) / (1 - w), total + np.log1p(-w[:, 0])


def torch_taking(whole, total, part, p):
    left = -torch.expm1(p - total)
    return whole + (whole - part) * ((1 - left) / left)[:, None], total + torch.log(left)


def overflowing_rest(whole, total, part, p):
    e, f = np.exp(total), np.exp(p)
    return (e[:, None] * whole - f[:, None] * part) / (e - f)[:, None], np.log(e - f)


def writing(pages, tables, lengths, sequence, key):
    pages, tables, size = pages.copy(), tables.copy(), pages.shape[1]
    slot, place = divmod(lengths[sequence], size)
    empty = min(page for page in range(len(pages)) if page not in tables)
    old = tables[sequence, slot]
    if place == 0:
        tables[sequence, slot] = empty
    elif (tables == old).sum() > 1:
        pages[empty] = pages[old]
        tables[sequence, slot] = empty
    pages[tables[sequence, slot], place] = key
    return pages, tables


def torch_writing(pages, tables, lengths, sequence, key):
    slot, place = divmod(int(lengths[sequence]), pages.shape[1])
    pages, tables, old = pages.clone(), tables.clone(), int(tables[sequence, slot])
    if place == 0 or (tables == old).sum() > 1:
        new = min(set(range(len(pages))) - set(tables.ravel().tolist()))
        pages[new] = pages[old]
        tables[sequence, slot] = new
    pages[tables[sequence, slot], place] = key
    return pages, tables


def traffic(n, d, memory):
    """By trying all blocks, and by the numbers that a loop over blocks moves."""
    b = 0
    while b < n and 4 * d * (b + 1) + (b + 1) ** 2 <= memory:
        b += 1
    moved = 0
    for row in range(0, n, b):
        moved += 2 * d * (min(row + b, n) - row)  # queries in, outputs out
        moved += sum(2 * d * (min(c + b, n) - c) for c in range(0, n, b))
    return b, 4 * moved


def back(g, h, q, k, v, output, lse):
    s = q @ k.T / np.sqrt(q.shape[1])
    w = np.exp(s - lse[:, None])
    row = (g * output).sum(axis=1, keepdims=True)
    ds = w * (g @ v.T - row + h[:, None])
    return ds.T @ q / np.sqrt(q.shape[1]), w.T @ g


def torch_back(g, h, q, k, v, output, lse):
    """By automatic differentiation of both outputs."""
    k, v = k.clone().requires_grad_(), v.clone().requires_grad_()
    w = torch.exp(q @ k.T / q.shape[1] ** 0.5 - lse[:, None])
    rest = output - (w @ v).detach()  # what the other keys bring, with what they weigh
    total = w.sum(dim=1) + 1 - w.sum(dim=1).detach()
    (((w @ v + rest) / total[:, None] * g).sum() + torch.log(total) @ h).backward()
    return k.grad, v.grad


def widths(g, x, z, v, output, lse, h):
    """A block of keys at a time."""
    rows, size = np.zeros(len(x)), 256
    for i in range(0, len(z), size):
        square = (x[:, None] - z[i : i + size]) ** 2
        w = np.exp(-square / (2 * h * h) - lse[:, None])
        rows += (w * (v[i : i + size] - output[:, None]) * square).sum(axis=1)
    return g @ rows / h**3


def torch_width(g, x, z, v, output, lse, h):
    """By automatic differentiation."""
    h, total = torch.tensor(h, dtype=x.dtype, requires_grad=True), 0.0
    for rows, of_rows in zip(x.split(100), g.split(100), strict=True):
        w = torch.softmax(-((rows[:, None] - z) ** 2) / (2 * h**2), dim=1)
        (gradient,) = torch.autograd.grad(of_rows @ (w @ v), h)
        total = total + gradient
    return total


def split(scores, values, size, tree, bits):
    def kept(part):
        fractions = (np.frexp(x) for x in part[1:])
        rounded = (np.ldexp(np.round(f * 2**bits) / 2**bits, p) for f, p in fractions)
        return online_softmax.Partial(part.top, *rounded)

    cuts = range(0, len(scores), size)
    parts = [
        kept(online_softmax.partial(scores[None, i : i + size], values[i : i + size])) for i in cuts
    ]
    while len(parts) > 1:
        together = len(parts) if tree else 2
        pairs = [parts[i : i + 2] for i in range(0, together, 2)]
        joined = [kept(online_softmax.combine(*two)) if len(two) > 1 else two[0] for two in pairs]
        parts = joined + parts[together:]
    return online_softmax.finish(parts[0])[0][0]


def jax_split(scores, values, size, tree, bits):
    answer = split(*(np.asarray(a, dtype=float) for a in (scores, values)), size, tree, bits)
    return jnp.asarray(answer) + 0 * jnp.exp(scores[0])


RIGHT = {
    "merged_averages": [merging, torch_merging, jax_merging],
    "blocks_visited": [visits, reaching],
    "running_average": [running(NEW), running("weighted = weighted * shrink + v.T @ kernel")],
    "without_part": [taking, torch_taking],
    "page_written": [writing, torch_writing],
    "least_traffic": [traffic],
    "block_gradients": [back, torch_back],
    "bandwidth_gradient": [widths, torch_width],
    "split_average": [split, jax_split],
}
WRONG = {
    "merged_averages": [
        (altered(merging, "a + share * (b - a)", "(a + b) / 2"), "Both count alike"),
        (altered(merging, "np.exp(q - np.logaddexp(p, q))", "(q / (p + q))"), "by its exponential"),
        (altered(merging, ", np.logaddexp(", ", np.logaddexp2("), "the natural ones"),
        (lambda *given: merging(*given)[::-1], "return the average first"),
        (overflowing, "for large scores you give NaN or ∞"),
    ],
    "blocks_visited": [
        (altered(reaching, "-(-(w - 1) // b)", "(w - 1) // b"), "sees furthest back"),
        (altered(visits, "(j <= i) & (i - j < w)", "abs(i - j) < w"), "Keys behind the query"),
        (altered(visits, ".any(", ".all("), "Those are the blocks seen whole"),
        (lambda n, b, w: 7, "expected a larger number"),
    ],
    "running_average": [
        (running("weighted = shrink * (weighted + kernel @ v)"), "You shrink the new keys as well"),
        (running("weighted = shrink**2 * weighted + kernel @ v"), "is shrunk twice"),
        (running(OLD, ("shrink * total", "total")), "Now neither sum is rescaled"),
        (running(OLD, (SHRINK, SHRINK + 8 * " " + "weighted *= shrink\n")), "good elsewhere"),
    ],
    "without_part": [
        (altered(taking, "(whole - w * part)", "(whole - part)"), "take that much of it off"),
        (altered(taking, " / (1 - w)", ""), "must be divided by its own share"),
        (altered(taking, "total + np.log1p(-w[:, 0])", "total - p"), "Totals are subtracted"),
        (lambda *given: taking(*given)[::-1], "return the average first"),
        (overflowing_rest, "for large scores you give NaN or ∞"),
    ],
    "page_written": [
        (altered(writing, "> 1", "> 9"), "Another sequence reads that page too"),
        (altered(writing, "> 1", "> 0"), "No other sequence has that page"),
        (altered(writing, "pages[empty] = pages[old]", "pass"), "lacks what the old one held"),
        (altered(writing, "min(", "max("), "the lowest page that no table names"),
        (altered(writing, "place] = key", "place - 1] = key"), "one place too early"),
        (altered(writing, "place] = key", "-1] = key"), "The key is not in its place"),
        (altered(writing, "return", "pages[2] += 1\n    return"), "reads something else now"),
        (altered(writing, "return pages", "return pages[..., :1]"), "pages of shape (9, 3, 1)"),
        (lambda *given: writing(*given)[::-1], "return the pages first"),
    ],
    "least_traffic": [
        (altered(traffic, "4 * d", "3 * d"), "four times block · d numbers"),
        (altered(traffic, " + (b + 1) ** 2", ""), "need their place too"),
        (altered(traffic, "4 * moved", "8 * n * d * (1 + n / b)"), "round n/block up"),
        (lambda *given: traffic(*given)[::-1], "return the block first"),
    ],
    "block_gradients": [
        (altered(back, "w.T @ g", "softmax(s).T @ g"), "divide by the sum over all keys"),
        (altered(back, "(g * output)", "(w * (g @ v.T))"), "That row sum knows one block"),
        (altered(back, "q / np.sqrt(q.shape[1])", "q"), "and so is the gradient"),
        (altered(back, "ds.T @ q", "ds @ k"), "that is for the queries"),
        (lambda *given: back(*given)[::-1], "return the gradient of the keys first"),
    ],
    "bandwidth_gradient": [
        (altered(widths, " - output[:, None])", ")"), "subtract the output from the value"),
        (altered(widths, "2 * h * h", "h * h"), "The ½ of the score is missing"),
        (altered(widths, "g @ rows", "rows.sum()"), "Each output counts by its g"),
        (altered(widths, "g @ rows", "g * rows"), "one bandwidth has one gradient"),
        (altered(widths, "256", "10**6"), "does it build an array of all pairs?"),
    ],
    "split_average": [
        (altered(split, "np.round", "np.floor"), "Round to the nearest"),
        (
            altered(split, "kept(online_softmax.partial", "(online_softmax.partial"),
            "Round each part too",
        ),
        (altered(split, "range(0, together, 2)", "range(0, together - 1, 2)"), "without a partner"),
    ],
}
