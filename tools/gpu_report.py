"""What a GPU says: its tests, every notebook, the trainer, the times, on one page.

    python tools/gpu_report.py            make gpu-report: writes _build/gpu_report.md and .json
    python tools/gpu_report.py --store    and keeps the report for the page "What ran, and where"
    python tools/gpu_report.py --only notebooks    asks that part anew and keeps the others

Each part runs in a process of its own; a part that fails or runs out of its time is named in the
report, and the others still run. The page needs CUDA for its times and for the trainer on NCCL;
on Apple's GPU the tests and the notebooks run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from check_environment import ROOT, gpu
from processors import NBVAL

LIMIT = 1800  # seconds that one part may take
STORED = ROOT / "src/attnbook/datasets/results/gpu_report.json"
STEPS = 40
PROFILED = 10  # kernels that the page lists
PARTS = ("trainer", "kernels", "times", "tests", "notebooks")


def run(words: list[str], limit: float) -> tuple[str, float]:
    """What a part printed on both streams, and the seconds it took; its end says why it failed."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "tests/notebooks"), os.environ.get("PYTHONPATH", "")]
        ).rstrip(os.pathsep),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # torch and JAX share one GPU
    }
    start = time.perf_counter()
    try:
        done = subprocess.run(
            words,
            cwd=ROOT,
            env=environment,
            timeout=limit,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = done.stdout + (f"\nended with {done.returncode}" if done.returncode else "")
    except subprocess.TimeoutExpired as expired:
        so_far = expired.stdout or b""
        said = so_far.decode() if isinstance(so_far, bytes) else so_far
        said += f"\nstopped after {limit:.0f} seconds"
    return said, round(time.perf_counter() - start, 1)


def tests(words: list[str], limit: float) -> dict[str, Any]:
    """Counts of a run of pytest, and the names of those that failed, with their first line."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        said, seconds = run([*words, f"--junitxml={report}"], limit)
        if not report.is_file():
            return {"seconds": seconds, "ended": said[-500:]}
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed, skipped = [], 0
    for case in cases:
        wrong = case.find("failure")
        wrong = case.find("error") if wrong is None else wrong
        if wrong is not None:
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            failed.append([name, (wrong.get("message") or "").strip()[:300]])
        skipped += case.find("skipped") is not None
    passed = len(cases) - len(failed) - skipped
    return {"seconds": seconds, "passed": passed, "skipped": skipped, "failed": failed}


def trainer(limit: float) -> dict[str, Any]:
    """Losses of the language model's first and last logged step, with each way to divide it."""
    import torch

    module = ["-m", "attnbook.train_lm", "--steps", str(STEPS), "--log-every", "10"]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    cards = torch.cuda.device_count()
    ways = {"JAX, one process": [*module, "--backend", "jax"]}
    if cards:
        for mode in ("ddp", "fsdp"):
            way = [*launch, str(cards), *module, "--mode", mode, "--precision", "bfloat16"]
            ways[f"{mode}, bfloat16, NCCL, workers: {cards}"] = way
        way = [*launch, str(cards + 1), *module, "--mode", "ddp"]
        ways[f"ddp, workers: {cards + 1}, one more than GPUs"] = way
    found = {}
    for name, words in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "metrics.jsonl"
            said, seconds = run([sys.executable, *words, "--metrics", str(log)], limit)
            lines = log.read_text("utf-8").splitlines() if log.is_file() else []
        steps = [step for step in map(json.loads, lines) if "loss" in step]
        found[name] = {
            "seconds": seconds,
            "losses": [round(step["loss"], 4) for step in steps],
            "said": [line for line in said.splitlines() if " GPU here" in line][:2],
        }
        if not steps:
            found[name]["ended"] = said[-500:]
    return found


def profile(steps: int = 20) -> list[list[Any]]:
    """A training step of chapter 8's writer, in bfloat16: the kernels that take most of the time.

    Returns:
        Name, share of the GPU's time, and calls per step, the longest first.
    """
    import torch
    from torch.profiler import ProfilerActivity

    from attnbook.models import losses
    from attnbook.torch import DecoderOnly

    model = DecoderOnly(512, 256, embed_dim=256, num_heads=4, mlp_dim=1024, num_layers=4).cuda()
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    tokens = torch.randint(512, (32, 257), device="cuda")

    def step() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss: Any = losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])
        torch.autograd.backward(loss)
        optimiser.step()
        optimiser.zero_grad()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    rows = [(row.key, row.self_device_time_total, row.count) for row in seen.key_averages()]
    whole = sum(taken for _, taken, _ in rows) or 1.0
    rows.sort(key=lambda row: -row[1])
    return [
        [re.sub(r"\s+", " ", name)[:80], round(taken / whole, 3), round(calls / steps, 2)]
        for name, taken, calls in rows[:PROFILED]
    ]


