"""Weave every page that has code to the notebook beside it, and execute those whose code changed.

python tools/weave.py                  all of them
python tools/weave.py chapters/01-kernel-regression.md
python tools/weave.py --check          write nothing; exit 1 if a notebook is stale
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nbformat import NotebookNode

from attnbook_course.weaving.book import Book, Page, read_book
from attnbook_course.weaving.citations import read_references
from attnbook_course.weaving.execution import ExecutionError, execute
from attnbook_course.weaving.freshness import (
    is_executed,
    keep_outputs,
    read_stored,
    same_code,
    staleness,
    stills_beside,
)
from attnbook_course.weaving.labels import build_table
from attnbook_course.weaving.notebook import text_of, weave
from attnbook_course.weaving.stills import put_stills

ROOT = Path(__file__).resolve().parent.parent


def woven(book: Book, pages: Sequence[Page]) -> dict[Page, NotebookNode]:
    """Each page's notebook, without outputs."""
    table = build_table(book)
    references = read_references(book.references)
    return {page: weave(book, page, table, references) for page in pages}


def check(book: Book, pages: Sequence[Page]) -> list[str]:
    """One line for each notebook on disk that is not the one woven now."""
    problems = []
    for page, notebook in woven(book, pages).items():
        path = page.path.with_suffix(".ipynb")
        problem = staleness(notebook, path)
        if problem:
            problems.append(f"{path.relative_to(book.root).as_posix()} {problem}")
    return problems


def valid(notebook: NotebookNode, stored: NotebookNode | None) -> bool:
    """Whether a stored notebook has the outputs of this one."""
    return stored is not None and same_code(notebook, stored) and is_executed(stored)


def write(page: Page, notebook: NotebookNode, *, force: bool, never: bool, row: int) -> str:
    """Write one notebook, executed unless its stored outputs still hold; say what was done."""
    path = page.path.with_suffix(".ipynb")
    stored = read_stored(path)
    if stored is not None and valid(notebook, stored) and not (force and not never):
        keep_outputs(notebook, stored)
        done = "woven, outputs kept"
    elif never:
        done = "woven, not executed"
    else:
        execute(notebook, path.stem, path.parent, row=row)
        done = "woven and executed"
    put_stills(notebook, stills_beside(path))
    text = text_of(notebook)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8", newline="\n")
    return f"{path.name}: {done}"


def write_all(
    notebooks: dict[Page, NotebookNode], *, force: bool, never: bool, jobs: int
) -> list[str]:
    """Write the notebooks, some at a time; the errors of those that failed."""
    errors = []
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(write, page, notebook, force=force, never=never, row=row % jobs)
            for row, (page, notebook) in enumerate(notebooks.items())
        ]
        for future in futures:
            try:
                print(future.result())
            except ExecutionError as error:
                errors.append(str(error))
    return errors


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Weave the pages to notebooks.")
    parser.add_argument("pages", nargs="*", type=Path, help="their sources; all by default")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    choice.add_argument("--force", action="store_true", help="execute all, changed or not")
    choice.add_argument("--no-execute", action="store_true", help="weave only")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="pages at a time")
    options = parser.parse_args(arguments)
    try:
        book = read_book(root)
        pages = [book.page(path) for path in options.pages] or list(book.notebooks())
        if options.check:
            errors = check(book, pages)
        else:
            errors = write_all(
                woven(book, pages), force=options.force, never=options.no_execute, jobs=options.jobs
            )
    except (ValueError, FileNotFoundError) as error:
        errors = [str(error)]
    for line in errors:
        print(line, file=sys.stderr)
    if options.check and errors:
        print("Run `make notebooks`; edit only the .md files.", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
