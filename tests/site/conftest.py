"""A browser with no network beyond this machine, and the built site behind a loopback address."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from firefox import Firefox
from playwright.sync_api import Browser, expect, sync_playwright
from site_visits import (
    CHROMIUM_NAMES,
    NO_NETWORK,
    PATIENCE,
    ROOT,
    SITE,
    Visit,
    chromium_path,
    out_of_date,
    served,
    visiting,
)

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "_ext")]  # whose modules the tests here import


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A second browser is for the long run."""
    for item in items:
        if "firefox" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def required(what: str) -> None:
    """Skip, but not on CI: there nothing may be missing."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests; without it they are skipped, but not on CI."""
    path = chromium_path()
    if path is None:
        names = ", ".join(CHROMIUM_NAMES)
        required(f"the site's tests need Chromium: set CHROMIUM, or put one of {names} on PATH")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        yield playwright.chromium.launch(executable_path=path, args=list(NO_NETWORK))


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site; an old one would pass or fail for another reason."""
    if problem := out_of_date(ROOT):
        pytest.fail(problem)
    with served(SITE) as address:
        yield address


@pytest.fixture
def open_page(browser: Browser, site: str, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A fresh visit with an empty store: ``page = open_page.go("index.html")``.

    Its parameter has options of the browser's context.
    """
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
    with visiting(browser, site, **options | getattr(request, "param", {})) as seen:
        yield seen


@pytest.fixture(scope="session")
def firefox() -> Iterator[Firefox]:
    """One Firefox for all tests; each opens its pages anew, at the width that it wants."""
    if not shutil.which("firefox"):
        required("the site's tests need Firefox: put firefox on PATH")
    with Firefox() as firefox:
        yield firefox
