"""Trained recall: layers read pairs, a token each, and are asked for the value of a key.

With distinct keys no key comes twice. With recurring ones each comes about twice, and its last
value counts. All layers predict k(q, ·) u, with queries and keys of width 16, the same parameters
at the start, and coefficients u of their own; a wide sum and delta rule keep as many numbers as
ridge, which has K^T K beside K^T V. Stacks of four layers have fewer steps. One learning rate
serves all; what a smaller and a larger one do is measured with seed 0. Takes a quarter of an hour.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnbook import softmax
from attnbook import torch as torch_layers
from attnbook.linear_attention import online_regression
from attnbook.models.losses import cross_entropy
from experiments.harness import Experiment, learn, rounded

KEYS, VALUES = 128, 32  # how many of each there are
EMBED_DIM, HEAD_DIM = 64, 16
STEPS, SIZE, RATE = 1500, 64, 0.005
OTHER_RATES = (0.002, 0.01)
ASKED = 16  # questions a row
PAIRS = (4, 8, 16, 24, 32, 48, 64, 96)  # of the test; training draws 4 to 48
LEAST, MOST = 4, 48
KINDS = (
    *("softmax", "softmax with age", "linear", "sum", "decay", "delta", "ridge"),
    *("wide sum", "wide delta"),
)
TASKS = ("distinct", "recurring")
SEEDS = 3
STACKS = {
    "four delta": ("delta",) * 4,
    "four softmax": ("softmax",) * 4,
    "softmax first": ("softmax", "delta", "delta", "delta"),
    "softmax last": ("delta", "delta", "delta", "softmax"),
}
STACK_STEPS = 1000

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def rows(rng: np.random.Generator, count: int, pairs: int, task: str) -> Rows:
    """Keys and values (count, pairs), keys asked for and their last values (count, asked)."""
    pool = np.argsort(rng.random((count, KEYS)), axis=1)[:, :pairs]
    if task == "recurring":
        half = max(1, pairs // 2)
        pool = np.take_along_axis(pool, rng.integers(0, half, size=(count, pairs)), axis=1)
    values = rng.integers(0, VALUES, size=(count, pairs))
    places = rng.integers(0, pairs, size=(count, ASKED))
    asked = np.take_along_axis(pool, places, axis=1)
    same = pool[:, None, :] == asked[:, :, None]
    last = pairs - 1 - same[:, :, ::-1].argmax(axis=-1)
    return pool, values, asked, np.take_along_axis(values, last, axis=1)


class Layer(nn.Module):
    """What questions read of tokens: k(q, ·) u, or a softmax's average."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind.removeprefix("wide ")
        width = HEAD_DIM if self.kind == kind else 2 * HEAD_DIM
        self.query = nn.Linear(EMBED_DIM, width, bias=False)
        self.key = nn.Linear(EMBED_DIM, width, bias=False)
        self.value = nn.Linear(EMBED_DIM, HEAD_DIM, bias=False)
        self.decay = nn.Linear(EMBED_DIM, 1)
        self.beta = nn.Linear(EMBED_DIM, 1)
        self.amount = nn.Parameter(torch.tensor(-3.0))  # of the age bias, or of the ridge
        self.output = nn.Linear(HEAD_DIM, EMBED_DIM)
        nn.init.constant_(self.decay.bias, 4.0)  # a decay of 0.98 at the start

    def forward(
        self,
        asking: Float[Tensor, "b m e"],
        tokens: Float[Tensor, "b n e"],
        seen: Bool[Tensor, "m n"],
    ) -> Float[Tensor, "b m e"]:
        """What each row of asking reads of the tokens that it sees."""
        q, k, v = self.query(asking), self.key(tokens), self.value(tokens)
        if self.kind.startswith("softmax"):
            answer = self.softmax_average(q, k, v, seen)
        elif self.kind == "linear":
            weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).mT) * seen
            answer = weights @ v / weights.sum(dim=-1, keepdim=True)
        else:
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            answer = (q @ k.mT * seen) @ self.coefficients(tokens, k @ k.mT, v)
        read: Tensor = self.output(answer)
        return read

    def softmax_average(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """The softmax's average, with a bias that falls with the age of a pair if it has one."""
        scores = (q @ k.mT / HEAD_DIM**0.5).masked_fill(~seen, -torch.inf)
        if self.kind == "softmax with age":
            age = torch.arange(k.shape[-2] - 1, -1, -1, dtype=scores.dtype)
            scores = scores - F.softplus(self.amount) * age
        average: Tensor = softmax(scores) @ v
        return average

    def coefficients(self, tokens: Tensor, gram: Tensor, v: Tensor) -> Tensor:
        """u of the prediction k(q, ·) u; of decay and ridge, as all pairs together give it."""
        if self.kind == "decay":  # of a pair, the decays of all pairs after it
            decay = torch.sigmoid(self.decay(tokens))
            after = decay.flip(-2).cumprod(-2).flip(-2)[..., 1:, :]
            return F.pad(after, (0, 0, 0, 1), value=1.0) * v
        if self.kind == "delta":
            u: Tensor = online_regression.one_pass(
                gram, v, beta=torch.sigmoid(self.beta(tokens))[..., 0]
            )
            return u
        if self.kind == "ridge":
            one = torch.eye(gram.shape[-1])
            return torch.linalg.solve(gram + F.softplus(self.amount) * one, v)
        return v  # the sum


class Memory(nn.Module):
    """Layers that read pairs and answer questions about their keys.

    A pair's token is the sum of the embeddings of key and value, a question's that of the key's
    embedding and a learned vector. A layer adds what it reads to both. A pair sees itself and the
    pairs before it, a question sees all pairs and no other question. The readout sees the sum of
    what the layers gave the question.
    """

    def __init__(self, *kinds: str) -> None:
        super().__init__()
        self.key_embedding = nn.Embedding(KEYS, EMBED_DIM)
        self.value_embedding = nn.Embedding(VALUES, EMBED_DIM)
        self.asks = nn.Parameter(0.5 * torch.randn(EMBED_DIM))
        self.layers = nn.ModuleList(map(Layer, kinds))
        self.readout = nn.Linear(EMBED_DIM, VALUES)

    def forward(
        self, keys: Int[Tensor, "b n"], values: Int[Tensor, "b n"], asked: Int[Tensor, "b m"]
    ) -> Float[Tensor, "b m values"]:
        """Logits of the values."""
        pairs = self.key_embedding(keys) + self.value_embedding(values)
        questions = self.key_embedding(asked) + self.asks
        n, m = keys.shape[1], asked.shape[1]
        seen = torch.cat([torch.ones(n, n).tril(), torch.ones(m, n)]) > 0
        start = stream = torch.cat([pairs, questions], dim=1)
        for layer in self.layers:
            stream = stream + layer(stream, stream[:, :n], seen)
        logits: Tensor = self.readout((stream - start)[:, n:])
        return logits


def loss(model: Any, keys: Any, values: Any, asked: Any, right: Any) -> Any:
    """Cross-entropy of the values asked for."""
    return cross_entropy(model(keys, values, asked), right)


def batches(task: str, seed: int, steps: int) -> Iterator[Rows]:
    """New rows for every step, of 4 to 48 pairs."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        yield rows(rng, SIZE, int(rng.integers(LEAST, MOST + 1)), task)


def share_right(model: Memory, task: str, pairs: int, seed: int) -> float:
    """The share of right answers to 8192 questions on new rows."""
    rng = np.random.default_rng([1_000_000 + seed, pairs])
    *given, right = rows(rng, 512, pairs, task)
    with torch.no_grad():
        said = model(*map(torch.tensor, given)).argmax(dim=-1).numpy()
    return rounded(np.mean(said == right))


def trained(
    kinds: tuple[str, ...], task: str, seed: int, steps: int, rate: float = RATE
) -> dict[str, Any]:
    """Train once; the shares of right answers for numbers of pairs, the last loss, CPU seconds."""
    torch.manual_seed(seed)
    rows_of = batches(task, seed, steps)
    model, history = learn(torch_layers, Memory(*kinds), loss, rows_of, rate, steps)
    return {
        "right": {str(pairs): share_right(model, task, pairs, seed) for pairs in PAIRS},
        "loss": rounded(np.mean(history.losses[-20:])),
        "cpu_seconds": round(history.cpu_seconds, 1),
    }


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    found: Any = {task: {kind: [] for kind in KINDS} for task in TASKS}
    other_rates: Any = {str(rate): {task: {} for task in TASKS} for rate in OTHER_RATES}
    how = [(seed, RATE) for seed in range(SEEDS)] + [(0, rate) for rate in OTHER_RATES]
    for seed, rate in how[:1] if quick else how:
        for task, kind in product(TASKS, KINDS):
            run = trained((kind,), task, seed, 20 if quick else STEPS, rate)
            print(task, kind, seed, rate, run, flush=True)
            if rate == RATE:
                found[task][kind].append(run)
            else:
                other_rates[str(rate)][task][kind] = run
    stacks: Any = {name: {task: [] for task in TASKS} for name in STACKS}
    for seed, task, name in product(range(1 if quick else SEEDS), TASKS, STACKS):
        run = trained(STACKS[name], task, seed, 20 if quick else STACK_STEPS)
        print(task, name, seed, run, flush=True)
        stacks[name][task].append(run)
    experiment.store(
        steps=STEPS,
        batch=SIZE,
        learning_rate=RATE,
        head_dim=HEAD_DIM,
        keys=KEYS,
        values=VALUES,
        pairs=PAIRS,
        questions=512 * ASKED,
        found=found,
        other_rates=other_rates,
        stacks={"steps": STACK_STEPS, "found": stacks},
    )
