"""The trainer in JAX: eight devices as one, killed, resumed on others, in two processes, misused."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from attnbook import convert, datasets, train_lm
from attnbook.jax.train_lm import Run
from attnbook.models import losses
from attnbook.train import training

STEPS, EVERY = 20, 5
SIZES = f"--steps {STEPS} --every {EVERY} --rows 8 --window 16 --embed-dim 32 --heads 2 --layers 1"
WORDS = ["--backend", "jax", *SIZES.split()]
SECONDS = 300  # for what is started here


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = datasets.python_reference()
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text(own.decode(own.train[:6000]))
    return file


def call(text: Path, *arguments: object) -> tuple[int, str]:
    """The trainer in this process, on its eight devices: the exit status and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = train_lm.main([*WORDS, "--text", str(text), *map(str, arguments)])
    return status, said.getvalue()


def read(metrics: Path) -> list[float]:
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["step"] for line in lines if "held_out" in line] == list(
        range(EVERY, len(lines) + 1, EVERY)
    )
    return [line["loss"] for line in lines] + [line.get("held_out", 0.0) for line in lines]


@pytest.fixture(scope="module")
def undisturbed(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight devices with shares: `metrics`, and `run` with its last two checkpoints."""
    folder = tmp_path_factory.mktemp("undisturbed")
    arguments = ("--mode", "fsdp", "--checkpoint", folder / "run", "--metrics", folder / "metrics")
    assert call(text, *arguments)[0] == 0
    return folder


def test_eight_devices_have_the_losses_of_one(
    text: Path, undisturbed: Path, tmp_path: Path
) -> None:
    many = read(undisturbed / "metrics")
    assert many[STEPS - 1] < 0.9 * many[0]
    for mode in ("none", "ddp"):
        assert call(text, "--mode", mode, "--metrics", tmp_path / mode)[0] == 0
        np.testing.assert_allclose(read(tmp_path / mode), many, rtol=1e-5)


def test_the_losses_of_torch(text: Path) -> None:
    """From the same initial weights eight shares take the steps of the book's training in PyTorch.

    The two differ in the clip: PyTorch adds 1e-6 to the norm of the gradient.
    """
    layers = pytest.importorskip("attnbook.torch")
    torch = pytest.importorskip("torch")
    sizes = dict(rows=8, window=16, embed_dim=32, heads=2, layers=1, steps=STEPS)
    o = train_lm.Options(mode="fsdp", text=text, precision="float64", backend="jax", **sizes)
    tokens = train_lm.read_text(o)
    torch.manual_seed(0)
    model = layers.DecoderOnly(len(tokens.vocabulary), 16, 32, 2, 128, 1).double()
    with jax.enable_x64(True):
        run = Run(o, len(tokens.vocabulary))
        twin = eqx.filter(convert.torch_to_jax(model), eqx.is_inexact_array)
        run.learned = jax.tree.map(lambda a, b: jax.device_put(a, b.sharding), twin, run.learned)
        leaves = jax.tree.leaves((run.learned, run.state))
        here = sum(leaf.addressable_shards[0].data.nbytes for leaf in leaves)
        assert here < 1.05 * sum(leaf.nbytes for leaf in leaves) / 8  # a bias may not be divided
        found = [run.loss(run.step(tokens, step)) for step in range(1, 11)]
    drawn = dict(rows=8, window=16, seed=0)
    batches = [(training.step_batch(tokens.train, step, **drawn),) for step in range(1, 11)]

    def loss(m, rows):
        return losses.cross_entropy(m(rows[:, :-1]), rows[:, 1:])

    _, history = layers.train(model, loss, batches, learning_rate=o.rates()[:10], clip=1.0)
    np.testing.assert_allclose(found, history.losses, rtol=1e-8)


def test_a_killed_process(text: Path, undisturbed: Path, tmp_path: Path) -> None:
    """Resumed here: the same bits, in the losses and in every file of the last checkpoint."""
    folder, metrics = tmp_path / "run", tmp_path / "metrics"
    arguments = ["--mode", "fsdp", "--checkpoint", str(folder), "--metrics", str(metrics)]
    words = [sys.executable, "-m", "attnbook.train_lm", *WORDS, "--text", str(text), *arguments]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + SECONDS
        while not metrics.exists() or len(metrics.read_text().splitlines()) < EVERY + 2:
            assert time.monotonic() < end
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.001)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    newest = train_lm.newest_checkpoint(folder)
    status, said = call(text, *arguments, "--resume")
    assert (status, said.count(f"resume: {newest}")) == (0, 1)
    assert read(metrics) == read(undisturbed / "metrics")
    for name in ("process-0.bin", "process-0.json"):
        last = f"step-{STEPS}/{name}"
        assert (folder / last).read_bytes() == (undisturbed / "run" / last).read_bytes()


WORKER = """
import contextlib, io, json, os, sys
import jax
from attnbook import train_lm
from attnbook.jax import processes

cases, folder = json.load(open(sys.argv[1])), sys.argv[2]
assert processes.join()  # once for all cases
found = {"devices": len(jax.devices()), "here": len(jax.local_devices()), "said": []}
for words in cases:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = train_lm.main(words)
    found["said"].append([status, said.getvalue()])
rank = jax.process_index()
json.dump(found, open(f"{folder}/found-{rank}", "w"))
jax.distributed.shutdown()
"""


def run_two_processes(cases: list[list[str]], folder: Path) -> list[dict]:
    """What two processes that torchrun starts, of two devices each, say to every case."""
    (folder / "worker.py").write_text(WORKER)
    (folder / "cases").write_text(json.dumps(cases))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--local-addr=127.0.0.1"]  # whatever this machine calls itself
    torchrun += ["--nproc-per-node", "2", str(folder / "worker.py")]
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "2", "OMP_NUM_THREADS": "1"}
    torchrun += [str(folder / "cases"), str(folder)]
    with (folder / "printed").open("wb") as printed:
        how = {"stdout": printed, "stderr": printed, "start_new_session": True}
        launch = subprocess.Popen(torchrun, env=environment, **how)
        try:
            status = launch.wait(SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(launch.pid, signal.SIGKILL)
    assert status == 0, (folder / "printed").read_text()
    return [json.loads((folder / f"found-{rank}").read_text()) for rank in range(2)]


@pytest.mark.skipif(sys.platform != "linux", reason="torchrun and process groups")
def test_two_processes(text: Path, undisturbed: Path, tmp_path: Path) -> None:
    """They go on where eight devices stopped, on four; and what cannot be each refuses once."""
    pytest.importorskip("torch")
    half, fresh = tmp_path / "half", tmp_path / "fresh"
    for folder in (half, fresh):
        shutil.copytree(undisturbed / "run", folder)
    (tmp_path / "metrics").write_text((undisturbed / "metrics").read_text())
    os.truncate(half / "step-20" / "process-0.bin", 100)
    fsdp = ["--mode", "fsdp"]
    cases = [
        [*fsdp, "--checkpoint", half, "--resume", "--metrics", tmp_path / "metrics"],
        ["--mode", "ddp", "--metrics", tmp_path / "ddp", "--steps", EVERY],
        ["--rows", 6, *fsdp],
        ["--mode", "none"],
        ["--text", tmp_path / "none", *fsdp],
        [*fsdp, "--checkpoint", fresh],
        [*fsdp, "--checkpoint", fresh, "--resume", "--embed-dim", 16],
    ]
    words = [[*WORDS, "--text", str(text), *map(str, case)] for case in cases]
    found = run_two_processes(words, tmp_path)
    assert [(one["devices"], one["here"]) for one in found] == [(4, 2)] * 2
    for one in found:
        assert [status for status, _ in one["said"]] == [0] * 2 + [2] * 5, one
    expected = read(undisturbed / "metrics")
    np.testing.assert_allclose(read(tmp_path / "metrics"), expected, rtol=1e-5)
    sizes = {(half / "step-20" / f"process-{rank}.bin").stat().st_size for rank in range(2)}
    assert max(sizes) - min(sizes) <= 16  # halves
    ddp = read(tmp_path / "ddp")
    np.testing.assert_allclose(ddp[:1], expected[:1], rtol=1e-5)  # later the rates are others
    said = [said for _, said in found[0]["said"]]
    assert f"{half / 'step-20'}: got 100 bytes in process-0.bin" in said[0]
    assert f"resume: {half / 'step-15'}" in said[0]
    refusals = [
        "--rows: got 6, expected a multiple of 4, the devices",
        "--mode: got none with 2 workers",
        "--text: got 'No such file or directory'",
        "step-20 of an earlier run",
        "--embed-dim: got 32 in",
    ]
    for rank, one in enumerate(found):
        for (_, said), refusal in zip(one["said"][2:], refusals, strict=True):
            assert said.count(f"rank {rank}: ") == 1, said
            assert said.count(refusal) == 1, said


def test_what_cannot_be_trained(text: Path, undisturbed: Path, tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        shutil.copytree(undisturbed / "run" / "step-20", folder / "step-20")
    contents = own / "step-20" / "contents.json"
    contents.write_text(contents.read_text().replace('"backend": "jax"', '"backend": "torch"'))
    cases = [
        (["--rows", 12], "--rows: got 12, expected a multiple of 8, the devices"),
        (["--checkpoint", own, "--resume"], "--backend: got torch in"),
        (["--checkpoint", other], "step-20 of an earlier run"),
    ]
    for arguments, expected in cases:
        status, said = call(text, *arguments)
        assert status == 2
        assert said.strip().splitlines()[-1].startswith("--"), said
        assert said.count(expected) == 1, said
