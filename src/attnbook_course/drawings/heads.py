"""Drawings of self-attention, of positions that turn, and of several heads."""

import math
from typing import Any

import numpy as np

from attnbook.attention import attend, positions
from attnbook.attention.heads import merge_heads, split_heads
from attnbook.datasets import six_words
from attnbook_course.drawings.canvas import WIDE, Canvas, Drawing, Point

Array = np.ndarray

MATRICES = np.array(
    [
        [[2, 0, 0, 0], [0, 1, 0, 0], [2, -2, 0, 4], [0, 2, 0, 0]],
        [[2, -1, 0, 2], [0, 2, 1, 0], [0, 2, 1, 0], [0, 0, 0, 2]],
        [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, -1, 0], [0, 1, 0, -1]],
        [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, -1, 0], [0, 1, 0, 1]],
    ],
    dtype=float,
)  # W_q, W_k and W_v of chapters 5 and 6, and W_o of chapter 6


def _tokens(tokens: int, embed_dim: int) -> tuple[Array, list[str]]:
    """The running sentence, or as many random rows without words."""
    sentence = six_words()
    if (tokens, embed_dim) == sentence.x.shape:
        return sentence.x, list(sentence.words)
    return np.random.default_rng(1).normal(size=(tokens, embed_dim)), []


def _matrices(d: int, e: int) -> Array:
    """Those of chapters 5 and 6 for queries, keys, values and output, or as many random ones."""
    if (d, e) == MATRICES.shape[1:]:
        return MATRICES
    return np.random.default_rng(0).normal(size=(4, d, e))


def _shades(table: Array) -> list[list[float]]:
    """A table from 0 to 1."""
    low, high = table.min(), table.max()
    return ((table - low) / (high - low or 1)).tolist()


def _shape(name: str, table: Array) -> str:
    return f"{name}{WIDE}{' × '.join(map(str, table.shape))}"


def self_attention(tokens: int = 6, embed_dim: int = 4, head_dim: int = 4) -> Drawing:
    """Self-attention: X gives queries, keys and values, these the weights and the output.

    Args:
        tokens: n; six of them are the running sentence.
        embed_dim: e, the width of a token.
        head_dim: d, the width of a query, a key and a value.
    """
    x, words = _tokens(tokens, embed_dim)
    w_q, w_k, w_v, _ = _matrices(head_dim, embed_dim)
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    found: Any = attend(q, k, v, return_weights=True)
    y, weights = found
    cell = 17
    side = cell * tokens
    second, third = side + 126, 2 * side + 210
    canvas = Canvas(
        "self_attention",
        3 * side + 250,
        "Tokens X are multiplied by three matrices into queries, keys and values. Queries and keys "
        "give a square of weights, and the weights average the values into the output.",
    )
    canvas.text(240, 14, _shape("X", x), bold=True)
    canvas.matrix(240, 34, _shades(x), "ink", cell, rows=words)
    for place, table, role, name in (
        *((80, q, "queries", "Q"), (240, k, "keys", "K")),
        (400, v, "values", "V"),
    ):
        low = name.lower()
        canvas.arrow((240 + (place - 240) / 5, side + 44), (place, second - 36), role=role)
        beside = 240 + 0.62 * (place - 240) + (-34 if place < 240 else 34 if place > 240 else 20)
        canvas.text(beside, side + 54, f"W_{low}", role)
        canvas.text(place, second - 20, _shape(name, table), role, bold=True)
        canvas.matrix(place, second, _shades(table), role, cell)
    canvas.arrow((80, second + side + 8), (140, third - 36), role="queries")
    canvas.arrow((240, second + side + 8), (190, third - 36), role="keys")
    canvas.arrow((400, second + side + 8), (400, third - 36), role="values")
    canvas.text(165, third - 20, _shape("weights", weights), "weights", bold=True)
    canvas.matrix(165, third, weights.tolist(), "weights", cell, rows=words, dots=True)
    canvas.text(165, third + side + 22, "softmax(Q K^T / √d)", "weights")
    middle = third + side / 2
    canvas.arrow((175 + side / 2, middle), (390 - cell * head_dim / 2, middle), role="weights")
    canvas.text(400, third - 20, _shape("output", y), "output", bold=True)
    canvas.matrix(400, third, _shades(y), "output", cell)
    canvas.text(400, third + side + 22, "weights · V", "output")
    return canvas.drawing()


