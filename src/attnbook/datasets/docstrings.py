"""English about code that every full installation carries: the docstrings of its libraries.

    python -m attnbook.datasets.docstrings corpus

writes corpus/train.txt, validation.txt, held_out.txt, unseen.txt and sources.json. The same
versions of the libraries give the same files, byte for byte. What a docstring repeats is kept once:
a paragraph that stands in the held-out texts stands nowhere else.
"""

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from tqdm import tqdm

from attnbook.datasets.python_reference import CHARACTERS, PLAIN

# Under the licences of MIT, BSD, Apache 2.0 or of Python; sources.json says which has which.
LIBRARIES = (
    "bokeh", "equinox", "fonttools", "huggingface-hub", "imageio", "ipython", "jax", "matplotlib",
    "mpmath", "narwhals", "numpy", "optax", "pandas", "prompt-toolkit", "pytest", "scikit-learn",
    "scipy", "sphinx", "sqlalchemy", "statsmodels", "sympy", "torch", "tornado", "transformers",
)  # fmt: skip
UNSEEN = ("networkx", "scikit-image")  # of which nothing is learned
SHARE = 0.01  # of the files are held out, and as many are for choosing
PARTS = ("held_out", "validation", "train")  # a paragraph is kept in the first of them
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
DROPPED = re.compile(f"[^{re.escape(CHARACTERS)}]")


def write_docstrings(folder: Path, characters: int = 30_000_000) -> dict[str, Any]:
    """Write the corpus into a folder.

    A file's name decides by its SHA-256 to which part it belongs, and in which order files follow
    each other: any first part of train.txt is a sample of all its libraries. Quotation marks and
    dashes become ASCII's, other characters are dropped.

    Args:
        folder: made where it is missing.
        characters: of train.txt, at most.

    Returns:
        What sources.json says: each library's version and licence, each file's characters and
        SHA-256.

    Raises:
        PackageNotFoundError: a library that is not installed; `make env-test` has them all.

    Source: the libraries of LIBRARIES and UNSEEN.
    """
    found = {name: metadata.distribution(name) for name in (*UNSEEN, *LIBRARIES)}
    seen: set[str] = set()
    texts: dict[str, list[str]] = {"unseen": [], **{part: [] for part in PARTS}}

    def keep(part: str, files: list[tuple[bytes, Path]]) -> None:
        left = characters if part == "train" else sys.maxsize
        for _, path in tqdm(sorted(files), desc=part, unit="file"):
            text = "".join(_unseen(path, seen))[:left] if left else ""
            texts[part].append(text)
            left -= len(text)

    keep("unseen", [file for name in UNSEEN for file in _files(name, found[name])])
    files = [file for name in LIBRARIES for file in _files(name, found[name])]
    bounds = {"held_out": (0, SHARE), "validation": (SHARE, 2 * SHARE), "train": (2 * SHARE, 1)}
    for part in PARTS:
        least, most = bounds[part]
        keep(part, [f for f in files if least <= int.from_bytes(f[0][:4], "big") / 2**32 < most])
    folder.mkdir(parents=True, exist_ok=True)
    sources: dict[str, Any] = {"libraries": {}, "files": {}}
    for name, library in found.items():
        sources["libraries"][name] = {"version": library.version, "licence": _licence(library)}
    for part, kept in texts.items():
        text = "".join(kept).encode("ascii")
        (folder / f"{part}.txt").write_bytes(text)
        digest = hashlib.sha256(text).hexdigest()
        sources["files"][f"{part}.txt"] = {"characters": len(text), "sha256": digest}
    (folder / "sources.json").write_text(json.dumps(sources, indent=1) + "\n")
    return sources


def _files(name: str, library: metadata.Distribution) -> Iterator[tuple[bytes, Path]]:
    """Each Python file of a library, behind the hash that decides about it."""
    for file in library.files or []:
        if file.suffix == ".py" and ".." not in file.parts:
            digest = hashlib.sha256(f"{name}/{file.as_posix()}".encode()).digest()
            yield digest, Path(str(library.locate_file(file)))


def _unseen(path: Path, seen: set[str]) -> Iterator[str]:
    """A file's docstrings, without the paragraphs that have come before; each ends in two lines."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # a template, or Python of another version
        return
    for node in ast.walk(tree):
        said = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        plain = DROPPED.sub("", (said or "").translate(PLAIN))
        kept = []
        for paragraph in re.split(r"\n\s*\n", plain):
            if paragraph.strip() and paragraph.strip() not in seen:
                seen.add(paragraph.strip())
                kept.append(paragraph.rstrip() + "\n\n")
        if kept:
            yield "".join(kept) + "\n"


def _licence(library: metadata.Distribution) -> str:
    """The licence, as a library's metadata say it."""
    said = library.metadata.get_all
    kinds = [c.rpartition(" :: ")[2] for c in said("Classifier") or [] if "License" in c]
    found = said("License-Expression") or kinds or said("License") or [""]
    return "; ".join(one.partition("\n")[0] for one in found)


if __name__ == "__main__":
    (folder,) = sys.argv[1:] or ["corpus"]
    for name, says in write_docstrings(Path(folder))["files"].items():
        print(f"{name:15} {says['characters']:>10} characters, SHA-256 {says['sha256'][:16]}…")
