"""The trainer on several workers, of both back ends: as one, killed, and resumed on others."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from attnbook import datasets
from attnbook.train.language_model.checkpoints import complete

if sys.platform != "linux":
    pytest.skip("/proc", allow_module_level=True)
pytest.importorskip("torch")

STEPS, EVERY = 24, 6
SIZES = f"--steps {STEPS} --every {EVERY} --rows 8 --window 16 --embed-dim 32 --heads 2 --layers 1"
SECONDS = 300  # for what is started here
CLOSE = 1e-5  # of losses in single precision: sums in another order, and Adam's division


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = datasets.python_reference()
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text(own.decode(own.train[:6000]))
    return file


def started(text: Path, *words: object, world: int = 1, **environment: str) -> subprocess.Popen:
    """The trainer, with more than one worker of PyTorch under torchrun, which starts them again."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    launcher += [f"--nproc-per-node={world}", "--max-restarts=1"]
    command = [sys.executable, *(launcher if world > 1 else []), "-m", "attnbook.train_lm"]
    command += [*SIZES.split(), "--device=cpu", f"--text={text}", *map(str, words)]
    given = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.Popen(command, env=given, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen) -> str:
    """What it said on stderr."""
    try:
        _, said = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return said


def losses(metrics: Path, first: int = 1) -> np.ndarray:
    """Of every step, and the held-out ones."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(first, STEPS + 1))
    held_out = [line["held_out"] for line in lines if "held_out" in line]
    return np.array([line["loss"] for line in lines] + held_out)


def kill_after(
    process: subprocess.Popen, metrics: Path, step: int, *, worker: bool = False
) -> None:
    """End a process, or the last that it has started, with what no program can catch."""
    end = time.monotonic() + SECONDS
    while not metrics.exists() or len(metrics.read_text().splitlines()) < step:
        assert time.monotonic() < end and process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    pid = process.pid
    if worker:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pid = int(children[-1])
    os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def two(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two workers with shares that nothing disturbs: `metrics`, and the folder `run`."""
    folder = tmp_path_factory.mktemp("two")
    words = ("--mode=fsdp", f"--checkpoint={folder / 'run'}", f"--metrics={folder / 'metrics'}")
    finished(started(text, *words, world=2))
    return folder


def test_a_killed_worker(text: Path, two: Path, tmp_path: Path) -> None:
    """torchrun starts both anew, and they go on from the newest checkpoint: the same losses."""
    metrics, folder = tmp_path / "metrics", tmp_path / "run"
    words = ("--mode=fsdp", "--resume", f"--checkpoint={folder}", f"--metrics={metrics}")
    process = started(text, *words, world=2)
    kill_after(process, metrics, EVERY + 3, worker=True)
    said = finished(process)
    assert "no complete checkpoint" in said and f"resume: {folder / f'step-{EVERY}'}" in said
    np.testing.assert_allclose(losses(metrics), losses(two / "metrics"), rtol=1e-6)
    assert {one.name for one in folder.iterdir()} == {f"step-{STEPS - EVERY}", f"step-{STEPS}"}


def test_two_workers_have_the_losses_of_one(text: Path, two: Path, tmp_path: Path) -> None:
    """One of them alone is killed, and goes on; then it goes on from what two have written."""
    one, folder = tmp_path / "one", tmp_path / "run"
    process = started(text, f"--checkpoint={folder}", f"--metrics={one}")
    kill_after(process, one, EVERY + 3)
    process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGKILL
    assert complete(folder)[0].name == f"step-{EVERY}"
    assert f"step-{EVERY}" in finished(
        started(text, f"--checkpoint={folder}", f"--metrics={one}", "--resume")
    )
    finished(started(text, "--mode=ddp", f"--metrics={tmp_path / 'ddp'}", world=2))
    for metrics in (two / "metrics", tmp_path / "ddp"):
        np.testing.assert_allclose(losses(metrics), losses(one), rtol=CLOSE)
    half = STEPS - EVERY
    shutil.copytree(two / "run" / f"step-{half}", tmp_path / "half" / f"step-{half}")
    words = (f"--checkpoint={tmp_path / 'half'}", "--resume", f"--metrics={tmp_path / 'rest'}")
    finished(started(text, *words))
    rest = losses(two / "metrics")[[*range(half, STEPS), -1]]
    np.testing.assert_allclose(losses(tmp_path / "rest", half + 1), rest, rtol=CLOSE)


def test_jax_is_killed_and_resumed(text: Path, tmp_path: Path) -> None:
    """Eight devices as one; a process that is killed goes on; then two processes go on from it."""
    pytest.importorskip("jax")
    for mode in ("none", "ddp"):
        finished(started(text, "--backend=jax", f"--mode={mode}", f"--metrics={tmp_path / mode}"))
    metrics, folder = tmp_path / "metrics", tmp_path / "run"
    words = ["--backend=jax", "--mode=fsdp", f"--checkpoint={folder}", f"--metrics={metrics}"]
    process = started(text, *words)
    kill_after(process, metrics, EVERY + 3)
    process.communicate(timeout=SECONDS)
    assert process.returncode == -signal.SIGKILL
    assert complete(folder)[0].name == f"step-{EVERY}"
    finished(started(text, *words, "--resume"))
    for mode in ("none", "ddp"):
        np.testing.assert_allclose(losses(metrics), losses(tmp_path / mode), rtol=CLOSE)

    half = STEPS - EVERY
    shutil.rmtree(folder / f"step-{STEPS}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    how = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2", "JAX_NUM_CPU_DEVICES": "2"}
    both = [started(text, *words, "--resume", JAX_PROCESS_ID=str(rank), **how) for rank in range(2)]
    said = [finished(process) for process in both]
    assert f"resume: {folder / f'step-{half}'}" in said[0]
    np.testing.assert_allclose(losses(metrics), losses(tmp_path / "none"), rtol=CLOSE)
    assert complete(folder)[0].name == f"step-{STEPS}"
