"""Which browser takes the pictures, prints and runs the tests of the site."""

from __future__ import annotations

import os
import shutil
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


def chromium() -> str | None:
    """A Chromium or Chrome: $CHROMIUM, the system's, or Playwright's own."""
    for name in [os.environ.get("CHROMIUM", ""), *CHROMIUMS]:
        if name and (path := shutil.which(name)):
            return path
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            path = playwright.chromium.executable_path
    except Exception:  # an incomplete Playwright is no browser, whatever it says
        return None
    return path if Path(path).exists() else None


@contextmanager
def opened(program: str) -> Iterator[Browser]:
    """A Chromium that asks nothing of the network, and is closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(NO_NETWORK))
        yield browser
        browser.close()
