"""The trainer on several workers: as one, killed, cut short, without room, misused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from once import SECONDS

from attnbook import datasets
from attnbook.train_lm import newest_checkpoint

pytest.importorskip("torch")
if sys.platform != "linux":
    pytest.skip("forks and /proc", allow_module_level=True)

HERE = Path(__file__).resolve().parent
STEPS, EVERY = 24, 6
SIZES = f"--steps {STEPS} --every {EVERY} --rows 4 --window 16 --embed-dim 32 --heads 2 --layers 1"
SIZES += " --device cpu"


class Server:
    """Launches workers, each in a fork of one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = [sys.executable, str(HERE / "worker_server.py")]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        own = datasets.python_reference()
        self.text = folder / "text.txt"
        self.text.write_text(own.decode(own.train[:6000]))

    def launch(self, world: int, *arguments: object, sizes: str = SIZES, **more: object) -> dict:
        """The exit statuses and what each worker said; nothing of it runs on."""
        said = self.folder / f"said-{uuid.uuid4().hex}"
        words = [*sizes.split(), "--text", *map(str, [self.text, *arguments])]
        request = {"world": world, "arguments": words, "said": str(said)} | more
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        assert not answer["left"]
        assert not any("Traceback" in text for text in answer["said"]), answer["said"]
        return answer

    def losses(self, world: int, *arguments: object, **more: object) -> list[float]:
        """Of every step, of a run that nothing disturbs or that goes on."""
        metrics = self.folder / f"metrics-{uuid.uuid4().hex}"
        answer = self.launch(world, *arguments, "--metrics", metrics, **more)
        assert set(answer["codes"]) == {0}, answer
        return read(metrics)


def read(metrics: Path, first: int = 1) -> list[float]:
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(first, first + len(lines)))
    return [line["loss"] for line in lines]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("train_lm"))
    yield started
    started.process.stdin.close()
    assert started.process.wait(timeout=SECONDS) == 0
    started.process.stdout.close()


@pytest.fixture(scope="module")
def undisturbed(server: Server) -> list[float]:
    """The losses of two workers with shares that nothing disturbs."""
    return server.losses(2, "--mode", "fsdp")


def relative(got: list[float], expected: list[float]) -> float:
    assert len(got) == len(expected)
    return float(np.max(np.abs(np.array(got) / np.array(expected) - 1)))


def test_any_number_of_workers_has_the_losses_of_one(server: Server) -> None:
    """60 steps; two workers in single precision to its rounding, four in double to its own.

    A step divides each gradient by its size, so that a rounding of a small one counts as much as of
    a large one: there is no bound by the number of terms, and some digits are left to it.
    """
    sizes = SIZES.replace(f"--steps {STEPS} --every {EVERY}", "--steps 60")
    for precision, world, tolerance in (("float32", 2, 1e-5), ("float64", 4, 1e-11)):
        arguments = ("--precision", precision)
        one = server.losses(1, *arguments, sizes=sizes)
        for mode in ("ddp", "fsdp"):
            many = server.losses(world, *arguments, "--mode", mode, sizes=sizes)
            assert relative(many, one) <= tolerance, (mode, world, precision)
    assert one[-1] < 0.9 * one[0]
    for world, mode in ((1, "none"), (2, "ddp"), (2, "fsdp")):
        half = server.losses(world, "--precision", "bfloat16", "--mode", mode, sizes=sizes)
        assert 1e-5 < relative(half, one) < 1e-2


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_worker(
    server: Server, undisturbed: list[float], tmp_path: Path, seed: int
) -> None:
    """At any step: what is lost began after the last checkpoint, and the losses are the same bits."""
    rng = np.random.default_rng(seed)
    step, rank = int(rng.integers(1, STEPS)), int(rng.integers(2))
    metrics, folder = tmp_path / "metrics", tmp_path / "run"
    arguments = ("--mode", "fsdp", "--checkpoint", folder, "--metrics", metrics, "--resume")
    kill = {"metrics": str(metrics), "step": step, "rank": rank, "after": rng.uniform(0, 0.02)}
    answer = server.launch(2, *arguments, kill=kill)
    assert answer["codes"][rank] == -signal.SIGKILL
    assert answer["codes"][1 - rank] == 3
    assert answer["said"][1 - rank].count("another worker is gone") == 1
    taken, newest = len(read(metrics)), newest_checkpoint(folder, lambda _: None)
    assert taken >= step
    begun = int(newest.name.removeprefix("step-")) if newest else 0
    assert 0 <= taken - begun <= EVERY  # the step of a checkpoint is logged before it is saved
    assert set(server.launch(2, *arguments)["codes"]) == {0}
    assert read(metrics) == undisturbed
    assert not list(folder.glob("writing-*"))
    assert [found.name for found in sorted(folder.iterdir())] == ["step-18", "step-24"]


