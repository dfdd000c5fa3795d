"""What Lighthouse says of every page of the built site, beside a default Jupyter Book page.

    make book lighthouse                       every page, three runs each (an hour on two cores)
    python -m experiments.lighthouse --quick    chapter 1 and the default page once; stores nothing
    python -m experiments.lighthouse --quick index.html appendices/status.html       these once

What else runs on the machine costs a page points. So the load average of the minute before each
page is stored with its scores, and what each of the three runs gave; with a load of 1 or more
before it begins, a full run says so and goes on.

Lighthouse's own settings for a phone: a slow 4G line and a processor a quarter as fast as this
one, both simulated. The site comes from this machine as from GitHub Pages: compressed, kept for
ten minutes. The default page is chapter 1's notebook in a book with the configuration that
`jupyter-book create` writes, with and without compression. It asks other hosts for MathJax and
Thebe; where there is no network, it is lighter and faster here than for its readers.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from experiments.storing import store

VERSION = "13.5.0"
ROOT = Path(__file__).parents[1]
SITE, TOOL = ROOT / "_build/html", ROOT / "_build/lighthouse"
CHAPTER = "01-kernel-regression"
CATEGORIES = ("performance", "accessibility", "best-practices")
NUMBERS = {
    "first paint, s": ("first-contentful-paint", 1000, 1),
    "largest paint, s": ("largest-contentful-paint", 1000, 1),
    "blocked, ms": ("total-blocking-time", 1, 0),
    "shift": ("cumulative-layout-shift", 1, 3),
    "kB": ("total-byte-weight", 1000, 0),
}
TEXT = {".html", ".css", ".js", ".json", ".svg", ".xml", ".txt"}
PROGRAMS = Path(sys.executable).parent  # node, npm and jupyter-book lie beside Python


@cache
def compressed(path: Path) -> bytes:
    """A file as GitHub Pages sends it."""
    return gzip.compress(path.read_bytes(), compresslevel=6)


class Handler(SimpleHTTPRequestHandler):
    """Answers as GitHub Pages does, over HTTP/1.1."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, zipped: bool, **kwargs: Any) -> None:
        self.zipped = zipped
        super().__init__(*args, **kwargs)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not (self.zipped and path.suffix in TEXT and path.is_file()):
            return super().do_GET()
        body = compressed(path)
        kind = self.guess_type(path)
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if "svg" not in kind else kind)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # the browser has left the page
            self.wfile.write(body)
        return None


@contextmanager
def served(folder: Path, zipped: bool = True) -> Iterator[str]:
    """The address of a folder behind a server on this machine."""
    handler = partial(Handler, directory=str(folder), zipped=zipped)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def program(name: str) -> str:
    """One of the programs that came with the environment, otherwise one on PATH."""
    found = shutil.which(name, path=str(PROGRAMS)) or shutil.which(name)
    if not found:
        raise SystemExit(f"Lighthouse needs {name}: make env-test, or put {name} on PATH")
    return found


