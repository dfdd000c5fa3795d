"""Parse MyST Markdown into blocks.

The blocks of a text tile its lines: what is not a construct of its own stays as it is written. Only
the constructs that the book uses are accepted; any other is an error that names file and line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from myst_parser.parsers.options import TokenizeError, options_to_items

# Each directive with the options it takes.
DIRECTIVES: dict[str, set[str]] = {
    "code-cell": {"tags", "mystnb"},
    "admonition": {"class"},
    "dropdown": set(),
    "figure": {"alt", "name", "width"},
    "exercise": {"label"},
    "solution": {"class"},
    "bibliography": {"filter"},
}
# Their bodies are Markdown themselves.
CONTAINERS = set(DIRECTIVES) - {"code-cell", "bibliography"}


class MystError(ValueError):
    """A source that cannot be woven: which file, which line, what came and what was expected."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")


@dataclass(frozen=True)
class Block:
    """One construct of the source.

    ``kind`` is one of text (verbatim), prose, heading, math, target, comment, break, directive.
    ``text`` holds the source lines; of a heading, target or formula the content alone.
    """

    kind: str
    line: int  # in the file, from 1
    text: str
    name: str = ""  # of a directive
    argument: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    children: tuple["Block", ...] = ()
    label: str = ""  # of a formula
    level: int = 0  # of a heading
    source: str = ""  # of prose and headings: the lines as written


def parse(
    text: str, file: str, first_line: int = 1, nested: bool = False, strict: bool = True
) -> tuple[Block, ...]:
    """Split a text into its blocks; ``file`` and ``first_line`` serve the error messages.

    Pages that do not become notebooks may use more than ours: not ``strict``, the unknown is text.
    """
    lines = text.splitlines()
    blocks: list[Block] = []
    position = 0
    tokens = _reader().parse(text)
    for token, previous in zip(tokens, [None, *tokens], strict=False):
        block = _block(token, previous, lines, file, first_line, strict)
        if block is None or token.map is None:
            continue
        if strict and nested and (block.kind in ("heading", "break") or block.name == "code-cell"):
            what = block.name or block.kind
            raise MystError(file, block.line, f"a {what} inside a directive; put it outside")
        start, end = token.map
        if start < position:  # cells of one table row share their line
            continue
        if start > position:
            gap = "\n".join(lines[position:start])
            blocks.append(Block("text", first_line + position, gap))
        blocks.append(block)
        position = max(end, start + 1)
    if position < len(lines):
        blocks.append(Block("text", first_line + position, "\n".join(lines[position:])))
    return tuple(blocks)


