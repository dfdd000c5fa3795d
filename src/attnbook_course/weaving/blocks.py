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
    "dropdown": set(),
    "exercise": {"label", "class", "nonumber"},  # the last of a build
    "solution": {"class"},
    "bibliography": {"filter"},
}
ELSEWHERE = {"figure": {"alt", "name", "width"}}  # pages without code may have these as well
CONTAINERS = set(DIRECTIVES) - {"code-cell", "bibliography"}  # their bodies are Markdown themselves
SILENT = {
    "myst_target": "target",
    "myst_line_comment": "comment",
    "myst_block_break": "break",
    "front_matter": "comment",
}


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
    return tuple(Parser(text, file, first_line, strict).blocks(nested))


def walk(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Every block, those inside directives included, in the order of the source."""
    for block in blocks:
        yield block
        yield from walk(block.children)


class Parser:
    """What reads one text: a page, or the body of a directive."""

    def __init__(self, text: str, file: str, first_line: int, strict: bool) -> None:
        self.file, self.first_line, self.strict = file, first_line, strict
        self.text, self.lines = text, text.splitlines()

    def blocks(self, nested: bool) -> Iterator[Block]:
        """The blocks in their order, and between them the lines that are none."""
        reader = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
        reader = reader.use(myst_block_plugin).use(dollarmath_plugin)
        tokens = reader.use(amsmath_plugin).use(colon_fence_plugin).parse(self.text)
        position = 0
        for token, previous in zip(tokens, [None, *tokens], strict=False):
            block = self.block(token, previous) if token.map else None
            if block is None or token.map is None:
                continue
            what = block.name or block.kind
            if self.strict and nested and what in ("heading", "break", "code-cell"):
                raise self.error(block, f"a {what} inside a directive; put it outside")
            start, end = token.map
            if start < position:  # cells of one table row share their line
                continue
            if start > position:
                yield self.verbatim(position, start)
            yield block
            position = max(end, start + 1)
        if position < len(self.lines):
            yield self.verbatim(position, len(self.lines))

    def verbatim(self, start: int, end: int) -> Block:
        """Some lines as they are."""
        return Block("text", self.first_line + start, "\n".join(self.lines[start:end]))

    def error(self, at: Block | Token, message: str) -> MystError:
        """An error that names the file and the line of a block."""
        line = at.line if isinstance(at, Block) else self.first_line + (at.map or [0])[0]
        return MystError(self.file, line, message)

    def block(self, token: Token, previous: Token | None) -> Block | None:
        """The block that starts at this token, if it is one of its own."""
        assert token.map is not None
        found = self.verbatim(*token.map)
        if token.type == "inline":
            if previous is not None and previous.type == "heading_open":
                level = int(previous.tag[1:])
                return Block("heading", found.line, token.content, level=level, source=found.text)
            return Block("prose", found.line, token.content, source=found.text)
        if token.type in ("fence", "colon_fence"):
            return self.fence(token, found)
        if token.type in ("math_block", "math_block_label"):
            self.must_start(token)
            return Block("math", found.line, token.content.strip(), label=token.info)
        if token.type == "amsmath":  # the site would number it, so not on other pages either
            environment = token.meta["environment"]
            raise self.error(token, f"LaTeX environment {environment!r}; write $$ … $$ (label)")
        if token.type == "html_block" and self.strict:
            raise self.error(token, f"raw HTML, {token.content.strip()[:40]!r}; use a directive")
        if token.type in SILENT:
            return Block(SILENT[token.type], found.line, token.content)
        return found if token.type == "code_block" else None

    def must_start(self, token: Token) -> None:
        """A construct inside a list or a quotation would have to be put back there."""
        assert token.map is not None
        first = self.lines[token.map[0]]
        if not first.startswith(token.markup):
            raise self.error(token, f"a directive or formula must start its line, got {first!r}")

    def fence(self, token: Token, found: Block) -> Block:
        """A directive, or the verbatim lines of an ordinary code fence."""
        lines = found.text.split("\n")
        first, closing = lines[0].strip(), lines[-1].strip(" >")
        closed = closing.startswith(token.markup) and not closing.strip(token.markup[0])
        if len(lines) < 2 or not closed:
            raise self.error(token, f"the fence {first!r} is never closed")
        match = re.fullmatch(r"\{([^}\s]+)\}\s*(.*)", token.info.strip())
        if match is None:
            if token.type == "colon_fence":
                raise self.error(token, f"expected :::{{directive}}, got {first!r}")
            return found
        name, argument = match.groups()
        if name == "math":
            raise self.error(token, "unknown directive {math}; write $$ … $$ (label)")
        takes = (DIRECTIVES if self.strict else DIRECTIVES | ELSEWHERE).get(name)
        if takes is None:
            if not self.strict:
                return found
            known = ", ".join(sorted(DIRECTIVES))
            raise self.error(token, f"unknown directive {{{name}}}; expected one of {known}")
        self.must_start(token)
        options, body, used = self.options(token, name, takes)
        children: tuple[Block, ...] = ()
        if name in CONTAINERS:
            children = parse(body, self.file, found.line + 1 + used, True, self.strict)
        return Block("directive", found.line, body, name, argument, options, children)

    def options(self, token: Token, name: str, takes: set[str]) -> tuple[dict[str, Any], str, int]:
        """The options of a directive, its body, and the number of lines before the body."""
        lines = token.content.splitlines()
        head: list[str] = []
        used = 0
        if lines and lines[0].rstrip() == "---":
            closing = next((i for i, text in enumerate(lines[1:], 1) if text[:3] == "---"), None)
            if closing is None:
                raise self.error(token, f"the options of {{{name}}} are not closed by ---")
            head, used = lines[1:closing], closing + 1
        else:
            while used < len(lines) and re.match(r":[\w-]+:", lines[used]):
                head.append(lines[used][1:])
                used += 1
        written = "\n".join(head)
        try:  # as MyST reads them; those of code cells are YAML
            if name == "code-cell":
                options = dict(yaml.safe_load(written) or {})
            else:
                options = dict(options_to_items(written)[0])
        except (yaml.YAMLError, TokenizeError, ValueError) as error:
            message = f"the options of {{{name}}} cannot be read: {error}"
            raise self.error(token, message) from error
        if self.strict and (unknown := sorted(set(options) - takes)):
            expected = ", ".join(sorted(takes)) or "none"
            raise self.error(
                token, f"unknown option {unknown[0]!r} of {{{name}}}; takes {expected}"
            )
        return options, "\n".join(lines[used:]), used
