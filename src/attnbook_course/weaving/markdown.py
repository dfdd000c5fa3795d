"""Translate blocks to the plain Markdown that Colab and JupyterLab show."""

import re
from collections.abc import Iterable

from markdown_it import MarkdownIt

from attnbook_course.weaving.blocks import Block
from attnbook_course.weaving.citations import bibliography
from attnbook_course.weaving.labels import cell_figure
from attnbook_course.weaving.roles import RoleResolver

# What the site says of the buttons under an exercise, and what is done in a notebook.
BUTTONS = {"press *Write an answer*, ": "", "press *Check*": "run the cell"}


def render(blocks: Iterable[Block], resolver: RoleResolver) -> str:
    """The blocks as Markdown, one after the other."""
    silent = ("target", "comment", "break")
    parts = [_render_block(block, resolver) for block in blocks if block.kind not in silent]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip("\n")


def _render_block(block: Block, resolver: RoleResolver) -> str:
    """One block as Markdown."""
    if block.kind in ("prose", "heading"):
        prose = resolver.prose(block.source, block.line)
        for on_site, here in BUTTONS.items():
            prose = prose.replace(on_site, here)
        return prose
    if block.kind == "math":
        number = _number(block, resolver)
        tag = rf" \tag{{{number}}}" if number else ""
        return f"$$\n{block.text.strip()}{tag}\n$$"
    if block.kind == "directive":
        return f"\n{_directive(block, resolver)}\n"
    return block.text


def _number(block: Block, resolver: RoleResolver) -> str:
    """The block's number on the site; empty for none."""
    return resolver.table.numbers.get((resolver.page.docname, block.line), "")


def _directive(block: Block, resolver: RoleResolver) -> str:
    """One directive as Markdown."""
    name = block.name
    if name == "bibliography":
        return bibliography(resolver.cited, resolver.references)
    body = render(block.children, resolver)
    title = _title(block, resolver)
    if name in ("solution", "dropdown"):
        return _folded(title, body)
    return _quoted(f"**{title}.**\n\n{body}")


def _title(block: Block, resolver: RoleResolver) -> str:
    """What a directive is headed by."""
    if block.name in ("exercise", "solution"):
        return resolver.table.titles[resolver.page.docname, block.line]
    if not block.argument:
        raise resolver.error(block.line, f"{{{block.name}}} needs a title")
    return resolver.prose(block.argument, block.line)


def figure_caption(block: Block, resolver: RoleResolver) -> str:
    """The Markdown below a code cell that draws a figure; empty for other cells."""
    figure = cell_figure(block)
    if not figure:
        return ""
    if not figure.get("caption"):
        raise resolver.error(block.line, "mystnb: figure: needs a caption")
    caption = resolver.prose(" ".join(str(figure["caption"]).split()), block.line)
    name = resolver.book.figure_format % _number(block, resolver)
    return f"**{name}.** {caption}"


def _quoted(text: str) -> str:
    """A block quote; its formulas on one line each, lest the marks of the quote get into them."""
    display = re.compile(r"^([ >]*)\$\$\n(.*?)\n[ >]*\$\$$", re.DOTALL | re.MULTILINE)
    text = display.sub(lambda found: f"{found[1]}$${' '.join(found[2].split())}$$", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip("\n")
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _folded(title: str, body: str) -> str:
    """A part that opens with a click; the blank lines let the Markdown inside render."""
    summary = MarkdownIt("commonmark").renderInline(title)
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"