def rotary(query: int = 3, key: int = 1, shift: int = 3) -> Drawing:
    """Rotary positions: a query and a key turn with their places, their angle stays.

    Args:
        query: the query's place.
        key: the key's place.
        shift: by how many places both move from the left picture to the right one.
    """
    canvas = Canvas(
        "rotary",
        330,
        "A query and a key, each turned by its place. Both places move on, both turn on, and the "
        "angle between them stays the same.",
    )
    radius, y = 92, 128
    for x, move in ((120, 0), (360, shift)):
        places = np.array([query, key]) + move
        start = np.array([-0.4, 0.4])
        vectors = np.stack([np.cos(start), np.sin(start)], axis=1)
        turned = positions.rotary(vectors, places)
        angles = np.arctan2(turned[:, 1], turned[:, 0])
        canvas.ring(x, y, radius, "line", 1)
        canvas.path(_arc((x, y), 34, *angles), "weights", 4)
        for k, (name, role) in enumerate((("q", "queries"), ("k", "keys"))):
            for angle, width in ((start[k], 1.5), (angles[k], 3)):
                tip = (x + radius * math.cos(angle), y - radius * math.sin(angle))
                canvas.arrow((x, y), tip, role=role, width=width, dashed=width < 3)
            out = (x + 108 * math.cos(angles[k]), y - 108 * math.sin(angles[k]))
            canvas.text(*out, name, role, bold=True)
            canvas.text(x, 258 + 23 * k, f"{name}, place {places[k]}: turned by {places[k]}θ", role)
    canvas.text(240, 316, "same distance, same angle, same score", "weights", bold=True)
    return canvas.drawing()


def _arc(middle: Point, radius: float, first: float, last: float) -> str:
    """A path along a circle between two angles."""
    ends = [
        f"{middle[0] + radius * math.cos(a):.1f},{middle[1] - radius * math.sin(a):.1f}"
        for a in (first, last)
    ]
    sweep = int((last - first) % (2 * math.pi) > math.pi)
    return f"M{ends[0]} A{radius},{radius} 0 0 {sweep} {ends[1]}"


