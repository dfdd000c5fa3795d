"""The site's extension on a small book that shows every feature once, and on books with a fault."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import quote

import address
import jupytext
import nbformat
import pytest
from attnbook_site.maths import shorten
from site_visits import ROOT, WIDTHS, Visit, served

from attnbook_course.weaving.execution import execute

FIXTURE = Path(__file__).parent / "fixture"
FIRST, SECOND = "chapters/01-sample.html", "chapters/02-second.html"


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Jupyter Book as make book does.

    Without the grammar of web addresses: to compile it, which jsonschema does at its import, takes
    as long as the rest of a second build, and no book asks for it.
    """
    program = Path(sys.executable).with_name("jupyter-book")
    without = folder.parent / "without"
    without.mkdir(exist_ok=True)
    (without / "rfc3987_syntax.py").write_text("raise ImportError\n", encoding="utf-8")
    return subprocess.run(
        [str(program), "build", str(folder), "-W", "-n", "--keep-going"],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(without)},
    )


@cache
def executed(chapter: Path) -> str:
    """A chapter's notebook, executed."""
    notebook = jupytext.read(chapter)
    with ThreadPoolExecutor() as pool:  # Playwright has this thread's loop
        pool.submit(execute, notebook, chapter.stem, chapter.parent).result()
    text: str = nbformat.writes(notebook)
    return text


def make_book(
    folder: Path, source: Path | None = None, body: str = ""
) -> subprocess.CompletedProcess[str]:
    """Build a book with this repository's configuration, from ``source`` or of one page."""
    if source:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        for chapter in (folder / "chapters").glob("*.md"):
            chapter.with_suffix(".ipynb").write_text(executed(chapter), encoding="utf-8")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
        (folder / "references.bib").write_text("", encoding="utf-8")
        (folder / "index.md").write_text(f"# A page\n\n{body}\n", encoding="utf-8")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config = config.replace("attnbook_site: _ext", f"attnbook_site: {(ROOT / '_ext').as_posix()}")
    (folder / "_config.yml").write_text(config, encoding="utf-8")
    if not (folder / "pyproject.toml").exists():
        shutil.copy2(ROOT / "pyproject.toml", folder)
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(ROOT / "node_modules", target_is_directory=True)
    return build(folder)


def built_book(folder: Path, source: Path) -> Path:
    """The site of a book that has no fault."""
    done = make_book(folder, source)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder / "_build" / "html"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small book, built once; a test that changes it takes ``book``."""
    folder = tmp_path_factory.mktemp("sample") / "book"
    built_book(folder, FIXTURE)
    return folder


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[str]:
    with served(built / "_build" / "html") as address:
        yield address


def html_of(book: Path, page: str) -> str:
    return (book / "_build" / "html" / page).read_text(encoding="utf-8")


@pytest.fixture
def book(built: Path) -> Iterator[Path]:
    """The small book as it was first built, times included, and so again after the test."""
    kept = built.with_name("kept")
    shutil.copytree(built, kept, symlinks=True)
    yield built
    shutil.rmtree(built)
    kept.rename(built)


ACCOUNT = re.compile(
    r'href="(https://(?:github\.com|colab|mybinder|kaggle|codespaces|[\w-]+\.github\.io)[^"]*)"|(github[^"\s]*%2F\S*)'
)


def links_of(folder: Path, repo: str) -> dict[str, set[str]]:
    """Build the small book, with this address or with none; each page's links to an account."""
    wanted = address.read_address(repo) if repo else None
    source = shutil.copytree(FIXTURE, folder.with_name("source"))
    project = address.project((ROOT / "pyproject.toml").read_text(encoding="utf-8"), wanted)
    (source / "pyproject.toml").write_text(project, encoding="utf-8")
    said = address.filled((ROOT / "index.md").read_text(encoding="utf-8"), wanted)
    run_it = said[said.index("## Run it") : said.index("- **On your machine")]
    teach_it = said[said.index("A class with") : said.index("## Doubt it")]
    index = source / "index.md"
    text = index.read_text(encoding="utf-8")
    # the sections of a page that the small book has not
    places = "".join(f"\n({label})=\n## A {label}\n" for label in ("hub", "hub-image"))
    both = f"{run_it}\n## Teach it\n\n{teach_it}\n{places}"
    index.write_text(f"{text}\n{both}", encoding="utf-8")
    built_book(folder, source)
    texts = {page: html_of(folder, page) for page in ("index.html", FIRST)}
    assert "address" not in "".join(re.findall("<!--.*?-->", texts["index.html"], re.DOTALL))
    assert "nbgitpuller" in texts["index.html"]
    return {
        page: {unescape("".join(found)) for found in ACCOUNT.findall(text)}
        for page, text in texts.items()
    }


