"""Build the website into _build/html: what changed since the last time, and say what took how long.

python tools/make_book.py

The outputs of the notebooks go into Jupyter Book's cache, Jupyter Book writes the pages, and the
decks of the lectures follow. Where no file changed since a build that went well, nothing is done.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from check_environment import ROOT

SITE = ROOT / "_build" / "html"
MARK = ROOT / "_build" / ".book"  # the fingerprint of what the last good build was made from
READ = ROOT / "_build" / ".doctrees" / "environment.pickle"  # what Sphinx keeps of all pages
SHEET = SITE / "_static" / "book.css"  # its time is that of the build
# and what is hidden
ASIDE = {"_build", "node_modules", "dist", "locales", "tests", "benchmarks", "__pycache__"}
QUIET = {"TQDM_DISABLE": "1"}  # the asides train while the book is built, and a bar is no output


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
    for path in sources():
        found.update(f"\n{path.relative_to(ROOT)} ".encode("utf-8", "surrogateescape"))
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def commands() -> dict[str, list[str]]:
    """What is done, one after the other; scripts lie beside the Python that runs this."""
    book = Path(sysconfig.get_path("scripts")) / ("jupyter-book" + ".exe" * (os.name == "nt"))
    return {
        "outputs": [sys.executable, "tools/fill_cache.py"],
        "pages": [str(book), "build", ".", "-W", "-n", "--keep-going"],
        "slides": [sys.executable, "tools/make_slides.py"],
    }


def where() -> None:
    """Where the site is."""
    print(f"\nThe book is at {SITE / 'index.html'}")
    print("Open that file, or type 'make serve' and go to http://localhost:8000", flush=True)


def main() -> int:
    """The command; returns its exit status."""
    began, now = time.time(), fingerprint()
    if SHEET.is_file() and MARK.is_file() and MARK.read_text("utf-8") == now:
        os.utime(SHEET, (began, began))
        print("Nothing has changed since the book was built.")
        where()
        return 0
    MARK.unlink(missing_ok=True)
    taken = {}
    for name, command in commands().items():
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, env=os.environ | QUIET)
        taken[name] = time.perf_counter() - start
        if done.returncode:
            READ.unlink(missing_ok=True)  # or a page with a warning would pass the next time
            return done.returncode
    MARK.write_text(now, "utf-8")
    where()
    print("It took", ", ".join(f"{name} {seconds:.0f} s" for name, seconds in taken.items()))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped. Type make book again to go on.")
