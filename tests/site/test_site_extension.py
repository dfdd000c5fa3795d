"""The site's extension on a small book that shows every feature once, and with faults."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path

import jupytext
import nbformat
import pytest
from attnbook_site.assets import trim_styles
from site_visits import ROOT, Visit, served

from attnbook_course.weaving.execution import execute

FIXTURE = Path(__file__).parent / "fixture"
FIRST, SECOND = "chapters/01-sample.html", "chapters/02-second.html"
ROAD = "chapters/just-enough-network.html"
REPOSITORY, PAGES = "https://github.com/some-one/a.copy", "https://some-one.github.io/a.copy"
PROJECT = f"""[project]
version = "1.0"
[project.urls]
Repository = "{REPOSITORY}"
Book = "{PAGES}"
"""


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Jupyter Book as make book does."""
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(folder), "-W", "-n", "--keep-going"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small book with an address and its notebooks executed, built once."""
    folder = shutil.copytree(FIXTURE, tmp_path_factory.mktemp("sample") / "book")
    for chapter in (folder / "chapters").glob("*.md"):
        notebook = jupytext.read(chapter)
        with ThreadPoolExecutor() as pool:  # Playwright has this thread's loop
            pool.submit(execute, notebook, chapter.stem, chapter.parent).result()
        nbformat.write(notebook, chapter.with_suffix(".ipynb"))
    config = (ROOT / "_config.yml").read_text("utf-8")
    config = config.replace("attnbook_site: _ext", f"attnbook_site: {(ROOT / '_ext').as_posix()}")
    (folder / "_config.yml").write_text(config, "utf-8")
    (folder / "pyproject.toml").write_text(PROJECT, "utf-8")
    (folder / "node_modules").symlink_to(ROOT / "node_modules", target_is_directory=True)
    done = build(folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[str]:
    with served(built / "_build" / "html") as address:
        yield address


def html_of(book: Path, page: str) -> str:
    return (book / "_build" / "html" / page).read_text(encoding="utf-8")


def test_with_an_address_a_chapter_has_its_buttons_and_says_where_it_lives(built: Path) -> None:
    html = html_of(built, FIRST)
    found = set(map(unescape, re.findall(r'href="(https://(?:github|colab|mybinder)[^"]*)"', html)))
    (issue,) = (link for link in found if link.startswith(f"{REPOSITORY}/issues/new?"))
    notebook = "some-one/a.copy/blob/main/chapters/01-sample.ipynb"
    assert found - {issue} == {
        REPOSITORY,
        f"{REPOSITORY}/edit/main/chapters/01-sample.md",
        f"https://colab.research.google.com/github/{notebook}",
        "https://mybinder.org/v2/gh/some-one/a.copy/main?urlpath=lab/tree/chapters/01-sample.ipynb",
    }


def test_search_engines_and_previews_of_links_are_told_what_a_page_is(built: Path) -> None:
    """Once each, and by the world's names; the list of pages has all, and not the search."""
    html = html_of(built, FIRST)
    head, about = html[: html.index("</head>")], 'What a weighted average is, and says "so".'
    tags = re.findall(
        r'<(?:meta|link) (?:name|property|rel)="([^"]*)" (?:content|href)="(.*?)"', head
    )
    told = {name: unescape(text) for name, text in tags}
    title = "Sample chapter (Nadaraya–Watson & others)"
    assert unescape(head).count(f"<title>{title} — From Kernel Regression") == 1
    assert told["description"] == told["og:description"] == about and told["og:title"] == title
    assert head.count("canonical") == 1
    assert told["canonical"] == told["og:url"] == f"{PAGES}/{FIRST}"
    assert told["og:image"] == f"{PAGES}/_static/card.png"
    data = json.loads(re.findall(r'"application/ld\+json">(.*?)</script>', head)[0])
    assert data["@type"] == ["Chapter", "LearningResource"] and data["position"] == "1"
    assert data["isPartOf"]["@type"] == "Book" and data["description"] == about
    data = re.findall(r'"application/ld\+json">(.*?)</script>', html_of(built, ROAD))[0]
    assert json.loads(data)["timeRequired"] == "PT1M" and "position" not in json.loads(data)
    listed = re.findall("<loc>(.*)</loc>", html_of(built, "sitemap.xml"))
    assert sorted(listed) == sorted(
        f"{PAGES}/{page}" for page in ("index.html", FIRST, SECOND, ROAD)
    )
    assert f"Sitemap: {PAGES}/sitemap.xml" in html_of(built, "robots.txt")


