"""What a phone gets before it shows a page: one style sheet, no script that it waits for, and no
image that pushes the text down when it comes.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from .memory import memory

BOOK = "book.css"
# What the theme puts before the sheets that Sphinx lists; its theme.css only imports basic.css.
FIRST = ("basic.css", "styles/pydata-sphinx-theme.css")
TABS = ("design-tabs.js", "sd-tab-label")  # a script, and what a page has that needs it
REFERENCE = re.compile(r"url\((?![\"']?(?:data:|#))([\"']?)([^)\"']+)\1\)")
BLANK = re.compile(r"(?:/\*.*?\*/|\s)+", re.DOTALL)  # comments among it
AROUND = re.compile(r" *([{};]) *")  # no string and no address of the sheets has such blanks
# The last statement of the theme's script: tab stops for all boxes that scroll.
MEASURING = re.compile(
    r',"complete"===document\.readyState\?(\w+)\(\):window\.addEventListener\("load",\1\)(?=\}\)\(\);)'
)
IMAGE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+)")(?![^>]*\bwidth=)')


def size(image: Path) -> tuple[int, int] | None:
    """Width and height of a drawing or a PNG in CSS pixels; None if it does not say."""
    data = image.read_bytes()
    if data.startswith(b"\x89PNG"):
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    root = re.search(rb"<svg\b[^>]*>", data)
    sides = [
        float(number) * (4 / 3 if unit == b"pt" else 1)
        for side in (b"width", b"height")
        for number, unit in re.findall(rb'\s%s="([\d.]+)(pt|px)?"' % side, root[0] if root else b"")
    ]
    return (round(sides[0]), round(sides[1])) if len(sides) == 2 else None


def hold_places(app: Sphinx, body: str) -> str:
    """Each image says its size before it comes; all but the first come when the reader is near."""
    sources = {name: Path(app.srcdir) / file for file, name in app.builder.images.items()}
    seen: list[str] = []

    def says_size(found: re.Match[str]) -> str:
        source = sources.get(found[1])
        sides = size(source) if source else None
        lazy = 'loading="lazy" ' if seen else ""
        seen.append(found[1])
        return f"<img {lazy}" + ('width="{}" height="{}" '.format(*sides) if sides else "")

    return IMAGE.sub(says_size, body)


def waiting(script: Any) -> Any:
    """The same script, run when the page is read; an inline one that uses another, after that."""
    attributes = dict(script.attributes)
    if script.filename:
        attributes.setdefault("defer", "defer")
    elif attributes.get("body", "").startswith("DOCUMENTATION_OPTIONS"):
        attributes["type"] = "module"
    return type(script)(script.filename, priority=script.priority, **attributes)


def lighten(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Prepare one page."""
    sheets = (str(sheet.filename).removeprefix("_static/") for sheet in context["css_files"])
    memory(app).sheets = [*FIRST, *sheets]
    context["css_files"] = []  # the template names the one sheet
    context["style_version"] = app.config.attnbook_static[:8]
    body = context.get("body", "")
    if page != "search":  # whose own scripts use these at once
        context["script_files"] = [
            waiting(script)
            for script in context["script_files"]
            if TABS[1] in body or not str(script.filename).endswith(TABS[0])
        ]
    context["body"] = hold_places(app, body)


def from_folder(styles: str, folder: str) -> str:
    """A sheet's addresses, from one folder above."""
    return REFERENCE.sub(
        lambda found: f'url("{posixpath.normpath(posixpath.join(folder, found[2]))}")', styles
    )


def drop_measuring(script: Path) -> None:
    """Take from the theme's script what site.js does without measuring the whole page at once."""
    text = script.read_text(encoding="utf-8")
    if not MEASURING.search(text):
        raise ExtensionError(f"{script.name} ends otherwise than expected: see drop_measuring")
    script.write_text(MEASURING.sub("", text), encoding="utf-8")


def join_styles(static: Path, sheets: list[str]) -> None:
    """One sheet of all, in their order, without comments and blanks."""
    parts = []
    for name in sheets:
        styles = (static / name).read_text(encoding="utf-8")
        styles = BLANK.sub(" ", styles.replace('@charset "UTF-8";', ""))
        styles = AROUND.sub(r"\1", styles)
        parts.append(from_folder(styles.strip(), posixpath.dirname(name)))
    (static / BOOK).write_text("\n".join(parts), encoding="utf-8")
