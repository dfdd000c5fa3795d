"""A browser with no network beyond this machine, and the built site behind a loopback address."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from firefox import Firefox
from playwright.sync_api import Browser, sync_playwright
from site_visits import (
    CHROMIUM_NAMES,
    NO_NETWORK,
    ROOT,
    SITE,
    Visit,
    chromium_path,
    out_of_date,
    served,
    visit,
)

# the longest first, so that no process is left with one when the others are done
LONGEST = (
    "pages",
    "extension",
    "live_phone",
    "pdf",
    "live_pages",
    "live_models",
    "menus",
    "stills",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    order = {f"test_site_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without one the tests are skipped, but not on CI."""
    path = chromium_path()
    if path is None:
        names = ", ".join(CHROMIUM_NAMES)
        missing = f"the site's tests need Chromium: set CHROMIUM, or put one of {names} on PATH"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(NO_NETWORK))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site; an old one would pass or fail for another reason."""
    if problem := out_of_date(ROOT, SITE):
        pytest.fail(problem)
    with served(SITE) as address:
        yield address


@pytest.fixture
def open_page(browser: Browser, site: str) -> Iterator[Visit]:
    """A fresh visit with an empty store: ``page = open_page.go("index.html")``."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield visit(context, site)
    context.close()


@pytest.fixture(scope="session")
def firefox() -> Iterator[Firefox]:
    """One Firefox for all tests; each opens its pages anew, at the width that it wants."""
    if not shutil.which("firefox"):
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail("the site's tests need Firefox: put firefox on PATH")
        pytest.skip("there is no Firefox here")
    with Firefox() as firefox:
        yield firefox