@pytest.mark.slow
def test_without_an_address_no_page_leads_to_an_account(tmp_path: Path) -> None:
    """No button for a repository, its issues, an edit, Colab or Binder, and no such link."""
    assert links_of(tmp_path / "book", "") == {"index.html": set(), FIRST: set()}


@pytest.mark.slow
def test_with_an_address_every_page_has_its_buttons(tmp_path: Path) -> None:
    """For this repository, and no other."""
    links = links_of(tmp_path / "book", "some-one/a.copy")
    both, repository = "some-one/a.copy", "https://github.com/some-one/a.copy"
    chapter = {link for link in links[FIRST] if "/issues/new?" not in link}
    home = "https://some-one.github.io/a.copy"
    chapter.remove(f"{home}/{FIRST}")
    assert chapter == {
        repository,
        f"{repository}/edit/main/chapters/01-sample.md",
        f"https://colab.research.google.com/github/{both}/blob/main/chapters/01-sample.ipynb",
        f"https://mybinder.org/v2/gh/{both}/main?urlpath=lab/tree/chapters/01-sample.ipynb",
        f"https://kaggle.com/kernels/welcome?src={repository}/blob/main/chapters/01-sample.ipynb",
        f"https://codespaces.new/{both}",
    }
    (issue,) = links[FIRST] - {*chapter, f"{home}/{FIRST}"}
    assert issue.startswith(f"{repository}/issues/new?")
    first = "lab/tree/chapters/01-kernel-regression.ipynb"
    assert f"https://mybinder.org/v2/gh/{both}/main?urlpath={first}" in links["index.html"]
    colab = f"https://colab.research.google.com/github/{both}/blob/main/chapters/01-sample.ipynb"
    assert colab in links["index.html"] and f"{home}/index.html" in links["index.html"]
    for page in ("index.html", FIRST):
        text = html_of(tmp_path / "book", page)
        assert f'<link rel="canonical" href="{home}/{page}"' in text
        assert f'<meta property="og:url" content="{home}/{page}"' in text
        assert f'<meta property="og:image" content="{home}/_static/card.png"' in text
    hub = f"github.com%2Fsome-one%2Fa.copy&branch=main&urlpath={quote(first, safe='')}"
    hub = hub.replace("tree%2F", "tree%2Fa.copy%2F")
    assert any(link.startswith(hub) for link in links["index.html"])
    assert all("some-one" in link for link in links["index.html"])


def test_neighbouring_cells_and_tab_sets_become_blocks(open_page: Visit) -> None:
    """Cells and prose follow one choice; a cell of one back end alone stays, under its name."""
    page = open_page.go(FIRST)
    assert page.locator(".backend-block").count() == 3
    assert page.get_by_role("tablist").count() == 2
    assert "from PyTorch" in page.locator(".bd-article").inner_text()
    assert "In JAX the parameters" not in page.locator(".bd-article").inner_text()
    page.get_by_role("tab", name="JAX").nth(0).click()
    text = page.locator(".bd-article").inner_text()
    assert "from JAX" in text and "In JAX the parameters" in text and "from PyTorch" not in text
    assert "PyTorch alone" in text
    assert page.locator(".backend-single .backend-name").inner_text() == "PyTorch"


