"""A browser with no network beyond this machine, and the built site behind a loopback address."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fonts
import pytest
from firefox import Firefox
from live_visits import alone
from playwright.sync_api import Browser, Page, expect, sync_playwright
from site_visits import (
    CHROMIUM_NAMES,
    NO_NETWORK,
    PATIENCE,
    ROOT,
    SITE,
    Visit,
    chromium_path,
    new_page,
    out_of_date,
    served,
    visiting,
)

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "_ext")]  # whose modules the tests here import
FONTS = os.environ.get("ATTNBOOK_FONTS", fonts.OWN).split(",")  # such as dejavu,liberation
# the longest first, so that no process is left with one when the others are done
LONGEST = [
    "pages",
    "lectures",
    "live_phone",
    "live_models",
    "live_pages",
    "cut",
    "code",
    "extension",
    "pdf",
    "stills",
    "menus",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; a second browser is for the long run.

    What must fit with any fonts is marked ``layout``.
    """
    for item in items:
        for fixture, mark in (("firefox", pytest.mark.slow), ("in_fonts", pytest.mark.layout)):
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)
    order = {f"test_site_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


def required(what: str) -> None:
    """Skip, but not on CI: there nothing may be missing."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def launch() -> Iterator[Callable[[str], Browser]]:
    """Chromium with the fonts of a name, or the machine's; one of each for all tests.

    Without a Chromium, or without those fonts, the tests are skipped, but not on CI.
    """
    path = chromium_path()
    if path is None:
        names = ", ".join(CHROMIUM_NAMES)
        required(f"the site's tests need Chromium: set CHROMIUM, or put one of {names} on PATH")
    with TemporaryDirectory(ignore_cleanup_errors=True) as kept, sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)

        @cache
        def launch(name: str) -> Browser:
            try:
                seen = fonts.environment(name, Path(kept))
            except LookupError as missing:
                required(str(missing))
            return playwright.chromium.launch(
                executable_path=path, args=list(NO_NETWORK), env={**seen}
            )

        yield launch


@pytest.fixture(scope="session")
def browser(launch: Callable[[str], Browser]) -> Browser:
    """Chromium with the machine's fonts, or the first that ATTNBOOK_FONTS names."""
    return launch(FONTS[0])


@pytest.fixture(scope="module", params=FONTS)
def in_fonts(launch: Callable[[str], Browser], request: pytest.FixtureRequest) -> Browser:
    """Chromium with each set of fonts that ATTNBOOK_FONTS names, for what must fit with all."""
    return launch(request.param)


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the built site; an old one would pass or fail for another reason."""
    if problem := out_of_date(ROOT, SITE):
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


@pytest.fixture(scope="module")
def page(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """The live figure ``shown()`` of a file of tests; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("figure"), request.module.shown()) as seen:
        yield seen.page


@pytest.fixture(scope="module")
def blank(browser: Browser) -> Iterator[Page]:
    """A page with nothing in it."""
    page = new_page(browser)
    yield page
    page.close()


@pytest.fixture(scope="session")
def firefox() -> Iterator[Firefox]:
    """One Firefox for all tests; each opens its pages anew, at the width that it wants."""
    if not shutil.which("firefox"):
        required("the site's tests need Firefox: put firefox on PATH")
    with Firefox() as firefox:
        yield firefox