def test_a_launcher_that_starts_again(
    server: Server, undisturbed: list[float], tmp_path: Path
) -> None:
    """torchrun's own restart, without a variable that its users would have to know."""
    mark, metrics = f"ATTNBOOK_LAUNCH={uuid.uuid4().hex}", tmp_path / "metrics"
    words = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    words += ["--nproc-per-node=2", "--max-restarts=1"]
    words += [
        "-m",
        "attnbook.train_lm",
        *SIZES.split(),
        "--text",
        str(server.text),
        "--mode",
        "fsdp",
    ]
    words += ["--checkpoint", str(tmp_path / "run"), "--metrics", str(metrics), "--resume"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | dict([mark.split("=")])
    with open(tmp_path / "said", "w") as said:
        launcher = subprocess.Popen([sys.executable, *words], env=environment, stderr=said)
        end = time.monotonic() + SECONDS
        while not metrics.exists() or len(metrics.read_text().splitlines()) < 9:
            assert time.monotonic() < end, (tmp_path / "said").read_text()
            time.sleep(0.005)
        (killed,) = marked(mark, "RANK=1")
        os.kill(killed, signal.SIGKILL)
        assert launcher.wait(timeout=SECONDS) == 0, (tmp_path / "said").read_text()
    assert "/step-6" in (tmp_path / "said").read_text().split("resume: ")[-1]
    assert read(metrics) == undisturbed
    assert marked(mark) == []


def marked(*words: str) -> list[int]:
    """The processes that were started with these words in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(word.encode() in environment for word in words):
            found.append(int(process.name))
    return found


@pytest.fixture(scope="module")
def half(server: Server) -> Path:
    """A run of two workers that was killed after step 13."""
    folder, metrics = server.folder / "half", server.folder / "half-metrics"
    kill = {"metrics": str(metrics), "step": 13, "rank": 0, "after": 0.0}
    arguments = ("--mode", "fsdp", "--checkpoint", folder, "--metrics", metrics)
    server.launch(2, *arguments, kill=kill)
    assert newest_checkpoint(folder, lambda _: None) == folder / "step-12"
    return folder


@pytest.mark.parametrize(("mode", "world"), [("none", 1), ("fsdp", 1), ("fsdp", 4), ("ddp", 4)])
def test_other_workers_go_on(
    server: Server, undisturbed: list[float], half: Path, tmp_path: Path, mode: str, world: int
) -> None:
    folder, metrics = copied(half, tmp_path), tmp_path / "metrics"
    arguments = ("--mode", mode, "--checkpoint", folder, "--metrics", metrics, "--resume")
    assert set(server.launch(world, *arguments)["codes"]) == {0}
    assert relative(read(metrics, 13), undisturbed[12:]) <= 1e-6


def copied(half: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", str(half), str(tmp_path / "run")], check=True)
    return tmp_path / "run"


def test_a_checkpoint_that_was_cut_short(
    server: Server, undisturbed: list[float], half: Path, tmp_path: Path
) -> None:
    folder = copied(half, tmp_path)
    part = folder / "step-12" / "__1_0.distcp"
    os.truncate(part, part.stat().st_size - 1)
    (folder / "writing-step-18").mkdir()
    arguments = ("--mode", "fsdp", "--checkpoint", folder, "--metrics", tmp_path / "m", "--resume")
    answer = server.launch(2, *arguments)
    assert answer["codes"] == [0, 0]
    assert answer["said"][0].count("step-12: got") == 1
    assert "writing-step-18 was never finished" in answer["said"][0]
    assert f"resume: {folder / 'step-6'}" in answer["said"][0]
    assert read(tmp_path / "m", 7) == undisturbed[6:]


def test_no_room(server: Server, undisturbed: list[float], half: Path, tmp_path: Path) -> None:
    """One clear line of each worker, the last checkpoint is whole, and with room the run goes on."""
    folder, metrics = copied(half, tmp_path), tmp_path / "metrics"
    arguments = ("--mode", "fsdp", "--checkpoint", folder, "--metrics", metrics, "--resume")
    answer = server.launch(2, *arguments, bytes=30_000)
    assert answer["codes"] == [2, 2]
    for rank, said in enumerate(answer["said"]):
        assert said.count("expected room") == 1
        assert f"rank {rank}: --checkpoint: got '" in said
        assert "' at step 18, expected room" in said
        assert f"complete: {folder / 'step-12'}" in said
    assert sorted(found.name for found in folder.iterdir()) == ["step-12", "step-6"]
    assert server.launch(2, *arguments)["codes"] == [0, 0]
    assert read(metrics, 13) == undisturbed[12:]


def test_what_cannot_be_trained(server: Server, half: Path, tmp_path: Path) -> None:
    """One line of each worker, once, and a status that is not 0."""
    damaged = tmp_path / "damaged.txt"
    damaged.write_bytes(b"a text \xff" * 1000)
    cases = [
        (3, [], "--rows: got 4, expected a multiple of 3"),
        (2, ["--mode", "none"], "--mode: got none with 2 workers"),
        (2, ["--text", tmp_path / "none"], "--text: got 'No such file or directory'"),
        (2, ["--text", damaged], "--text: got byte 0xff at 7"),
        (2, ["--checkpoint", half], "step-12 of an earlier run"),
        (2, ["--checkpoint", half, "--resume", "--embed-dim", 16], "--embed-dim: got 32 in"),
        (2, ["--checkpoint", half, "--resume", "--tokens", "pairs"], "--tokens: got characters"),
        (2, ["--checkpoint", damaged / "a"], "Not a directory"),
        (2, ["--metrics", tmp_path], "Is a directory"),
        (2, ["--learning-rate", 1e30], "loss: got nan at step"),
    ]
    for world, arguments, expected in cases:
        answer = server.launch(world, *arguments)
        assert answer["codes"] == [2] * world, (arguments, answer)
        for rank, said in enumerate(answer["said"]):
            assert said.count(f"rank {rank}: ") == 1, (arguments, said)
            assert said.count(expected) == 1, (arguments, said)
