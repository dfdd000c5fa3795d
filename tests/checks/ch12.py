"""Chapter 12's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch12

solved = solutions(12)
merging, taking, writing = solved.merged_averages, solved.without_part, solved.page_written
reaching, traffic, back = solved.blocks_visited, solved.least_traffic, solved.block_gradients
widths, split = solved.bandwidth_gradient, solved.split_average


def overflowing(a, p, b, q):
    e, f = np.exp(p)[:, None], np.exp(q)[:, None]
    return (e * a + f * b) / (e + f), np.log(e + f)[:, 0]


def visits(n, b, w):
    """By looking at every pair."""
    i, j = np.arange(n)[:, None], np.arange(n)
    seen = (j <= i) & (i - j < w)
    tiles = seen.reshape(n // b, b, n // b, b).swapaxes(1, 2).reshape(-1, b * b)
    return tiles.any(axis=1).sum()


OLD, NEW = "weighted = weighted + kernel @ v", "weighted = shrink * weighted + kernel @ v"
SHRINK = "np.exp(top - highest)\n"


def running(new, *others):
    return mended(ch12.RUNNING_AVERAGE, "running_average", (OLD, new), *others)


def torch_taking(whole, total, part, p):
    left = -torch.expm1(p - total)
    return whole + (whole - part) * ((1 - left) / left)[:, None], total + torch.log(left)


def overflowing_rest(whole, total, part, p):
    e, f = np.exp(total), np.exp(p)
    return (e[:, None] * whole - f[:, None] * part) / (e - f)[:, None], np.log(e - f)


def torch_writing(pages, tables, lengths, sequence, key):
    slot, place = divmod(int(lengths[sequence]), pages.shape[1])
    pages, tables, old = pages.clone(), tables.clone(), int(tables[sequence, slot])
    if place == 0 or (tables == old).sum() > 1:
        new = min(set(range(len(pages))) - set(tables.ravel().tolist()))
        pages[new] = pages[old]
        tables[sequence, slot] = new
    pages[tables[sequence, slot], place] = key
    return pages, tables


def torch_back(g, h, q, k, v, output, lse):
    """By automatic differentiation of both outputs."""
    k, v = k.clone().requires_grad_(), v.clone().requires_grad_()
    w = torch.exp(q @ k.T / q.shape[1] ** 0.5 - lse[:, None])
    rest = output - (w @ v).detach()  # what the other keys bring, with what they weigh
    total = w.sum(dim=1) + 1 - w.sum(dim=1).detach()
    (((w @ v + rest) / total[:, None] * g).sum() + torch.log(total) @ h).backward()
    return k.grad, v.grad


def torch_width(g, x, z, v, output, lse, h):
    """By automatic differentiation."""
    h, total = torch.tensor(h, dtype=x.dtype, requires_grad=True), 0.0
    for rows, of_rows in zip(x.split(100), g.split(100), strict=True):
        w = torch.softmax(-((rows[:, None] - z) ** 2) / (2 * h**2), dim=1)
        (gradient,) = torch.autograd.grad(of_rows @ (w @ v), h)
        total = total + gradient
    return total


def jax_split(scores, values, size, tree, bits):
    answer = split(*(np.asarray(a, dtype=float) for a in (scores, values)), size, tree, bits)
    return jnp.asarray(answer) + 0 * jnp.exp(scores[0])


RIGHT = {
    "blocks_visited": [visits],
    "without_part": [torch_taking],
    "page_written": [torch_writing],
    "block_gradients": [torch_back],
    "bandwidth_gradient": [torch_width],
    "split_average": [jax_split],
}
WRONG = {
    "merged_averages": [
        (lambda *given: merging(*given)[::-1], "return the average first"),
        (overflowing, "for large scores you give NaN or ∞"),
    ],
    "running_average": [
        (running(OLD, (SHRINK, SHRINK + 8 * " " + "weighted *= shrink\n")), "good elsewhere")
    ],
    "without_part": [
        (lambda *given: taking(*given)[::-1], "return the average first"),
        (overflowing_rest, "for large scores you give NaN or ∞"),
    ],
    "page_written": [
        (altered(writing, "return", "pages[2] += 1\n    return"), "reads something else now"),
        (altered(writing, "return pages", "return pages[..., :1]"), "pages of shape (9, 3, 1)"),
    ],
    "least_traffic": [(lambda *given: traffic(*given)[::-1], "return the block first")],
    "block_gradients": [
        (lambda *given: back(*given)[::-1], "return the gradient of the keys first")
    ],
    "bandwidth_gradient": [
        (altered(widths, "i + 100", "i + 10**6"), "does it build an array of all pairs?")
    ],
}
