"""Chapter 8's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course import builds
from attnbook_course.checks import ch08

solved = solutions(8)
file_size, patches, packed = solved.compressed_bytes, solved.cut_patches, solved.packed_row
smoothed, judged = solved.smoothed_loss, solved.judged_once


FAULT, ORDER = "kept = order[reached <= share]", "order = np.argsort(-p)"
REACHED = "reached = np.cumsum(p[order])"


def cutting(line, old=FAULT):
    """The broken cut with one of its lines changed."""
    return mended(ch08.NUCLEUS, "nucleus", (old, line))


def torch_patches(image, height, width):
    rows = torch.stack(image.split(height))  # (tall, height, columns, channels)
    cut = torch.stack(rows.split(width, dim=2), dim=1)
    return cut.flatten(2).flatten(0, 1)


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


def logits_of_rows(tokens, weights, num_heads):
    """Row by row, the norm by hand."""
    if tokens.ndim > 1:
        return torch.stack([logits_of_rows(row, weights, num_heads) for row in tokens])
    x = torch.nn.functional.embedding(tokens, weights["embedding"])
    x = x + weights["position"][torch.arange(len(tokens))]
    causal = torch.ones(len(tokens), len(tokens)).tril() > 0
    for of_block in weights["blocks"]:
        x = builds.block(x, of_block, num_heads, causal)
    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    return torch.einsum("ne,ve->nv", weights["norm"] * x, weights["readout"])


def train_row_by_row(weights, text, num_heads, starts, rate):
    parts = [one for name, one in weights.items() if name != "blocks"]
    parts += [one for of_block in weights["blocks"] for one in of_block.values()]
    for part in parts:
        part.requires_grad = True
    adam, window, bits = torch.optim.Adam(parts, rate), len(weights["position"]), []
    for first in starts:
        nats = 0
        for i in first:
            row = text[i : i + window + 1]
            p = builds.logits(row[:-1], weights, num_heads).softmax(-1)
            nats = nats - p[torch.arange(window), row[1:]].log().sum()
        adam.zero_grad()
        (nats / starts[0].numel() / window).backward()
        adam.step()
        bits.append(float(nats) / starts[0].numel() / window / np.log(2))
    return bits


def generate_one_by_one(tokens, weights, num_heads, draws, temperature):
    for draw in draws:
        last = builds.logits(tokens[-8:], weights, num_heads)[-1]
        p, new = (last / temperature).softmax(0), 0
        while p[: new + 1].sum() <= draw:
            new += 1
        tokens = torch.cat([tokens, torch.tensor([new])])
    return tokens


OWN_DRAWS = itertools.cycle((0.0, 0.99))  # three draws of one call are not those of the next
ROWS = "tall * wide, height * width * channels"
LOG, IN_TWO_STEPS = "less - np.log(np.exp(less)", "np.log(np.exp(less) / np.exp(less)"
MASK, DRAWN = "return mask", "np.maximum(p - q, 0)"
RIGHT = {
    "logits": [logits_of_rows],
    "train": [train_row_by_row],
    "generate": [generate_one_by_one],
    "nucleus": [cutting("kept = order[reached - p[order] < share]")],
    "cut_patches": [torch_patches],
    "judged_once": [torch_judged],
}
WRONG = {
    "train": [
        (altered(train_row_by_row, "        adam.step()\n", ""), "the weights stay as they were"),
        (altered(train_row_by_row, "/ np.log(2)", ""), "divide by log 2"),
        (
            altered(train_row_by_row, ".softmax(-1)", ".softmax(-1) + np.exp(parts[0]).mean()"),
            "NumPy",
        ),
    ],
    "generate": [
        (altered(generate_one_by_one, "tokens[-8:]", "tokens"), "let the model read the last 8"),
        (altered(generate_one_by_one, "return tokens", "return tokens[2:]"), "the given ones"),
        (
            altered(
                generate_one_by_one, "draw in draws", "draw in [next(OWN_DRAWS) for _ in draws]"
            ),
            "another text each time",
        ),
    ],
    "nucleus": [
        (cutting("kept = order[reached <= share - 1]"), "you give NaN: nothing is kept"),
        (cutting(f"{REACHED} - p[order] + 1e-9", REACHED), "the faulty line still stands"),
    ],
    "cut_patches": [
        (
            altered(patches, ROWS, "tall * wide, height, width, channels"),
            "those of a patch in a row",
        ),
        (altered(patches, ROWS, "tall, wide, -1"), "below each other"),
    ],
    "smoothed_loss": [
        (altered(smoothed, LOG, IN_TWO_STEPS), "Take log-softmax in one step"),
        (altered(smoothed, LOG, "np.log(1e-12 + np.exp(less) / np.exp(less)"), "caps the loss"),
    ],
    "judged_once": [(lambda losses, starts: losses, "expected one number. Take the mean")],
    "speculative": [
        (altered(drafts, "np.minimum(1, ", "("), "for random p and q an acceptance"),
        (altered(drafts, "np.where(q > 0, q, 1)", "q"), "acceptance is nan"),
        (altered(drafts, " if rest.any() else p", ""), "the residual is NaN"),
        (lambda p, q: (drafts(p, q)[0], 0.0), "you give shapes (7,) and ()"),
    ],
}
