"""How large the house is: lines of code, tests, commands and first pages, beside what is promised.

python tools/counts.py
"""

from __future__ import annotations

import re
import subprocess

from check_environment import ROOT

CODE = (".py", ".js", ".css", ".html", ".wat", ".sh")
PROMISED = {
    "product": 32_000,
    "experiments": 5_000,
    "tests": 22_000,
    "make targets": 18,
    "README.md": 70,
    "CONTRIBUTING.md": 120,
}


def lines(name: str) -> int:
    """The lines of a file."""
    return len((ROOT / name).read_text(encoding="utf-8").splitlines())


def part(name: str) -> str:
    """What a file of code belongs to."""
    return room if (room := name.partition("/")[0]) in ("tests", "experiments") else "product"


def main() -> None:
    """Print the table."""
    command = ["git", "ls-files", "-z"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    known = [name for name in said.split("\0") if name and (ROOT / name).is_file()]
    found = dict.fromkeys(PROMISED, 0)
    for name in known:
        if name.endswith(CODE):
            found[part(name)] += lines(name)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found["make targets"] = len(re.findall(r"^[a-z-]+:.*##", makefile, re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        found[page] = lines(page)
    for name, number in found.items():
        print(f"{name:16} {number:7,}   promised {PROMISED[name]:7,}")
    print(f"{'files':16} {len(known):7,}")


if __name__ == "__main__":
    main()