def test_an_assistant_gets_a_chapter_as_markdown_without_its_solutions(built: Path) -> None:
    """With what the code printed and its figures in words; llms.txt leads there, and pages to both."""
    place = FIRST.replace(".html", ".md")
    text, listed = html_of(built, place), html_of(built, "llms.txt")
    assert "```text\n[3.]\n```" in text and "*Figure: A short diagonal line*" in text
    assert f"## Weighted averages\n\n- [Sample chapter]({PAGES}/{place}): What a weighted" in listed
    head = html_of(built, FIRST)
    assert f'<link rel="alternate" type="text/markdown" href="{Path(place).name}" />' in head
    assert '<link rel="describedby" type="text/markdown" href="../llms.txt" />' in head


def test_styles_lose_the_rules_for_what_is_on_no_page(tmp_path: Path) -> None:
    """A class counts that is on a page or named in a script; one that must be missing does not."""
    sheet, script = tmp_path / "_static/styles/a-theme.css", tmp_path / "_static/a.js"
    sheet.parent.mkdir(parents=True)
    kept = "/* .gone{} */.on,.gone{a:b}%s@media print{.named:not(.gone){e:f}%s}"
    sheet.write_text(kept % (".gone .on{c:d}", ".on.gone{g:h}"), "utf-8")
    script.write_text('one.classList.add("named")', "utf-8")
    (tmp_path / "index.html").write_text('<p class="other on">gone</p>', "utf-8")
    trim_styles(tmp_path)
    assert sheet.read_text("utf-8") == kept % ("", "")


def test_cells_and_prose_follow_one_choice(open_page: Visit) -> None:
    page = open_page.go(FIRST)
    text = page.locator(".bd-article").inner_text()
    assert "from PyTorch" in text and "In JAX the parameters" not in text
    page.locator(".sd-tab-label", has_text="JAX").first.click()
    text = page.locator(".bd-article").inner_text()
    assert "from JAX" in text and "In JAX the parameters" in text and "from PyTorch" not in text
    assert "PyTorch alone" in text


def test_runs_of_cells_are_parted_where_a_back_end_returns(built: Path) -> None:
    """torch, torch, jax, torch, jax are two sets of tabs: two cells and one, one and one."""
    _, first, second = html_of(built, SECOND).split('<div class="sd-tab-set')
    assert [part.count('<div class="cell ') for part in first.split("sd-tab-content")] == [0, 2, 1]
    assert [part.count('<div class="cell ') for part in second.split("sd-tab-content")] == [0, 1, 1]


def test_a_folded_cell_says_what_it_holds(open_page: Visit) -> None:
    """A check its first line, a figure "Code"."""
    page = open_page.go(FIRST)
    summaries = page.locator("details.hide > summary")
    assert summaries.all_inner_texts() == ["Checked: two keys, by hand", "Code"]
    check = page.get_by_text("assert nadaraya_watson")
    assert not check.is_visible()
    summaries.first.click()
    assert check.is_visible()


