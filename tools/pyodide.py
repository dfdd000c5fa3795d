"""Pyodide for the site itself, so that cells run in a hall without a network.

python tools/pyodide.py ARCHIVE    out of a release of Pyodide, or a wheel that has one

Every file is checked by its hash. Afterwards `make book` puts _build/pyodide into the site. Without
it the cells fetch the same files from Pyodide's own address.
"""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYODIDE = json.loads((ROOT / "_ext/attnbook_site/pyodide.json").read_text(encoding="utf-8"))


def expected() -> dict[str, str]:
    """Every file that the site needs, with its SHA-256 in base64."""
    core = {name: words.removeprefix("sha256-") for name, words in PYODIDE["core"].items()}
    for one in PYODIDE["lock"]["packages"].values():
        core[one["file_name"]] = b64encode(bytes.fromhex(one["sha256"])).decode()
    return core


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an archive, by their names without folders."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                yield Path(info.filename).name, opened.read(info)
        return
    with tarfile.open(archive) as opened_tar:
        for member in opened_tar:
            content = opened_tar.extractfile(member)
            if content is not None:
                yield Path(member.name).name, content.read()


def unpack(archive: Path, folder: Path) -> None:
    """Put what the site needs into a folder.

    Raises:
        SystemExit: a file that is missing, or another one of its name.
    """
    wanted = expected()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in members(archive):
        if name in wanted and b64encode(sha256(content).digest()).decode() == wanted[name]:
            (folder / name).write_bytes(content)
            del wanted[name]
    if wanted:
        version = PYODIDE["version"]
        sys.exit(f"{archive}: expected Pyodide {version} with {', '.join(sorted(wanted))}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [archive]:
            unpack(Path(archive), ROOT / "_build" / "pyodide")
        case [archive, folder]:
            unpack(Path(archive), Path(folder))
        case _:
            sys.exit(__doc__)
