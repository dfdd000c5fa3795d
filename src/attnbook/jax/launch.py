"""Processes of JAX on this machine, which act as the machines of a cluster."""

import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnbook._validation import numbers
from attnbook._validation.sources import source_of

WORKER = """
import importlib.util, os, pickle, sys, traceback
from pathlib import Path

folder, rank, world, port = Path(sys.argv[1]), *map(int, sys.argv[2:])
try:
    import jax
    import numpy as np

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=world, process_id=rank)
    name, arguments = pickle.loads((folder / "arguments").read_bytes())
    spec = importlib.util.spec_from_file_location("worker", folder / "worker.py")
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    found = getattr(worker, name)(rank, world, **arguments)
    plain = lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
    (folder / f"result-{rank}").write_bytes(pickle.dumps(jax.tree.map(plain, found)))
    jax.distributed.shutdown()
except BaseException:
    (folder / f"error-{rank}").write_text(traceback.format_exc())
    os._exit(1)  # without the others, who would be waited for
"""


def run(
    function: Callable[..., Any], processes: int, *, time_limit: float = 120, **arguments: Any
) -> list[Any]:
    """Call a function of rank, world and the arguments in processes of jax.distributed.

    Each process has one device of its CPU, and jax.devices() names those of all. The source of the
    function is written to a file, so the function imports what it needs itself, and a reader can
    edit it where it stands.

    Args:
        function: made with def, in a file or in a cell of a notebook.
        processes: how many, 1 or more.
        time_limit: seconds after which all are ended.
        **arguments: what else the function takes, whatever pickle takes.

    Returns:
        A list of what each rank returned, such as numbers, lists, dicts, arrays. An array of JAX
        comes back as NumPy's; every process must hold all of it.

    Raises:
        ValueError: processes that are no integer of 1 or more, a time limit that is not above 0.
        TypeError: what is no function with a source.
        RuntimeError: a worker that fails, with its own error, or that is late. No process is left.
    """
    world = numbers.positive_int(processes=processes)
    seconds = numbers.positive(time_limit=time_limit)
    source = source_of(function)
    with tempfile.TemporaryDirectory(prefix="attnbook-") as name:
        folder = Path(name)
        (folder / "worker.py").write_text(source, encoding="utf-8")
        (folder / "launch.py").write_text(WORKER, encoding="utf-8")
        (folder / "arguments").write_bytes(pickle.dumps((function.__name__, arguments)))
        workers = _start(folder, world)
        try:
            _wait(folder, workers, seconds)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        return [pickle.loads((folder / f"result-{r}").read_bytes()) for r in range(world)]


def _start(folder: Path, world: int) -> list[subprocess.Popen[bytes]]:
    """The processes, each with one device and with files for what it prints."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}
    environment.pop("XLA_FLAGS", None)  # it may say how many devices, too
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(world):
        with (folder / f"printed-{rank}").open("wb") as printed:
            command = [sys.executable, str(folder / "launch.py"), str(folder)]
            started.append(
                subprocess.Popen(
                    [*command, str(rank), str(world), str(port)],
                    env=environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
                )
            )  # fmt: skip
    return started


def _wait(folder: Path, workers: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Wait until all have ended well; a RuntimeError as soon as one has not."""
    until = time.monotonic() + seconds
    while any(worker.poll() is None for worker in workers):
        failed = [rank for rank, worker in enumerate(workers) if worker.poll()]
        if failed:
            break
        if time.monotonic() > until:
            late = [rank for rank, worker in enumerate(workers) if worker.poll() is None]
            ranks = ", ".join(map(str, late))
            raise RuntimeError(f"after {seconds:g} seconds, the limit, rank {ranks} was not done")
        time.sleep(0.05)
    for rank in range(len(workers)):
        if (folder / f"error-{rank}").exists():
            text = (folder / f"error-{rank}").read_text(encoding="utf-8").strip()
            raise RuntimeError(f"rank {rank} of {len(workers)} failed:\n{text}")
    for rank, worker in enumerate(workers):
        if worker.poll():
            printed = (folder / f"printed-{rank}").read_text(encoding="utf-8", errors="replace")
            last = "\n".join(printed.strip().splitlines()[-5:])
            raise RuntimeError(
                f"rank {rank} of {len(workers)} ended with {worker.returncode}:\n{last}"
            )