def install() -> None:
    """Lighthouse in a folder of its own under _build, in the version above."""
    package = TOOL / "node_modules/lighthouse/package.json"
    if package.is_file() and json.loads(package.read_text(encoding="utf-8"))["version"] == VERSION:
        return
    TOOL.mkdir(parents=True, exist_ok=True)
    TOOL.joinpath("package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = [program("npm"), "install", "--no-audit", "--no-fund", f"lighthouse@{VERSION}"]
    subprocess.run(command, cwd=TOOL, check=True)


def report(address: str) -> dict[str, Any]:
    """One run of Lighthouse."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    found = (path for name in names if (path := shutil.which(name)))
    chrome = os.environ.get("CHROMIUM") or next(found, None)
    done = subprocess.run(
        [
            program("node"),
            str(TOOL / "node_modules/lighthouse/cli/index.js"),
            address,
            "--quiet",
            "--output=json",
            f"--only-categories={','.join(CATEGORIES)}",
            "--chrome-flags=--headless=new --no-sandbox",
        ],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, **({"CHROME_PATH": chrome} if chrome else {})},
    )
    found_there: dict[str, Any] = json.loads(done.stdout)
    if "runtimeError" in found_there:
        raise RuntimeError(f"{address}: {found_there['runtimeError']['message']}")
    return found_there


def losses(run: dict[str, Any]) -> list[str]:
    """The audits that cost the page points, and of the others those that it fails."""
    weighty = {
        ref["id"]
        for name in CATEGORIES
        for ref in run["categories"][name]["auditRefs"]
        if ref["weight"] or name != "performance"
    }
    score = {name: audit["score"] for name, audit in run["audits"].items()}
    return sorted(a for a in weighty if score[a] is not None and score[a] < 0.9)


def measure(address: str, runs: int) -> dict[str, Any]:
    """Medians over some runs of one page."""
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    found = [report(address) for _ in range(runs)]
    median = statistics.median
    row: dict[str, Any] = {
        name: round(median(100 * run["categories"][name]["score"] for run in found))
        for name in CATEGORIES
    }
    for name, (audit, unit, digits) in NUMBERS.items():
        value = median(run["audits"][audit]["numericValue"] for run in found) / unit
        row[name] = round(value, digits) if digits else round(value)
    requests = [r for run in found for r in run["audits"]["network-requests"]["details"]["items"]]
    hosts = {r["url"].split("/")[2] for r in requests if r["url"].startswith("http")}
    row["other hosts"] = sorted(hosts - {address.split("/")[2]})
    row["loses"] = sorted({audit for run in found for audit in losses(run)})
    row["each"] = [round(100 * run["categories"]["performance"]["score"]) for run in found]
    row["load before"] = load
    row["speed of this machine"] = median(run["environment"]["benchmarkIndex"] for run in found)
    return row


@contextmanager
def default_book() -> Iterator[Path]:
    """The site of a book with the template's configuration and chapter 1's stored notebook."""
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "book"
        say = {"check": True, "capture_output": True}
        subprocess.run([program("jupyter-book"), "create", str(book)], **say)
        shutil.copy2(ROOT / f"chapters/{CHAPTER}.ipynb", book)
        contents = f"format: jb-book\nroot: intro\nchapters:\n- file: {CHAPTER}\n"
        book.joinpath("_toc.yml").write_text(contents, encoding="utf-8")
        config = book / "_config.yml"
        text = config.read_text(encoding="utf-8")
        text = text.replace("execute_notebooks: force", "execute_notebooks: off")
        config.write_text(text + "\nonly_build_toc_files: true\n", encoding="utf-8")
        subprocess.run([program("jupyter-book"), "build", str(book)], **say)
        yield book / "_build/html"


def show(name: str, row: dict[str, Any]) -> None:
    """A line of the table."""
    numbers = " ".join(f"{row[key]!s:>7}" for key in (*CATEGORIES, *NUMBERS, "load before"))
    print(f"{name:40s} {numbers}  {', '.join([*row['loses'], *row['other hosts']])}", flush=True)


def asked() -> tuple[bool, list[str]]:
    """Whether for a trial, and for which pages of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("pages", nargs="*", default=[f"chapters/{CHAPTER}.html"])
    found = parser.parse_args()
    return found.quick, found.pages


def main() -> None:
    quick, chosen = asked()
    if not (SITE / "index.html").is_file():
        raise SystemExit("There is no built book yet. Do: make book")
    install()
    folders = [SITE / "chapters", SITE / "appendices"]
    pages = [SITE / "index.html", *(f for folder in folders for f in sorted(folder.glob("*.html")))]
    paths = chosen if quick else [p.relative_to(SITE).as_posix() for p in pages]
    runs = 1 if quick else 3
    began = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    if began is not None and began >= 1:
        print(f"The machine is at work already, with a load of {began}: pages will seem slower.")
    print(f"performance, accessibility, best practices; {', '.join(NUMBERS)}, load; what fails")
    table = {}
    with default_book() as default:
        for name, zipped in (("default", True), ("default, not compressed", False)):
            with served(default, zipped) as address:
                table[name] = measure(f"{address}/{CHAPTER}.html", runs)
                show(name, table[name])
    with served(SITE) as address:
        for path in paths:
            table[path] = measure(f"{address}/{path}", runs)
            show(path, table[path])
    if not quick:
        store("lighthouse", version=VERSION, runs=runs, load=began, pages=table)


if __name__ == "__main__":
    main()
