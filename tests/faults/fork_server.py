"""Runs pytest in forks of a process that has imported the libraries, and not yet attnbook.

To import PyTorch and JAX takes longer than most faults take to be found. Where processes cannot
fork (Windows) or had better not (macOS), every run is a process of its own.

    python fork_server.py torch,jax     reads a run a line from stdin, answers each with its exit status
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import warnings
from typing import Any

LIBRARIES = {
    "always": [
        "numpy",
        "pytest",
        "hypothesis.extra.numpy",
        "array_api_compat",
        "jaxtyping",
        "tqdm",
    ],
    "numpy": ["sklearn.datasets", "num2words"],  # the data sets
    "torch": ["torch", "torch._dynamo", "torch._decomp"],  # the latter two at some first use
    "jax": ["jax.numpy", "equinox", "optax"],
}
FORKS = hasattr(os, "fork") and sys.platform == "linux"
SECONDS = 300  # that a run may take, unless it is told another number


def run(package: str, output: str, environment: dict[str, str], options: list[str]) -> int:
    """70: another attnbook than the package's; 1: a test failed; 0: all passed; else pytest's own."""
    os.environ.update(environment)
    sys.path.insert(0, os.path.dirname(package))
    with open(output, "wb", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    import pytest

    import attnbook

    if not (attnbook.__file__ or "").startswith(package):
        return 70
    return int(pytest.main(options))


def in_a_fork(request: dict[str, Any], seconds: int) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        code = 71
        try:
            code = run(**request)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(backends: str) -> None:
    warnings.simplefilter("ignore")  # pytest sets its own filters for every test
    for name in ["always", *backends.split(",")] if FORKS else []:
        for library in LIBRARIES.get(name, []):
            try:
                importlib.import_module(library)
            except ModuleNotFoundError:
                continue
    gc.freeze()  # a fork collects nothing of what it inherits
    with os.fdopen(os.dup(1), "w") as answers:
        for line in sys.stdin:
            request = json.loads(line)
            seconds = request.pop("seconds", SECONDS)
            code = in_a_fork(request, seconds) if FORKS else run(**request)
            print(code, file=answers, flush=True)
            if not FORKS:
                break


if __name__ == "__main__":
    sys.path.pop(0)  # this folder
    main(*sys.argv[1:])
