"""Workers of the trainer, forked from a process that has imported PyTorch: a launch in a moment.

    python worker_server.py     a request a line from stdin, a line of JSON for each on stdout

The workers of a launch are a process group of their own. Each writes what it says to a file.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from attnbook import train_lm
from attnbook.torch import train_lm as engine

LIMIT = 900  # seconds that a worker may live
assert callable(engine.train)


def work(rank: int, world: int, port: int, request: dict[str, Any]) -> None:
    """One worker, to its end."""
    signal.alarm(LIMIT)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past the limit is an OSError then
    file = os.open(request["said"] + f".{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(file, stream)
    if request.get("bytes"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["bytes"],) * 2)
    if world > 1:
        os.environ |= dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank))
        os.environ |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(world))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= request.get("environment", {})
    code = 70
    try:
        code = train_lm.main(request["arguments"])
    except SystemExit as left:
        code = int(left.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def start(request: dict[str, Any]) -> list[int]:
    """The workers' numbers as processes; the first one's is their group's."""
    port = free_port()
    pids: list[int] = []
    for rank in range(request["world"]):
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, pids[0] if pids else 0)
            work(rank, request["world"], port, request)
        os.setpgid(pid, pids[0] if pids else pid)
        pids.append(pid)
    return pids


def reached(metrics: str) -> int:
    """The last step of a file of metrics."""
    lines = Path(metrics).read_text().splitlines() if Path(metrics).exists() else []
    return json.loads(lines[-1])["step"] if lines else 0


def launch(request: dict[str, Any]) -> dict[str, Any]:
    """Start, kill where that is asked for, wait; the exit statuses, and whether anything is left."""
    pids, end = start(request), time.monotonic() + LIMIT
    if killed := request.get("kill"):
        while reached(killed["metrics"]) < killed["step"] and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(killed["after"])
        os.kill(pids[killed["rank"]], signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    try:
        os.killpg(pids[0], 0)
        left = True
    except ProcessLookupError:
        left = False
    said = [Path(f"{request['said']}.{rank}").read_text() for rank in range(request["world"])]
    return {"codes": codes, "said": said, "left": left}


def main() -> None:
    torch.set_num_threads(1)
    with os.fdopen(os.dup(1), "w") as answers:
        for line in sys.stdin:
            print(json.dumps(launch(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
