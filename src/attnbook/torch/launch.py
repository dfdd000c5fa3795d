"""Processes of PyTorch on this machine, which act as the machines of a cluster."""

import contextlib
import faulthandler
import gc
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from attnbook._validation import positive, positive_int
from attnbook.distributed.sources import source_of

WORKER = "worker.py"  # what errors call the text of the function
# Annotations are not evaluated: they may name what is not there.
TEXT = """from __future__ import annotations
{source}

if __name__ == "__main__":
    from attnbook.torch.launch import work

    work({name})
"""
START_SECONDS = 120  # until all have joined
GRACE_SECONDS = 10  # that the launcher has to end after its workers


def run(
    function: Callable[..., Any], processes: int, *, time_limit: float = 120, **arguments: Any
) -> list[Any]:
    """Call a function of rank, world and the arguments in processes of torch.distributed.

    The source of the function is written to a file and started with python -m
    torch.distributed.run, so the function imports what it needs itself, and a reader can edit it
    where it stands. The processes compute on the CPU and talk through gloo. What they print is
    printed at the end, rank by rank.

    Args:
        function: made with def, in a file or in a cell of a notebook.
        processes: how many, 1 or more.
        time_limit: seconds that the function may take, after which all are ended. To start, the
            processes have two minutes.
        **arguments: what else the function takes, whatever pickle takes.

    Returns:
        A list of what each rank returned, such as numbers, lists, dicts, arrays or tensors.

    Raises:
        ValueError: processes that are no integer of 1 or more, a time limit that is not above 0,
            arguments that cannot be sent.
        TypeError: what is no function with a source of its own.
        RuntimeError: a worker that fails, with its own error, or that is late, with the line at
            which it waits. No process is left.
    """
    world = positive_int(processes=processes)
    seconds = positive(time_limit=time_limit)
    text = TEXT.format(source=source_of(function), name=function.__name__)
    try:
        sent = pickle.dumps(arguments)
    except Exception as error:
        raise ValueError(
            f"arguments: got {', '.join(arguments)}, expected what pickle takes: {error}"
        ) from None
    prefix = "attnbook-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / WORKER).write_text(text, encoding="utf-8")
        (folder / "arguments").write_bytes(sent)
        status = _launch(folder, world, seconds)
        for printed in (folder / f"printed-{rank}" for rank in range(world)):
            if printed.exists():
                print(printed.read_text(encoding="utf-8", errors="replace"), end="")
        if status != 0:
            raise RuntimeError(_what_failed(folder, world, seconds)) from None
        return [pickle.loads((folder / f"result-{r}").read_bytes()) for r in range(world)]


def _launch(folder: Path, world: int, seconds: float) -> int | None:
    """Start the workers and wait; the launcher's exit status, None where it was ended."""
    command = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone"]
    command += ["--local-addr=127.0.0.1", f"--nproc-per-node={world}"]
    command += [str(folder / WORKER), str(folder), str(seconds)]
    path = os.pathsep.join(path or os.getcwd() for path in sys.path)  # what can be imported here
    environment = {"OMP_NUM_THREADS": "1"} | os.environ | {"PYTHONPATH": path}
    if sys.platform == "linux":
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with (folder / "launcher").open("wb") as said:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        return process.wait(START_SECONDS + seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _end(process, folder)


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End the launcher, which ends its workers, and then whatever is left of both."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS / 2)
    process.kill()
    process.wait()
    for file in folder.glob("process-*"):  # each worker has a session of its own
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(file.read_text()), getattr(signal, "SIGKILL", signal.SIGTERM))


def _what_failed(folder: Path, world: int, seconds: float) -> str:
    """The error of the worker that failed first, or where those are that were late."""
    said = (folder / "launcher").read_text(encoding="utf-8", errors="replace").strip()
    ended = re.findall(r"rank +: (\d+) .*\n.*exitcode +: -(\d+) ", said)
    for rank, number in ended:
        if int(number) != signal.SIGTERM:  # with that the launcher ends the others
            return f"rank {rank} of {world} was ended by signal {number}"
    late = [folder / f"late-{rank}" for rank in range(world)]
    if any(path.exists() and path.stat().st_size for path in late):
        return f"after {seconds:g} seconds, the limit: {_where(folder, world)}"
    told = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("error-*")]
    if not told:
        return f"the workers ended without a result:\n{said[-2000:]}"
    first = min(told, key=lambda error: error["time"])
    return f"rank {first['rank']} of {world} failed:\n{first['text']}"


def _where(folder: Path, world: int) -> str:
    """What each rank was at, those at one line together."""
    lines = (folder / WORKER).read_text(encoding="utf-8").splitlines()
    places: dict[str, list[str]] = {}
    for rank in range(world):
        place = "not begun"
        if (folder / f"result-{rank}").exists():
            place = "done, and waiting for the others"
        elif number := _line(folder, rank):
            place = f"at `{lines[number - 1].strip()}`"
        places.setdefault(place, []).append(str(rank))
    return "; ".join(f"{place}: rank {', '.join(ranks)}" for place, ranks in places.items())


def _line(folder: Path, rank: int) -> int | None:
    """The line of the function at which a rank was ended, or lost the others who were."""
    for name, last in (("late", 0), ("error", -1)):  # which of the frames is the inmost
        path = folder / f"{name}-{rank}"
        text = path.read_text(encoding="utf-8").replace(r"\"", '"') if path.exists() else ""
        found = re.findall(rf'{re.escape(WORKER)}", line (\d+),? in (?!<module>)', text)
        if found:
            return int(found[last])
    return None


def work(function: Callable[..., Any]) -> None:
    """What each process does: call the function, and leave its result or its error in a file."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    (folder / f"process-{rank}").write_text(str(os.getpid()))
    arguments = pickle.loads((folder / "arguments").read_bytes())
    with (
        (folder / f"late-{rank}").open("w") as late,
        (folder / f"printed-{rank}").open("w", encoding="utf-8", buffering=1) as printed,
    ):
        faulthandler.dump_traceback_later(START_SECONDS, exit=True, file=late)
        try:
            with contextlib.redirect_stdout(printed), _connected():
                faulthandler.dump_traceback_later(seconds, exit=True, file=late)  # anew
                found = pickle.dumps(function(rank, world, **arguments))
                (folder / f"result-{rank}").write_bytes(found)
        except BaseException as error:
            _report(folder, rank, error)
            printed.flush()
            os._exit(1)  # without the others, who would be waited for
        faulthandler.cancel_dump_traceback_later()


def _report(folder: Path, rank: int, error: BaseException) -> None:
    """Write a worker's error to a file, without the frame of the launcher that caught it."""
    trace = error.__traceback__.tb_next if error.__traceback__ else None
    text = "".join(traceback.format_exception(type(error), error, trace)).strip()
    text = text.replace(str(folder) + os.sep, "")
    told = {"time": time.time(), "rank": rank, "text": text}
    (folder / f"told-{rank}").write_text(json.dumps(told), encoding="utf-8")
    (folder / f"told-{rank}").rename(folder / f"error-{rank}")


@contextlib.contextmanager
def _connected() -> Iterator[None]:
    """A process group on gloo, left by all at once."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    distributed.barrier()
    yield
    gc.collect()  # models that hold the group go before it does
    distributed.barrier()
    distributed.destroy_process_group()
