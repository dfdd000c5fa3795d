"""Live figures of the site: they come after the page, and a picture stands in for each.

A figure's script goes into a file of its own, which the page asks for once it has loaded. The
picture is for paper and for readers without JavaScript; tools/stills.py takes it from the built
site. It is here, and not in the notebook, so that a chapter need not be executed again for one.
"""

from __future__ import annotations

import re
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image
from sphinx.application import Sphinx

from attnbook_course.weaving.stills import PLACE, alternative

SCRIPT = re.compile(r'<script class="attnbook-live-script">\n(.*?)</script>', re.DOTALL)
NAME = re.compile(r'const name = "([\w-]+)"')
LOADER = """<script>
window.addEventListener("load", () => setTimeout(() =>
  document.head.append(Object.assign(document.createElement("script"), { src: "ADDRESS" }))));
</script>"""
ASKING = '<div id="live-ask-model" '
MODEL = Path(__file__).parents[2] / "_build" / "published" / "smollm2.gguf"  # make model brings it
SCALE = 2  # pixels of a picture for one of the page


def show(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Put a figure's picture where the page has a place for it; say that the model is here."""

    def picture(found: re.Match[str]) -> str:
        file = Path(app.confdir) / "images" / "stills" / f"{found['name']}.webp"
        if not file.is_file():
            return found[0]
        with Image.open(file) as image:
            width, height = (side // SCALE for side in image.size)
        address = context["pathto"](f"_static/stills/{file.name}", resource=True)
        return (
            f'{found[0]}<img src="{escape(address)}" width="{width}" height="{height}" '
            f'loading="lazy" alt="{alternative(found["title"])}">'
        )

    body = PLACE.sub(picture, context.get("body", ""))
    if app.config.attnbook_model:
        body = body.replace(ASKING, f"{ASKING}data-model ")
    context["body"] = body


def move(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Put a figure's script into a file; its address changes with it."""

    def loader(found: re.Match[str]) -> str:
        script = found[1]
        named = NAME.search(script)
        if named is None:
            return found[0]
        file = Path(app.outdir) / "_static" / "live" / f"{named[1]}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script, encoding="utf-8")
        version = sha256(script.encode()).hexdigest()[:8]
        address = context["pathto"](f"_static/live/{file.name}", resource=True)
        return LOADER.replace("ADDRESS", f"{address}?v={version}")

    context["body"] = SCRIPT.sub(loader, context.get("body", ""))


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    app.add_config_value("attnbook_model", MODEL.is_file(), "html")
    app.connect("html-page-context", show)
    app.connect("html-page-context", move)
