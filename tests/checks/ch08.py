"""Chapter 8's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch08

solved = solutions(8)
file_size, rate, patches = solved.compressed_bytes, solved.inverse_root_rate, solved.cut_patches
packed, smoothed = solved.packed_row, solved.smoothed_loss
slope, judged = solved.entropy_slope, solved.judged_once


FAULT, ORDER = "kept = order[reached <= share]", "order = np.argsort(-p)"
REACHED = "reached = np.cumsum(p[order])"


def cutting(line, old=FAULT):
    """The broken cut with one of its lines changed."""
    return mended(ch08.NUCLEUS, "nucleus", (old, line))


def torch_patches(image, height, width):
    rows = torch.stack(image.split(height))  # (tall, height, columns, channels)
    cut = torch.stack(rows.split(width, dim=2), dim=1)
    return cut.flatten(2).flatten(0, 1)


def channels_apart(image, height, width):
    channels = [patches(image[:, :, c : c + 1], height, width) for c in range(image.shape[2])]
    return np.concatenate(channels)


def overlapping(image, height, width):
    rows, columns, _ = image.shape
    corners = [(i, j) for i in range(rows - height + 1) for j in range(columns - width + 1)]
    return np.stack([image[i : i + height, j : j + width].ravel() for i, j in corners])


def jax_packed(documents):
    mask = (documents[:, None] == documents[None, :]) & jnp.tri(documents.shape[0], dtype=bool)
    return mask, jnp.sum(mask, axis=1) - 1


def torch_packed(documents):
    _, lengths = torch.unique_consecutive(documents, return_counts=True)
    blocks = [torch.ones(m, m, dtype=torch.bool).tril() for m in lengths.tolist()]
    return torch.block_diag(*blocks), torch.cat([torch.arange(m) for m in lengths.tolist()])


def torch_smoothed(logits, targets, epsilon):
    return torch.nn.functional.cross_entropy(logits, targets, label_smoothing=epsilon)


def jax_smoothed(logits, targets, epsilon):
    log_p = jax.nn.log_softmax(logits)
    target = (1 - epsilon) * jax.nn.one_hot(targets, logits.shape[1]) + epsilon / logits.shape[1]
    return -(target * log_p).sum(axis=1).mean()


def weights(s, tau):
    p = np.exp((s - s.max()) / tau)
    return p / p.sum()


def overflowing(s, tau):
    p = np.exp(s / tau)
    p = p / p.sum()
    return p @ (s - p @ s) ** 2 / tau**3


def entropy(s, tau):
    return -weights(s, tau) @ np.log(weights(s, tau))


def by_difference(s, tau):
    return (entropy(s, tau + 1e-5) - entropy(s, tau - 1e-5)) / 2e-5


def torch_slope(logits, temperature):
    tau = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)
    h = torch.distributions.Categorical(logits=logits / tau).entropy()
    return torch.autograd.grad(h, tau)[0]


def jax_slope(logits, temperature):
    p = jax.nn.softmax(logits / temperature)
    return p @ (logits - p @ logits) ** 2 / temperature**3


def torch_judged(losses, starts):
    best: dict[int, torch.Tensor] = {}
    for start, row in zip(starts.tolist(), losses, strict=True):
        for t, loss in enumerate(row):
            best.setdefault(start + t, loss)
    return torch.stack(list(best.values())).mean() / np.log(2)


def drafts(p, q):
    accept = np.minimum(1, p / np.where(q > 0, q, 1))
    rest = np.maximum(p - q, 0)
    return accept, rest / rest.sum() if rest.any() else p


def torch_drafts(p, q):
    accept = (p / q.clamp(min=1e-12)).clamp(max=1)
    rest = (p - q).clamp(min=0)
    return accept, rest / rest.sum().clamp(min=1e-12)


def jax_drafts(p, q):
    both = jnp.minimum(p, q)
    rest = p - both
    total = rest.sum()
    residual = jnp.where(total > 0, rest / jnp.where(total > 0, total, 1), p)
    return jnp.where(q > 0, both / jnp.where(q > 0, q, 1), 0), residual


ROWS = "tall * wide, height * width * channels"
LOG, IN_TWO_STEPS = "less - np.log(np.exp(less)", "np.log(np.exp(less) / np.exp(less)"
MASK, DRAWN = "return mask", "np.maximum(p - q, 0)"
RIGHT = {
    "nucleus": [
        cutting("kept = order[reached - p[order] < share]"),
        cutting("kept = order[: np.searchsorted(reached, share) + 1]"),
    ],
    "cut_patches": [
        torch_patches,
        lambda image, height, width: patches(image.astype(np.float32), height, width),
    ],
    "packed_row": [altered(packed, MASK, "return mask * 1"), jax_packed, torch_packed],
    "smoothed_loss": [torch_smoothed, jax_smoothed],
    "entropy_slope": [by_difference, torch_slope, jax_slope],
    "judged_once": [torch_judged],
    "speculative": [drafts, torch_drafts, jax_drafts],
}
WRONG = {
    "compressed_bytes": [
        (altered(file_size, " / 8", ""), "These are bits: a byte has eight"),
        (altered(file_size, " / np.log(2)", ""), "divided by eight"),
        (lambda loss, n: file_size(loss, n) // 1, "Do not round"),
    ],
    "nucleus": [
        (cutting("kept = order[reached < share]"), "It stops one token before"),
        (cutting("kept = order[reached >= share]"), "It keeps the tail"),
        (cutting("kept = order[reached <= share - 1]"), "you give NaN: nothing is kept"),
        (cutting("order = np.argsort(p)", ORDER), "in another line than you changed"),
        (cutting(f"{REACHED} - p[order] + 1e-9", REACHED), "the faulty line still stands"),
    ],
    "inverse_root_rate": [
        (altered(rate, "min(", "max("), "the lower one counts"),
        (altered(rate, " / embed_dim**0.5", ""), "The width is missing"),
        (altered(rate, "step**-0.5", "warmup**-0.5"), "stays as it is"),
        (lambda step, e, w: step if step <= w else rate(step, e, w), "It jumps"),
    ],
    "cut_patches": [
        (altered(patches, ".transpose(0, 2, 1, 3, 4)", ""), "long strip"),
        (altered(patches, "0, 2, 1, 3, 4", "2, 0, 1, 3, 4"), "The patches go down first"),
        (altered(patches, "0, 2, 1, 3, 4", "0, 2, 4, 1, 3"), "next to each other"),
        (lambda *given: patches(*given).T, "it is transposed"),
        (
            altered(patches, ROWS, "tall * wide, height, width, channels"),
            "those of a patch in a row",
        ),
        (altered(patches, ROWS, "tall, wide, -1"), "below each other"),
        (altered(patches, f".reshape({ROWS})", ""), "One axis for the patches"),
        (channels_apart, "has all channels"),
        (overlapping, "do not overlap"),
        (lambda *given: patches(*given)[:-1], "(9, 12), expected (10, 12)"),
    ],
    "packed_row": [
        (altered(packed, "same & np.tri", "np.tri"), "sees other documents"),
        (altered(packed, " & np.tri(len(documents), dtype=bool)", ""), "sees the tokens after it"),
        (altered(packed, "mask.sum(axis=1) - 1", "np.arange(len(same))"), "They run on"),
        (altered(packed, MASK, "return np.where(mask, 0, -np.inf)"), "numbers in it"),
    ],
    "smoothed_loss": [
        (altered(smoothed, "epsilon / K", "epsilon"), "and not ε"),
        (altered(smoothed, "(1 - epsilon) * ", ""), "sums to 1 + ε"),
        (altered(smoothed, "-(q", "(q"), "The sign"),
        (altered(smoothed, ".mean()", ""), "one loss a token"),
        (altered(smoothed, LOG, IN_TWO_STEPS), "Take log-softmax in one step"),
        (altered(smoothed, LOG, "np.log(1e-12 + np.exp(less) / np.exp(less)"), "caps the loss"),
    ],
    "entropy_slope": [
        (altered(slope, "temperature**3", "temperature**2"), "The power of τ"),
        (altered(slope, " - p @ logits", ""), "That is the mean square"),
        (altered(slope, "logits / temperature", "logits"), "those at τ = 1"),
        (altered(slope, "p @ (logits", "p * (logits"), "7 numbers"),
        (overflowing, "exponential overflow"),
    ],
    "judged_once": [
        (altered(judged, " / np.log(2)", ""), "These are nats"),
        (altered(judged, "[length - k :]", ""), "twice"),
        (altered(judged, "row[length - k :]", "[row[length - k :].mean()]"), "counts the same"),
        (lambda losses, starts: losses, "expected one number. Take the mean"),
    ],
    "speculative": [
        (altered(drafts, "np.minimum(1, ", "("), "for random p and q an acceptance"),
        (altered(drafts, "np.where(q > 0, q, 1)", "q"), "acceptance is nan"),
        (altered(drafts, "p / np.where(q > 0, q, 1)", "p"), "with p itself"),
        (altered(drafts, "return accept", "return accept * 0"), "You refuse more than is needed"),
        (altered(drafts, "return accept", "return accept**0.9"), "nothing can take that back"),
        (altered(drafts, " if rest.any() else p", ""), "the residual is NaN"),
        (altered(drafts, "rest / rest.sum()", "rest"), "the share of refused drafts"),
        (altered(drafts, DRAWN, "np.abs(p - q)"), "nothing is missing"),
        (altered(drafts, "rest / rest.sum()", "p[::-1]"), "drafts bring enough"),
        (altered(drafts, DRAWN, "1.0 * (p > q)"), "in other proportions"),
        (altered(drafts, "rest / rest.sum()", "2 * rest / rest.sum()"), "It sums to 2"),
        (lambda p, q: (drafts(p, q)[0], 0.0), "you give shapes (7,) and ()"),
    ],
}