def test_a_folded_cell_says_what_it_holds(open_page: Visit) -> None:
    """A check its first line, a figure "Code"; a press shows the cell, and a second hides it."""
    page = open_page.go(FIRST)
    summaries = page.locator("details.hide > summary")
    assert summaries.all_inner_texts() == ["Checked: two keys, by hand", "Code"]
    check = page.get_by_text("assert nadaraya_watson")
    assert not check.is_visible()
    summaries.first.click()
    assert check.is_visible()
    summaries.first.click()
    assert not check.is_visible()


def test_runs_of_cells_are_parted_where_a_back_end_returns(built: Path) -> None:
    """torch, jax, torch, jax are two blocks; torch, torch, jax is one."""
    html = html_of(built, SECOND)
    panels = re.findall(r'<div class="backend-(block|panel)', html)
    assert panels == ["block", "panel", "panel", "block", "panel", "panel"]
    _, first, _ = html.split('<div class="backend-block')
    assert first.count("from PyTorch") == 2 * 2 and first.count("from JAX") == 2


def test_equations_count_by_chapter(built: Path) -> None:
    """The second chapter begins with 2.1, and knows the first chapter's numbers."""
    html = html_of(built, SECOND)
    assert re.findall(r'class="eqno">\(([\d.]+)\)', html) == ["2.1"]
    assert ">(2.1)</a>" in html and ">(1.1)</a>" in html


def test_figures_are_drawings_with_their_alt_text(built: Path) -> None:
    """SVG comes before PNG, and the alt text reaches the image with and without a caption."""
    image = r'<img [^>]*alt="([^"]*)" src="\.\./_images/[^"]*\.(\w+)"'
    images = dict(re.findall(image, html_of(built, FIRST)))
    assert images == {
        "A bell-shaped curve over the line from minus three to three": "svg",
        "A short diagonal line": "svg",
    }


def test_the_download_is_the_notebook_beside_the_source(built: Path) -> None:
    """Not the theme's copy, whose text cells are raw MyST."""
    notebook = (built / "chapters/01-sample.ipynb").read_text(encoding="utf-8")
    assert html_of(built, "_sources/chapters/01-sample.ipynb") == notebook


@pytest.mark.parametrize("open_page", [{"color_scheme": "dark"}], indirect=True)
def test_a_figure_stands_on_the_page_in_the_dark(open_page: Visit) -> None:
    """The theme would put it on a light box, with changed colours."""
    page = open_page.go(FIRST)
    style = "(e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).filter])"
    assert page.locator(".cell_output img").first.evaluate(style) == [
        "rgba(0, 0, 0, 0)",
        "brightness(1.15)",
    ]


@pytest.mark.parametrize("open_page", [{"viewport": WIDTHS["phone"]}], indirect=True)
def test_long_boxes_scroll_and_can_be_reached(open_page: Visit) -> None:
    """On a phone long formulas and code scroll in their own boxes, by keyboard too."""
    page = open_page.go(FIRST)
    wide = "e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex === 0"
    assert page.locator("#equation-eq-long .math-scroll").evaluate(wide)
    assert page.locator("div.cell_input pre").first.evaluate(wide)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_formulas_that_katex_refuses_fail_the_build(tmp_path: Path) -> None:
    """With the page, the line and KaTeX's own words; the formula after them is shown."""
    done = make_book(tmp_path / "book", body="$\\frac{1}{$\n\n$\\nosuchcommand{x}$\n\n$a^2$")
    said = done.stderr + done.stdout
    assert done.returncode != 0
    assert "index.md:3" in said and "expected '}'" in said
    assert "index.md:5" in said and r"Undefined control sequence: \nosuchcommand" in said
    html = html_of(tmp_path / "book", "index.html")
    assert html.count("katex-error") == 2 and html.count('class="katex"') == 1


