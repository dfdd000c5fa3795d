"""The road reads in order: nothing is used there before it is introduced.

Of each page that is told (``attnbook_course.road.TOLD``) the visible cells and sentences are read,
in the order of the book. A page that is not told yet is left out.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from test_terms import DAILY

from attnbook_course.browser import names
from attnbook_course.road import ROAD, TOLD, Minutes, Piece, minutes, pieces, readable

ROOT = Path(__file__).parents[2]
# Short names of libraries, which the first chapter's set-up cell imports.
STANDARD = {*sys.stdlib_module_names, "np", "torch", "nn", "jax", "jnp", "eqx", "optax"}
FIRST = ROAD[: ROAD.index("03-queries-keys-values") + 1]  # whose terms must be introduced
TERM = re.compile(r"^(?P<name>[^\n:#-][^\n]*)\n: .*?\]\(\.\./chapters/(?P<page>[\w-]+)\.md#", re.M)
AHEAD = re.compile(r"[Cc]hapters? |\{doc\}|\{cite")  # in a sentence that may look ahead
SPAN = re.compile(r"(?:\{(?P<role>[\w:]+)\})?`(?P<code>[^`]+)`")
INLINE = re.compile(r"(?<!\$)\$([^$]+)\$(?!\$)")
NO_LETTERS = re.compile(
    r"\\(?:text|mathrm|operatorname\*?|begin|end)\{[^}]*\}|\be\^|\\(?:hat|log)\b"
)


def on_road(page: Path) -> Iterator[Piece]:
    """What of a page stands on the road, and the folded cells beside it."""
    return (one for one in pieces(page) if one.place in ("road", "build"))


def fault(page: Path, line: int, name: str, words: str) -> str:
    return f"{page.name}:{line}: {name}, {words.strip()}"


def unintroduced_names(pages: Iterable[Path]) -> Iterator[str]:
    """Names that a visible cell reads, and that neither a visible cell nor a sentence introduces."""
    said = set[str]()  # in code in the text, so far in the book
    for page in pages:
        known, imported = vars(builtins).keys() | STANDARD, set[str]()
        source = page.read_text("utf-8").splitlines()
        for one in on_road(page):
            if one.kind == "folded":
                imported |= imports(one.text)
            elif one.kind == "code" and "live" not in one.tags:  # a figure, which one moves
                bound, read = names(one.text)
                for name in sorted(read - known):
                    for part in attributes(one.text, name) if name in imported else {name}:
                        if name not in imported or part not in said:
                            lines = one.text.splitlines()
                            line = next(x for x in lines if re.search(rf"\b{part}\b", x))
                            yield fault(page, source.index(line, one.line) + 1, part, line)
                            said.add(part)  # is said once
                known |= bound | (read - imported)
            else:
                for span in SPAN.finditer(one.text):
                    if span["role"] in (None, "py:obj"):
                        said |= set(re.findall(r"[A-Za-z_]\w*", span["code"]))


def imports(code: str) -> set[str]:
    """The names that a folded cell imports."""
    found = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Import | ast.ImportFrom)]
    return {alias.asname or alias.name for node in found for alias in node.names}


def attributes(code: str, name: str) -> set[str]:
    """What is taken of an imported module, of which each function is introduced; or its name."""
    return {
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == name
    } or {name}


def unintroduced_terms(pages: Iterable[Path]) -> Iterator[str]:
    """Terms of the first chapters whose first use is not set in italics or bold."""
    index = (ROOT / "appendices" / "terms.md").read_text("utf-8")
    waiting = [
        {
            name
            for name in re.split(r"\s*[,()]\s*", found["name"].lower())
            if name.removesuffix("s") not in {"", *DAILY}
        }
        for found in TERM.finditer(index)
        if found["page"] in FIRST
    ]
    for page in pages:
        for one in on_road(page):
            for sentence in one.sentences() if one.kind in ("prose", "caption") else ():
                text = readable(SPAN.sub(lambda span: span[0] if span["role"] else "", sentence))
                italics = "; ".join(found[2] for found in re.finditer(r"(\*+)([^*]+)\1", text))
                for called in list(waiting):
                    if not AHEAD.search(sentence) and (name := used(called, text)):
                        waiting.remove(called)
                        if not used(called, italics):
                            yield fault(page, one.line, name, sentence)


def used(called: set[str], text: str) -> str:
    """The first of a term's names that a text uses, also in the plural; empty for none."""
    for name in sorted(called):
        if re.search(
            rf"(?<![\w-]){re.escape(name.removesuffix('s'))}(?:s|es)?(?![\w-])", text, re.I
        ):
            return name
    return ""


def letters(tex: str) -> set[str]:
    """The letters of a formula, Latin and Greek, without those of its indices and words."""
    tex = NO_LETTERS.sub(" ", tex)
    while (shorter := re.sub(r"_(?:\{[^{}]*\}|\\[a-z]+|\w)", " ", tex)) != tex:
        tex = shorter
    return set(re.findall(r"\\[a-zA-Z]+|[a-zA-Z]", tex))


def unnamed_symbols(pages: Iterable[Path]) -> Iterator[str]:
    """Letters of the notation in a formula that no text names before it or in the next paragraph."""
    table = (ROOT / "appendices" / "notation.md").read_text("utf-8").partition("In chapters 11")[0]
    cells = re.findall(r"^\| ([^|]+) \|", table, re.M)
    symbols = set[str]().union(*(letters(tex) for cell in cells for tex in INLINE.findall(cell)))
    named = set[str]()
    for page in pages:
        open_formulas = list[Piece]()
        for one in [*on_road(page), Piece("heading", "road", 0, "")]:
            if one.kind in ("prose", "row", "caption"):
                named = named.union(*map(letters, INLINE.findall(one.text)))
            if one.kind in ("prose", "heading"):
                for formula in open_formulas:
                    for symbol in sorted(letters(formula.text) & symbols - named):
                        yield fault(page, formula.line, symbol, " ".join(formula.text.split()))
                open_formulas = []
            elif one.kind == "formula":
                open_formulas.append(one)


def faults(pages: list[Path]) -> list[str]:
    return [*unintroduced_names(pages), *unintroduced_terms(pages), *unnamed_symbols(pages)]


def test_what_is_told_introduces_what_it_uses():
    assert set(ROAD) >= TOLD
    found = faults([ROOT / "chapters" / f"{name}.md" for name in ROAD if name in TOLD])
    assert not found, "\n" + "\n".join(found)


def test_minutes_are_of_what_one_reads(tmp_path):
    """150 words a minute, six lines of code, of two libraries one; and what a build says itself."""
    cell = "```{{code-cell}} ipython3\n:tags: [{}]\n\n{}```\n"
    code = "".join(cell.format(tag, "x = 1\n" * 30) for tag in ("torch", "jax", "hide-cell"))
    parts = [
        "# A page", "word " * 300, code, "```{dropdown} More", "word " * 900, "```",
        "## Deeper: a proof", "word " * 600, "### Its end", "word " * 450,
        "## Build it", "*Build, 15 minutes, code.*", "*Build, 25 minutes, code.*",
        "## Exercises", "word " * 900,
    ]  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text("\n\n".join(parts), "utf-8")
    assert minutes(page) == Minutes(road=7, build=40, deeper=7)
