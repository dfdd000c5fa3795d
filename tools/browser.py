"""Which browser takes the pictures, prints and runs the tests of the site."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # to ask for a browser's name needs no Playwright
    from playwright.sync_api import Browser

CHROMIUMS = [
    "chromium-headless-shell",  # the same engine without a window's parts: less than half the time
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
]
NO_NETWORK = (
    "--no-sandbox",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
)


# live figures in a section that folds wait until it is open
UNFOLD = "document.querySelectorAll('details.deeper').forEach((one) => (one.open = true))"
INSTALL = (sys.executable, "-m", "playwright", "install", "--only-shell", "chromium")


def chromium() -> str | None:
    """A Chromium or Chrome: $CHROMIUM, the system's, or Playwright's own."""
    for name in [os.environ.get("CHROMIUM", ""), *CHROMIUMS]:
        if name and (path := shutil.which(name)):
            return path
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            whole = Path(playwright.chromium.executable_path)  # folder-of-a-version/system/program
    except Exception:  # an incomplete Playwright is no browser, whatever it says
        return None
    shells = sorted(whole.parents[2].glob("chromium_headless_shell-*/*/*headless*shell*"))
    found = [path for path in (whole, *reversed(shells)) if shutil.which(path)]
    return str(found[0]) if found else None


def fetched() -> str:
    """Playwright's headless Chromium, downloaded.

    Raises:
        LookupError: it cannot be had, or does not start here; why, in a line.
    """
    done = subprocess.run(INSTALL, capture_output=True, text=True)
    if done.returncode or not (path := chromium()):
        said = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
        reason = said[0].strip().removesuffix(", caused by") if said else "no reason given"
        raise LookupError(f"could not be downloaded ({reason})")
    started = subprocess.run([path, "--version"], capture_output=True, text=True)
    if started.returncode:
        raise LookupError(f"does not start here ({started.stderr.strip()[:200]})")
    return path


@contextmanager
def opened(program: str) -> Iterator[Browser]:
    """A Chromium that asks nothing of the network, and is closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(NO_NETWORK))
        yield browser
        browser.close()
