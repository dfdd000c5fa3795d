"""Fill Jupyter Book's cache from the woven notebooks, so that the site shows their outputs.

    python tools/fill_cache.py

A chapter whose notebook is missing, stale or not executed is left out; the build executes it. What
the cache has of the same chapter and notebook stays.
"""

import hashlib
import json
import sys
from pathlib import Path

import jupytext
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode
from weaving.book import read_book
from weaving.freshness import is_executed, read_stored
from weaving.notebook import code_cells, is_setup
from weaving.stills import without_still

ROOT = Path(__file__).resolve().parent.parent


def with_outputs(source: Path) -> NotebookNode | None:
    """The chapter as MyST-NB reads it, with its notebook's outputs; None if they do not fit."""
    stored = read_stored(source.with_suffix(".ipynb"))
    if stored is None or not is_executed(stored):
        return None
    chapter: NotebookNode = jupytext.read(source)
    cells = code_cells(chapter)
    executed = [cell for cell in code_cells(stored) if not is_setup(cell)]
    if [cell.source for cell in cells] != [cell.source for cell in executed]:
        return None
    for cell, old in zip(cells, executed, strict=True):
        for output in old.outputs:  # the site has its own
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = without_still(output.data["text/html"])
        cell.outputs = old.outputs
        cell.execution_count = old.execution_count
    return chapter


def digest(source: Path) -> str:
    """A number for a chapter and its notebook."""
    files = [source, source.with_suffix(".ipynb"), Path(__file__)]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files if f.exists())).hexdigest()


def main(root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    folder = root / "_build" / ".jupyter_cache"
    cache, record = get_cache(str(folder)), folder / "filled.json"
    filled = json.loads(record.read_text("utf-8")) if record.exists() else {}
    for page in read_book(root).chapters():
        now = digest(page.path)
        if filled.get(page.path.name) == now:
            continue
        filled.pop(page.path.name, None)
        notebook = with_outputs(page.path)
        if notebook is None:
            print(f"{page.path.name}: no stored outputs that fit; the build will execute it")
            continue
        bundle = CacheBundleIn(notebook, str(page.path))
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        filled[page.path.name] = now
        print(f"{page.path.name}: outputs taken from {page.path.stem}.ipynb")
    record.write_text(json.dumps(filled), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
