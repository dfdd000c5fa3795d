"""The runs of experiments/text_scale.py beside each other on one GPU: minutes instead of hours.

    python -m experiments.text_scale_gpu CORPUS FILE    trains, and writes FILE after each round
    python -m experiments.text_scale_gpu --add FILE     puts what FILE has among the stored results

CORPUS is the folder of attnbook.datasets.docstrings. Parameters, batches, rates and the formula of
AdamW are the trainer's. A step of so small a model is some hundred kernels of microseconds: it is
captured once as a CUDA graph, and the graphs of many runs are replayed in turns, each in a stream
of its own. Products are in TF32, and dropout, where there is any, draws other numbers than the
trainer. First of all twenty steps are compared with the trainer's own.

Rates are chosen as there, by validation.txt, with seed 0; seeds 0, 1 and 2 are judged.
"""

import json
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnbook import devices, train_lm
from attnbook.torch.train_lm import CLIP, Run
from attnbook.train.byte_pairs import learn_pairs
from attnbook.train.language_model.text import TrainingText, Vocabulary, text_loss
from attnbook.train.training import step_batch
from experiments import text_scale
from experiments.text_scale import (
    JUDGED,
    JUDGES,
    LARGER,
    LAW,
    ROWS,
    SEEDS,
    SIZES,
    VOCABULARY,
    WINDOW,
    Training,
)

COMPARED, TOGETHER = 20, 36  # steps beside the trainer's; runs in a round
DROPOUT = 0.1  # below 3 MB, as experiments/text_scale.py chose it at 0.3 MB
GPU = torch.device("cuda")


@dataclass(frozen=True)
class Text:
    """A first part of the corpus, and the texts that judge, in its byte pairs."""

    size: int
    learned: TrainingText
    judges: dict[str, list[int]]
    lengths: dict[str, int]

    @staticmethod
    def read(corpus: Path, size: int) -> "Text":
        """With the byte pairs of the part itself."""
        train = text_scale.read(corpus, "train", size)
        pairs = learn_pairs(train, VOCABULARY)
        judges = {name: text_scale.read(corpus, name, JUDGED) for name in JUDGES}
        numbers = {name: pairs.encode(text) for name, text in judges.items()}
        parts = pairs.encode(train), numbers["validation"]
        learned, held_out = (np.array(part, dtype=np.int64) for part in parts)
        return Text(
            size,
            TrainingText(learned, held_out, Vocabulary(pairs.tokens)),
            numbers,
            {name: len(text) for name, text in judges.items()},
        )


class Captured:
    """A model, and its step as a graph that is replayed."""

    def __init__(self, training: Training, text: Text) -> None:
        self.training, self.text = training, text
        options = train_lm.parse(training.options(text.size, Path(), None))
        run = Run(options, len(text.learned.vocabulary.tokens))
        self.model, self.rates = run.model, torch.as_tensor(options.rates(), device=GPU).float()
        batches = [
            step_batch(text.learned.train, step, rows=ROWS, window=WINDOW, seed=training.seed)
            for step in range(1, training.steps + 1)
        ]
        self.batches = torch.tensor(np.stack(batches), device=GPU)
        self.stream, self.done = torch.cuda.Stream(), 0
        self.tokens, self.rate = self.batches[0].clone(), torch.zeros((), device=GPU)
        groups = [{k: g[k] for k in ("params", "weight_decay")} for g in run.optimiser.param_groups]
        self.optimiser = torch.optim.AdamW(groups, lr=self.rate, capturable=True, fused=True)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate  # this very tensor, which each step sets
        self.graph, self.loss = self._captured()

    def _captured(self) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Rate 0 leaves the parameters alone while PyTorch warms up; the state begins anew."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self._step()
            for state in self.optimiser.state.values():
                for number in state.values():
                    number.zero_()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream):
            loss = self._step()
        return graph, loss

    def _step(self) -> Tensor:
        self.optimiser.zero_grad()
        loss: Tensor = text_loss(self.model, self.tokens)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        return loss.detach()

    def replay(self) -> bool:
        """The next step, if there is one."""
        if self.done == self.training.steps:
            return False
        with torch.cuda.stream(self.stream):
            self.tokens.copy_(self.batches[self.done])
            self.rate.copy_(self.rates[self.done])
            self.graph.replay()
        self.done += 1
        return True

    def judged(self) -> dict[str, Any]:
        """Bits a character of the three texts."""
        model, text = self.model.eval(), self.text
        found = {name: text_scale.bits(model, text.judges[name]) for name in JUDGES}
        return {
            **asdict(self.training),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "tokens": self.training.steps * ROWS * WINDOW,
            **{name: found[name] / text.lengths[name] for name in JUDGES},
        }


