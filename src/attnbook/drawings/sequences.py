"""Drawings of sequences: an encoder and its decoder, a cache, a prompt of pairs and questions."""

import numpy as np

from attnbook import in_context
from attnbook.attention import attend
from attnbook.drawings.canvas import Canvas, Drawing


def encoder_decoder() -> Drawing:
    """An encoder reads three words, a decoder writes letters and looks back."""
    canvas = Canvas("encoder_decoder", 330, "A decoder looks back at the encoder's states.")
    words, letters = ("twenty", "one", "thousand"), "einundzw"
    sources, targets = (90, 240, 390), [36 + 58 * j for j in range(8)]
    for j, (x, word) in enumerate(zip(sources, words, strict=True)):
        canvas.text(x, 310, word)
        canvas.arrow((x, 296), (x, 282))
        canvas.box(x, 262, 70, 34, f"h_{j + 1}", "keys")
    for i, (x, letter) in enumerate(zip(targets, letters, strict=True)):
        canvas.box(x, 80, 46, 34, f"s_{i + 1}", "queries")
        canvas.text(x, 24, letter, "output", bold=True)
        canvas.arrow((x, 60), (x, 40))
    canvas.arrow((240, 242), (targets[0], 100), role="weights", width=4)
    canvas.arrow((90, 242), (targets[6], 100), role="weights", width=4)
    return canvas.drawing()


def cache(tokens: int = 4, head_dim: int = 4) -> Drawing:
    """Keys and values are kept: at step t + 1 one row of each is new."""
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, tokens + 1, head_dim))
    cell = 15
    canvas = Canvas("cache", 2 * cell * tokens + 200, "A cache of keys and values grows by a row.")
    y = 60.0
    for t in (tokens, tokens + 1):
        _, weights = attend(q[t - 1 : t], k[:t], v[:t], return_weights=True)
        canvas.text(8, y - 40, f"step {t}", anchor="start", bold=True)
        for x, role, name in ((150, "keys", "K"), (330, "values", "V")):
            canvas.matrix(x, y, [[0.2] * head_dim] * (t - 1) + [[0.8] * head_dim], role, cell)
            canvas.text(x + 30, y - 16, f"{name}  {t} × {head_dim}", role, bold=True)
        canvas.matrix(20, y + cell * (t - 1), [[0.8] * head_dim], "queries", cell)
        canvas.dots([(270, y + cell * (j + 0.5)) for j in range(t)], weights[0], radius=8)
        y += cell * t + 90
    return canvas.drawing()


def prompt(pairs: int = 4, queries: int = 3) -> Drawing:
    """A prompt's tokens, pairs and then questions, and who may attend to whom."""
    rng = np.random.default_rng(0)
    keys, values, asked = rng.uniform(-1, 1, (3, max(pairs, queries))).round(1)
    table = in_context.prompt(keys[:pairs], values[:pairs], asked[:queries])
    seen = np.arange(pairs - queries + 1, pairs + 1)
    mask = in_context.mask(pairs, seen)
    canvas = Canvas("prompt", 480, "Tokens of pairs and of queries, and their mask.")
    count = pairs + queries
    cell = 50
    for i, token in enumerate(table):
        for j, entry in enumerate(token):
            x, y = 100 + cell * i, 50 + 30 * j
            canvas.box(x, y, cell - 6, 28, f"{entry:g}".replace("-", "−"), radius=3)
    for j, name in enumerate(("x", "y", "query?")):
        canvas.text(66, 50 + 30 * j, name, anchor="end")
    canvas.matrix(150, 220, mask.astype(float).tolist(), "weights", 240 / count)
    return canvas.drawing()
