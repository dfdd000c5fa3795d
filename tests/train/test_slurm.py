"""Slurm's files: the shell takes them, and what they start are options that exist."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest
from once import SECONDS

from attnbook.train_lm import parse

ROOT = Path(__file__).resolve().parents[2]
TORCH, JAX = (ROOT / f"cluster/{name}.sbatch" for name in ("torch", "jax"))
FILES = pytest.mark.parametrize("path", [TORCH, JAX], ids=["torch", "jax"])
NOTE = 'printf "%s\\0" "$@" > words; echo >> starts; exec sleep "${SLEEP:-0}"'
FAIL = 'printf "%s\\0" "$@" > words; echo >> starts; [ "$(wc -l < starts)" -gt "${FAILURES:-0}" ]'
STUBS = {  # what the scripts call, and what each of them leaves behind
    "srun": 'while [[ "$1" == -* ]]; do shift; done\nexec "$@"',
    "scontrol": '[ "$1" = show ] && printf "first\\nsecond\\n" || echo "$@" >> scontrol.log',
    **dict.fromkeys(("torchrun", "python"), f'if [ -n "${{SLEEP:-}}" ]; then {NOTE}; fi\n{FAIL}'),
}
SLURM = {
    "SLURM_JOB_ID": "123456",
    "SLURM_JOB_NAME": "attnbook",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "machine[1-2]",
    "SLURM_GPUS_ON_NODE": "4",
    "SLURM_CPUS_PER_TASK": "16",
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A folder as the book's, where programs of a cluster only note how they were called."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name, lines in STUBS.items():
        (stubs / name).write_text(f"#!/bin/bash\n{lines}\n")
        (stubs / name).chmod(0o755)
    return {"PATH": f"{stubs}:/usr/bin:/bin"} | SLURM


@FILES
def test_the_shell_takes_the_scripts(path: Path) -> None:
    done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(.*))?$", path.read_text(), re.MULTILINE))
    assert {"requeue", "signal", "time", "nodes"} <= set(asked)
    assert asked["open-mode"] == "append", "a job that begins again would lose its log"


@FILES
def test_it_starts_again_up_to_three_times(path: Path, environment, tmp_path) -> None:
    for failures, starts, status in ((0, 1, 0), (2, 3, 0), (9, 4, 1)):
        (tmp_path / "starts").unlink(missing_ok=True)
        given = environment | {"FAILURES": str(failures)}
        command = ["bash", path, "--steps", "7"]
        done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True)
        assert (tmp_path / "starts").read_text().count("\n") == starts
        assert done.returncode == status
    launched, _, trainer = (tmp_path / "words").read_text().partition("attnbook.train_lm\0")
    options = parse(trainer.split("\0")[:-1])
    assert (options.steps, options.mode, options.resume) == (7, "fsdp", True)
    assert options.rows % (2 * 4) == 0
    assert (options.checkpoint, options.metrics) == (
        Path("runs/attnbook"),
        Path("runs/attnbook.jsonl"),
    )
    assert options.backend == path.stem
    if path == TORCH:
        run = pytest.importorskip("torch.distributed.run")
        found = run.get_args_parser().parse_args([*launched.split("\0")[:-1], "attnbook.train_lm"])
        assert (found.nnodes, found.nproc_per_node, found.module) == ("2", "4", True)
        assert found.rdzv_endpoint == "first:23456"


def test_shortly_before_its_time_is_over_the_job_queues_again(environment, tmp_path) -> None:
    given = environment | {"SLEEP": "3600"}
    script = subprocess.Popen(["bash", TORCH], cwd=tmp_path, env=given, start_new_session=True)
    try:
        end = time.monotonic() + SECONDS
        while not (tmp_path / "starts").exists():
            assert time.monotonic() < end and script.poll() is None, "nothing was started"
            time.sleep(0.02)
        script.send_signal(signal.SIGUSR1)
        script.wait(timeout=SECONDS)
        assert (tmp_path / "scontrol.log").read_text() == "requeue 123456\n"
    finally:
        os.killpg(script.pid, signal.SIGKILL)


def test_the_trainer_takes_what_the_texts_type() -> None:
    """Each command in the texts and in the trainer's own text."""
    names = ("MAINTAINING.md", "appendices/api-layers.md", "src/attnbook/train_lm.py")
    texts = [(ROOT / name).read_text("utf-8") for name in names]
    commands = re.findall(r"-m attnbook\.train_lm((?: +--?[^\n`]*)?)", "\n".join(texts))
    assert len(commands) >= 4
    for command in commands:
        typed = shlex.split(command)
        if typed != ["--help"]:
            parse(typed)
