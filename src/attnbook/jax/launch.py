"""Processes of JAX on this machine, which act as the machines of a cluster."""

import contextlib
import faulthandler
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

import jax
import numpy as np

from attnbook._validation import positive, positive_int
from attnbook.distributed.launched import (
    WORKER,
    first_error,
    pickled,
    python_path,
    report,
    show_printed,
    worker_text,
)

ALONE_SECONDS = 10  # that a worker lives longer than it may take


def run(
    function: Callable[..., Any], processes: int, *, time_limit: float = 120, **arguments: Any
) -> list[Any]:
    """Call a function of rank, world and the arguments in processes of jax.distributed.

    Each process has one device of its CPU, and jax.devices() names those of all. The source of the
    function is written to a file, so the function imports what it needs itself, and a reader can
    edit it where it stands. What they print is printed at the end, rank by rank.

    Args:
        function: made with def, in a file or in a cell of a notebook.
        processes: how many, 1 or more.
        time_limit: seconds after which all are ended, their start included.
        **arguments: what else the function takes, whatever pickle takes.

    Returns:
        A list of what each rank returned, such as numbers, lists, dicts, arrays. An array of JAX
        comes back as NumPy's; every process must hold all of it.

    Raises:
        ValueError: processes that are no integer of 1 or more, a time limit that is not above 0,
            arguments that cannot be sent.
        TypeError: what is no function with a source.
        RuntimeError: a worker that fails, with its own error, or that is late. No process is left.
    """
    world = positive_int(processes=processes)
    seconds = positive(time_limit=time_limit)
    text, sent = worker_text(function, "jax"), pickled(arguments)
    with tempfile.TemporaryDirectory(prefix="attnbook-") as name:
        folder, workers = Path(name), list[subprocess.Popen[bytes]]()
        (folder / WORKER).write_text(text, encoding="utf-8")
        (folder / "arguments").write_bytes(sent)
        try:
            _start(folder, world, seconds, workers)
            _wait(folder, workers, seconds)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            show_printed(folder, world)
        return [pickle.loads((folder / f"result-{r}").read_bytes()) for r in range(world)]


def _start(
    folder: Path, world: int, seconds: float, workers: list[subprocess.Popen[bytes]]
) -> None:
    """Add the processes to a list, each with one device and with a file for its errors."""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"}
    environment["PYTHONPATH"] = python_path()
    environment.pop("XLA_FLAGS", None)  # it may say how many devices, too
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for rank in range(world):
        command = [sys.executable, "-P", folder / WORKER, folder, rank, world, port, seconds]
        with (folder / f"errors-of-{rank}").open("wb") as said:
            worker = subprocess.Popen(
                list(map(str, command)),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
            workers.append(worker)


def _wait(folder: Path, workers: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Wait until all have ended well; a RuntimeError as soon as one has not."""
    until = time.monotonic() + seconds
    while any(worker.poll() is None for worker in workers):
        if any(worker.poll() for worker in workers):
            break
        if time.monotonic() > until:
            late = [rank for rank, worker in enumerate(workers) if worker.poll() is None]
            ranks = ", ".join(map(str, late))
            raise RuntimeError(f"after {seconds:g} seconds, the limit, rank {ranks} was not done")
        time.sleep(0.05)
    if failed := first_error(folder, len(workers)):
        raise RuntimeError(failed)
    for rank, worker in enumerate(workers):
        if worker.poll():
            said = (folder / f"errors-of-{rank}").read_text(encoding="utf-8", errors="replace")
            last = "\n".join(said.strip().splitlines()[-5:])
            raise RuntimeError(
                f"rank {rank} of {len(workers)} ended with {worker.returncode}:\n{last}"
            )


def work(function: Callable[..., Any]) -> None:
    """What each process does: call the function, and leave its result or its error in a file."""
    folder, rank, world, port = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    # should nobody be left who ends this process
    faulthandler.dump_traceback_later(float(sys.argv[5]) + ALONE_SECONDS, exit=True)
    try:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=world, process_id=rank)
        arguments = pickle.loads((folder / "arguments").read_bytes())
        with (
            (folder / f"printed-{rank}").open("w", encoding="utf-8", buffering=1) as printed,
            contextlib.redirect_stdout(printed),
        ):
            found = jax.tree.map(_plain, function(rank, world, **arguments))
        (folder / f"result-{rank}").write_bytes(pickle.dumps(found))
        jax.distributed.shutdown()
    except BaseException as error:
        report(folder, rank, error)
        os._exit(1)  # without the others, who would be waited for


def _plain(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
