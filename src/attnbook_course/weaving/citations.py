"""Citations by author and year, and the list of the works cited, from the book's BibTeX files."""

import re
from collections.abc import Iterable
from pathlib import Path

from pybtex.backends.markdown import Backend
from pybtex.database import BibliographyData, Entry, parse_file
from pybtex.richtext import Text
from pybtex.style.formatting.plain import Style


def read_references(paths: Iterable[Path]) -> BibliographyData:
    """All entries of the BibTeX files."""
    entries: dict[str, Entry] = {}
    for path in paths:
        entries.update(parse_file(str(path), "bibtex").entries)
    return BibliographyData(entries)


def cite(keys: list[str], references: BibliographyData, textual: bool) -> str:
    """(Nadaraya, 1964; Watson, 1964), or in the text Nadaraya (1964) and Watson (1964).

    Raises KeyError for a key that is not in the references.
    """
    works = [(_authors(references.entries[key]), _year(references.entries[key])) for key in keys]
    if textual:
        return ", ".join(f"{authors} ({year})" for authors, year in works)
    return "(" + "; ".join(f"{authors}, {year}" for authors, year in works) + ")"


def bibliography(keys: set[str], references: BibliographyData) -> str:
    """The works as a Markdown list, by author and year, in the style of the site."""
    if not keys:
        return ""
    entries = {key: references.entries[key] for key in sorted(keys)}
    formatted = Style().format_bibliography(BibliographyData(entries))
    backend = Backend("utf-8")
    return "\n".join(f"- {_tidy(entry.text.render(backend))}" for entry in formatted)


def _tidy(rendered: str) -> str:
    """One line, without the escapes that Markdown does not need inside a line."""
    return re.sub(r"\\([.()!+-])", r"\1", " ".join(rendered.split()))


def _authors(entry: Entry) -> str:
    """Last names: one, two, or the first of more with et al."""
    persons = entry.persons.get("author") or entry.persons.get("editor")
    if not persons:
        raise ValueError(f"reference {entry.key!r} has neither author nor editor")
    names = [" ".join(_plain(n) for n in p.prelast_names + p.last_names) for p in persons]
    if len(names) == 1:
        return names[0]
    return f"{names[0]} and {names[1]}" if len(names) == 2 else f"{names[0]} et al."


def _year(entry: Entry) -> str:
    """The year of a work."""
    if "year" not in entry.fields:
        raise ValueError(f"reference {entry.key!r} has no year")
    return str(entry.fields["year"])


def _plain(latex: str) -> str:
    """A name without its LaTeX commands and braces."""
    return str(Text.from_latex(latex))
