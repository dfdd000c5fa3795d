"""Chapter 9's functions as text, read by SmolLM2-135M: does it regress, and with which kernel?

Three draws of forty functions, of seeds that chapter 9 did not train on, in two formats, and in the
first once more with 5 added to every x (99 at most). A number has two digits. The model is asked
for the first digit of y; its answer is the mean of 5, 15, …, 95 under its probabilities of the ten
digits. Layers and heads count from 1. Ten pairs of other heads are cut on the first draw: each two
of one layer near 19, and none that chapter 10 names. Takes about three hours.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int

from attnbook import datasets, nadaraya_watson, pretrained
from attnbook.kernel import gaussian_process
from attnbook.layers.linear import linear
from attnbook.models.transformer import run_blocks
from experiments.harness import Experiment, columns, rounded
from experiments.real_heads import FILE, Head, mean_outputs, without

FORMATS = {"x, y": ("x = {:02d}, y = ", "{:02d}\n"), "arrow": ("{:02d} -> ", "{:02d}\n")}
FORMATS["x + 5"] = FORMATS["x, y"]
ADDED = {"x + 5": 5}
CUT_IN = "x, y"  # the format in which heads are cut
CUTS: dict[str, list[Head]] = {
    "19.7 and 19.8": [(19, 7), (19, 8)],
    "19.7": [(19, 7)],
    "19.8": [(19, 8)],
    "19.1 and 19.3": [(19, 1), (19, 3)],
    "chapter 6's four": [(18, 4), (18, 5), (18, 6), (19, 7)],
    "17.1": [(17, 1)],
}
NAMED = {(17, 1), (18, 4), (18, 5), (18, 6), (19, 7), (19, 8), (20, 4)}
NEAR = range(15, 25)  # the layers of the other pairs
SEEDS, FUNCTIONS, PAIRS, SCALE, NOISE = (1_000_000, 1_000_001, 1_000_002), 40, 41, 0.3, 0.2
LATE = slice(16, PAIRS)
BANDWIDTHS = np.geomspace(0.03, 1, 40)
WATCHED = (18, 4), (18, 6), (19, 7)


class Written(NamedTuple):
    """A function as text: token numbers, where y is asked for, where its first digit stands."""

    tokens: list[int]
    asked: list[int]
    answers: list[int]


def write(words: Any, x: Sequence[int], y: Sequence[int], form: tuple[str, str]) -> Written:
    """Pairs as lines of text after the token that begins one."""
    tokens, asked, answers = [0], [], []
    for a, b in zip(x, y, strict=True):
        tokens += words.encode(form[0].format(a))
        asked.append(len(tokens) - 1)
        answers.append(len(tokens))
        tokens += words.encode(form[1].format(b))
    return Written(tokens, asked, answers)


def answer(
    model: Any, words: Any, text: Written, every: bool = False
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "layers heads n n"] | None]:
    """Answers as values of y, and all heads' weights on answers."""
    digits = [words.number[str(d)] for d in range(10)]
    x = model.embedding.weight[torch.tensor([text.tokens])]
    x, weights = run_blocks(
        model.decoder, model.decoder_norm, x, None, return_weights=every, causal=True
    )
    logits = linear(model.readout, x[0, text.asked])
    p = logits.double().softmax(dim=-1).numpy()[:, digits]
    said = (p / p.sum(axis=1, keepdims=True)) @ (10 * np.arange(10) + 5) / 20 - 2.5
    if not every:
        return said, None
    at = np.array(text.answers)
    of_all = np.stack([layer[0].numpy()[:, text.asked] for layer in weights])
    return said, of_all[..., at] + of_all[..., at + 1]


def rivals(f: datasets.Functions) -> dict[str, np.ndarray]:
    """What others answer after n pairs, (functions, PAIRS) each; NaN before the first pair."""
    shape = f.y.shape
    found = {name: np.full(shape, np.nan) for name in ("mean", "nearest", "posterior")}
    kernel = np.full((len(BANDWIDTHS), *shape), np.nan)
    for n in range(1, PAIRS):
        query, keys, y = f.x[:, n : n + 1], f.x[:, :n], f.y[:, :n]
        found["mean"][:, n] = y.mean(axis=1)
        found["nearest"][:, n] = y[np.arange(len(y)), np.abs(keys - query).argmin(axis=1)]
        found["posterior"][:, n] = gaussian_process.posterior(
            query, keys, y, length_scale=SCALE, noise=NOISE
        )[0][:, 0]
        for k, h in enumerate(BANDWIDTHS):
            kernel[k, :, n] = nadaraya_watson(
                query[..., None], keys[..., None], y[..., None], bandwidth=h
            )[:, 0, 0]
    return found | {"kernel": kernel}


