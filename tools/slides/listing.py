"""Code and printed lines as HTML, as large as there is room, and what they must have."""

from __future__ import annotations

import re
from html import escape
from textwrap import wrap

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

# Names, operators and blanks need no colour.
PLAIN = re.compile(r'<span class="(?:[nopw]|n[bcfn])">([^<]*)</span>')
LETTER = 0.602  # width of a letter of the code face, in its size
EDGES = 46  # pixels of a box that are no room for letters
TYPE = (20, 27)  # the least and the largest size of code, in pixels of 720
TYPED = 480  # pixels for the lines of typed code: a title and a line of text have the rest
LINES = 360  # how many lines of type of one pixel are as high as a slide's body
MOST = {"code lines": 16, "code columns": 93, "printed lines": 16}


def typed_as_html(code: str, cuts: list[str], width: float) -> str:
    """Code without its docstring; from each line on that begins as a cut a click shows a step."""
    bare = re.sub(r'^ +""".*?"""\n', "", code, count=1, flags=re.DOTALL | re.MULTILINE)
    lines = bare.rstrip("\n").split("\n")
    starts = [[i for i, one in enumerate(lines) if one.strip().startswith(cut)] for cut in cuts]
    for cut, found in zip(cuts, starts, strict=True):
        if not cut or len(found) != 1:
            raise LookupError(f"clicks: {len(found)} lines of the code begin {cut!r}; one must")
    places = [found[0] for found in starts]
    if places != sorted(places):
        raise LookupError(f"clicks: {' | '.join(cuts)} do not follow each other")
    html = highlight("\n".join(lines), PythonLexer(), HtmlFormatter(nowrap=True)).split("\n")
    ends = [*places, len(lines)]
    steps = [
        f'<span class="step fragment">{chr(10).join(html[start:end])}\n</span>'
        for start, end in zip(places, ends[1:], strict=True)
    ]
    first = "".join(f"{one}\n" for one in html[: places[0]])
    size = min(size_of(lines, width), int(TYPED / (1.5 * len(lines))))
    if size < TYPE[0]:
        raise LookupError(f"code of {len(lines)} lines; at most {TYPED // (1.5 * TYPE[0]):g}")
    typed = PLAIN.sub(r"\1", first + "".join(steps))
    return f'<pre class="code" tabindex="0" style="--size: {size}px"><code>{typed}</code></pre>'


def code_as_html(lines: list[str], marked: list[int], width: float) -> str:
    """Code in the site's colours, some lines marked; LookupError where it has no room."""
    widest = max(map(len, lines))
    if len(lines) > MOST["code lines"] or widest > MOST["code columns"]:
        most = f"{MOST['code lines']} lines of {MOST['code columns']}"
        raise LookupError(f"code of {len(lines)} lines, {widest} columns; at most {most}")
    html = highlight("\n".join(lines), PythonLexer(), HtmlFormatter(nowrap=True, hl_lines=marked))
    size, code = size_of(lines, width), PLAIN.sub(r"\1", html)
    return f'<pre class="code" tabindex="0" style="--size: {size}px"><code>{code}</code></pre>'


def printed_as_html(lines: list[str], width: float) -> str:
    """What a cell printed; LookupError where it has no room."""
    count = len(lines) if "".join(lines).strip() else 0
    if not 1 <= count <= MOST["printed lines"]:
        raise LookupError(f"{count} printed lines; expected 1 to {MOST['printed lines']}")
    size, printed = size_of(lines, width), escape("\n".join(lines))
    return f'<pre class="printed" tabindex="0" style="--size: {size}px">{printed}</pre>'


def map_as_html(lines: list[str], names: list[str], cells: list[tuple[str, str]]) -> str:
    """A square of printed numbers, the darker the larger; a click rings some cells, from 1."""
    rows = [re.findall(r"-?\d+\.?\d*", one) for one in lines]
    if {len(row) for row in rows} != {len(names)} or len(rows) != len(names):
        shape = " + ".join(str(len(row)) for row in rows)
        raise LookupError(f"map: got {shape} numbers, expected a square of {len(names)} names")
    least, most = (f(float(one) for row in rows for one in row) for f in (min, max))
    html = "".join(f"<span>{escape(one)}</span>" for one in ["", *names])
    for name, row in zip(names, rows, strict=True):
        html += f"<span>{escape(name)}</span>"
        for one in row:
            heat = 55 * (float(one) - least) / ((most - least) or 1)
            said = one.rstrip(".").replace("-", "−") if float(one) else "0"
            html += f'<b style="--heat: {heat:.0f}%">{said}</b>'
    places = [f"{int(i) + 1} / {int(j) + 1}" for i, j in cells]
    rings = "".join(f'<i style="grid-area: {place}"></i>' for place in places)
    html += f'<div class="fragment rings">{rings}</div>' if rings else ""
    return f'<div class="map" style="--n: {len(names)}">{html}</div>'


def size_of(lines: list[str], width: float) -> int:
    """The size of type in which the longest line fits the width."""
    widest = max(map(len, lines))
    size = int((width - EDGES) / (LETTER * max(widest, 1)))
    if size < TYPE[0]:
        raise LookupError(f"a line of {widest} characters; at most {most_letters(width)} fit here")
    return min(TYPE[1], size)


def most_letters(width: float, size: int = TYPE[0]) -> int:
    """How many letters of a size fit side by side."""
    return int((width - EDGES) / (LETTER * size))


def broken(lines: list[str], width: float) -> list[str]:
    """The lines, of which those that are too long go on in the next, in the largest type."""
    for size in range(TYPE[1], TYPE[0] - 1, -1):
        most = most_letters(width, size)
        parts = [part for one in lines for part in wrap(one, most) or [""]]
        if len(parts) <= min(MOST["printed lines"], LINES // size):
            break
    return parts


def expression(option: str, pattern: str) -> re.Pattern[str]:
    """The regular expression that an option is; LookupError if it is none."""
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise LookupError(f"{option}: {pattern!r} is no regular expression: {error}") from error


def expect(option: str, wanted: str, lines: list[str]) -> None:
    """LookupError unless the lines taken have what the option says.

    A chapter's cell that is cut in two, or prints something else, would leave a slide without what
    it speaks of.
    """
    if not wanted:
        raise LookupError(f"{option}: got nothing, expected what the lines taken must have")
    if not expression(option, wanted).search("\n".join(lines)):
        raise LookupError(f"{option}: no {wanted!r} in the lines taken, the first is {lines[0]!r}")
