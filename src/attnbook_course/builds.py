"""What a reader builds, chapter by chapter, as the book has it.

mine.use gives these until the reader has built the same; the checks of the builds ask them too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from attnbook import attention as attending
from attnbook import causal_mask
from attnbook.attention import heads, positions, scores
from attnbook.kernel import regression
from attnbook.layers import activations, norms


def nadaraya_watson(queries: Any, keys: Any, values: Any, bandwidth: Any) -> Any:
    """Gaussian kernel regression, (m, p), at queries (m, d) from keys (n, d) and values (n, p)."""
    return regression.nadaraya_watson(queries, keys, values, bandwidth=bandwidth)


def descend(keys: Any, values: Any, start: float, rate: float, steps: int) -> Any:
    """The path of h, (steps + 1,): gradient descent on log h of the leave-one-out error."""
    keys, values = np.asarray(keys), np.asarray(values)
    squares = ((keys[:, None] - keys) ** 2).sum(axis=-1)
    others = ~np.eye(len(keys), dtype=bool)
    theta, path = math.log(start), [start]
    for _ in range(steps):
        in_bandwidths = squares / math.exp(2 * theta)
        weights: Any = attending.softmax(-in_bandwidths / 2, others)
        left_out = weights @ values
        moved = weights * in_bandwidths  # ∂w/∂θ is this, less its row's sum times w
        change = moved @ values - moved.sum(axis=1, keepdims=True) * left_out
        theta -= rate * np.mean(-2 * (values - left_out) * change)
        path.append(math.exp(theta))
    return np.array(path)


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """A pair: softmax(q kᵀ / √d) v, (..., m, p), and its weights, (..., m, n)."""
    return attending.attend(q, k, v, mask=mask, return_weights=True)


def read(state: Any, memory: Any, lengths: Any, w_q: Any, w_k: Any, a: Any) -> Any:
    """A pair: what states (b, s) read, (b, h), in memories (b, n, h), and the weights, (b, n).

    The score is additive, a · tanh(w_q s + w_k h), and the first lengths (b,) words are real.
    """
    xp = array_namespace(memory)
    s = scores.additive(state[:, None], memory, w_q, w_k, a)  # (b, 1, n)
    real = xp.arange(memory.shape[1], device=device(memory)) < lengths[:, None, None]
    weights: Any = attending.softmax(s, real)
    return (weights @ memory)[:, 0], weights[:, 0]


def causal_self_attention(x: Any, w_q: Any, w_k: Any, w_v: Any, rotary: bool = False) -> Any:
    """Causal self-attention, (n, p), of tokens (n, e), perhaps with rotary positions."""
    q, k, v = x @ w_q.mT, x @ w_k.mT, x @ w_v.mT
    if rotary:
        places = array_namespace(x).arange(len(x), device=device(x))
        q, k = positions.rotary(q, places), positions.rotary(k, places)
    return attending.attend(q, k, v, causal=True)


def multi_head(
    x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, num_heads: int, mask: Any = None
) -> Any:
    """Multi-head self-attention, (n, e), of tokens (n, e), by matrices (e, e), without biases."""
    q, k, v = (heads.split_heads(x @ w.mT, num_heads) for w in (w_q, w_k, w_v))
    return heads.merge_heads(attending.attend(q, k, v, mask=mask)) @ w_o.mT


def block(x: Any, weights: dict[str, Any], num_heads: int, mask: Any = None) -> Any:
    """A pre-norm block, (n, e), on tokens (n, e): attention, then an MLP with ReLU.

    The weights are norm_1 and norm_2 (e,), w_q, w_k, w_v and w_o (e, e), w_1 (f, e) and w_2 (e, f).
    """
    w_q, w_k, w_v, w_o = (weights[name] for name in ("w_q", "w_k", "w_v", "w_o"))
    z = norms.layer_norm(x, weights["norm_1"])
    x = x + multi_head(z, w_q, w_k, w_v, w_o, num_heads, mask)
    hidden = activations.relu(norms.layer_norm(x, weights["norm_2"]) @ weights["w_1"].mT)
    return x + hidden @ weights["w_2"].mT


def logits(tokens: Any, weights: dict[str, Any], num_heads: int) -> Any:
    """What follows each token, (..., n, vocab), as logits: tokens (..., n) through all blocks.

    The weights are embedding (vocab, e), position (window, e), blocks, a list of those that block
    asks for, norm (e,), the gain of a last layer norm, and readout (vocab, e).
    """
    n = tokens.shape[-1]
    x = weights["embedding"][tokens] + weights["position"][:n]
    for of_block in weights["blocks"]:
        x = block(x, of_block, num_heads, causal_mask(n, x))
    return norms.layer_norm(x, weights["norm"]) @ weights["readout"].mT


def train(weights: dict[str, Any], text: Any, num_heads: int, starts: Any, rate: float) -> Any:
    """The bits per token of every step of Adam, which changes the weights in place.

    In each step the rows begin where its row of starts (steps, rows) says, and are as long as there
    are positions, and one token more.
    """
    import torch  # which browsers lack

    tables = [weights, *weights["blocks"]]
    parts = [one for table in tables for one in table.values() if isinstance(one, torch.Tensor)]
    for part in parts:
        part.requires_grad_()
    optimiser, bits = torch.optim.Adam(parts, lr=rate), []
    for first in starts:
        rows = text[first[:, None] + torch.arange(len(weights["position"]) + 1)]
        found = logits(rows[:, :-1], weights, num_heads)
        loss = torch.nn.functional.cross_entropy(found.mT, rows[:, 1:])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        bits.append(loss.item() / math.log(2))
    return bits


def generate(
    tokens: Any, weights: dict[str, Any], num_heads: int, draws: Any, temperature: float
) -> Any:
    """The tokens, (n,), and one more for each draw, evenly spread over [0, 1).

    It is the first whose probability, with those of the tokens before it, is above the draw.
    """
    import torch

    window = len(weights["position"])
    for draw in draws:
        with torch.no_grad():
            last = logits(tokens[-window:], weights, num_heads)[-1]
        sums = (last / temperature).softmax(0).cumsum(0)
        drawn = torch.searchsorted(sums, draw, right=True).clamp(max=len(sums) - 1)  # rounding
        tokens = torch.cat([tokens, drawn[None]])
    return tokens


def train_form(x: Any, y: Any, start: Any, rate: float, steps: int) -> Any:
    """A pair: the form (3, 3) and the gain of one head, trained on functions (m, n + 1).

    Each point but the first is predicted from those before it; the gain starts at 1.
    """
    x, y = np.asarray(x), np.asarray(y)
    features = np.stack([np.ones_like(x), x, x**2], axis=-1)
    queries, keys, values, targets = features[:, 1:], features[:, :-1], y[:, :-1], y[:, 1:]
    earlier = np.tri(values.shape[1], dtype=bool)
    form, gain = np.asarray(start), 1.0
    for _ in range(steps):
        weights: Any = attending.softmax(queries @ form @ keys.mT, earlier)
        averages = (weights @ values[..., None])[..., 0]
        of_answers = 2 * (gain * averages - targets) / targets.size
        apart = values[:, None] - averages[..., None]
        of_scores = weights * apart * (gain * of_answers)[..., None]
        form = form - rate * (queries.mT @ of_scores @ keys).sum(axis=0)
        gain = gain - rate * np.sum(of_answers * averages)
    return form, gain


@dataclass(frozen=True)
class Build:
    """One build: the chapter that asks for it, the book's function, whether that gives a pair."""

    chapter: int
    function: Callable[..., Any]
    is_pair: bool = False

    @property
    def check_line(self) -> str:
        """The line that checks a function of this name."""
        name = self.function.__name__
        return f"checks.ch{self.chapter:02}.{name}({name})"


BUILDS = {
    build.function.__name__: build
    for build in (
        Build(1, nadaraya_watson),
        Build(2, descend),
        Build(3, attention, is_pair=True),
        Build(4, read, is_pair=True),
        Build(5, causal_self_attention),
        Build(6, multi_head),
        Build(7, block),
        Build(8, logits),
        Build(8, train),
        Build(8, generate),
        Build(9, train_form, is_pair=True),
    )
}
