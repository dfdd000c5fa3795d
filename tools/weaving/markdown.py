"""Translate blocks to the plain Markdown that Colab and JupyterLab show."""

import re
from collections.abc import Iterable
from textwrap import indent as indented

from markdown_it import MarkdownIt

from weaving.blocks import NOTICES, STATEMENTS, Block
from weaving.citations import bibliography
from weaving.labels import cell_figure
from weaving.roles import Translator

TITLES = {name: name.capitalize() for name in NOTICES} | {"seealso": "See also"}
INNER = {"align": "aligned", "gather": "gathered", "alignat": "alignedat"}


def render(blocks: Iterable[Block], translator: Translator) -> str:
    """The blocks as Markdown, one after the other."""
    parts = []
    for block in blocks:
        if block.kind in ("target", "comment", "break"):
            continue
        text = _render_block(block, translator)
        parts.append(indented(text, block.indent) if block.indent else text)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip("\n")


def _render_block(block: Block, translator: Translator) -> str:
    """One block as Markdown."""
    if block.kind in ("prose", "heading"):
        return translator.prose(block.source, block.line)
    if block.kind == "math":
        return _math(block, translator)
    if block.kind == "directive":
        return f"\n{_directive(block, translator)}\n"
    return block.text


def _number(block: Block, translator: Translator) -> str:
    """The block's number on the site; empty for none."""
    return translator.table.numbers.get((translator.page.docname, block.line), "")


def _math(block: Block, translator: Translator) -> str:
    """A display formula, numbered by \\tag; LaTeX environments become their inner forms."""
    formula = block.text.strip()
    if block.kind == "math" and block.name:
        formula = _inner_environment(block, translator)
    number = _number(block, translator)
    if number:
        formula += rf" \tag{{{number}}}"
    return f"$$\n{formula}\n$$"


def _inner_environment(block: Block, translator: Translator) -> str:
    """The environment that may stand between $$ and $$."""
    name = block.name.rstrip("*")
    body = block.text.removeprefix(rf"\begin{{{block.name}}}").removesuffix(
        rf"\end{{{block.name}}}"
    )
    if name == "equation":
        return body.strip()
    if name not in INNER:
        expected = ", ".join(["equation", *INNER])
        raise translator.error(block.line, f"LaTeX environment {name!r}; expected {expected}")
    return rf"\begin{{{INNER[name]}}}{body}\end{{{INNER[name]}}}"


def _directive(block: Block, translator: Translator) -> str:
    """One directive as Markdown."""
    name = block.name
    if name == "math":
        return _math(block, translator)
    if name == "figure":
        return _figure(block, translator)
    if name == "bibliography":
        return bibliography(translator.cited, translator.references)
    body = render(block.children, translator)
    if name == "tab-set":
        return body
    title = _title(block, translator)
    if name == "tab-item":
        return f"**{title}**\n\n{body}"
    if name in ("solution", "dropdown") or "dropdown" in str(block.options.get("class", "")):
        return _folded(title, body)
    if name == "prf:proof":
        return _quoted(f"*{title}.* {body}")
    stop = "" if title.endswith((".", "?", "!", ":")) else "."
    return _quoted(f"**{title}{stop}**\n\n{body}")


def _title(block: Block, translator: Translator) -> str:
    """What a directive is headed by."""
    argument = translator.prose(block.argument, block.line)
    name = block.name.removeprefix("prf:")
    if name in ("exercise", "solution"):
        return translator.table.titles[translator.page.docname, block.line]
    if name in STATEMENTS:
        title = f"{name.capitalize()} {_number(block, translator)}"
        return f"{title} ({argument})" if argument else title
    if name == "proof":
        return "Proof"
    title = argument or TITLES.get(name, "")
    if not title:
        raise translator.error(block.line, f"{{{block.name}}} needs a title")
    return title


def _figure(block: Block, translator: Translator) -> str:
    """A picture from the published site, and its numbered caption."""
    alt = block.options.get("alt", "")
    caption = render(block.children, translator)
    if not alt or not caption or not block.argument:
        raise translator.error(block.line, "{figure} needs a path, :alt: and a caption")
    picture = f"{translator.book.site}/_images/{block.argument.rsplit('/', 1)[-1]}"
    return f"![{alt}]({picture})\n\n{_caption(block, caption, translator)}"


def figure_caption(block: Block, translator: Translator) -> str:
    """The Markdown below a code cell that draws a figure; empty for other cells."""
    figure = cell_figure(block)
    if not figure:
        return ""
    if not figure.get("caption"):
        raise translator.error(block.line, "mystnb: figure: needs a caption")
    caption = " ".join(str(figure["caption"]).split())
    return _caption(block, translator.prose(caption, block.line), translator)


def _caption(block: Block, caption: str, translator: Translator) -> str:
    """**Figure 1.2.** The caption."""
    name = translator.book.figure_format % _number(block, translator)
    return f"**{name}.** {caption}"


def _quoted(text: str) -> str:
    """A block quote; its formulas on one line each, lest the marks of the quote get into them."""
    text = re.sub(r"\n{3,}", "\n\n", _joined_math(text)).strip("\n")
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _joined_math(text: str) -> str:
    """The text with each display formula on one line."""
    pattern = re.compile(r"^([ >]*)\$\$\n(.*?)\n[ >]*\$\$$", re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda match: f"{match[1]}$${' '.join(match[2].split())}$$", text)


def _folded(title: str, body: str) -> str:
    """A part that opens with a click; the blank lines let the Markdown inside render."""
    summary = MarkdownIt("commonmark").renderInline(title)
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"