def page(report: dict[str, Any]) -> str:
    """The report as Markdown, to be read and to be sent."""
    lines = [f"# What a GPU said, {report['date']}", "", report["machine"], report["gpu"], ""]
    for name in ("tests", "notebooks"):
        part = report.get(name, {"ended": "not asked yet"})
        if "passed" not in part:
            lines += [f"## {name}", "", "did not run:", "", "```", part["ended"], "```", ""]
            continue
        counts = f"{part['passed']} passed, {part['skipped']} skipped, {len(part['failed'])} failed"
        lines += [f"## {name}", "", f"{counts}, in {part['seconds']} s", ""]
        alike: dict[tuple[str, str], list[str]] = {}
        for failed, why in part["failed"]:
            file, _, case = failed.partition("::")
            alike.setdefault((file, (why.splitlines() or [""])[0][:120]), []).append(case)
        for (file, why), cases in alike.items():
            more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            lines.append(f"- `{file}`, {cases[0]}{more}: {why}")
    lines += ["", "## trainer", ""]
    for name, way in report.get("trainer", {}).items():
        lines += [f"- {name}: losses {way['losses']}, {way['seconds']} s"]
        lines += [f"  - {said}" for said in way["said"]]
        lines += [f"  - ended: {way['ended'][-200:]}"] if "ended" in way else []
    lines += ["", "## kernels of a training step: share of the time, calls per step", ""]
    lines += [
        f"- {share:.1%}, {calls}: `{name}`" for name, share, calls in report.get("kernels", [])
    ]
    lines += ["", "## times", "", "```", report.get("times", "").strip(), "```", ""]
    return "\n".join(lines)


def main() -> int:
    """Ask the GPU, and write what it said."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help=f"also writes {STORED.name}")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts; the others stay")
    parser.add_argument("--workers", type=int, default=2, help="processes for tests and notebooks")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one part")
    asked = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    seen = gpu()
    if seen is None:
        print(
            "No GPU: neither torch nor JAX sees one here, so there is nothing to report.\n"
            "  Do: on a machine with a GPU, try nvidia-smi; JAX needs 'jax[cuda13]'."
        )
        return 1
    import torch

    from attnbook import devices

    workers, python = str(asked.workers), sys.executable
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default"]
    notebooks = NBVAL.format(python=python).replace("-n 2", f"-n {workers}").split()
    parts: dict[str, Callable[[], Any]] = {
        "trainer": lambda: trainer(asked.limit),
        "kernels": lambda: profile() if torch.cuda.is_available() else [],
        "times": lambda: run([python, "-m", "benchmarks.on_a_gpu", "--quick"], asked.limit)[0],
        "tests": lambda: tests([*pytest, "tests/gpu", "-n", workers], asked.limit),
        "notebooks": lambda: tests(notebooks, asked.limit),
    }
    written = ROOT / "_build" / "gpu_report.json"
    written.parent.mkdir(exist_ok=True)
    last = json.loads(written.read_text("utf-8")) if asked.only and written.is_file() else {}
    now = {"date": date.today().isoformat(), "machine": devices.describe(), "gpu": seen}
    report: dict[str, Any] = last | now
    for name in asked.only or PARTS:  # what is known is written, should a later part end it all
        report[name] = parts[name]()
        for path in (written, STORED) if asked.store else (written,):
            path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
        written.with_suffix(".md").write_text(page(report), "utf-8")
    print(page(report))
    print(f"written: {written.with_suffix('.md').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
