"""Files of the site: what npm and pip installed goes in, and every page finds it there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from os import environ
from pathlib import Path
from typing import Any

import bokeh
import pydata_sphinx_theme
from fontTools import subset  # comes with matplotlib
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

import attnbook_course

from .maths import node_program

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIVE = Path(attnbook_course.__file__).parent / "live"
BOKEH = Path(bokeh.__file__).parent / "server" / "static" / "js"
# what runs a published model on a page
WORKER = ("model_worker.js", "llama.js", "float16.js", "byte_pairs.js")
ASSEMBLE = """
const [, from, to] = process.argv, { readFileSync, writeFileSync } = require("fs");
require("wabt")().then(({ parseWat }) => {
  const { buffer } = parseWat(from, readFileSync(from, "utf8"), { simd: true }).toBinary({});
  writeFileSync(to, buffer);
});
"""
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
# of the theme's icons, 156 kB; a page with another one loads the theme's font as well
ICONS = ["angle-left", "angle-right", "bars", "circle-half-stroke", "code", "download"]
ICONS += ["file", "file-pdf", "list", "magnifying-glass", "moon", "sun", "xmark"]
STYLES = ("katex/katex.min.css", "page.css", "content.css", "print.css")
# What others wrote for any page: all pages wait for it, and need a quarter of it.
TRIMMED = ("styles/*-theme.css", "sphinx-design.min.css", "mystnb.*.css")
RULE = re.compile(r"/\*.*?\*/|([^{}@;/]+)\{[^{}]*\}", re.DOTALL)
NEGATED = re.compile(r":not\((?:[^()]|\([^()]*\))*\)")
# A list of references has no list items for assistive devices, and this role is deprecated.
MARKUP = {
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
}


def configure(app: Sphinx, config: Config) -> None:
    """Our templates and styles, and the day of the build, or that of SOURCE_DATE_EPOCH."""
    root, epoch = Path(app.confdir), environ.get("SOURCE_DATE_EPOCH")
    day = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    config.templates_path = [str(HERE / "templates"), *config.templates_path]
    config.html_static_path = [*config.html_static_path, str(HERE / "static")]
    config.html_context = {
        **config.html_context,
        "build_date": f"{day.day} {day:%B %Y}",
        "default_mode": "auto",
    }
    config.attnbook_files = digest(HERE, root / "images" / "stills", root / "lectures")


def digest(*folders: Path) -> str:
    """A fingerprint of every file below some folders."""
    files = sorted(f for folder in folders for f in folder.rglob("*") if f.is_file())
    return sha256(b"".join(f.read_bytes() for f in files if f.suffix != ".pyc")).hexdigest()


def copy(files: Iterable[Path], target: Path) -> None:
    """Bring files into a folder of the site."""
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy2(file, target)


def copy_assets(app: Sphinx) -> None:
    """What npm and pip installed, and trained models, for live figures. No page loads all of it."""
    if app.builder.format != "html":
        return
    modules, static = Path(app.confdir) / "node_modules", Path(app.outdir) / "_static"
    katex = modules / "katex" / "dist"
    if not katex.is_dir():
        raise ExtensionError(f"the site needs KaTeX and its fonts: run npm ci in {app.confdir}")
    copy([katex / "katex.min.css"], static / "katex")
    copy((katex / "fonts").glob("*.woff2"), static / "katex" / "fonts")
    serif = modules / "@fontsource-variable" / "source-serif-4" / "files"
    copy(serif.glob("source-serif-4-latin-wght-*.woff2"), static / "fonts")
    write_icons(static / "fonts" / "icons.woff")
    shutil.copy2(modules / "minisearch" / "dist" / "umd" / "index.js", static / "minisearch.js")
    copy((BOKEH / f"{name}.min.js" for name in ("bokeh", "bokeh-widgets")), static / "bokeh")
    copy((LIVE / "static" / name for name in WORKER), static / "models")
    for folder in (LIVE / "models", ROOT / "_build" / "published"):  # and what `make model` brought
        if folder.is_dir():
            shutil.copytree(folder, static / "models", dirs_exist_ok=True)
    assemble(LIVE / "static" / "quantised.wat", static / "models" / "quantised.wasm")
    copy(Path(app.confdir, "images", "stills").glob("*.webp"), static / "stills")
    copy(Path(app.confdir, "images").glob("card.png"), static)  # goes with a link to the book
    for priority, name in enumerate(STYLES, start=900):
        app.add_css_file(name, priority=priority)
    app.add_js_file("site.js", priority=900)


def write_icons(target: Path) -> None:
    """The icons of the pages, out of the theme's font and under the letters of its style sheet."""
    style = (THEME / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    options = subset.Options(flavor="woff", layout_features=[])
    font = subset.load_font(THEME / "vendor/fontawesome/webfonts/fa-solid-900.ttf", options)
    chosen = subset.Subsetter(options)
    chosen.populate(
        glyphs=ICONS, text=" \u00a0" + "".join(re.findall(r'--pst-icon-[a-z-]+:"(.)"', style))
    )
    chosen.subset(font)
    subset.save_font(font, target, options)


def assemble(source: Path, target: Path) -> None:
    """WebAssembly out of its text, by the wabt that npm installed."""
    if not target.is_file() or target.stat().st_mtime < source.stat().st_mtime:
        arguments = [node_program(), "-e", ASSEMBLE, str(source), str(target)]
        subprocess.run(arguments, check=True, cwd=ROOT)


def finish_page(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Mend markup for assistive devices; offer the notebook beside a chapter for download."""
    for wrong, right in MARKUP.items():
        context["body"] = context.get("body", "").replace(wrong, right)
    if (Path(app.srcdir) / f"{page}.ipynb").is_file():
        context["ipynb_source"] = f"{page}.ipynb"  # else the theme offers it with an address alone


def defer(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """No script keeps a page from being drawn; what the theme tells its own search goes."""
    scripts = context["script_files"]
    scripts[:] = [one for one in scripts if one.filename]
    for script in scripts:
        script.attributes["defer"] = "defer"


def finish(app: Sphinx, error: Exception | None) -> None:
    """The notebooks that are offered are ours; the theme's icons are a font, and no script too."""
    if error or app.builder.format != "html":
        return
    for page in app.env.found_docs:
        notebook = Path(app.srcdir) / f"{page}.ipynb"
        if notebook.is_file():
            copy([notebook], (Path(app.outdir) / "_sources" / page).parent)
    icons = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    icons.write_text("// 1.5 MB that the style sheet's icon font has as well\n", encoding="utf-8")
    trim_styles(Path(app.outdir))


def trim_styles(site: Path) -> None:
    """Leave out the rules for classes that are on no page and named in no script."""
    known = set[str]()
    for page in site.rglob("*.html"):
        for classes in re.findall(r'class="([^"]*)"', page.read_text("utf-8")):
            known.update(classes.split())
    for script in site.rglob("*.js"):
        known.update(re.findall(r"[\w-]+", script.read_text("utf-8")))

    def needed(rule: re.Match[str]) -> str:
        selectors = NEGATED.sub("", rule[1] or "").split(",")
        classes = (re.findall(r"\.([a-zA-Z_-][\w-]*)", one) for one in selectors)
        return rule[0] if any(map(known.issuperset, classes)) else ""

    for sheet in (file for name in TRIMMED for file in (site / "_static").glob(name)):
        sheet.write_text(RULE.sub(needed, sheet.read_text("utf-8")), "utf-8")


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book's, of what we leave out
    app.add_config_value("attnbook_files", "", "html")  # a changed style writes the pages again
    app.connect("config-inited", configure)
    app.connect("builder-inited", copy_assets)
    app.connect("html-page-context", finish_page, priority=400)  # the theme's buttons come at 501
    app.connect("html-page-context", defer, priority=900)  # when all scripts are named
    app.connect("build-finished", finish)
