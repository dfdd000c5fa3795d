"""The mutation score: of many small changes to a module, made by rule, how many a test catches.

python tests/faults/mutation.py                  every module (hours)
python tests/faults/mutation.py kernel/kernels   that module
python tests/faults/mutation.py --again kernel/kernels  only what survived the last time

A change is tried on NumPy first; where that sees nothing, on PyTorch, then with the tests of what is
built on the module, and at last on JAX.
What is found goes to mutation.json, where each survivor has a reason, written by hand: that no test
can see the change, or why none has to. A reason stays as long as its mutant survives.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # tests, as pytest has it

from faults import TESTS
from faults.mutants import Mutant, mutants
from faults.running import ForkServers, copied

FOUND = Path(__file__).with_name("mutation.json")
MOST, SEED = 60, 7  # mutants of a module; which of them
EVERY = (
    "validation/test_validation_arrays.py",
    "validation/test_validation_callables.py",
    "validation/test_wrong_calls.py",
    "validation/test_validation_values.py",
    "models/test_default_device.py",
)
MORE = {  # tests of the modules that are built on one
    "kernel/kernels": ("kernel/test_regression.py", "attention/test_scores.py"),
    "attention/distances": ("kernel/test_regression.py", "attention/test_scores.py"),
    "kernel/regression": (
        "attention/test_attend_derivatives.py",
        "attention/test_oracles.py",
        "models/test_properties.py",
    ),
    "attention/scores": ("attention/test_attention.py", "attention/test_attention_layers.py"),
    "attention/weighted_average": (
        "fast/test_fast_sdpa.py",
        "attention/test_attend_derivatives.py",
        "attention/test_attention_dropout.py",
    ),
    "attention/masks": (
        "fast/test_fast_sdpa.py",
        "attention/test_attend_derivatives.py",
        "attention/test_attention_dropout.py",
    ),
    "attention/positions": ("models/test_transformer_layers.py",),
    "attention/heads": (
        "attention/test_attention_layers.py",
        "attention/test_attention_dropout.py",
        "attention/test_attention_oracles.py",
        "attention/test_causal.py",
    ),
    "models/blocks": (
        "models/test_block_layers.py",
        "models/test_block_oracles.py",
        "attention/test_causal.py",
    ),
    "layers/norms": (
        "models/test_block_layers.py",
        "models/test_block_oracles.py",
        "attention/test_causal.py",
    ),
    "layers/mlp": (
        "models/test_block_layers.py",
        "models/test_block_oracles.py",
        "attention/test_causal.py",
    ),
    "models/recurrent": ("models/test_recurrent_layers.py",),
    "kernel/gaussian_process": (),
    "models/losses": ("models/test_recurrent_layers.py",),
    "layers/activations": ("models/test_blocks.py", "models/test_block_layers.py"),
    "generate/sampling": (),
    "_fast/chunked": ("layers/test_memory.py", "attention/test_attend_derivatives.py"),
    "generate/decoding": (),
    "generate/ngrams": (),
    "attention/pooling": ("attention/test_attention_layers.py",),
    "models/transformer": ("models/test_transformer_layers.py",),
    "datasets/regression_prompts": (),
}


def stages(module: str) -> list[tuple[str, tuple[str, ...]]]:
    """Back ends and tests, the quick ones first."""
    own = TESTS[module]
    more = tuple(dict.fromkeys((*MORE[module], *EVERY)))
    return [("numpy", own), ("torch", own), ("numpy,torch", more), ("jax", own)]


class MutationRun:
    """The mutants of one module, tried one after the other on a copy of the package."""

    def __init__(self, module: str, folder: Path, fork_servers: ForkServers) -> None:
        self.module, self.fork_servers = module, fork_servers
        self.copy = copied(Path(tempfile.mkdtemp(dir=folder)))
        self.path = self.copy / f"{module}.py"
        self.source = self.path.read_text(encoding="utf-8")
        self.limits: dict[str, int] = {}

    def limit(self, backends: str, tests: tuple[str, ...]) -> int:
        """The seconds that a run may take: some times what it takes without a change."""
        if backends not in self.limits:
            self.path.write_text(self.source, encoding="utf-8")
            start = time.perf_counter()
            code, printed = self.fork_servers.run(self.copy, tests, backends, 3600)
            assert code == 0, printed
            self.limits[backends] = round(20 + 3 * (time.perf_counter() - start))
        return self.limits[backends]

    def caught(self, mutant: Mutant) -> bool:
        for backends, tests in stages(self.module):
            limit = self.limit(backends, tests)
            self.path.write_text(mutant.source, encoding="utf-8")
            code, printed = self.fork_servers.run(self.copy, tests, backends, limit)
            assert code not in (4, 5, 70), printed  # no test, or not of this package
            if code < 0:
                print(f"  stopped after {limit} s: {mutant.now}", flush=True)
            if code != 0:  # a test failed, nothing could be imported, or it was stopped
                return True
        return False

    def survivors(self, chosen: list[Mutant]) -> list[Mutant]:
        found = []
        for i, mutant in enumerate(chosen, 1):
            if not self.caught(mutant):
                found.append(mutant)
                print(
                    f"  {self.module}.py:{mutant.line}: {mutant.was}  ->  {mutant.now}", flush=True
                )
            print(f"{i} of {len(chosen)}, {len(found)} survived", end="\r", file=sys.stderr)
        self.path.write_text(self.source, encoding="utf-8")
        return found


def sample(every: list[Mutant], most: int) -> list[Mutant]:
    """So many of them, always the same, in their order."""
    chosen = random.Random(SEED).sample(range(len(every)), min(most, len(every)))
    return [every[i] for i in sorted(chosen)]


def same(mutant: Mutant, entry: dict[str, Any]) -> bool:
    return (mutant.function, mutant.was, mutant.now) == tuple(
        entry[name] for name in ("function", "was", "now")
    )


def described(mutant: Mutant, before: list[dict[str, Any]]) -> dict[str, Any]:
    reason = next((e["reason"] for e in before if same(mutant, e)), "")
    return {"function": mutant.function, "was": mutant.was, "now": mutant.now, "reason": reason}


def score(hunt: MutationRun, last: dict[str, Any], again: bool, most: int) -> dict[str, Any]:
    """How many mutants there are, how many were tried and caught, and those that were not."""
    every = list(mutants(hunt.source))
    chosen, before = sample(every, most), last.get("survivors", [])
    tried = [m for m in chosen if any(same(m, e) for e in before)] if again else chosen
    survivors = hunt.survivors(tried)
    return {
        "date": date.today().isoformat(),
        "mutants": len(every),
        "tried": len(chosen),
        "killed": len(chosen) - len(survivors),
        "score": round(1 - len(survivors) / len(chosen), 3),
        "survivors": [described(m, before) for m in survivors],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("modules", nargs="*", metavar="module", default=[])
    parser.add_argument("--again", action="store_true", help="only what survived the last time")
    parser.add_argument("--most", type=int, default=MOST, help="mutants of a module")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{folder}/hypothesis"  # keep no mutant's
        fork_servers = ForkServers(Path(folder))
        for module in asked.modules or MORE:
            start = time.perf_counter()
            found = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
            hunt = MutationRun(module, Path(folder), fork_servers)
            of_it = score(hunt, found.get(module, {}), asked.again, asked.most)
            found[module] = of_it | {"machine": f"{platform.system()} {platform.machine()}"}
            FOUND.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
            minutes = (time.perf_counter() - start) / 60
            print(f"{module}: {of_it['killed']} of {of_it['tried']} caught, {minutes:.0f} min")
        fork_servers.close()


if __name__ == "__main__":
    main()
