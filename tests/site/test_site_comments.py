"""Comments by giscus: none by default; with a place, a button, and no request before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attnbook_site.comments import read_comments
from playwright.sync_api import Route, expect
from site_visits import ROOT, SITE, Visit, served
from sphinx.errors import ExtensionError
from test_site_extension import FIRST, FIXTURE, built_book

GISCUS = "https://giscus.app/**"
SCRIPT = "document.body.dataset.giscus = JSON.stringify(document.currentScript.dataset);"
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
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The small book, with a place for comments."""
    folder = tmp_path_factory.mktemp("comments") / "book"
    folder.mkdir()
    project = (ROOT / "pyproject.toml").read_text("utf-8") + table(PLACE)
    (folder / "pyproject.toml").write_text(project, "utf-8")
    with served(built_book(folder, FIXTURE)) as address:
        yield address


@pytest.mark.parametrize(("theme", "said"), [("dark", "dark"), ("auto", "preferred_color_scheme")])
def test_the_button_asks_giscus_and_nothing_does_before(
    open_page: Visit, theme: str, said: str
) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        headers = {"access-control-allow-origin": "*"}
        route.fulfill(body=SCRIPT, content_type="text/javascript", headers=headers)

    open_page.expected = "giscus"
    open_page.page.route(GISCUS, answer)
    page = open_page.go(FIRST, rest=True)
    assert open_page.outside == [] == asked
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    page.get_by_role("button", name="Show the comments").click()
    page.wait_for_function("document.body.dataset.giscus")
    assert asked == ["https://giscus.app/client.js"]
    given = page.evaluate("JSON.parse(document.body.dataset.giscus)")
    assert [given[name] for name in ("repo", "repoId", "category", "categoryId")] == [
        *PLACE.values()
    ]
    assert given["theme"] == said


def test_where_giscus_does_not_answer_the_reader_is_told(open_page: Visit) -> None:
    open_page.expected = "giscus|ERR_FAILED"
    open_page.page.route(GISCUS, lambda route: route.abort())
    page = open_page.go(FIRST)
    page.get_by_role("button", name="Show the comments").click()
    expect(page.locator(".comments")).to_contain_text("giscus.app does not answer.")
    expect(page.get_by_role("button", name="Show the comments")).to_be_visible()


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
