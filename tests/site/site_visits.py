"""A browser's visit to the built site, and what the page asked for and complained about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Frame,
    Page,
    Response,
    ViewportSize,
)

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SOURCES = [
    "_config.yml",
    "_toc.yml",
    "index.md",
    "references.bib",
    "pyproject.toml",
    "package-lock.json",
]
FOLDERS = ("_ext", "appendices", "chapters", "doors", "images", "lectures", "src")
# of a test that takes `open_page`
without_script = pytest.mark.parametrize(
    "open_page", [{"java_script_enabled": False}], indirect=True, ids=[""]
)
WIDTHS: dict[str, ViewportSize] = {
    "desk": {"width": 1440, "height": 900},
    "phone": {"width": 390, "height": 844},
    "small": {"width": 360, "height": 740},
}
PATIENCE = 120_000  # milliseconds until a state that is waited for counts as missing
# what a page does after a frame was drawn is done when two more have been
FRAMES = """() => new Promise((done) => {
  const next = (left) => (left ? requestAnimationFrame(() => next(left - 1)) : setTimeout(done));
  next(3);
})"""
RESTS = """() => new Promise((done) => {
  let before, same = 0;
  const look = () => {
    const now = JSON.stringify(%s);
    same = now === before ? same + 1 : 0;
    before = now;
    if (same === 8) done(JSON.parse(now));
    else requestAnimationFrame(look);
  };
  look();
})"""
NO_NETWORK = (
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_path() -> str | None:
    """The Chromium that CHROMIUM names, or one on PATH."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def out_of_date(root: Path) -> str | None:
    """Why the built site does not show what the sources say; None if it does.

    The mark of `make book` has the time at which the last good build began.
    """
    mark = root / "_build" / ".book"
    if not mark.is_file():
        return "there is no built site: run make book"
    found = (file for folder in FOLDERS for file in (root / folder).rglob("*.*"))
    sources = [file for file in found if not {"__pycache__", ".ipynb_checkpoints"} & {*file.parts}]
    sources = [f for f in (*sources, *(root / name for name in SOURCES)) if f.is_file()]
    newest = max(sources, key=lambda file: file.stat().st_mtime)
    if newest.stat().st_mtime <= mark.stat().st_mtime:
        return None
    return f"{newest.relative_to(root).as_posix()} is newer than the built site: run make book"


def pages_of(site: Path) -> list[str]:
    """Every page of the book, as paths below the site; slides and doors are no pages of it."""
    pages = (file.relative_to(site) for file in site.rglob("*.html"))
    return sorted(
        page.as_posix()
        for page in pages
        if page.parts[0] not in ("_static", "_sources", "_images", "lectures", "doors")
    )


def listed() -> list[str]:
    """The files of _toc.yml, in its order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return ["index", *(page["file"] for part in toc["parts"] for page in part["chapters"])]


class QuietHandler(SimpleHTTPRequestHandler):
    """A file server that keeps its log to itself."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder behind a loopback server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run_tool(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """What a file of ``tools`` does in a process of its own, as ``make`` runs it."""
    command = [sys.executable, str(ROOT / "tools" / name), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def article(page: str) -> str:
    """The text of a page of the site, without the frame around it."""
    return page[page.index('<article class="bd-article">') : page.index("</article>")]


def unfold(page: Page) -> None:
    """Open what is deeper, so that the live figures in it wake."""
    page.evaluate("document.querySelectorAll('details.deeper').forEach((one) => (one.open = true))")


@dataclass
class Visit:
    """An open page, with what it asked for and what it complained about."""

    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    expected: str | None = None  # what a test provokes, as a regular expression

    @property
    def outside(self) -> list[str]:
        """Requests to any host but the site's own; data and blobs are in the page already."""
        own, inside = urlsplit(self.address).netloc, ("data", "blob", "file")
        parts = {url: urlsplit(url) for url in self.requests}
        return [url for url, of in parts.items() if of.scheme not in inside and of.netloc != own]

    @property
    def faults(self) -> list[str]:
        """Requests to another host and complaints, but for those that the test expects."""
        found = self.outside + self.complaints
        return [one for one in found if self.expected is None or not re.search(self.expected, one)]

    def go(self, path: str, *, rest: bool = False) -> Page:
        """Open a page of the site; with ``rest``, wait until it asks for nothing more."""
        self.page.goto(f"{self.address}/{path}")
        if rest:
            self.page.wait_for_load_state("networkidle")
        return self.page


def next_frames(page: Page | Frame) -> None:
    """Wait until the page has done what it does with the next frames."""
    page.evaluate(FRAMES)


def rests(page: Page | Frame, value: str) -> Any:
    """The value of an expression, once it stays the same from frame to frame."""
    return page.evaluate(RESTS % value)


def faded(page: Page) -> None:
    """Wait until nothing on the page fades or moves by itself any more."""
    # What the browser skips, far from the window, stands still until it is near: its promises too.
    page.wait_for_function(
        """() => document.getAnimations().every((one) => one.playState !== "running"
          || !one.effect.target.checkVisibility({ contentVisibilityAuto: true }))""",
        polling=50,
    )


def new_page(browser: Browser, **options: Any) -> Page:
    """A page of its own that waits as long as a visit does."""
    page = browser.new_page(**options)
    page.set_default_timeout(PATIENCE)
    return page


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Visit]:
    """A visit in a window of its own, which asks no other host and complains of nothing."""
    context = browser.new_context(**options)
    seen = visit(context, address)
    try:
        yield seen
        assert not seen.faults, seen.faults
    finally:
        context.close()


def visit(context: BrowserContext, address: str) -> Visit:
    """A new page that keeps a record."""
    context.set_default_timeout(PATIENCE)
    result = Visit(context.new_page(), address)

    def complain(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            result.complaints.append(message.text)

    result.page.on("request", lambda request: result.requests.append(request.url))
    result.page.on("response", lambda response: result.responses.append(response))
    result.page.on("pageerror", lambda error: result.complaints.append(str(error)))
    result.page.on("console", complain)
    return result