def walk(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Every block, those inside directives included, in the order of the source."""
    for block in blocks:
        yield block
        yield from walk(block.children)


def _reader() -> MarkdownIt:
    """The Markdown reader with the site's extensions."""
    reader = MarkdownIt("commonmark").enable("table")
    reader.use(front_matter_plugin).use(myst_block_plugin).use(dollarmath_plugin)
    return reader.use(amsmath_plugin).use(colon_fence_plugin)


def _block(
    token: Token, previous: Token | None, lines: list[str], file: str, first_line: int, strict: bool
) -> Block | None:
    """The block that starts at this token, if it is one of its own."""
    if token.map is None:
        return None
    start, end = token.map
    line = first_line + start
    source = "\n".join(lines[start:end])
    if token.type == "inline":
        if previous is not None and previous.type == "heading_open":
            level = int(previous.tag[1:])
            return Block("heading", line, token.content, level=level, source=source)
        return Block("prose", line, token.content, source=source)
    if token.type in ("fence", "colon_fence"):
        return _fence(token, lines, file, line, strict)
    if token.type in ("math_block", "math_block_label"):
        _must_start(token, lines, file, line)
        return Block("math", line, token.content.strip(), label=token.info)
    if token.type == "amsmath":  # the site would number it, so not on other pages either
        environment = token.meta["environment"]
        raise MystError(file, line, f"LaTeX environment {environment!r}; write $$ … $$ (label)")
    if token.type == "html_block" and strict:
        raise MystError(file, line, f"raw HTML, {token.content.strip()[:40]!r}; use a directive")
    kinds = {
        "myst_target": "target",
        "myst_line_comment": "comment",
        "myst_block_break": "break",
        "front_matter": "comment",
    }
    if token.type in kinds:
        return Block(kinds[token.type], line, token.content)
    if token.type == "code_block":
        return Block("text", line, source)
    return None


def _must_start(token: Token, lines: list[str], file: str, line: int) -> None:
    """A construct inside a list or a quotation would have to be put back there."""
    assert token.map is not None
    first = lines[token.map[0]]
    if not first.startswith(token.markup):
        raise MystError(file, line, f"a directive or formula must start its line, got {first!r}")


def _fence(token: Token, lines: list[str], file: str, line: int, strict: bool) -> Block:
    """A directive, or the verbatim lines of an ordinary code fence."""
    assert token.map is not None
    start, end = token.map
    closing = lines[end - 1].strip(" >")
    closed = closing.startswith(token.markup) and not closing.strip(token.markup[0])
    if end - start < 2 or not closed:
        raise MystError(file, line, f"the fence {lines[start].strip()!r} is never closed")
    match = re.fullmatch(r"\{([^}\s]+)\}\s*(.*)", token.info.strip())
    if match is None:
        if token.type == "colon_fence":
            raise MystError(file, line, f"expected :::{{directive}}, got {lines[start].strip()!r}")
        return Block("text", line, "\n".join(lines[start:end]))
    name, argument = match.groups()
    if name == "math":
        raise MystError(file, line, "unknown directive {math}; write $$ … $$ (label)")
    if name not in DIRECTIVES and not strict:
        return Block("text", line, "\n".join(lines[start:end]))
    if name not in DIRECTIVES:
        known = ", ".join(sorted(DIRECTIVES))
        raise MystError(file, line, f"unknown directive {{{name}}}; expected one of {known}")
    _must_start(token, lines, file, line)
    options, body, used = _options(token.content, name, file, line, strict)
    children: tuple[Block, ...] = ()
    if name in CONTAINERS:
        children = parse(body, file, line + 1 + used, nested=True, strict=strict)
    return Block("directive", line, body, name, argument, options, children)


def _options(
    content: str, name: str, file: str, line: int, strict: bool
) -> tuple[dict[str, Any], str, int]:
    """The options of a directive, its body, and the number of lines before the body."""
    lines = content.splitlines()
    head: list[str] = []
    used = 0
    if lines and re.fullmatch(r"-{3,}\s*", lines[0]):
        closing = next((i for i, text in enumerate(lines[1:], 1) if text.startswith("---")), None)
        if closing is None:
            raise MystError(file, line, f"the options of {{{name}}} are not closed by ---")
        head, used = lines[1:closing], closing + 1
    else:
        while used < len(lines) and re.match(r":[\w-]+:", lines[used]):
            head.append(lines[used][1:])
            used += 1
    options = _read_options("\n".join(head), name, file, line)
    unknown = sorted(set(options) - DIRECTIVES[name])
    if unknown and strict:
        expected = ", ".join(sorted(DIRECTIVES[name])) or "none"
        raise MystError(
            file, line, f"unknown option {unknown[0]!r} of {{{name}}}; takes {expected}"
        )
    return options, "\n".join(lines[used:]), used


def _read_options(head: str, name: str, file: str, line: int) -> dict[str, Any]:
    """Options as MyST reads them; those of code cells are YAML."""
    try:
        if name != "code-cell":
            return dict(options_to_items(head)[0])
        options = yaml.safe_load(head) or {}
    except (yaml.YAMLError, TokenizeError) as error:
        raise MystError(file, line, f"the options of {{{name}}} cannot be read: {error}") from error
    if not isinstance(options, dict):
        raise MystError(file, line, f"the options of {{{name}}} must be keys and values: {head!r}")
    return options
