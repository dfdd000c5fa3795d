"""Build the website into _build/html: what changed since the last time, and say what took how long.

python tools/make_book.py

Jupyter Book writes the pages with the outputs that the notebooks store, and executes nothing; the
decks of the lectures follow. Where no file changed since a build that went well, nothing is done.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from check_environment import ROOT, stop

SITE = ROOT / "_build" / "html"
# The fingerprint of what the last good build was made from; its time is that of the build.
MARK = ROOT / "_build" / ".book"
# What Sphinx goes by when it leaves a page as it is; neither outlives a build that did not end.
KEPT = (ROOT / "_build" / ".doctrees" / "environment.pickle", SITE / ".buildinfo")
LOG = ROOT / "_build" / "book.log"
WARNING = re.compile(r"^.*(?:WARNING|ERROR|CRITICAL|Error): .*$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
NO_OUTPUTS = "do: make notebooks"  # of a page whose notebook does not fit it
MOST = 8  # warnings that a screen has room for
BROUGHT = (ROOT / "_build" / "published", ROOT / "_build" / "pyodide")  # for the site itself
# no sources, as is what is hidden
ASIDE = {"_build", "node_modules", "dist", "tests", "experiments", "__pycache__"}


def sources(folder: Path = ROOT) -> Iterator[Path]:
    """Every file that a page may show or be made by."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.name in ASIDE or entry.name.endswith(".egg-info"):
            continue
        if entry.is_dir():
            yield from sources(Path(entry.path))
        elif not entry.name.endswith(".pyc"):
            yield Path(entry.path)


def fingerprint() -> str:
    """One number for all sources, their places, and the Python that builds."""
    found = hashlib.sha256(f"{ROOT} {sys.executable} {sys.version}".encode())
    for folder in BROUGHT:  # by its name: the files are large, and checked when they come
        found.update(f"\n{sorted(path.name for path in folder.glob('*'))}".encode())
    for path in sources():
        found.update(f"\n{path.relative_to(ROOT)} ".encode("utf-8", "surrogateescape"))
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def commands() -> dict[str, list[str]]:
    """What is done, one after the other; scripts lie beside the Python that runs this."""
    book = Path(sysconfig.get_path("scripts")) / ("jupyter-book" + ".exe" * (os.name == "nt"))
    return {
        "pages": [str(book), "build", ".", "-W", "-n", "--keep-going"],
        "slides": [sys.executable, "tools/make_slides.py"],
    }


def where() -> None:
    """Where the site is."""
    print(f"\nThe book is at {SITE / 'index.html'}")
    print("Open that file, or type 'make serve' and go to http://localhost:8000", flush=True)


def run(command: list[str], environment: Mapping[str, str] = os.environ) -> tuple[int, str]:
    """Run a command, its words shown as they come; its exit status and what it said."""
    said = b""
    in_place = {"FORCE_COLOR": "1"} if sys.stdout.isatty() else {}  # lines that count on the spot
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**environment, **in_place},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        while part := os.read(process.stdout.fileno(), 1 << 16):
            sys.stdout.buffer.write(part)
            sys.stdout.flush()
            said += part
    words = COLOUR.sub("", said.decode("utf-8", "replace"))
    return process.returncode, words.replace("\r", "\n")


def explain(said: str) -> NoReturn:
    """End with what failed: in one screen, below all that was said on the way."""
    found = list(dict.fromkeys(line.strip() for line in WARNING.findall(said)))
    lines = found or said.strip().splitlines()[-MOST:]
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    first = "\n  ".join([line.replace(f"{ROOT}{os.sep}", "")[:300] for line in lines[:MOST]] + more)
    notebooks = "make notebooks, and then " * (NO_OUTPUTS in said)
    stop(
        f"The book was not built:\n  {first}",
        f"{notebooks or 'mend what it names, and '}make book again; "
        f"{LOG.relative_to(ROOT)} has all that was said.",
        "make lab; and what was built, as far as it came, lies in _build/html.",
    )


def main() -> int:
    """The command; returns its exit status."""
    began, now = time.time(), fingerprint()
    if SITE.is_dir() and MARK.is_file() and MARK.read_text("utf-8") == now:
        os.utime(MARK, (began, began))
        print("Nothing has changed since the book was built.")
        where()
        return 0
    if not MARK.is_file():  # the last build failed or was stopped, or there was none
        for file in KEPT:
            file.unlink(missing_ok=True)
    MARK.unlink(missing_ok=True)
    taken, log = {}, ""
    for name, command in commands().items():
        start = time.perf_counter()
        status, said = run(command)
        taken[name] = time.perf_counter() - start
        log += said
        LOG.parent.mkdir(exist_ok=True)
        LOG.write_text(log, "utf-8")
        if status:
            explain(said)
    MARK.write_text(now, "utf-8")
    os.utime(MARK, (began, began))
    where()
    print("It took", ", ".join(f"{name} {seconds:.0f} s" for name, seconds in taken.items()))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped. Type make book again to go on.")
