"""What several files say is the same in all of them, and no file says what it must not."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import attnbook

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11.7", "3.12.1", "3.13.0")
CONDA_NAMES = {"pytorch": "torch"}
MOST_LINES = 400
CHAPTERS_CHECKS = re.compile(r"src/attnbook_course/checks/ch\d\d\.py")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def direct_dependencies(leaving_out: tuple[str, ...] = ()) -> dict[str, Requirement]:
    extras = PROJECT["optional-dependencies"].items()
    lists = [PROJECT["dependencies"], *(some for e, some in extras if e not in leaving_out)]
    found = [Requirement(line) for lines in lists for line in lines]
    return {canonicalize_name(r.name): r for r in found if r.name != PROJECT["name"]}


def pins(python: str) -> dict[str, Version]:
    """The versions of constraints.txt for a Python on Linux."""
    short = python.rpartition(".")[0]
    where = {
        "python_full_version": python,
        "python_version": short,
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    found = {}
    for line in read("constraints.txt").splitlines():
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(where):
            (exact,) = pin.specifier
            assert exact.operator == "==", line
            assert canonicalize_name(pin.name) not in found, f"{pin.name} is pinned twice"
            found[canonicalize_name(pin.name)] = Version(exact.version)
    return found


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in done.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def tracked_texts() -> dict[str, str]:
    """Every tracked file that is UTF-8 text."""
    texts = {}
    for path in tracked_files():
        try:
            texts[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return texts


@pytest.mark.parametrize("python", PYTHONS)
def test_every_direct_dependency_is_pinned_within_its_range(python):
    pinned = pins(python)
    for name, requirement in direct_dependencies().items():
        assert name in pinned, f"{name} has no pin; make constraints"
        assert requirement.specifier.contains(pinned[name], prereleases=True), requirement


def test_the_pins_of_the_direct_dependencies_are_the_same_for_every_python():
    # The committed outputs of the notebooks are compared on all of them.
    first, *others = (pins(python) for python in PYTHONS)
    for name in [*direct_dependencies(), "pandas"]:
        assert all(other[name] == first[name] for other in others), name


def test_conda_environment_has_the_same_pins():
    packages = yaml.safe_load(read("environment.yml"))["dependencies"]
    (pip,) = (entry["pip"] for entry in packages if isinstance(entry, dict))
    lines = [entry for entry in packages if isinstance(entry, str)] + pip
    python = next(line for line in lines if line.startswith("python=")).partition("=")[2]
    pinned = pins(f"{python}.1")
    listed = {}
    for line in lines:
        name, separator, version = line.partition("==")
        if separator:
            listed[CONDA_NAMES.get(name, name)] = Version(version)
    assert listed == {
        name: pinned[name] for name in direct_dependencies(leaving_out=("triton", "mutation"))
    }
    assert "-c constraints.txt" in pip
    assert "-e .[test]" in pip


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert attnbook.__version__ == version
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    newest = re.search(r"^## \[?v?(\d[^\]\s]*)", read("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def test_supported_pythons_are_the_tested_ones():
    listed = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    tested = set(re.findall(r'python: "(3\.\d+)"', read(".github/workflows/test.yml")))
    assert listed == tested == {python.rpartition(".")[0] for python in PYTHONS}


def test_no_file_names_an_account_but_that_of_the_address():
    # pyproject.toml may have one; until then an account that nobody knows is named nowhere.
    repository = PROJECT.get("urls", {}).get("Repository", "https://github.com/")
    own = repository.removeprefix("https://github.com/")
    name = "|".join({PROJECT["name"], re.escape(own.rpartition("/")[2]) or PROJECT["name"]})
    # of GitHub's own links, Colab's, Binder's, and nbgitpuller's, where an address is quoted
    link = re.compile(
        r"(?:github(?:usercontent)?\.com/(?:github/)?|mybinder\.org/v2/gh/|github\.com%2F|git@\S+:)"
        rf"([\w.-]+(?:/|%2F)(?:{name}))\b"
    )
    for path, text in tracked_texts().items():
        found = {match.replace("%2F", "/") for match in link.findall(text)}
        assert found <= {own}, path


def test_no_file_names_a_package_registry():
    # One that did would break where packages come from a mirror. Spelt so as not to find itself.
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "ana" + "conda.org"]
    for path, text in tracked_texts().items():
        assert [host for host in hosts if host in text] == [], path


def test_no_file_names_a_folder_of_someones_machine():
    folder = re.compile(r"(?<![\w.}/-])(?:/home|/root|/Users|/work|[A-Z]:\\+Users)[/\\]+\w+")
    for path, text in tracked_texts().items():
        assert folder.findall(text) == [], path


def test_no_source_file_is_long():
    for path in tracked_files():
        relative = path.relative_to(ROOT)
        if CHAPTERS_CHECKS.fullmatch(relative.as_posix()):
            continue  # a chapter's checks stand together
        if relative.name == "_validation.py":
            continue  # one module for all that is accepted
        if relative.parts[0] in ("src", "tools", "_ext") and path.suffix == ".py":
            lines = len(path.read_text(encoding="utf-8").splitlines())
            assert lines <= MOST_LINES, f"{relative} has {lines} lines"


def test_npm_versions_are_exact():
    package = json.loads(read("package.json"))
    wanted = {**package.get("dependencies", {}), **package.get("devDependencies", {})}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values()), wanted