def trained(asked: dict[str, tuple[Training, Text]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Train together, and judge each when all are done."""
    names = list(asked)
    for first in range(0, len(names), TOGETHER):
        runs = {name: Captured(*asked[name]) for name in names[first : first + TOGETHER]}
        turns = 0
        while sum(run.replay() for run in runs.values()):
            turns += 1
            if turns % 50 == 0:
                torch.cuda.synchronize()
        torch.cuda.synchronize()
        for name in list(runs):
            yield name, runs.pop(name).judged()


def compared(training: Training, text: Text) -> float:
    """The largest difference of a loss of the first steps from the trainer's own, in nats."""
    options = train_lm.parse(training.options(text.size, Path(), None))
    run = Run(options, len(text.learned.vocabulary.tokens))
    ours, worst = Captured(training, text), 0.0
    for step in range(1, COMPARED + 1):
        ours.replay()
        torch.cuda.synchronize()
        rows = step_batch(text.learned.train, step, rows=ROWS, window=WINDOW, seed=training.seed)
        loss = run.step(rows, float(options.rates()[step - 1]), step)
        worst = max(worst, abs(loss - float(ours.loss)))
    return worst


class Round:
    """What is asked for at once; what was found before is not measured again."""

    def __init__(self, file: Path) -> None:
        self.file, self.found = file, dict[str, Any]()
        self.begun = time.perf_counter()

    def measure(self, asked: dict[str, tuple[Training, Text]]) -> None:
        """Train what is missing, and write what is there."""
        asked = {name: one for name, one in asked.items() if name not in self.found}
        for name, one in trained(asked):
            self.found[name] = one
            bits = [round(one[judge], 4) for judge in JUDGES]
            print(f"{time.perf_counter() - self.begun:6.1f} s", name, *bits, flush=True)
            self.write()

    def write(self) -> None:
        """What was found, and on which device."""
        said = {"device": devices.describe(), "found": self.found}
        self.file.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def measure_all(corpus: Path, file: Path) -> None:
    """First three rates each, then those beyond an edge, then the other seeds."""
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        texts = dict(zip(SIZES[1:], pool.map(Text.read, [corpus] * 4, SIZES[1:]), strict=True))
    torch.set_float32_matmul_precision("high")
    round_ = Round(file)
    plan = {
        str(size): (replace(one, dropout=DROPOUT if size < 3_000_000 else 0.0), texts[size])
        for size, one in LARGER.items()
    }
    plan |= {f"law {one.width} {one.layers}": (one, texts[SIZES[-1]]) for one in LAW}
    print("from the trainer at most", compared(*plan[str(SIZES[2])]), "nats", flush=True)
    chosen: dict[str, Training] = {}
    while True:
        asked: dict[str, tuple[Training, Text]] = {}
        for name, (one, text) in plan.items():
            wanted: list[Training] = []  # rates that nobody tried yet

            def validation(
                rated: Training,
                name: str = name,
                one: Training = one,
                wanted: list[Training] = wanted,
            ) -> float:
                known = round_.found.get(f"{name} rate {rated.rate:g}")
                if known is None:
                    wanted.append(rated)
                    return 0.0 if rated == one else math.inf  # at first the middle one is best
                bits: float = known["validation"]
                return bits

            chosen[name] = text_scale.choose_rate(one, validation)
            asked |= {f"{name} rate {one.rate:g}": (one, text) for one in wanted}
        if not asked:
            break
        round_.measure(asked)
    print({name: one.rate for name, one in chosen.items()}, flush=True)
    for name, one in chosen.items():
        round_.found[f"{name} seed 0"] = round_.found[f"{name} rate {one.rate:g}"]
    others = {
        f"{name} seed {seed}": (replace(one, seed=seed), plan[name][1])
        for name, one in chosen.items()
        for seed in range(1, SEEDS)
    }
    round_.measure(others)
    round_.write()


def main() -> None:
    match sys.argv[1:]:
        case ["--add", file]:
            results = text_scale.Results(Path("_build") / text_scale.NAME / "corpus", quick=False)
            results.add(json.loads(Path(file).read_text(encoding="utf-8")))
        case [corpus, file]:
            measure_all(Path(corpus), Path(file))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
