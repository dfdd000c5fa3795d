"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(code: str, **environment: str) -> str:
    """What the code prints; an AssertionError with its errors where it fails."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
