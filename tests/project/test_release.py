"""A release: its checks refuse, its archives are complete."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest
import release
import yaml

CHANGELOG = """\
# Changelog

## 0.2.0 (2027-03-05)

- Second.

## 0.1.0 (2026-12-01)

- First.

- And more.
"""
FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"
[project]
name = "attnbook"
version = "0.2.0"
requires-python = ">=3.11"
[tool.hatch.build.targets.wheel]
packages = ["src/attnbook"]
""",
    "CHANGELOG.md": CHANGELOG,
    "src/attnbook/__init__.py": "",
    "LICENSE": "MIT\n",
    "LICENSE-CONTENT": "CC BY\n",
    "chapters/01-one.ipynb": "{}\n",
    "chapters/01-one.md": "# One\n",
    "_build/html/index.html": "<title>A book</title>\n",
    "_build/html/.buildinfo": "hidden\n",
    "_build/html/_static/page.css": "body {}\n",
    "_build/pdf/attnbook.pdf": "%PDF\n",
    "_build/cards/attnbook.apkg": "cards\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a built site."""
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8", newline="\n")
    return root


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_tag_that_fits_is_ready(project, capsys):
    assert release.main(["check", "v0.2.0"], project) == 0
    assert capsys.readouterr().out == "v0.2.0 is ready.\n"


@pytest.mark.parametrize(
    ("old", "new", "tag", "problem"),
    [
        ("", "", "v0.1.0", "the tag is v0.1.0; pyproject.toml has 0.2.0, so it must be v0.2.0"),
        ("", "", "0.2.0", "so it must be v0.2.0"),
        ("## 0.2.0", "## 0.2.1", "v0.2.0", "no section '## 0.2.0'"),
        ("2027-03-05", "unreleased", "v0.2.0", "must say when: .* not \\(unreleased\\)"),
        (" (2027-03-05)", "", "v0.2.0", "must say when"),
        ("- Second.", "", "v0.2.0", "says nothing under '## 0.2.0'"),
    ],
)
def test_what_does_not_fit_is_refused(project, old, new, tag, problem):
    edit(project / "CHANGELOG.md", old, new)
    with pytest.raises(release.NotReady, match=problem):
        release.check(project, tag)
    assert release.main(["check", tag], project) == 1


def test_the_archives_hold_what_they_promise(project):
    pytest.importorskip("hatchling")
    assert release.main(["archives"], project) == 0
    out, name = project / "dist", "attnbook-0.2.0"
    with zipfile.ZipFile(out / f"{name}-site.zip") as site:
        inside = {one for one in site.namelist() if not one.endswith("/")}
        assert inside == {
            f"{name}-site/{one}" for one in ("_static/page.css", "index.html", ".buildinfo")
        }
        assert site.read(f"{name}-site/index.html").decode() == FILES["_build/html/index.html"]
    with zipfile.ZipFile(out / f"{name}-notebooks.zip") as notebooks:
        inside = {one.partition("/")[2] for one in notebooks.namelist()}
        assert inside == {"", "01-one.ipynb", "LICENSE", "LICENSE-CONTENT"}
    for kind, text in (("pdf", "%PDF\n"), ("apkg", "cards\n")):
        assert (out / f"{name}.{kind}").read_text(encoding="utf-8") == text
    lines = (out / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = dict(reversed(line.split("  ")) for line in lines)
    files = sorted(out.glob("attnbook-*"))
    assert len(files) == 6  # the wheel and the source distribution, too
    assert listed == {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}
    text = (out / "NOTES.md").read_text(encoding="utf-8")
    assert text.startswith("- Second.\n") and "First" not in text
    assert all(f"`{f.name}`" in text for f in files)
    (project / "_build/pdf/attnbook.pdf").unlink()
    assert release.main(["archives"], project) == 1


def test_what_is_said_elsewhere_of_the_book_is_what_pyproject_says():
    """The package's own page runs as it stands; the record of a DOI and the citation agree."""
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (root / project["readme"]).read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(compile(example, str(root / project["readme"]), "exec"), {})
    assert not re.search(r"\]\((?!https://)", readme), "a relative link leads nowhere on PyPI"
    extras = set(re.findall(r"`(\w+)`", readme[readme.index("Extras:") :]))
    assert extras <= set(project["optional-dependencies"])
    record = json.loads((root / ".zenodo.json").read_text("utf-8"))
    cited = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    assert record["title"] == cited["title"]
    assert record["keywords"] == cited["keywords"] == project["keywords"]
    assert record["license"] == project["license"] == cited["license"][0]
    assert [one["name"] for one in record["creators"]] == [project["authors"][0]["name"]]
