"""Files of the site: what a page needs goes in; what the theme ships and no page uses goes out."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from hashlib import sha256
from os import environ, utime
from pathlib import Path
from time import time
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

from .first_load import BOOK, drop_measuring, join_styles, lighten
from .icons import icon_styles
from .maths import node_program
from .memory import memory

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# what runs a published model on a page
WORKER = ("model_worker.js", "llama.js", "float16.js", "byte_pairs.js")
ASSEMBLE = """
const [, from, to] = process.argv, { readFileSync, writeFileSync } = require("fs");
require("wabt")().then(({ parseWat }) => {
  const { buffer } = parseWat(from, readFileSync(from, "utf8"), { simd: true }).toBinary({});
  writeFileSync(to, buffer);
});
"""
BOKEH = ("bokeh.min.js", "bokeh-widgets.min.js")
STYLES = ("katex/katex.css", "icons.css", "page.css", "content.css", "print.css")
MARKUP = {
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",  # deprecated
}
# Names, operators and blanks need no colour; their spans would be two thirds of a cell's bytes.
PLAIN_CODE = re.compile(r'<span class="(?:[nopw]|n[bcfn])">([^<]*)</span>')
# sphinx_highlight marks what Sphinx's own search has found, and the book has another
UNUSED_SCRIPTS = ("mathjax", "thebe", "fontawesome", "sphinx_highlight")
FONT_SOURCES = re.compile(r',url\(fonts/[^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)')


def build_date() -> str:
    """Today, or the day that SOURCE_DATE_EPOCH names, as "21 November 2026"."""
    epoch = environ.get("SOURCE_DATE_EPOCH")
    day = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return f"{day.day} {day:%B %Y}"


def configure(app: Sphinx, config: Config) -> None:
    """Our templates and styles; our own scripts are the only ones added to every page."""
    config.templates_path = [str(HERE / "templates"), *config.templates_path]
    config.html_static_path = [*config.html_static_path, str(HERE / "static")]
    config.attnbook_static = digest(HERE)
    memory(app).began = time()
    config.html_context = {
        **config.html_context,
        "build_date": build_date(),
        "default_mode": "auto",
    }


def digest(folder: Path) -> str:
    """A fingerprint of every file below a folder."""
    files = sorted(f for f in folder.rglob("*") if f.is_file() and f.suffix != ".pyc")
    return sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def copy_katex_fonts(source: Path, target: Path) -> None:
    """KaTeX's woff2 fonts."""
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (source / "fonts").glob("*.woff2"):
        shutil.copy2(font, target / "fonts")


def copy_text_face(source: Path, target: Path) -> None:
    """The serif of the running text, upright and italic, each one file with all weights."""
    target.mkdir(parents=True, exist_ok=True)
    for style in ("normal", "italic"):
        shutil.copy2(source / "files" / f"source-serif-4-latin-wght-{style}.woff2", target)


def copy_bokeh(target: Path) -> None:
    """Bokeh's scripts, which a live figure loads when the reader reaches it."""
    try:
        import bokeh
    except ImportError:
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in BOKEH:
        shutil.copy2(Path(bokeh.__file__).parent / "server" / "static" / "js" / name, target)


