"""Which browser takes the pictures, prints and runs the tests of the site."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

CHROMIUMS = [
    "chromium-headless-shell",  # the same engine without a window's parts: less than half the time
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
]


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
