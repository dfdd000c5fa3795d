"""Speculative decoding with chapter 8's writer: the drafts that it keeps, and tokens per pass.

The stored writer is the large model. Drafts come from a transformer of one block and half the
width, trained here as the writer was (seed 0), or from the 3-gram of Kneser and Ney with the
package's discount, counted in the same text. Each goes on with beginnings of the held-out text,
drawn by the seed; the temperature is 1. Stored are the mean accepted share over all characters that
were written, the tokens per pass of the writer, counted, and the share of passes that keep at least
k drafts. Takes some minutes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.generate import ngrams, speculative
from attnbook_course.live import models
from experiments.harness import Experiment
from experiments.transformers import TEXT_STEPS, WINDOW, trained_writer

SEEDS, BEGINNINGS, FROM, TO = 3, 100, 24, 56
LENGTHS = (1, 2, 3, 4, 5, 6)
SMALL: dict[str, Any] = {"embed_dim": 64, "num_heads": 4, "num_layers": 1}
ORDER = 3
Probabilities = Callable[[np.ndarray], np.ndarray]  # (b, n) tokens: (b, n, vocab), of the next


def of_model(model: Any) -> Probabilities:
    """A transformer's probabilities after every token of its window."""

    def probabilities(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = model(torch.tensor(rows)).double().softmax(-1).numpy()
        return found

    return probabilities


def of_counts(train: np.ndarray, vocab: int) -> Probabilities:
    """The n-gram's: a row for every context of ORDER − 1 characters; the first tokens have none."""
    grams = np.indices((vocab,) * ORDER).reshape(ORDER, -1).T  # every one, one after the other
    every = ngrams.bits(train, grams.ravel(), ORDER, vocab_size=vocab)[ORDER - 1 :: ORDER]
    table = 2 ** -every.reshape((vocab,) * ORDER)

    def probabilities(rows: np.ndarray) -> np.ndarray:
        before = np.concatenate([rows[:, :1], rows[:, :-1]], axis=1)
        found: np.ndarray = table[before, rows]
        return found

    return probabilities


def small_writer(train: np.ndarray, vocab: int, steps: int) -> Any:
    """A smaller transformer, trained as chapter 8's writer was."""
    torch.manual_seed(0)
    model = torch_layers.DecoderOnly(vocab, WINDOW, **SMALL)
    return trained_writer(model, "torch", train, steps, 0)[0].eval()


def written(
    target: Probabilities, draft: Probabilities, beginnings: np.ndarray, drafts: int, seed: int
) -> dict[str, Any]:
    """Go on with every beginning; the share, the tokens per pass, and how many drafts were kept."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((len(beginnings), WINDOW), dtype=np.int64)
    rows[:, :FROM] = beginnings
    length = np.full(len(rows), FROM)
    yielded: list[int] = []
    while len(at := np.flatnonzero(length < TO)):
        tokens, q = [], []
        for i in range(drafts):
            of_next = draft(rows[at])[np.arange(len(at)), length[at] - 1 + i]
            drawn = (rng.random((len(at), 1)) > of_next.cumsum(axis=1)).sum(axis=1)
            rows[at, length[at] + i] = np.minimum(drawn, of_next.shape[1] - 1)
            tokens.append(rows[at, length[at] + i])
            q.append(of_next)
        p = target(rows[at])
        for i, row in enumerate(at):
            here = slice(length[row] - 1, length[row] + drafts)
            proposed, of_proposed = np.array([t[i] for t in tokens]), np.array([a[i] for a in q])
            new = speculative.keep(proposed, p[i, here], of_proposed, rng)
            rows[row, length[row] : length[row] + len(new)] = new
            length[row] += len(new)
            yielded.append(len(new))
    at_text = slice(FROM - 1, TO - 1)
    share = speculative.accepted_share(target(rows)[:, at_text], draft(rows)[:, at_text])
    return {
        "share": round(float(share.mean()), 4),
        "tokens per pass": round(float(np.mean(yielded)), 4),
        "kept at least": [
            round(float(np.mean(np.array(yielded) > k)), 4) for k in range(1, drafts + 1)
        ],
        "passes": len(yielded),
    }


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    text, target = datasets.python_reference(), models.load("writer")
    vocab = len(text.vocabulary)
    small = small_writer(text.train, vocab, 20 if quick else TEXT_STEPS)
    drafts = {"small": of_model(small), "3-gram": of_counts(text.train, vocab)}
    about = {
        name: {"parameters": sum(p.numel() for p in model.parameters())}
        for name, model in (("writer", target), ("small", small))
    }
    found: dict[str, Any] = {name: {} for name in drafts}
    for name, draft in drafts.items():
        for count in LENGTHS[:2] if quick else LENGTHS:
            runs = []
            for seed in range(1 if quick else SEEDS):
                rng = np.random.default_rng(100 + seed)
                size = (4 if quick else BEGINNINGS, 1)
                starts = rng.integers(0, len(text.held_out) - FROM, size=size)
                beginnings = text.held_out[starts + np.arange(FROM)]
                runs.append(written(of_model(target), draft, beginnings, count, seed))
            found[name][str(count)] = runs
            print(name, count, runs, flush=True)
    asked = {"order": ORDER, "beginnings": BEGINNINGS, "characters": TO - FROM}
    experiment.store(models=about, **asked, found=found)
