"""What the Python that runs this lacks of pyproject.toml and constraints.txt.

python tools/check_environment.py            end with an error if anything is missing
python tools/check_environment.py --exact    and also if a version is not the pinned one
"""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
APART = ("triton",)  # extras that no environment of the project needs


def stop(problem: str, do: str, works: str) -> NoReturn:
    """End with what is wrong, what to do, and what can be done all the same."""
    sys.exit(f"\n{problem}\n  Do: {do}\n  Still works: {works}")


def some(names: list[str]) -> str:
    """The first few names, and how many more."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def project_table() -> dict[str, Any]:
    """The [project] table of pyproject.toml, as it is now."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def requirements() -> list[str]:
    """The direct dependencies of every extra but those that stand apart."""
    project = project_table()
    extras = project["optional-dependencies"].items()
    lists = [project["dependencies"], *(lines for name, lines in extras if name not in APART)]
    return [line for lines in lists for line in lines if not line.startswith("attnbook[")]


def lacking() -> list[str]:
    """The packages that are missing or out of range, through all dependencies."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ["every package"]
    missing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [(Requirement(line), "") for line in requirements()]
    while todo:
        wanted, extra = todo.pop()
        if (str(wanted), extra) in seen:
            continue
        seen.add((str(wanted), extra))
        if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
            continue
        try:
            found = metadata.distribution(wanted.name)
        except metadata.PackageNotFoundError:
            missing.add(wanted.name)
            continue
        if not wanted.specifier.contains(found.version, prereleases=True):
            missing.add(f"{wanted.name}{wanted.specifier} (here {found.version})")
        for line in found.requires or []:
            todo.extend((Requirement(line), name) for name in ("", *wanted.extras))
    package = importlib.util.find_spec("attnbook")
    if package is None or not Path(str(package.origin)).is_relative_to(ROOT):
        missing.add("attnbook itself")
    elif metadata.version("attnbook") != (version := project_table()["version"]):
        missing.add(f"attnbook as version {version}")
    return sorted(missing)


def other_versions() -> list[str]:
    """The pins that the running Python does not keep to."""
    from packaging.requirements import Requirement

    other = []
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate():
            try:
                here = metadata.version(pin.name)
            except metadata.PackageNotFoundError:
                continue
            if not pin.specifier.contains(here, prereleases=True):
                other.append(f"{pin.name} {here}, not {pin.specifier}")
    return other


def main(exact: bool) -> None:
    """Name what is missing; tell of other versions."""
    missing = lacking()
    if missing:
        stop(
            f"{sys.executable} lacks {some(missing)}.",
            f"{sys.executable} -m pip install -c constraints.txt -e '.[test]'",
            "make without PY=, which makes an environment of its own in .venv.",
        )
    if other := other_versions():
        print(f"Other versions than constraints.txt: {some(other)}.")
        print("  Printed numbers may differ from the notebooks' in the last digits.", flush=True)
        sys.exit(exact)


if __name__ == "__main__":
    main("--exact" in sys.argv)
