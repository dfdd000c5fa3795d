"""The label table: what every label of the book is called, numbered as the site numbers it."""

from collections import Counter
from dataclasses import dataclass

from docutils.nodes import make_id

from attnbook_course.weaving.blocks import Block, MystError, parse, walk
from attnbook_course.weaving.book import Book, Page


@dataclass(frozen=True)
class Label:
    """One place that can be referred to."""

    kind: str  # document, section, equation, figure or exercise
    docname: str
    text: str  # how a reference to it reads
    anchor: str = ""  # on its page
    cell: str = ""  # of its notebook, with the last heading that has a label


@dataclass(frozen=True)
class Table:
    """All labels of the book, and the number of each numbered block by page and line."""

    labels: dict[str, Label]
    documents: dict[str, Label]
    numbers: dict[tuple[str, int], str]
    titles: dict[tuple[str, int], str]


def numbered_kind(block: Block) -> str:
    """Which of the site's counters a block moves on; empty for none."""
    if block.kind == "math":
        return "equation" if block.label else ""
    if block.name == "code-cell":
        return "figure" if cell_figure(block) else ""
    if is_build(block):
        return ""
    return block.name if block.name in ("figure", "exercise") else ""


def is_build(block: Block) -> bool:
    """Whether it is a chapter's build, an exercise that is called after its chapter alone."""
    return block.name == "exercise" and "nonumber" in block.options


def cell_figure(block: Block) -> dict[str, str]:
    """The ``mystnb: figure:`` options of a code cell; empty where it has none."""
    figure: dict[str, str] = (block.options.get("mystnb") or {}).get("figure") or {}
    return figure


def build_table(book: Book) -> Table:
    """Read every page in the order of _toc.yml and give each label its number or title."""
    table = Table({}, {}, {}, {})
    counters: Counter[tuple[str, int | str | None]] = Counter()
    for page in book.pages:
        file = book.file(page)
        blocks = parse(page.path.read_text("utf-8"), file, strict=page.is_notebook)
        _title_page(table, page, blocks, file)
        _number_page(table, page, blocks, file, counters, book.figure_format)
    return table


def _title_page(table: Table, page: Page, blocks: tuple[Block, ...], file: str) -> None:
    """Enter a page's title and the targets before its headings."""
    headings = [block for block in blocks if block.kind == "heading"]
    if [block.level for block in headings[:1]] != [1] or any(b.level == 1 for b in headings[1:]):
        raise MystError(file, 1, "a page must begin with its title, its only heading of level 1")
    table.documents[page.docname] = Label("document", page.docname, headings[0].text)
    waiting: list[Block] = []
    for block in blocks:
        if block.kind == "target":
            waiting.append(block)
        elif block.kind == "heading":
            for target in waiting:
                anchor, cell = make_id(target.text), make_id(waiting[0].text)
                label = Label("section", page.docname, block.text, anchor, cell)
                _enter(table, target.text, label, file, target.line)
            waiting = []
        elif block.kind not in ("text", "comment") and waiting and page.is_notebook:
            raise MystError(file, waiting[0].line, "a target must stand before a heading")


def _number_page(
    table: Table,
    page: Page,
    blocks: tuple[Block, ...],
    file: str,
    counters: Counter[tuple[str, int | str | None]],
    figure_format: str,
) -> None:
    """Number a page's equations, figures and exercises, and enter their labels."""
    cell, before = "", ""
    for block in walk(blocks):
        if block.kind == "target" != before:
            cell = make_id(block.text)
        before = block.kind
        kind = numbered_kind(block)
        if kind:
            counters[kind, page.number] += 1
            count = counters[kind, page.number]
            number = str(count) if page.number is None else f"{page.number}.{count}"
            table.numbers[page.docname, block.line] = number
            text = reference_text(kind, number, figure_format)
            options = cell_figure(block) or block.options
            name = block.label or options.get("label") or options.get("name")
            if name:
                anchor = make_id(f"equation-{name}" if kind == "equation" else name)
                label = Label(kind, page.docname, text, anchor, cell)
                _enter(table, name, label, file, block.line)
            if kind == "exercise":
                title = f"{text} ({block.argument})" if block.argument else text
                table.titles[page.docname, block.line] = title
        elif is_build(block):
            text, name = f"Build {page.number}", block.options["label"]
            label = Label("exercise", page.docname, text, make_id(name))
            _enter(table, name, label, file, block.line)
            table.titles[page.docname, block.line] = f"{text} ({block.argument})"
    exercises = {b.options.get("label"): b.line for b in walk(blocks) if b.name == "exercise"}
    for block in walk(blocks):
        if block.name == "solution":  # is called after its exercise
            if block.argument not in exercises:
                what = f"no exercise {block.argument!r} on this page to solve"
                raise MystError(file, block.line, what)
            title = table.titles[page.docname, exercises[block.argument]]
            table.titles[page.docname, block.line] = f"Solution to {title}"


def reference_text(kind: str, number: str, figure_format: str) -> str:
    """How a reference to something numbered reads."""
    if kind == "equation":
        return f"({number})"
    if kind == "figure":
        return figure_format % number
    return f"{kind.capitalize()} {number}"


def _enter(table: Table, name: str, label: Label, file: str, line: int) -> None:
    """Add a label; each may be given once in the whole book."""
    if name in table.labels:
        other = table.labels[name].docname
        raise MystError(file, line, f"label {name!r} is given twice, first in {other}.md")
    table.labels[name] = label
