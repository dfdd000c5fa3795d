"""Runs tests on a copy of the package, in processes that have imported the libraries already."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from faults import fork_server

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "attnbook"


def copied(folder: Path) -> Path:
    """A copy of the package: sources, and what Python has compiled of them."""
    target = folder / "attnbook"
    shutil.copytree(
        PACKAGE, target, ignore=shutil.ignore_patterns("static", "*.bin", "*.weights", "results")
    )
    return target


class ForkServers:
    """By back ends: processes that have imported them, and run tests in forks.

    What JAX has compiled for one fault it need not compile for the next.
    """

    def __init__(self, folder: Path) -> None:
        self.started: dict[str, subprocess.Popen[str]] = {}
        self.settings = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }

    def of(self, backends: str) -> subprocess.Popen[str]:
        if backends in self.started and not fork_server.FORKS:  # it has run its one
            self.started.pop(backends).communicate()
        if backends not in self.started:
            self.started[backends] = subprocess.Popen(
                [sys.executable, fork_server.__file__, backends],
                env=os.environ | self.settings,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self.started[backends]

    def run(
        self, copy: Path, tests: tuple[str, ...], backends: str, seconds: int = fork_server.SECONDS
    ) -> tuple[int, str]:
        """The exit status, as fork_server.run has it, and what was printed."""
        config = copy.parent / "pytest.ini"  # the project's own settings name plugins
        config.write_text("[pytest]\nmarkers =\n    slow\n    gpu\nfilterwarnings = error\n")
        options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-c", str(config)]
        options += ["--rootdir", str(TESTS), *(str(TESTS / test) for test in tests)]
        environment = {
            "ATTNBOOK_BACKENDS": backends,
            "PYTHONPATH": str(copy.parent),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
        }
        printed = copy.parent / "printed.txt"
        request = {
            "package": str(copy),
            "output": str(printed),
            "environment": environment,
            "options": options,
            "seconds": seconds,
        }
        process = self.of(backends)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        text = printed.read_text(encoding="utf-8", errors="replace") if printed.exists() else ""
        assert answer, text
        return int(answer), text

    def close(self) -> None:
        for process in self.started.values():
            process.communicate()