def copy_models(target: Path) -> None:
    """Trained models, which a live figure loads when the reader asks for them."""
    try:
        import attnbook_course
    except ImportError:
        return
    live = Path(attnbook_course.__file__).parent / "live"
    if (live / "models").is_dir():
        shutil.copytree(live / "models", target, dirs_exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    for name in WORKER:
        shutil.copy2(live / "static" / name, target)
    assemble(live / "static" / "quantised.wat", target / "quantised.wasm")


def assemble(source: Path, target: Path) -> None:
    """WebAssembly out of its text, by the wabt that npm installed."""
    if not target.is_file() or target.stat().st_mtime < source.stat().st_mtime:
        arguments = [node_program(), "-e", ASSEMBLE, str(source), str(target)]
        subprocess.run(arguments, check=True, cwd=ROOT)


def copy_published(target: Path) -> None:
    """A published model, where `make model` has brought it: readers ask it on the page."""
    folder = ROOT / "_build" / "published"
    if folder.is_dir():
        shutil.copytree(folder, target, dirs_exist_ok=True)


def copy_card(app: Sphinx, static: Path) -> None:
    """The picture that goes with a link to the book."""
    card = Path(app.confdir) / "images" / "card.png"
    if card.is_file():
        static.mkdir(parents=True, exist_ok=True)
        shutil.copy2(card, static)


def copy_assets(app: Sphinx) -> None:
    """Bring what npm and pip installed into the site. No page loads all of it."""
    if app.builder.format != "html":
        return
    modules, static = Path(app.confdir) / "node_modules", Path(app.outdir) / "_static"
    if not (modules / "katex").is_dir():
        raise ExtensionError(f"the site needs KaTeX and its fonts: run npm ci in {app.confdir}")
    copy_katex_fonts(modules / "katex" / "dist", static / "katex")
    copy_text_face(modules / "@fontsource-variable" / "source-serif-4", static / "fonts")
    copy_bokeh(static / "bokeh")
    copy_models(static / "models")
    copy_published(static / "models")
    copy_card(app, static)
    for priority, name in enumerate(STYLES, start=900):
        app.add_css_file(name, priority=priority)
    app.add_js_file("site.js", loading_method="defer", priority=900)
    app.add_js_file("reading.js", loading_method="defer", priority=905)


def begin_styles(app: Sphinx) -> list[Any]:
    """The site is being written: its one sheet is due again, from whole sheets.

    Sphinx copies the theme's sheets and scripts right after this, and only then. So a build that
    finds nothing to write leaves trimmed files as they are, and the one sheet says that they are.
    """
    static = Path(app.outdir) / "_static"
    (static / BOOK).unlink(missing_ok=True)
    katex = Path(app.confdir) / "node_modules" / "katex" / "dist" / "katex.min.css"
    styles = FONT_SOURCES.sub("", katex.read_text(encoding="utf-8"))
    (static / "katex" / "katex.css").write_text(styles, encoding="utf-8")
    (static / "icons.css").write_text(icon_styles(), encoding="utf-8")
    return []  # no more pages


def unfinished(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> set[str]:
    """Every page, if the build before was interrupted: then nobody made the one sheet."""
    if app.builder.format != "html" or (Path(app.outdir) / "_static" / BOOK).is_file():
        return set()
    return env.found_docs - added


def drop_unused(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Take out scripts that no page uses or that ask another host."""
    for kind in ("script_files", "css_files"):
        context[kind] = [f for f in context.get(kind, []) if keeps(str(getattr(f, "filename", f)))]


def mend_markup(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Take back labels that mislead assistive devices, and markup that shows nothing.

    A list of references has no list items, and a folded cell's label would hide the words that say
    what is folded.
    """
    body = context.get("body", "")
    for wrong, right in MARKUP.items():
        body = body.replace(wrong, right)
    context["body"] = PLAIN_CODE.sub(r"\1", body)


def keeps(file: str) -> bool:
    """Whether a page loads this file: only what lies in the site itself, and is used."""
    return "//" not in file and not any(word in file for word in UNUSED_SCRIPTS)


def offer_notebook(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """The downloads have a chapter's notebook; the theme adds it beside launch buttons alone."""
    if (Path(app.srcdir) / f"{page}.ipynb").is_file():
        context["ipynb_source"] = f"{page}.ipynb"


def copy_notebooks(app: Sphinx, error: Exception | None) -> None:
    """Offer for download the notebook beside each chapter's source; the theme's holds raw MyST."""
    if error or app.builder.format != "html":
        return
    for page in app.env.found_docs:
        notebook = Path(app.srcdir) / f"{page}.ipynb"
        offered = Path(app.outdir) / "_sources" / f"{page}.ipynb"
        if notebook.is_file():
            offered.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(notebook, offered)


def trim_theme(app: Sphinx, error: Exception | None) -> None:
    """Leave out unused style rules, and the theme's icon fonts, icon scripts and source maps.

    All styles that are left become one sheet.
    """
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    if not (static / BOOK).is_file():
        shutil.rmtree(static / "vendor", ignore_errors=True)
        for file in {*static.rglob("*.map"), *static.rglob("fontawesome.*")}:
            file.unlink()
        modules, script = Path(app.confdir) / "node_modules", HERE / "trim_styles.js"
        subprocess.run([node_program(), str(script), modules, app.outdir], check=True)
        drop_measuring(static / "scripts" / "pydata-sphinx-theme.js")
        join_styles(static, memory(app).sheets)
    utime(static / BOOK, (memory(app).began,) * 2)  # the tests ask whether a source is newer
    for sheet in static.rglob("*.css"):  # some extensions copy theirs though nothing was written
        if sheet.name != BOOK:
            sheet.unlink()


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    # Jupyter Book sets this one for an extension that we leave out.
    app.add_config_value("comments_config", {}, "html")
    app.add_config_value("attnbook_static", "", "html")  # a changed style writes the pages again
    app.connect("config-inited", configure)
    app.connect("builder-inited", copy_assets)
    app.connect("env-get-outdated", unfinished)
    app.connect("html-collect-pages", begin_styles)
    app.connect("html-page-context", drop_unused, priority=990)
    app.connect("html-page-context", mend_markup)
    app.connect(
        "html-page-context", offer_notebook, priority=400
    )  # the theme's buttons come at 501
    app.connect("html-page-context", lighten, priority=991)
    app.connect("build-finished", copy_notebooks)
    app.connect("build-finished", trim_theme, priority=900)  # the theme writes colours of code
