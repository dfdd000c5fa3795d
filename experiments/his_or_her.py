"""What a model of one layer needs to say whose crown it is, "his" or "her": chapter 5's steps.

Every kind is trained on the same sentences, 1000 steps of 64. Said of 4000 others: bits per word;
the share of right pronouns where the persons may not change places and where they may, and there of
right things owned. "writing" is the model without a mask, whose later words are hidden afterwards.
Takes some minutes, on one core.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook import datasets, scores
from attnbook import torch as torch_layers
from attnbook.attention import positions
from attnbook.train.training import minibatches
from experiments.harness import Experiment, over

WIDTH, LENGTH = 32, 12


class Writer(nn.Module):
    """Words as points, one layer or more of one head whose averages are added, logits."""

    def __init__(
        self, words: int, added: str = "", score: Any = scores.scaled_dot, layers: int = 1
    ):
        super().__init__()
        self.embedding = nn.Parameter(0.3 * torch.randn(words, WIDTH))
        self.position = nn.Parameter(0.3 * torch.randn(LENGTH, WIDTH))
        self.attention = nn.ModuleList(torch_layers.SelfAttention(WIDTH) for _ in range(layers))
        self.output = nn.Linear(WIDTH, words)
        self.added, self.how = added, {"score": score, "causal": True}

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding[tokens]
        n = x.shape[-2]
        if self.added == "learned":
            x = x + self.position[:n]
        if self.added == "waves":
            x = x + 0.3 * torch.tensor(positions.sinusoidal(n, WIDTH), dtype=x.dtype)
        for layer in self.attention:
            x = x + layer(x, **self.how)
        logits: Tensor = self.output(x)
        return logits


def even(q: Tensor, k: Tensor) -> Tensor:
    return 0 * scores.scaled_dot(q, k)


def itself(q: Tensor, k: Tensor) -> Tensor:
    return even(q, k) - 1e4 * (1 - torch.eye(q.shape[-2]))


def turned(q: Tensor, k: Tensor) -> Any:
    p = torch.arange(q.shape[-2])
    return scores.scaled_dot(positions.rotary(q, p), positions.rotary(k, p))


def lowered(q: Tensor, k: Tensor) -> Any:
    bias = torch.tensor(positions.alibi(4, q.shape[-2])[0])  # slope 1/4
    return scores.scaled_dot(q, k) + bias.to(q.dtype)


KINDS: dict[str, dict[str, Any]] = {
    "the word alone": {"score": itself},
    "average so far": {"score": even},
    "average of all": {"score": even},
    "learned weights": {},
    "waves": {"added": "waves"},
    "learned positions": {"added": "learned"},
    "rotary": {"score": turned},
    "ALiBi": {"score": lowered},
    "two layers, no positions": {"layers": 2},
}


def bits(model: nn.Module, tokens: Tensor) -> Tensor:
    nats = cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    return nats / math.log(2)


@torch.no_grad()
def judged(model: nn.Module, held_out: datasets.Sentences) -> list[float]:
    tokens, rows = torch.tensor(held_out.tokens), np.arange(len(held_out.tokens))
    right = (model(tokens[:, :-1]).argmax(dim=-1) == tokens[:, 1:]).numpy()
    pronoun, owned = right[rows, held_out.pronoun - 1], right[rows, held_out.pronoun]
    two = held_out.undecided
    shares = pronoun[~two], pronoun[two], owned[two]
    return [bits(model, tokens).item(), *(float(share.mean()) for share in shares)]


def trained(seed: int, quick: bool = False) -> dict[str, list[float]]:
    text = datasets.his_or_her(20_000, seed=2 * seed)
    held_out = datasets.his_or_her(4_000, seed=2 * seed + 1)
    found = {}
    for name, options in KINDS.items():
        torch.manual_seed(seed)
        model = Writer(len(text.vocabulary), **options)
        model.how["causal"] = name != "average of all"
        batches = minibatches([text.tokens], size=64, steps=20 if quick else 1000, seed=seed)
        torch_layers.train(model, bits, batches, learning_rate=0.01)
        found[name] = judged(model, held_out)
        if name == "average of all":
            model.how["causal"] = True
            found["writing"] = judged(model, held_out)
    return found


def main(experiment: Experiment) -> None:
    columns = ["bits", "one answer", "two answers", "owned"]
    seeds = 1 if experiment.quick else 5
    found = over(lambda seed: trained(seed, experiment.quick), seeds)
    experiment.store(columns=columns, shares=found)
