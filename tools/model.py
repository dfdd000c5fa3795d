"""The published model for the site itself, which chapter 10's laboratory asks.

python tools/model.py

The model comes as attnbook.pretrained.fetch has it, its hash checked. Afterwards `make book` puts
_build/published into the site. Without it the laboratory says that this site has no copy.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from attnbook.pretrained import Unavailable, fetch

FOLDER = Path(__file__).resolve().parents[1] / "_build" / "published"


def bring(name: str, folder: Path) -> None:
    """Copy a model's one file, and its licence, under its short name.

    Raises:
        SystemExit: it cannot be had.
    """
    try:
        found = fetch(name)
    except Unavailable as error:
        sys.exit(str(error))
    (file,) = found.glob("*.gguf")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, folder / f"{name}.gguf")
    shutil.copy2(found / "LICENSE", folder / f"{name}.LICENSE.txt")


if __name__ == "__main__":
    bring("smollm2", FOLDER)
