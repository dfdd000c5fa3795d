"""Translate roles and links inside a paragraph to plain Markdown."""

import posixpath
import re
from dataclasses import dataclass, field

from pybtex.database import BibliographyData

from attnbook_course.weaving.blocks import MystError
from attnbook_course.weaving.book import Book, Page
from attnbook_course.weaving.citations import cite
from attnbook_course.weaving.labels import Label, Table

INLINE = re.compile(
    r"\{(?P<role>[\w:+-]+)\}`(?P<body>[^`]+)`"
    r"|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"  # code stays as it is
    r"|(?P<footnote>\[\^[^\]]+\])"
    r"|(?P<picture>!)?\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s]*)\)",
    re.DOTALL,
)
ROLES = {"eq", "ref", "numref", "doc", "cite:p", "cite:t", "py:obj"}


@dataclass
class RoleResolver:
    """What the translation of one page's prose needs to know; gathers the keys it cites."""

    book: Book
    table: Table
    references: BibliographyData
    page: Page
    cited: set[str] = field(default_factory=set)

    def prose(self, source: str, line: int) -> str:
        """The text with every role and link of the book resolved."""

        def replace(match: re.Match[str]) -> str:
            here = line + source[: match.start()].count("\n")
            return self._resolve(match, here)

        return INLINE.sub(replace, source)

    def error(self, line: int, message: str) -> MystError:
        """An error that names this page's file and the line."""
        return MystError(self.book.file(self.page), line, message)

    def _resolve(self, match: re.Match[str], line: int) -> str:
        """What stands in the place of one role, code span or link."""
        if match["role"]:
            return self._role(match["role"], " ".join(match["body"].split()), line)
        if match["footnote"]:
            raise self.error(line, f"footnotes are not used here: {match['footnote']}")
        if match["target"] is not None:
            return self._link(match, line)
        return match[0]

    def _role(self, role: str, body: str, line: int) -> str:
        """One role as plain Markdown."""
        if role not in ROLES:
            expected = ", ".join(sorted(ROLES))
            raise self.error(line, f"unknown role {{{role}}}; expected one of {expected}")
        if role == "py:obj":
            return _code(body)
        if role.startswith("cite"):
            return self._cite(role, [key.strip() for key in body.split(",")], line)
        match = re.fullmatch(r"(.+?)\s*<([^<>]+)>", body)
        text, target = match.groups() if match else ("", body)
        if role == "doc":
            return self._document(text, target, line)
        label = self._label(target, line)
        wrong = {
            "eq": label.kind != "equation",
            "numref": label.kind in ("section", "equation"),
            "ref": label.kind in ("equation", "figure") and not text,
        }
        if wrong[role]:
            message = f"{{{role}}} cannot refer to the {label.kind} {target!r}"
            raise self.error(line, message + "; use {eq}, {numref} or {ref}")
        return self._point(label, text or label.text)

    def _cite(self, role: str, keys: list[str], line: int) -> str:
        """One citation; its keys are noted for the list at the chapter's end."""
        for key in keys:
            if key not in self.references.entries:
                files = ", ".join(path.name for path in self.book.references)
                raise self.error(line, f"no reference {key!r} in {files or 'bibtex_bibfiles'}")
        self.cited.update(keys)
        return cite(keys, self.references, textual=role == "cite:t")

    def _label(self, name: str, line: int) -> Label:
        """The label of this name."""
        if name not in self.table.labels:
            raise self.error(line, f"no page of the book has the label {name!r}")
        return self.table.labels[name]

    def _document(self, text: str, target: str, line: int) -> str:
        """A link to a page of the book."""
        folder = "" if target.startswith("/") else posixpath.dirname(self.page.docname)
        name = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
        if name not in self.table.documents:
            known = ", ".join(self.table.documents)
            raise self.error(line, f"no page {target!r}; the book has {known}")
        title = self.prose(text or self.table.documents[name].text, line)
        return f"[{title}]({self.book.address(name)})"

    def _point(self, label: Label, text: str) -> str:
        """A reference: plain text on the same page, a link to the site for another."""
        if label.docname == self.page.docname:
            return text
        address = self.book.address(label.docname, label.anchor, label.cell)
        return f"[{text}]({address})"

    def _link(self, match: re.Match[str], line: int) -> str:
        """A Markdown link; those to labels and pages of the book are resolved."""
        text, target = match["text"], match["target"]
        if match["picture"]:
            raise self.error(line, "a picture needs the figure directive, with alt and caption")
        if re.match(r"[a-z]+:", target):
            return f"[{self.prose(text, line)}]({target})"
        path, _, anchor = target.partition("#")
        if path.endswith(".md"):
            link = self._document(text, path.removesuffix(".md"), line)
            return f"{link[:-1]}#{anchor})" if anchor else link
        file = posixpath.normpath(posixpath.join(posixpath.dirname(self.page.docname), path))
        if path and (self.book.root / file).is_file():
            return f"[{self.prose(text, line)}]({self.book.file_address(file)})"
        label = self._label(anchor or path, line)
        return self._point(label, self.prose(text, line) or label.text)


def _code(body: str) -> str:
    """A reference to Python as code: the last name after ~, the text before <…>."""
    match = re.fullmatch(r"(.+?)\s*<[^<>]+>", body)
    name = match[1] if match else body
    return f"`{name.rsplit('.', 1)[-1] if name.startswith('~') else name}`"
