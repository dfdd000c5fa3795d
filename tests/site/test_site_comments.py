"""Comments by giscus: none by default; with a place, a button, and no request before it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect
from site_visits import ROOT, SITE, served, visit
from sphinx.errors import ExtensionError
from test_site_extension import FIXTURE, make_book

sys.path.insert(0, str(ROOT / "_ext"))

from attnbook_site.comments import read_comments

PLACE = {
    "repository": "some-one/a.copy",
    "repository-number": "R_kgDO123-x",
    "category": "Announcements & more",
    "category-number": "DIC_kwDO456_y",
}


def table(place: dict[str, str]) -> str:
    """As pyproject.toml has it."""
    lines = "".join(f'{name} = "{value}"\n' for name, value in place.items())
    return f"\n[tool.attnbook.comments]\n{lines}"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The small book, with a place for comments."""
    folder = tmp_path_factory.mktemp("comments") / "book"
    folder.mkdir()
    project = (ROOT / "pyproject.toml").read_text("utf-8") + table(PLACE)
    (folder / "pyproject.toml").write_text(project, "utf-8")
    done = make_book(folder, FIXTURE)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    with served(folder / "_build" / "html") as found:
        yield found


@pytest.mark.parametrize(("theme", "said"), [("dark", "dark"), ("auto", "preferred_color_scheme")])
def test_the_button_asks_giscus_and_nothing_does_before(
    browser: Browser, address: str, theme: str, said: str
) -> None:
    context = browser.new_context()
    there = visit(context, address)
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body="document.body.dataset.giscus = JSON.stringify(document.currentScript.dataset);",
                      content_type="text/javascript", headers={"access-control-allow-origin": "*"})  # fmt: skip

    context.route("https://giscus.app/**", answer)
    page = there.go("chapters/01-sample.html", rest=True)
    assert there.outside == [] == asked
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    page.get_by_role("button", name="Show the comments").click()
    page.wait_for_function("document.body.dataset.giscus")
    assert asked == ["https://giscus.app/client.js"]
    given = page.evaluate("JSON.parse(document.body.dataset.giscus)")
    assert [given[name] for name in ("repo", "repoId", "category", "categoryId")] == [
        *PLACE.values()
    ]
    assert given["theme"] == said
    context.close()


def test_where_giscus_does_not_answer_the_reader_is_told(browser: Browser, address: str) -> None:
    context = browser.new_context()
    context.route("https://giscus.app/**", lambda route: route.abort())
    page = visit(context, address).go("chapters/01-sample.html")
    page.get_by_role("button", name="Show the comments").click()
    expect(page.locator(".comments")).to_contain_text("giscus.app does not answer.")
    expect(page.get_by_role("button", name="Show the comments")).to_be_visible()
    context.close()


def test_there_is_none_by_default() -> None:
    assert read_comments(ROOT) == {}
    for page in SITE.glob("chapters/*.html"):
        assert "giscus" not in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"repository": "a/b"}, "got repository, expected repository, repository-number, category"),
        (PLACE | {"repository": "a"}, "repository: got 'a', expected what matches"),
        (PLACE | {"category-number": "7"}, "category-number: got '7', expected what matches DIC_"),
    ],
)
def test_a_place_that_cannot_be_is_named(tmp_path: Path, place: dict[str, str], said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(table(place), "utf-8")
    with pytest.raises(ExtensionError, match=said):
        read_comments(tmp_path)
