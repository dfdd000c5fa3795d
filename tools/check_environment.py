"""What the Python that runs this lacks of pyproject.toml and constraints.txt.

python tools/check_environment.py book            end with an error if one of its packages lacks
python tools/check_environment.py book --exact    and also if a version is not the pinned one
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent


def stop(problem: str, do: str, works: str) -> NoReturn:
    """End with what is wrong, what to do, and what can be done all the same."""
    sys.exit(f"\n{problem}\n  Do: {do}\n  Still works: {works}")


def some(names: list[str]) -> str:
    """The first few names, and how many more."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def project_table(root: Path = ROOT) -> dict[str, Any]:
    """The [project] table of pyproject.toml, as it is now."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def requirements(extra: str) -> list[str]:
    """The direct dependencies of an extra, and of those that it is made of."""
    project = project_table()
    if extra not in project["optional-dependencies"]:
        sys.exit(f"no such extra: {extra}; there are {', '.join(project['optional-dependencies'])}")
    found, todo = list(project["dependencies"]), [extra]
    while todo:
        for line in project["optional-dependencies"][todo.pop()]:
            if inner := re.fullmatch(r"attnbook\[(.+)\]", line):
                todo += inner[1].split(",")
            else:
                found.append(line)
    return found


def lacking(extra: str) -> list[str]:
    """The packages of an extra that are missing or out of range, through all dependencies."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ["every package"]
    missing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [(Requirement(line), "") for line in requirements(extra)]
    while todo:
        wanted, asked = todo.pop()
        if (str(wanted), asked) in seen:
            continue
        seen.add((str(wanted), asked))
        if wanted.marker and not wanted.marker.evaluate({"extra": asked}):
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


def gpu() -> str | None:
    """What torch and JAX see beside the CPU; None if neither sees anything."""
    import jax
    import torch

    mps = "mps" if torch.backends.mps.is_available() else None
    for_torch = torch.cuda.get_device_name() if torch.cuda.is_available() else mps
    for_jax = jax.devices()[0].device_kind if jax.default_backend() != "cpu" else None
    if not (for_torch or for_jax):
        return None
    return f"torch runs on {for_torch or 'the CPU'}, JAX on {for_jax or 'the CPU'}"


def main(extra: str, exact: bool) -> None:
    """Name what an extra misses; tell of other versions."""
    missing = lacking(extra)
    if missing:
        stop(
            f"{sys.executable} lacks {some(missing)}.",
            f"{sys.executable} -m pip install -c constraints.txt -e '.[{extra}]'",
            "make without PY=, which makes an environment of its own in .venv.",
        )
    if other := other_versions():
        print(f"Other versions than constraints.txt: {some(other)}.")
        print("  Printed numbers may differ from the notebooks' in the last digits.", flush=True)
        sys.exit(exact)


if __name__ == "__main__":
    main(next((word for word in sys.argv[1:] if word != "--exact"), "book"), "--exact" in sys.argv)