def errors(said: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Squared errors per function, the mean over late questions, (functions,)."""
    return np.mean((said - true)[..., LATE] ** 2, axis=-1)


def digit_kernel(weights: np.ndarray, x: Int[np.ndarray, "f n"]) -> dict[str, Any]:
    """Mean weight on an earlier pair by |Δx| with equal and with other tens, and by Δ tens."""
    n = x.shape[1]
    earlier = np.tril(np.ones((n, n), dtype=bool), -1) & (np.arange(n) >= LATE.start)[:, None]
    apart = np.abs(x[:, :, None] - x[:, None, :])
    tens = x[:, None, :] // 10 - x[:, :, None] // 10
    by_distance = {
        name: [
            float(weights[where].mean()) if (where := earlier & (apart == d) & kind).any() else None
            for d in range(10)
        ]
        for name, kind in (("same tens", tens == 0), ("other tens", tens != 0))
    }
    by_tens = [float(weights[earlier & (tens == k)].mean()) for k in range(-9, 10)]
    return by_distance | {"by tens": by_tens}


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Of two tables of answers, over all functions and late questions."""
    return float(np.corrcoef(one[:, LATE].ravel(), other[:, LATE].ravel())[0, 1])


def late_average(weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a head's weights on earlier answers give as a weighted average of those answers."""
    n = y.shape[-1]
    lower = np.tril(np.ones((n, n)), -1) * weights
    return (lower * y[:, None, :]).sum(axis=-1) / lower.sum(axis=-1).clip(1e-9)


def written(words: Any, form: str, seed: int, count: int) -> tuple[datasets.Functions, Any, Any]:
    """A draw of functions, their x before anything was added, and the texts.

    x of [−1, 1] and y of [−2.5, 2.5] become whole numbers from 0 to 99.
    """
    f = datasets.smooth_functions(count, PAIRS, seed=seed, length_scale=SCALE, noise=NOISE)
    x = np.clip(((f.x + 1) * 50).astype(int), 0, 99)
    y = np.clip(((f.y + 2.5) * 20).astype(int), 0, 99)
    shown = np.clip(x + ADDED.get(form, 0), 0, 99)
    return f, x, [write(words, a, b, FORMATS[form]) for a, b in zip(shown, y, strict=True)]


def one_draw(model: Any, words: Any, form: str, seed: int, count: int) -> dict[str, Any]:
    """Errors and kernels in one format."""
    f, cells, texts = written(words, form, seed, count)
    x = np.clip(cells + ADDED.get(form, 0), 0, 99)
    runs = [answer(model, words, text, every=True) for text in texts]
    said, every = np.array([run[0] for run in runs]), np.array([run[1] for run in runs])
    others = rivals(f)
    kernel = errors(others.pop("kernel"), f.true).mean(axis=1)
    record = {
        "model": errors(said, f.true),
        **{name: errors(table, f.true) for name, table in others.items()},
        "kernel": float(kernel.min()),
        "by pairs": np.mean((said - f.true) ** 2, axis=0),
        "mean by pairs": np.mean((others["mean"] - f.true) ** 2, axis=0),
        "posterior by pairs": np.mean((others["posterior"] - f.true) ** 2, axis=0),
        "correlations": {"mean": correlation(others["mean"], said)},
        "correlation of every head": [
            [correlation(late_average(every[:, i, h], f.y), said) for h in range(every.shape[2])]
            for i in range(every.shape[1])
        ],
    }
    for layer, head in WATCHED:
        w = every[:, layer - 1, head - 1]
        average = late_average(w, f.y)
        record[f"head {layer}.{head}"] = {
            "on answers": float(np.tril(w, -1)[:, LATE].sum(axis=-1).mean()),
            "error": errors(average, f.true),
            "correlation": correlation(average, said),
            **digit_kernel(w, x),
            **({"before adding": digit_kernel(w, cells)} if form in ADDED else {}),
        }
    print(form, seed, record["model"].mean(), rounded(record["head 19.7"]), flush=True)
    return record


def other_pairs(count: int) -> list[list[Head]]:
    """Pairs of heads of one layer, none of them named in the chapter."""
    draws = np.random.default_rng(0)
    pairs: list[list[Head]] = []
    while len(pairs) < count:
        layer = int(draws.choice(NEAR))
        pair = [(layer, int(head)) for head in sorted(draws.choice(9, 2, replace=False) + 1)]
        if not NAMED & set(pair) and pair not in pairs:
            pairs.append(pair)
    return pairs


def cuts(
    model: Any, words: Any, seeds: Sequence[int], count: int, pairs: list[list[Head]]
) -> dict[str, Any]:
    """The errors per function without some heads, a list with an entry per draw of functions.

    "mean of": each of them writes its mean over all places of the draw's texts instead of nothing.
    """
    found: dict[str, Any] = {}
    named = sorted({head for heads in (*CUTS.values(), *pairs) for head in heads})
    for number, seed in enumerate(seeds):
        f, _, texts = written(words, CUT_IN, seed, count)
        outputs = [mean_outputs(model, np.array([text.tokens]), named) for text in texts]
        means = {head: torch.stack([one[head] for one in outputs]).mean(dim=0) for head in named}
        for how, instead in (("without", None), ("mean of", means)):

            def error(heads: list[Head], texts=texts, true=f.true, instead=instead) -> list[float]:
                with without(model, heads, instead):
                    said = np.array([answer(model, words, text)[0] for text in texts])
                return errors(said, true).tolist()

            for name in CUTS if instead else list(CUTS)[:1]:
                found.setdefault(f"{how} {name}", []).append(error(CUTS[name]))
                print(seed, how, name, np.mean(found[f"{how} {name}"][-1]), flush=True)
            if number == 0:
                of_pairs = [error(pair) for pair in pairs]
                found[f"{how} other pairs"] = {"pairs": pairs, "errors": of_pairs}
    return found


def main(experiment: Experiment) -> None:
    torch.set_grad_enabled(False)
    folder = pretrained.fetch("smollm2")
    model, words = pretrained.from_gguf(folder / FILE), pretrained.tokens_from_gguf(folder / FILE)
    seeds, count = (SEEDS[:1], 3) if experiment.quick else (SEEDS, FUNCTIONS)
    found = {
        form: columns([one_draw(model, words, form, seed, count) for seed in seeds])
        for form in FORMATS
    }
    found[CUT_IN] |= cuts(model, words, seeds, count, other_pairs(2 if experiment.quick else 10))
    experiment.store(found=rounded(found))
