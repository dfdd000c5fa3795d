"""An image says its size before it comes, near the window, so that it does not push the text down;
and it is a link to itself, which static/site.js opens as large as the window."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

IMAGE = re.compile(r'<img (?=[^>]*src="([^"]*_images/([^"/]+))")[^>]*>')


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


def prepare_images(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Write sizes and links into one page."""
    sources = {name: Path(app.srcdir) / file for file, name in app.builder.images.items()}

    def prepared(found: re.Match[str]) -> str:
        image, (address, name) = found[0], found.groups()
        sides = size(sources[name]) if name in sources and " width=" not in image else None
        if sides:
            late = '<img loading="lazy" width="{}" height="{}" '.format(*sides)
            image = image.replace("<img ", late, 1)
        return f'<a class="whole" href="{address}">{image}</a>'

    context["body"] = IMAGE.sub(prepared, context.get("body", ""))


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", prepare_images)
