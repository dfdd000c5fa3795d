"""The doors: pages of one idea and one figure each, and pages of the figure alone, to be embedded.

They are written without the theme, each in one file, so that a phone has them at once. ``{doors}``
lists them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from attnbook_course.live.figure import read_scripts

from .assets import copy
from .found import head_tags

SHARED = {"average": ["wording", "kernel_average"], "hull": ["wording", "plane_attention"]}
FIGURE = """<figure aria-label="%TITLE%">
<svg id="drawing" viewBox="0 0 360 230" role="img" aria-labelledby="said"></svg>
<div id="controls"></div>
<p id="said" role="status"></p>
<figcaption id="task"><strong>Do this.</strong> %TASK%
<span id="seen" role="status"></span></figcaption>
</figure>"""


@dataclass(frozen=True)
class Door:
    """A door, in Markdown.

    Attributes:
        name: of its page and its script.
        title: the question, as people ask it.
        description: for search engines, and those who get a link.
        before: what stands above the figure.
        task: the one thing to do.
        after: what stands below the figure.
        into: the chapter that it leads to.
        section: the anchor there.
        words: what is said of the chapter.
    """

    name: str
    title: str
    description: str
    before: str
    task: str
    after: str
    into: str
    section: str
    words: str


def read(folder: Path) -> list[Door]:
    """All doors, in their order."""
    text = (folder / "doors.toml").read_text("utf-8")
    return [Door(**entry) for entry in tomllib.loads(text)["door"]]


def page(config: Config, folder: Path, template: str, door: Door, doors: list[Door]) -> str:
    """A door's page, or that of its figure alone."""
    scripts = [f"{name}.js" for name in SHARED.get(door.name, ["wording"])]
    own = (folder / name for name in ("door.js", f"{door.name}.js"))
    script = read_scripts(*scripts) + "".join(file.read_text("utf-8") for file in own)
    inline = MarkdownIt("commonmark", {"html": True}).renderInline
    others = (f'<li><a href="{one.name}.html">{escape(one.title)}</a></li>' for one in doors)
    parts = {
        "TITLE": escape(door.title),
        "NAME": door.name,
        "HEAD": head_tags(
            config,
            door.title,
            door.description,
            f"doors/{door.name}.html",
            f"_static/doors/{door.name}.png",
        ),
        "STYLE": (folder / "door.css").read_text("utf-8"),
        "SCRIPT": f"{script}show();",
        "BEFORE": inline(door.before),
        "TASK": inline(door.task),
        "AFTER": inline(door.after),
        "INTO": f"{door.into}.html#{door.section}",
        "WORDS": escape(door.words),
        "OTHERS": f"<ul>{''.join(one for one in others if f'{door.name}.html' not in one)}</ul>",
    }
    text = (folder / template).read_text("utf-8").replace("%FIGURE%", FIGURE)
    return re.sub("%([A-Z]+)%", lambda found: parts[found[1]], text)


class Doors(SphinxDirective):
    """A list of links to all doors."""

    def run(self) -> list[nodes.Node]:
        """The list, for the landing page."""
        folder = Path(self.env.srcdir) / "doors"
        self.env.note_dependency(str(folder / "doors.toml"))
        links = "".join(
            f'<li><a href="doors/{door.name}.html">{escape(door.title)}</a></li>'
            for door in read(folder)
        )
        return [nodes.raw("", f'<ul class="doors screen-only">{links}</ul>', format="html")]


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the pages; a door that leads nowhere fails the build."""
    folder, target = Path(app.srcdir) / "doors", Path(app.outdir) / "doors"
    if error or app.builder.format != "html" or not folder.is_dir():
        return
    target.mkdir(exist_ok=True)
    copy(
        (Path(app.srcdir) / "images" / "doors").glob("*.png"), Path(app.outdir, "_static", "doors")
    )
    doors = read(folder)
    for door in doors:
        chapter = Path(app.outdir) / f"{door.into}.html"
        if f'id="{door.section}"' not in chapter.read_text("utf-8"):
            raise ExtensionError(f"{door.name}: {door.into} has no section {door.section}")
        for name, template in ((door.name, "door.html"), (f"{door.name}-figure", "figure.html")):
            text = page(app.config, folder, template, door, doors)
            (target / f"{name}.html").write_text(text, "utf-8")


def setup(app: Sphinx) -> None:
    """Register the directive, and write the pages at the end."""
    app.add_directive("doors", Doors)
    app.connect("build-finished", write)