def multi_head(tokens: int = 6, embed_dim: int = 4, num_heads: int = 2) -> Drawing:
    """Multi-head attention: project once, then split; the output is a sum over the heads.

    Args:
        tokens: n; six of them are the running sentence.
        embed_dim: e, the width of a token.
        num_heads: a divisor of e, at most 3 for the drawing.
    """
    x, words = _tokens(tokens, embed_dim)
    w_q, w_k, w_v, w_o = _matrices(embed_dim, embed_dim)
    whole = [x @ w.T for w in (w_q, w_k, w_v)]
    q, k, v = (split_heads(part, num_heads) for part in whole)
    heads, weights = attend(q, k, v, return_weights=True)
    output = merge_heads(heads) @ w_o.T
    blocks = np.split(w_o, num_heads, axis=1)  # U_h
    cell, head_dim = 14, embed_dim // num_heads
    side = cell * tokens
    second, third = side + 110, 2 * side + 182
    foot = third + side + 58  # of the heads' boxes
    canvas = Canvas(
        "multi_head",
        foot + side + 122,
        "X is projected once into Q, K and V; each is cut into heads. Every head has weights and "
        "an output of its own; the heads' outputs, each times its matrix, are added.",
    )
    canvas.text(240, 14, _shape("X", x), bold=True)
    canvas.matrix(240, 32, _shades(x), "ink", cell, rows=words)
    for place, table, role, name in zip(
        (80, 240, 400), whole, ("queries", "keys", "values"), "QKV", strict=True
    ):
        canvas.arrow((240 + (place - 240) / 4, side + 42), (place, second - 34), role=role)
        canvas.text(place, second - 19, _shape(name, table), role, bold=True)
        canvas.matrix(place, second, _shades(table), role, cell)
        left = place - cell * embed_dim / 2
        for h in range(1, num_heads):
            cut = left + cell * head_dim * h
            canvas.line((cut, second - 6), (cut, second + side + 6), role="ink", width=3)
    for y, step in ((side + 58, "project"), (third - 48, "split"), (foot + 24, "add")):
        canvas.text(4, y, step, anchor="start", bold=True)
    width = 480 / num_heads
    for h in range(num_heads):
        middle, top = width * (h + 0.5), third - 34
        canvas.arrow((middle, second + side + 14), (middle, top))
        canvas.box(middle, (top + foot) / 2, width - 16, foot - top, fill=0.06)
        parts = f"q_{h + 1}, k_{h + 1}, v_{h + 1}{WIDE}{q.shape[1]} × {q.shape[2]}"
        canvas.text(middle, top + 18, parts)
        canvas.matrix(middle - 44, top + 40, weights[h].tolist(), "weights", cell, dots=True)
        canvas.arrow((middle + 6, top + 40 + side / 2), (middle + 46, top + 40 + side / 2))
        canvas.matrix(middle + 70, top + 40, _shades(heads[h]), "output", cell)
        canvas.text(middle, foot - 16, _shape(f"head_{h + 1}", heads[h]), "output")
        aside = math.copysign(13, middle - 240) if abs(middle - 240) > 1 else 0
        if aside:
            canvas.arrow((middle, foot), (middle, foot + 44), (240 + aside, foot + 44))
        else:
            canvas.arrow((middle, foot), (middle, foot + 31))
        canvas.text(middle, foot + 64, _shape(f"U_{h + 1}^T", blocks[h].T))
    canvas.plus(240, foot + 44)
    canvas.arrow((240, foot + 55), (240, foot + 82))
    canvas.text(240, foot + 97, _shape("output", output), "output", bold=True)
    canvas.matrix(240, foot + 114, _shades(output), "output", cell)
    return canvas.drawing()


def induction() -> Drawing:
    """The induction circuit: one head notes the word before, another finds the note."""
    words = six_words().words[:5]
    canvas = Canvas(
        "induction",
        410,
        "In layer 1 each token notes the word before it. In layer 2 the second to looks for the "
        "token whose note says to, finds be, and copies it.",
    )
    places = [124 + 78 * j for j in range(5)]
    vocabulary = sorted(set(words))
    one_hot = np.eye(len(vocabulary))[[vocabulary.index(word) for word in words]]
    notes = np.vstack([np.zeros(len(vocabulary)), one_hot[:-1]])
    _, weights = attend(8 * one_hot[-1:], notes, one_hot, return_weights=True)
    for y, label in ((386, "tokens"), (254, "layer 1"), (118, "layer 2"), (30, "predicts")):
        canvas.text(4, y, label, anchor="start", bold=True)
    for j, (x, word) in enumerate(zip(places, words, strict=True)):
        canvas.box(x, 386, 68, 34, word)
        canvas.box(x, 238, 68, 32, word, "queries" if j == 4 else "line")
        canvas.box(x, 270, 68, 32, words[j - 1] if j else "–", "values")
        canvas.arrow((x, 367), (x, 290))
        if j:
            canvas.arrow((places[j - 1] + 14, 367), (x - 14, 290), role="values")
    canvas.box(places[1], 270, 68, 32, role="values", fill=0.2)
    canvas.text(4, 278, "notes", "values", anchor="start")
    canvas.text(4, 186, "weights", "weights", anchor="start", bold=True)
    canvas.text(316, 142, "finds the note “to”", "weights")
    canvas.dots([(x, 186) for x in places], weights[0], radius=15, full=1)
    canvas.arrow((places[1], 166), (places[1], 118), (places[4] - 36, 118), role="weights", width=3)
    canvas.box(places[4], 118, 68, 34, "be", "output")
    canvas.arrow((places[4], 99), (places[4], 50), role="output")
    canvas.text(places[4], 30, "be", "output", bold=True)
    return canvas.drawing()
