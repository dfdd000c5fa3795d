"""The book's address: nowhere until it is set, then the same in every file, and set again at will."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import address
import pytest
import yaml
from address import ROOT, Address
from check_environment import project_table

COPY = address.read_address("some-one/a.copy")
WITH_DOMAIN = address.read_address("other/book", "https://book.example.org/")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
OF_AN_ACCOUNT = re.compile(
    r"https?://(?:github\.com|colab\.research\.google\.com/github|mybinder\.org/v2/gh)/[^\s)>\"`]*"
    r"|https?://[\w-]+\.github\.io[^\s)>\"`]*|github\.com%2F[^&\s]*"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The texts of the repository, as they are without an address."""
    for path in address.texts(ROOT, None):
        copied = tmp_path / path.relative_to(ROOT)
        copied.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copied)
    put(tmp_path, None)
    return tmp_path


def put(root: Path, wanted: Address | None) -> dict[str, str]:
    """Write the texts with this address; what they then say, without their comments."""
    for path, text in address.texts(root, wanted).items():
        path.write_text(text, encoding="utf-8")
    return {
        path.relative_to(root).as_posix(): COMMENT.sub("", path.read_text(encoding="utf-8"))
        for path in address.texts(root, wanted)
    }


def present(root: Path) -> Address | None:
    """The address that pyproject.toml holds; None where there is none yet."""
    urls = project_table(root).get("urls")
    return Address(urls["Repository"], urls["Book"]) if urls else None


def accounts(said: dict[str, str]) -> dict[str, set[str]]:
    """The links of each text that lead to somebody's account."""
    return {path: found for path, text in said.items() if (found := {*OF_AN_ACCOUNT.findall(text)})}


def test_every_file_is_what_the_command_writes():
    for path, text in address.texts(ROOT, present(ROOT)).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: do make address"


def test_without_an_address_no_text_leads_to_an_account(root):
    said = put(root, None)
    assert {*said} == {
        *("README.md", "CONTRIBUTING.md", "index.md", "appendices/api.md"),
        *("appendices/hub.md", "pyproject.toml", "CITATION.cff"),
    }
    assert accounts(said) == {}
    assert present(root) is None


def test_with_an_address_every_link_leads_there(root):
    said = put(root, COPY)
    repository, pages = "https://github.com/some-one/a.copy", "https://some-one.github.io/a.copy"
    colab = "https://colab.research.google.com/github/some-one/a.copy/blob/main/chapters/"
    binder = "https://mybinder.org/v2/gh/some-one/a.copy/main?urlpath=lab/tree/chapters/"
    first = "01-kernel-regression.ipynb"
    quoted = "github.com%2Fsome-one%2Fa.copy"
    assert accounts(said) == {
        "README.md": {
            *(repository, f"{repository}/issues", pages, f"{pages}/attnbook.pdf"),
            *(colab + first, binder + first),
        },
        "CONTRIBUTING.md": {f"{repository}/issues"},
        "index.md": {
            *(repository, f"{pages}/attnbook.pdf", f"{pages}/attnbook-figures.zip"),
            *(binder + first, quoted),
        },
        "appendices/api.md": {repository},
        "appendices/hub.md": {quoted},
        "pyproject.toml": {repository, pages},
        "CITATION.cff": {repository, pages},
    }
    assert (ROOT / "chapters" / first).is_file()
    assert tomllib.loads(said["pyproject.toml"])["project"]["urls"] == {
        "Repository": repository,
        "Book": pages,
    }
    citation = yaml.safe_load(said["CITATION.cff"])
    assert (citation["repository-code"], citation["url"]) == (repository, pages)


def test_the_link_of_a_hub_pulls_this_copy_and_opens_a_chapter(root):
    (link,) = re.findall(r"https://YOUR\.HUB\S+", put(root, COPY)["index.md"])
    assert urlsplit(link).path == "/hub/user-redirect/git-pull"
    assert parse_qs(urlsplit(link).query, strict_parsing=True) == {
        "repo": [COPY.repository],
        "branch": ["main"],
        "urlpath": ["lab/tree/a.copy/chapters/01-kernel-regression.ipynb"],
    }


def test_it_can_be_set_again_and_nothing_stays_of_the_old_one(root):
    before = put(root, None)
    once = put(root, WITH_DOMAIN)
    assert put(root, WITH_DOMAIN) == once
    assert present(root) == WITH_DOMAIN
    put(root, COPY)
    assert put(root, WITH_DOMAIN) == once
    assert "some-one" not in "".join(once.values())
    assert put(root, None) == before


@pytest.mark.parametrize(
    ("repo", "pages"),
    [
        ("Some-One/a.copy", "https://some-one.github.io/a.copy"),
        ("Some-One/some-one.github.io", "https://some-one.github.io"),
    ],
)
def test_where_the_site_is_without_a_domain(repo, pages):
    assert address.read_address(repo) == Address(f"https://github.com/{repo}", pages)


@pytest.mark.parametrize(
    ("repo", "pages", "problem"),
    [
        ("", "", "REPO: got '', expected owner/name"),
        ("owner", "", "REPO: got 'owner', expected owner/name"),
        ("https://github.com/a/b", "", "REPO: got 'https://github.com/a/b', expected owner/name"),
        ("a/b.git", "", "REPO: got 'a/b.git', expected owner/name"),
        ("a/b/c", "", "REPO: got 'a/b/c', expected owner/name"),
        ("a/..", "", "REPO: got 'a/..', expected owner/name"),
        ('a/b"', "", "REPO: got 'a/b\"', expected owner/name"),
        ("a/b\n", "", "REPO: got 'a/b\\n', expected owner/name"),
        ("a/b", "book.org", "PAGES: got 'book.org', expected an address like https://"),
        ("a/b", "https://book.org/?q", "PAGES: got 'https://book.org/?q', expected an address"),
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_written(
    root, capsys, repo, pages, problem
):
    before = {path: path.read_bytes() for path in address.texts(root, None)}
    assert address.main([repo, pages], root) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(problem)
    assert before == {path: path.read_bytes() for path in before}


def test_a_passage_without_its_end_is_named(root):
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8").replace("<!-- /address -->", "", 1)
    readme.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"README\.md: got '<!-- address:' without its end"):
        address.texts(root, COPY)


def test_make_gives_the_command_both_words():
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    words = ["address", "PY=python", "REPO=some-one/a.copy", "PAGES=https://book.example.org"]
    done = subprocess.run([make, "-n", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = 'python tools/address.py "some-one/a.copy" "https://book.example.org"'
    assert expected in done.stdout.splitlines()  # beside which folder a make within make enters
