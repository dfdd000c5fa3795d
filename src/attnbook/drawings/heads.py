"""Drawings of self-attention, of positions that turn, and of several heads."""

import math

import numpy as np

from attnbook.attention import attend
from attnbook.datasets import six_words
from attnbook.drawings.canvas import Canvas, Drawing
from attnbook.heads import merge_heads, split_heads

Array = np.ndarray


def _tokens(tokens: int, embed_dim: int) -> tuple[Array, list[str]]:
    """The running sentence, or as many random rows without words."""
    sentence = six_words()
    if (tokens, embed_dim) == sentence.x.shape:
        return sentence.x, list(sentence.words)
    return np.random.default_rng(1).normal(size=(tokens, embed_dim)), []


def _grey(table: Array) -> Array:
    """A table from 0 to 1, for shades."""
    low, high = table.min(), table.max()
    return 0.75 * (table - low) / (high - low or 1)


def _shape(name: str, table: Array) -> str:
    return f"{name}  {' × '.join(map(str, table.shape))}"


def self_attention(tokens: int = 6, embed_dim: int = 4, head_dim: int = 4) -> Drawing:
    """Self-attention: X gives queries, keys and values, these weights and output."""
    x, words = _tokens(tokens, embed_dim)
    w = np.random.default_rng(0).normal(size=(3, head_dim, embed_dim))
    q, k, v = (x @ matrix.T for matrix in w)
    y, weights = attend(q, k, v, return_weights=True)
    canvas = Canvas(
        "self_attention",
        150 + 4 * 17 * tokens + 190,
        "Tokens X are multiplied by three matrices into queries, keys and values; queries and "
        "keys give a square of weights, and weights times values give the output.",
    )
    cell = 17
    side = cell * tokens
    wide, narrow = cell * embed_dim, cell * head_dim
    top = 34
    canvas.text(240, 16, _shape("X", x), bold=True)
    canvas.matrix(240 - wide / 2, top, _grey(x).tolist(), "ink", cell, rows=words)
    second = top + side + 76
    for place, table, role, name in zip(
        (90, 240, 390), (q, k, v), ("queries", "keys", "values"), ("Q", "K", "V"), strict=True
    ):
        canvas.matrix(place - narrow / 2, second, _grey(table).tolist(), role, cell)
        canvas.arrow((240, top + side + 6), (place, second - 30), role=role)
        canvas.text(place, second - 16, _shape(name, table), role, bold=True)
    third = second + side + 70
    canvas.matrix(165 - side / 2, third, weights.tolist(), "weights", cell, rows=words)
    canvas.arrow((90, second + side + 4), (140, third - 30), role="queries")
    canvas.arrow((240, second + side + 4), (190, third - 30), role="keys")
    canvas.text(165, third - 16, _shape("weights", weights), "weights", bold=True)
    canvas.arrow((165 + side / 2 + 6, third + side / 2), (380 - narrow / 2, third + side / 2))
    canvas.matrix(390 - narrow / 2, third, _grey(y).tolist(), "output", cell)
    canvas.arrow((390, second + side + 4), (390, third - 30), role="values")
    canvas.text(390, third - 16, _shape("output", y), "output", bold=True)
    canvas.text(165, third + side + 18, "softmax(Q K^T / √d)", "weights")
    canvas.text(390, third + side + 18, "weights · V", "output")
    return canvas.drawing()


def rotary(query: int = 3, key: int = 1, shift: int = 3, theta: float = 0.42) -> Drawing:
    """Rotary positions: both vectors turn with their places, the angle between them stays."""
    canvas = Canvas(
        "rotary",
        290,
        "Two vectors, turned by their places; moved on together they turn on together, and the "
        "angle between them is the same.",
    )
    for middle, places in ((120, (query, key)), (360, (query + shift, key + shift))):
        canvas.add("circle", cx=middle, cy=140, r=96, stroke="var(--drawing-line, #8c8c8c)")
        for place, role, start in zip(places, ("queries", "keys"), (0.2, -0.25), strict=True):
            angle = start + place * theta
            tip = (middle + 96 * math.cos(angle), 140 - 96 * math.sin(angle))
            canvas.arrow((middle, 140), tip, role=role, width=2.4)
        canvas.text(middle, 262, f"places {places[0]} and {places[1]}")
    return canvas.drawing()


def multi_head(tokens: int = 6, embed_dim: int = 4, num_heads: int = 2) -> Drawing:
    """Multi-head attention: project once, then split; the output is a sum over heads."""
    x, words = _tokens(tokens, embed_dim)
    w_q, w_k, w_v, w_o = np.random.default_rng(0).normal(size=(4, embed_dim, embed_dim))
    q, k, v = (split_heads(x @ w.T, num_heads) for w in (w_q, w_k, w_v))
    heads = attend(q, k, v)
    output = merge_heads(heads) @ w_o.T
    blocks = np.split(w_o, num_heads, axis=1)
    cell, head_dim = 15, embed_dim // num_heads
    side = cell * tokens
    canvas = Canvas("multi_head", 4 * side + 330, "Multi-head attention.")
    canvas.text(240, 16, _shape("X", x), bold=True)
    canvas.matrix(240 - cell * embed_dim / 2, 32, _grey(x).tolist(), "ink", cell, rows=words)
    second = side + 110
    for place, table, role, name in zip(
        (90, 240, 390), (q, k, v), ("queries", "keys", "values"), ("Q", "K", "V"), strict=True
    ):
        whole = merge_heads(table)
        canvas.arrow((240, side + 38), (place, second - 30), role=role)
        canvas.text(place, second - 16, _shape(name, whole), role, bold=True)
        canvas.matrix(place - cell * embed_dim / 2, second, _grey(whole).tolist(), role, cell)
    third = second + side + 90
    fourth = third + side + 90
    for h in range(num_heads):
        place = 480 * (h + 0.5) / num_heads
        canvas.text(place, third - 16, _shape(f"head_{h + 1}", heads[h]), "output", bold=True)
        canvas.matrix(place - cell * head_dim / 2, third, _grey(heads[h]).tolist(), "output", cell)
        canvas.arrow((place, third + side + 6), (240, fourth - 50))
        canvas.text(place, third + side + 30, f"U_{h + 1}  {head_dim} × {len(blocks[h])}")
    canvas.plus(240, fourth - 38)
    canvas.text(240, fourth - 12, _shape("output", output), "output", bold=True)
    canvas.matrix(240 - cell * embed_dim / 2, fourth, _grey(output).tolist(), "output", cell)
    return canvas.drawing()


def induction() -> Drawing:
    """The induction circuit: one head notes the word before, another finds the note."""
    words = six_words().words
    canvas = Canvas("induction", 330, "Two layers find what followed the last time.")
    places = [44 + 78 * j for j in range(6)]
    for j, (x, word) in enumerate(zip(places, words, strict=True)):
        last = j == 5
        canvas.box(x, 300, 66, 34, word, dashed=last)
        if not last:
            canvas.box(x, 180, 66, 50, word if not j else f"{word}\nafter {words[j - 1]}", "keys")
            canvas.arrow((x, 282), (x, 208))
        if 0 < j < 5:
            canvas.arrow((places[j - 1], 282), (x - 8, 208), role="weights")
    canvas.box(places[4], 50, 66, 34, "be", "output")
    canvas.arrow((places[1], 152), (places[4] - 10, 70), role="weights", width=3)
    canvas.arrow((places[4], 152), (places[4], 70))
    return canvas.drawing()
