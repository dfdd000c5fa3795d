"""Cells that run in the reader's browser, under Pyodide; answers to exercises are such cells.

Pyodide has NumPy, SciPy, matplotlib and scikit-learn; it has neither PyTorch nor JAX. What a cell
imports, and who set the names that it reads, says whether it runs there. A cell of the page has the
class ``runs``, or ``lacks`` and one for each thing that it lacks, as ``lacks-torch``. static/run.js
puts buttons beside the ones and words beside the others.
What it sends to the interpreter lies in ``_static/run/``, a file per page, and is fetched when a
reader presses *Run*, like the package, which is there without its models and back ends.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jupytext
from docutils import nodes
from sphinx.application import Sphinx

from attnbook_course.browser import Cell, find_needs, root_name
from attnbook_course.builds import BUILDS
from attnbook_course.mine import tail

ROOT = Path(__file__).parents[2]
PYODIDE = json.loads(Path(__file__).with_name("pyodide.json").read_text(encoding="utf-8"))
LACKING = {
    "torch": "torch",
    "attnbook.torch": "torch",
    "jax": "jax",
    "equinox": "jax",
    "optax": "jax",
    "attnbook.jax": "jax",
    "attnbook.convert": "torch jax",  # which imports them when it is called
    "attnbook.train_lm": "torch jax",
    "attnbook.pretrained": "model",
    "concurrent": "processes",
    "multiprocessing": "processes",
    "socket": "processes",
    "subprocess": "processes",
    "threading": "processes",
}
PACKAGES = {
    "numpy": ["numpy"],
    "matplotlib": ["matplotlib"],
    "scipy": ["scipy"],
    "PIL": ["pillow"],
    "sklearn": ["scikit-learn", "pillow"],  # whose photographs want Pillow, and do not say so
}
PURE = (
    "array-api-compat",
    "docopt",
    "jaxtyping",
    "num2words",
    "wadler-lindig",
    "tqdm",
)  # wheels that the site has
OWN = ("attnbook", "attnbook_course")
ALIVE = ("live", "drawings")  # what a last line of these shows moves by itself, or is a picture
RUNS = re.compile(r'<div class="cell [^"]*\bruns\b')
LEFT_OUT = re.compile(
    r"attnbook/(torch|jax|pretrained)/|attnbook_course/(weaving|live/models)/|\.pyi?c$|__pycache__"
)


class Modules:
    """What a module lacks in the browser, through all that it imports while it is imported."""

    def __init__(self, source: Path = ROOT / "src") -> None:
        self.source, self.known = source, dict[str, frozenset[str]]()

    def lacks(self, module: str) -> frozenset[str]:
        """LACKING's words, or the name of another library; nothing where it can be imported."""
        if module not in self.known:
            found = frozenset[str]().union(*map(_lacks_itself, self._reached(module)))
            self.known[module] = found
        return self.known[module]

    def of_code(self, code: str) -> frozenset[str]:
        """What some code lacks by its imports alone."""
        return frozenset().union(
            *(
                self.lacks(module)
                for node in ast.walk(ast.parse(code))
                if isinstance(node, ast.Import | ast.ImportFrom)
                for module in self._imported(node)
            )
        )

    def packages(self, module: str) -> set[str]:
        """What of Pyodide must be loaded before a module can be imported."""
        reached = self._reached(module)
        roots = {one.split(".")[0] for one in reached}
        return {package for root in roots & PACKAGES.keys() for package in PACKAGES[root]}

    def of_names(self, code: str) -> dict[str, list[str]]:
        """What must be loaded for each name that a chapter's first cell imports."""
        found: dict[str, list[str]] = {}
        for statement in ast.parse(code).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias, module in zip(statement.names, self._imported(statement), strict=True):
                    name = alias.asname or alias.name.split(".")[0]
                    if packages := self.packages(module) - {"numpy"}:
                        found[name] = sorted(packages)
        return found

    def _reached(self, module: str) -> set[str]:
        reached, left = set[str](), [module]
        while left:
            one = left.pop()
            if one not in reached:
                reached.add(one)
                own = one.split(".")[0] in OWN and not _lacks_itself(one)
                left += self._imports(one) if own else ()
        return reached

    def _imports(self, module: str) -> Iterator[str]:
        file = self._file(module)
        if file is None:
            return
        yield from (module.rsplit(".", i)[0] for i in range(1, module.count(".") + 1))
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                yield from self._imported(statement)

    def _imported(self, statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
        for alias in statement.names:
            if isinstance(statement, ast.Import):
                yield alias.name
            else:
                whole = f"{statement.module}.{alias.name}"
                yield whole if self._file(whole) else f"{statement.module}"

    def _file(self, module: str) -> Path | None:
        path = self.source / Path(*module.split("."))
        places = (path.with_suffix(".py"), path / "__init__.py")
        return next((place for place in places if place.is_file()), None)


def _lacks_itself(module: str) -> frozenset[str]:
    parts = module.split(".")
    for i in range(len(parts), 0, -1):
        if words := LACKING.get(".".join(parts[:i])):
            return frozenset(words.split())
    pure = {name.replace("-", "_") for name in PURE}
    there = parts[0] in PACKAGES.keys() | pure | sys.stdlib_module_names | set(OWN)
    return frozenset() if there else frozenset(parts[:1])


MODULES = Modules()  # what is known of a module serves all pages


def cells_of(chapter: Path) -> list[Cell]:
    """The code cells of a chapter, with what each needs and lacks."""
    found = jupytext.read(chapter).cells
    cells = [Cell(cell.source) for cell in found if cell.cell_type == "code"]
    find_needs(cells, MODULES.of_code)
    return cells


def is_alive(code: str) -> bool:
    """Whether a cell's last line shows a live figure or a drawing, which the page has already."""
    body = ast.parse(code).body
    last = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
    return isinstance(last, ast.Call) and root_name(last.func) in ALIVE


def mark(app: Sphinx, tree: nodes.document) -> None:
    """Give a chapter's cells their classes, and write down what the interpreter is to be sent."""
    page = app.env.docname
    source = Path(app.srcdir) / f"{page}.md"
    if app.builder.format != "html" or not page.startswith("chapters/"):
        return
    shown = [
        node for node in tree.findall(nodes.container) if node.get("nb_element") == "cell_code"
    ]
    cells = cells_of(source)
    if len(shown) != len(cells):
        raise ValueError(f"{page}: got {len(shown)} cells, expected the source's {len(cells)}")
    for i, (node, cell) in enumerate(zip(shown, cells, strict=True)):
        if i and not is_alive(cell.code):
            lacks = [f"lacks-{word}" for word in sorted(cell.lacks, reverse=True)]
            node["classes"] += [*(["lacks", *lacks] if lacks else ["runs"]), f"cell-{i}"]
    file = Path(app.outdir) / "_static" / "run" / f"{Path(page).name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    known = [{"code": cell.code, "lacks": sorted(cell.lacks)} for cell in cells]
    packages = MODULES.of_names(cells[0].code)
    file.write_text(json.dumps({"cells": known, "packages": packages}), encoding="utf-8")


def write_wheels(app: Sphinx, error: Exception | None) -> None:
    """The package without models and back ends, the wheels that it needs, and the lock file."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / "run"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "attnbook.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((ROOT / "src").rglob("*")):
            name = file.relative_to(ROOT / "src").as_posix()
            if file.is_file() and not LEFT_OUT.search(name):
                _add(archive, name, file.read_bytes())
        for name in ("attnbook", *PURE):
            _add_distribution(archive, name)
    own = ROOT / "_build" / "pyodide"
    builds = {name: build.check_line for name, build in BUILDS.items()}
    python = PYODIDE | {"libraries": PACKAGES, "builds": builds, "tail": tail()}
    python |= {"from": ""} if own.is_dir() else {}
    (folder / "python.json").write_text(json.dumps(python), encoding="utf-8")
    if own.is_dir():
        shutil.copytree(own, Path(app.outdir) / "_static" / "pyodide", dirs_exist_ok=True)


def _add_distribution(archive: zipfile.ZipFile, name: str) -> None:
    """The modules of an installed pure library, and its metadata; of our own the metadata alone."""
    for file in distribution(name).files or []:
        inside = file.as_posix()
        wanted = inside.endswith("METADATA") if name == "attnbook" else not inside.startswith("..")
        if wanted and not LEFT_OUT.search(inside):
            _add(archive, inside, Path(str(file.locate())).read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """A file of a fixed date, so that the same files make the same archive."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def load(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """A page with cells that run has the script."""
    if RUNS.search(context.get("body", "")):
        app.add_js_file("run.js", priority=920)


def setup(app: Sphinx) -> None:
    """Connect the parts."""
    app.connect("doctree-read", mark)
    app.connect("html-page-context", load)
    app.connect("build-finished", write_wheels, priority=100)