def test_equations_count_by_chapter_and_figures_keep_their_words(built: Path) -> None:
    """The interlude begins with I.1; SVG comes before PNG, late, with alt text and size."""
    assert re.findall(r'class="eqno">\(([\w.]+)\)', html_of(built, ROAD)) == ["I.1", "I.2"]
    html = html_of(built, SECOND)
    assert re.findall(r'class="eqno">\(([\d.]+)\)', html) == ["2.1"]
    assert ">(2.1)</a>" in html and ">(1.1)</a>" in html
    size = r'<img loading="lazy" width="\d+" height="\d+" '
    image = size + r'[^>]*alt="([^"]*)" src="\.\./_images/[^"]*\.(\w+)"'
    assert dict(re.findall(image, html_of(built, FIRST))) == {
        "A bell-shaped curve over the line from minus three to three": "svg",
        "A short diagonal line": "svg",
    }


def test_what_is_deeper_is_folded_until_one_asks_for_it(open_page: Visit) -> None:
    """A link to what is in it opens it, as one to its heading; paper has it without."""
    page = open_page.go(ROAD)
    body = page.locator(".deeper-body")
    assert not body.is_visible()
    contents = page.locator(".bd-sidebar-secondary a[href^='#']")
    assert "Deeper: what one may leave out" in [
        " ".join(t.split()) for t in contents.all_inner_texts()
    ]
    for leads_there in (page.locator("p a[href='#equation-eq-deeper']"), contents.nth(1)):
        leads_there.click()
        page.locator(".deeper-body .math-display").wait_for()
        page.locator("details.deeper > summary").press("Enter")
        assert not body.is_visible()
    page.emulate_media(media="print")
    assert page.get_by_text("It goes with the whole.").is_visible()


def test_the_landing_page_lists_the_road_and_knows_where_one_was(open_page: Visit) -> None:
    """The last section on the road, not what is deeper or an exercise; one that nobody kept is not said."""
    page = open_page.go("index.html")
    entries = page.locator("ul.road > li")
    assert "and 40 to build" in entries.first.inner_text()
    assert page.locator(".road-go-on").count() == 0
    open_page.go(ROAD)
    kept = "() => JSON.parse(localStorage.getItem('attnbook-road') ?? '{}').at"
    assert page.evaluate(kept) is None
    for section, place in (
        ("deeper-what-one-may-leave-out", "what-one-reads"),
        ("what-one-reads-again", "what-one-reads-again"),
    ):
        page.evaluate(f"document.body.style.paddingBottom = '100vh', location.hash = '{section}'")
        page.wait_for_function(f"({kept})() === '{ROAD}#{place}'")
    open_page.go("index.html")
    assert "you are here" in entries.first.inner_text()
    page.locator(".road-go-on a", has_text="What one reads again").click()
    page.wait_for_url(f"**/{ROAD}#what-one-reads-again")


def test_a_formula_takes_the_comma_behind_it_and_no_other(built: Path) -> None:
    html = re.sub("<[^>]*katex-html.*?</span>,", "</span>,", html_of(built, "index.html"))
    words = re.search("<p><em>One.*equal texts", html)
    assert words and re.sub("<[^>]*>|ii?", "", words[0]).startswith("One, two, , three:")


def test_faults_fail_the_build_and_are_named(built: Path, tmp_path: Path) -> None:
    """A formula that KaTeX refuses, and outputs that are not those of the code; no old ones show."""
    book = shutil.copytree(built, tmp_path / "book", symlinks=True)
    index, second = book / "index.md", book / "chapters" / "02-second.md"
    index.write_text(
        "---\ndescription: A page\n---\n# A page\n\n$\\frac{1}{$\n\n$\\nosuchcommand{x}$\n\n$a^2$\n",
        "utf-8",
    )
    second.write_text(second.read_text("utf-8").replace('"from JAX", 3', '"JAX", 4'), "utf-8")
    done = build(book)
    said = done.stderr + done.stdout
    assert done.returncode != 0
    assert "index.md:6" in said and "expected '}'" in said
    assert "index.md:8" in said and r"Undefined control sequence: \nosuchcommand" in said
    html = html_of(book, "index.html")
    assert html.count("katex-error") == 2 and html.count('class="katex"') == 1
    assert re.search(r"02-second\.md:\d+: WARNING: got no stored outputs of the code as", said)
    assert "from PyTorch 1" not in html_of(book, SECOND)