def test_a_formula_is_written_in_few_bytes() -> None:
    """What has no effect goes from the part for the eye; its text and the MathML stay."""
    ear = '<math><mi class="mord" style="margin-left:0em;">a</mi></math>'
    eye = '<span class="katex-html"><span class="mord">x</span><span class="mord tall big" style='
    eye += '"top:-0.5em;margin-left:0em;margin-right:10.05em;">class="mord" 0.5</span></span>'
    short = "<span class=katex-html><span>x</span>"
    short += (
        '<span class="tall big" style=top:-.5em;margin-right:10.05em>class="mord" 0.5</span></span>'
    )
    styled = frozenset({"katex-html", "tall", "big"})
    assert shorten(ear + eye, styled) == ear + short


def files(site: Path) -> dict[str, bytes]:
    paths = (path for path in site.rglob("*") if path.is_file())
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_building_again_gives_the_same_site(book: Path) -> None:
    """With nothing changed, after a changed chapter, and after a build that was interrupted."""
    site = book / "_build" / "html"
    first = files(site)
    assert "_static/book.css" in first
    for _ in range(2):
        done = build(book)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        assert files(site) == first
    chapter = book / "chapters" / "02-second.md"
    text = chapter.read_text(encoding="utf-8")
    chapter.write_text(text + "\nA sentence more.\n", encoding="utf-8")
    assert build(book).returncode == 0
    second = files(site)
    changed = {name for name in first.keys() | second if first.get(name) != second.get(name)}
    page = "chapters/02-second"
    assert changed == {f"{page}.html", f"_sources/{page}.md", "_static/search-index.js"}
    assert b"A sentence more." in second[f"{page}.html"]
    (site / "_static" / "book.css").unlink()
    assert build(book).returncode == 0
    assert files(site) == second


@pytest.mark.slow
def test_a_second_build_still_has_its_styles(book: Path) -> None:
    """Styles are trimmed to the pages at hand; the next build starts from the whole ones."""
    page = book / "index.md"
    page.write_text(
        page.read_text(encoding="utf-8") + "\n:::{seealso}\nAnother box.\n:::\n", encoding="utf-8"
    )
    assert build(book).returncode == 0
    styles = html_of(book, "_static/book.css")
    assert ".admonition.seealso" in styles and 'url("katex/fonts/KaTeX_Main-Regular' in styles
    assert "html[data-theme=dark] .highlight" in styles.replace('"', "")  # the theme's last words


@pytest.mark.slow
def test_a_notebook_executed_again_builds_its_page_again(book: Path) -> None:
    """The page's text is the same, its outputs are not."""
    notebook = min((book / "chapters").glob("*.ipynb"))
    text = notebook.read_text(encoding="utf-8")
    notebook.write_text(text.replace("from JAX [", "anew, from JAX ["), encoding="utf-8")
    assert "0 added, 1 changed" in build(book).stdout
    assert "anew, from JAX [" in html_of(book, FIRST)


@pytest.mark.slow
def test_a_label_may_move_to_another_page(book: Path) -> None:
    """The first page in the alphabet is read while the second still has the label in the cache."""
    second, index = book / "chapters" / "02-second.md", book / "chapters" / "01-sample.md"
    text = second.read_text(encoding="utf-8")
    label = re.search(r"^\$\$ \((eq-[\w-]+)\)$", text, re.MULTILINE)
    assert label
    second.write_text(text.replace(label[0], "$$"), encoding="utf-8")
    index.write_text(
        index.read_text(encoding="utf-8").replace(
            "## The weighted average", f"$$\na\n{label[0]}\n\n## The weighted average"
        ),
        encoding="utf-8",
    )
    done = build(book)
    assert "duplicate label" not in done.stdout + done.stderr
