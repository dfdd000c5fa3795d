"""The files for a cluster: its own schema takes them, and what they start are options that exist."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from once import SECONDS
from torch.distributed.run import get_args_parser

from attnbook.train_lm import parse

ROOT = Path(__file__).resolve().parents[2]
TORCH, JAX = (ROOT / f"cluster/{name}.sbatch" for name in ("torch", "jax"))
KUBERNETES = ROOT / "cluster/torch.k8s.yaml"
SLURM_FILES = pytest.mark.parametrize("path", [TORCH, JAX], ids=lambda path: path.name)
# The long options of sbatch 22.05 that take a value of these forms, and those without a value.
SBATCH = {
    **dict.fromkeys(("nodes", "ntasks", "ntasks-per-node", "cpus-per-task"), r"[1-9]\d*"),
    **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task"), r"([a-z]\w*:)?[1-9]\d*"),
    **dict.fromkeys(("account", "partition", "qos", "job-name", "constraint"), r"[\w-]+"),
    **dict.fromkeys(("output", "error"), r"[\w./%-]+"),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), r"\d+[KMGT]?"),
    "time": r"(\d+-)?\d\d:\d\d:\d\d",
    "signal": r"(R|B|RB)?:?(USR1|USR2|TERM|INT)(@\d+)?",
    "open-mode": "append|truncate",
    "array": r"[\d,%:-]+",
    "requeue": None,
    "no-requeue": None,
    "exclusive": None,
}
STUBS = {  # what the scripts call, and what each of them leaves behind
    "srun": 'while [[ "$1" == -* ]]; do shift; done\nexec "$@"',
    "scontrol": '[ "$1" = show ] && printf "first\\nsecond\\n" || echo "$@" >> scontrol.log',
    "torchrun": 'printf "%s\\0" "$@" > words; echo >> starts; exec sleep "${SLEEP:-0}"',
    "python": 'printf "%s\\0" "$@" > words; echo >> starts\n'
    '[ "$(wc -l < starts)" -gt "${FAILURES:-0}" ]',
}
SLURM = {
    "SLURM_JOB_ID": "123456",
    "SLURM_JOB_NAME": "attnbook",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "machine[1-2]",
    "SLURM_GPUS_ON_NODE": "4",
    "SLURM_CPUS_PER_TASK": "16",
}


def check_directives(script: str) -> dict[str, str]:
    """The options that sbatch reads from a script, each of which must be one that it has."""
    found = {}
    for line in re.findall(r"^#SBATCH +(.*)$", script, re.MULTILINE):
        name, separator, value = line.removeprefix("--").partition("=")
        assert line.startswith("--"), line
        assert name in SBATCH, line
        form = SBATCH[name]
        assert not separator if form is None else re.fullmatch(form, value), line
        found[name] = value
    first = re.search(r"^[^#\n]", script, re.MULTILINE)
    assert first is not None
    assert "#SBATCH" not in script[first.start() :], "sbatch reads none after the first command"
    return found


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
    return {"PATH": f"{stubs}:/usr/bin:/bin"}


def words(folder: Path) -> list[str]:
    """The arguments of the last start."""
    return (folder / "words").read_text().split("\0")[:-1]


def launched(arguments: list[str]) -> Any:
    """What torchrun makes of its arguments; the trainer must take the rest."""
    found = get_args_parser().parse_args(arguments)
    assert (found.module, found.training_script) == (True, "attnbook.train_lm")
    return found


@SLURM_FILES
def test_sbatch_knows_the_options(path: Path) -> None:
    found = check_directives(path.read_text())
    assert int(found["nodes"]) > 1
    assert {"requeue", "signal", "time"} <= set(found)
    assert found["open-mode"] == "append", "a job that begins again would lose its log"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--requeue", "--requeues"),
        ("--requeue", "--requeue=yes"),
        ("--gpus-per-node=4", "--gpus-per-node=four"),
        ("--ntasks-per-node", "--tasks_per_node"),
        ("--time=08:00:00", "--time=8h"),
        ("B:USR1@120", "B:USR1@2min"),
        ("set -eu\n", "set -eu\n#SBATCH --exclusive\n"),
    ],
)
def test_a_slip_in_an_option_is_seen(old: str, new: str) -> None:
    text = TORCH.read_text()
    assert text.count(old) == 1
    with pytest.raises(AssertionError):
        check_directives(text.replace(old, new))


@SLURM_FILES
def test_the_shell_and_its_linter_take_the_scripts(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    linter = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([linter, "-e", "SC1091", path], capture_output=True, text=True)
    assert not done.returncode, done.stdout


def test_slurm_starts_torchrun_with_options_that_exist(environment, tmp_path) -> None:
    subprocess.run(
        ["bash", TORCH, "--steps", "7"], cwd=tmp_path, env=environment | SLURM, check=True
    )
    found = launched(words(tmp_path))
    assert (found.nnodes, found.nproc_per_node, found.rdzv_backend) == ("2", "4", "c10d")
    assert re.fullmatch(r"first:2\d{4}", found.rdzv_endpoint)
    options = parse(found.training_script_args)
    assert (options.steps, options.mode, options.resume) == (7, "fsdp", True)
    assert options.rows % (2 * 4) == 0
    assert options.checkpoint == Path("runs/attnbook")
    assert options.metrics == Path("runs/attnbook.jsonl")


def test_slurm_starts_jax_again_up_to_three_times(environment, tmp_path) -> None:
    for failures, starts, status in ((0, 1, 0), (2, 3, 0), (9, 4, 1)):
        (tmp_path / "starts").unlink(missing_ok=True)
        given = environment | SLURM | {"FAILURES": str(failures)}
        done = subprocess.run(["bash", JAX], cwd=tmp_path, env=given, capture_output=True)
        assert (tmp_path / "starts").read_text().count("\n") == starts
        assert done.returncode == status
    module, name, *rest = words(tmp_path)
    assert (module, name) == ("-m", "attnbook.train_lm")
    options = parse(rest)
    assert (options.backend, options.mode, options.resume) == ("jax", "fsdp", True)
    found = check_directives(JAX.read_text())
    assert options.rows % (int(found["nodes"]) * int(found["ntasks-per-node"])) == 0
    assert found["ntasks-per-node"] == found["gpus-per-node"]


def test_shortly_before_its_time_is_over_the_job_queues_again(environment, tmp_path) -> None:
    given = environment | SLURM | {"SLEEP": "3600"}
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


def check_schema(text: str) -> dict[str, dict[str, Any]]:
    """The objects by their kind, each of which must be as Kubernetes has them."""
    schema = yaml.safe_load((ROOT / "tests/cluster.schema.yaml").read_text("utf-8"))
    found = list(yaml.safe_load_all(text))
    for thing in found:
        jsonschema.Draft202012Validator(schema).validate(thing)
    return {thing["kind"]: thing for thing in found}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("completionMode: Indexed", "completionMode: indexed"),
        ("completions: 2", "completions: '2'"),
        ("apiVersion: batch/v1", "apiVersion: v1"),
        ("restartPolicy: Never", "restartPolicy: Always"),
        ("clusterIP: None", "clusterIp: None"),
        ("backoffLimit: 10", "backOffLimit: 10"),
        ("      subdomain: attnbook", "      subDomain: attnbook"),
        ("args:", "arguments:"),
        ('cpu: "16"', "cpu: 16 cores"),
        ("{medium: Memory,", "{medium: memory,"),
        ("claimName: attnbook", "name: attnbook"),
    ],
)
def test_a_slip_in_the_objects_is_seen(old: str, new: str) -> None:
    text = KUBERNETES.read_text("utf-8")
    assert text.count(old) == 1
    with pytest.raises(jsonschema.ValidationError):
        check_schema(text.replace(old, new))


def test_the_objects_find_each_other() -> None:
    found = check_schema(KUBERNETES.read_text("utf-8"))
    service, job, claim = (found[k] for k in ("Service", "Job", "PersistentVolumeClaim"))
    pod = job["spec"]["template"]["spec"]
    assert pod["subdomain"] == service["metadata"]["name"]
    selector = {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    assert service["spec"]["selector"] == selector
    (container,) = pod["containers"]
    disks = {volume["name"]: volume for volume in pod["volumes"]}
    assert disks.keys() == {mount["name"] for mount in container["volumeMounts"]}
    assert disks["runs"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]


@pytest.mark.parametrize("index", [0, 1])
def test_kubernetes_starts_torchrun_with_options_that_exist(index, environment, tmp_path) -> None:
    job = check_schema(KUBERNETES.read_text("utf-8"))["Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    given = environment | {"JOB_COMPLETION_INDEX": str(index)}
    subprocess.run([*container["command"], *container["args"]], cwd=tmp_path, env=given, check=True)
    found = launched(words(tmp_path))
    machines = job["spec"]["completions"]
    assert found.nnodes == str(machines) == str(job["spec"]["parallelism"])
    assert found.nproc_per_node == str(container["resources"]["limits"]["nvidia.com/gpu"])
    assert found.rdzv_endpoint == "attnbook-0.attnbook:29500"
    assert found.rdzv_conf == f"is_host={1 - index},join_timeout=3600"
    options = parse(found.training_script_args)
    assert (options.mode, options.resume) == ("fsdp", True)
    assert options.rows % (machines * int(found.nproc_per_node)) == 0
    (mount,) = (m["mountPath"] for m in container["volumeMounts"] if m["name"] == "runs")
    for kept in (options.checkpoint, options.metrics):
        assert kept is not None
        assert kept.is_relative_to(mount), "it would be lost with the pod"


def test_the_trainer_takes_what_the_texts_type() -> None:
    """Each command in the texts, in this folder's comments and in the trainer's own text."""
    files = [
        ROOT / "MAINTAINING.md",
        ROOT / "appendices/api-layers.md",
        ROOT / "src/attnbook/train_lm.py",
        *(ROOT / "cluster").iterdir(),
    ]
    commands = []
    for path in files:
        text = re.sub(r"\\\n *", "", path.read_text("utf-8"))
        commands += re.findall(r"-m attnbook\.train_lm((?: +--?[^\n`]*)?)", text)
    assert len(commands) >= 4
    for command in commands:
        line = re.sub(r'"?\$@"? ?&?$|\.\.\.|…', "", command.partition("#")[0]).replace("&", "")
        typed = [word for word in shlex.split(line) if word]
        if typed != ["--help"]:
            parse(typed)
