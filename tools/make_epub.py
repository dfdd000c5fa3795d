"""Bind the built website into one EPUB: formulas as MathML, drawings as SVG, stills of what moves.

python tools/make_epub.py [site [epub [toc]]]

Each page is opened in Chromium as a reader without scripts has it, and its text taken out as
XHTML. Solutions and what is folded away become notes at the chapter's end. The same commit gives
the same file; Chromium gets the site's files and nothing else.
"""

from __future__ import annotations

import io
import re
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import yaml
from browser import chromium, opened
from check_environment import ROOT, project_table
from PIL import Image
from playwright.sync_api import Browser
from print_book import ADDRESS, SITE, Desk, commit_day, order
from pygments.formatters import HtmlFormatter

EPUB = ROOT / "_build" / "epub" / "attnbook.epub"
TAKE_OUT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
COVER = (1600, 2400)
KINDS = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".css": "text/css"}
KINDS[".xhtml"] = "application/xhtml+xml"
CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>
"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
  lang="en" xml:lang="en">
<head><title>{title}</title><link rel="stylesheet" href="{up}book.css"/></head>
<body epub:type="bodymatter">{body}</body></html>
"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="name" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="name">urn:uuid:{name}</dc:identifier>
<dc:title>{title}</dc:title>
<dc:creator>{author}</dc:creator>
<dc:language>en</dc:language>
<dc:description>{description}</dc:description>
<dc:rights>Text and figures CC BY 4.0, code MIT</dc:rights>
<dc:date>{when:%Y-%m-%d}</dc:date>
<meta property="dcterms:modified">{when:%Y-%m-%dT%H:%M:%SZ}</meta>
<meta property="schema:accessMode">textual</meta>
<meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">structuralNavigation</meta>
<meta property="schema:accessibilityHazard">none</meta>
<meta name="cover" content="cover.png"/>
</metadata>
<manifest>
{manifest}
</manifest>
<spine>
{spine}
</spine></package>
"""
NAVIGATION = """<nav epub:type="toc" id="toc"><h1>Contents</h1><ol>{items}</ol></nav>
<nav epub:type="landmarks" hidden=""><ol>
<li><a epub:type="bodymatter" href="pages/{first}.xhtml">Beginning</a></li></ol></nav>"""
ABOUT = """<section><h1>This edition</h1>
<p>Version {version}, {when.day} {when:%B %Y}. Text and figures CC BY 4.0, code MIT.</p>
<p>It is the book's website, bound. Figures that move there stand still here. Solutions, and code
that is folded away there, are notes at the end of each chapter: a link leads to each, and its
title leads back.</p>
<p>Formulas are MathML. Here is one:</p>
<p><math xmlns="http://www.w3.org/1998/Math/MathML" display="block"><mrow>
<mi>w</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></mrow></math></p>
<p>If you see <em>w</em> = 12 and no fraction, this reader cannot show formulas. Take another
reader, or the book's PDF.</p></section>"""
COVER_PAGE = """<!doctype html><html lang="en"><style>
  body {{ margin: 0; height: 2400px; background: #fdfcf9; color: #23272e; text-align: center;
    font-family: Georgia, serif; display: flex; flex-direction: column; }}
  h1 {{ font-size: 150px; line-height: 1.15; margin: 190px 90px 40px; text-wrap: balance; }}
  p {{ font-size: 62px; font-style: italic; margin: 0 120px; }}
  svg {{ flex: 1; min-height: 0; width: 1360px; margin: 70px auto 110px; }}
</style><h1>{title}</h1><p>{subtitle}</p>{ladder}</html>"""


def item(path: str, properties: str = "") -> str:
    """A file in the list of all files."""
    name = path.rsplit("/", 1)[-1]
    identity = f"picture-{name}" if path.startswith("images/") else name
    properties = f' properties="{properties}"' if properties else ""
    kind = KINDS[Path(name).suffix]
    return f'<item id="{identity}" href="{path}" media-type="{kind}"{properties}/>'


def contents(texts: list[dict[str, Any]]) -> str:
    """Parts, pages and sections, each a link."""
    parts: dict[str, list[str]] = {}
    for text in texts:
        place = f"pages/{text['slug']}.xhtml"
        below = "".join(
            f'<li><a href="{place}#{name}">{escape(words)}</a></li>'
            for name, words in text["sections"]
        )
        below = f"<ol>{below}</ol>" if below else ""
        line = f'<li><a href="{place}">{escape(text["title"])}</a>{below}</li>'
        parts.setdefault(text["part"], []).append(line)
    return "".join(
        f"<li><span>{escape(part)}</span><ol>{''.join(lines)}</ol></li>" if part else lines[0]
        for part, lines in parts.items()
    )


def read_pages(desk: Desk, pages: list[tuple[str, str]], home: str) -> list[dict[str, Any]]:
    """The text of every page, with its title, its sections, its pictures and its part."""
    slugs = {f"{name}.html": name.replace("/", "-") for name, _ in pages}
    texts = []
    for (name, part), slug in zip(pages, slugs.values(), strict=True):
        page = desk.context.new_page()
        page.goto(f"{ADDRESS}/{name}.html")
        wanted = {"slug": slug, "slugs": slugs, "home": home}
        texts.append({"slug": slug, "part": part, **page.evaluate(TAKE_OUT, wanted)})
        page.close()
    return texts


def cover(browser: Browser, title: str, subtitle: str) -> bytes:
    """Title, subtitle and the ladder, as a picture."""
    ladder = (ROOT / "images" / "ladder.svg").read_text(encoding="utf-8")
    page = browser.new_page(viewport={"width": COVER[0], "height": COVER[1]})
    page.set_content(COVER_PAGE.format(title=title, subtitle=subtitle, ladder=ladder))
    picture = page.screenshot()
    page.close()
    return picture


def picture(file: Path) -> bytes:
    """A picture as every reader shows it: WebP is younger than many of them.

    Matplotlib names a foreign grammar, draws a space as a path without a line, and names equal
    images alike: an EPUB's SVG may have none of these.
    """
    if file.suffix == ".svg":
        drawing = re.sub(r"<!DOCTYPE[^>]*>", "", file.read_text("utf-8"))
        drawing = re.sub(r'(<path id="[^"]*")(?! d=)', r'\1 d="M0 0"', drawing)
        return re.sub(r' id="image[0-9a-f]{10}"', "", drawing).encode()
    if file.suffix != ".webp":
        return file.read_bytes()
    with Image.open(file) as image:
        kept = io.BytesIO()
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(kept, "PNG")
    return kept.getvalue()


def styles() -> str:
    """The book's rules, and the colours of its code."""
    code = HtmlFormatter(style="github-light").get_style_defs(".highlight")
    rules = re.findall(r"^\.highlight \.\w+ \{.*?\}", code, re.MULTILINE)
    return STYLE + "\n".join(rules) + "\n"


def files(
    site: Path, texts: list[dict[str, Any]], project: dict[str, Any], front: bytes, when: datetime
) -> Iterator[tuple[str, bytes]]:
    """Everything in the book's folder, name by name."""
    title = texts[0]["title"]
    pictures = dict(one for text in texts for one in text["pictures"])
    spine = [f"{text['slug']}.xhtml" for text in texts]
    manifest = [
        item("cover.xhtml"),
        item("cover.png", "cover-image"),
        item("contents.xhtml", "nav"),
        item("about.xhtml", "mathml"),
        item("book.css"),
        *(item(f"pages/{text['slug']}.xhtml", " ".join(text["properties"])) for text in texts),
        *(item(f"images/{name}") for name in sorted(pictures)),
    ]
    package = PACKAGE.format(
        name=uuid.uuid5(uuid.NAMESPACE_URL, f"attnbook {project['version']}"),
        title=escape(title),
        author=escape(project["authors"][0]["name"]),
        description=escape(project["description"]),
        when=when,
        manifest="\n".join(manifest),
        spine="\n".join(
            f'<itemref idref="{name}"/>' for name in ("cover.xhtml", "about.xhtml", *spine)
        ),
    )
    yield "book.opf", package.encode()
    yield "cover.png", front
    shown = f'<img class="cover" src="cover.png" alt="{escape(title)}: the cover"/>'
    yield "cover.xhtml", PAGE.format(title=escape(title), up="", body=shown).encode()
    listed = NAVIGATION.format(items=contents(texts), first=texts[0]["slug"])
    yield "contents.xhtml", PAGE.format(title="Contents", up="", body=listed).encode()
    about = ABOUT.format(when=when, version=project["version"])
    yield "about.xhtml", PAGE.format(title="This edition", up="", body=about).encode()
    yield "book.css", styles().encode()
    for text in texts:
        page = PAGE.format(title=escape(text["title"]), up="../", body=text["body"])
        yield f"pages/{text['slug']}.xhtml", page.encode()
    for name, path in sorted(pictures.items()):
        yield f"images/{name}", picture(site / path)


def bind(target: Path, contained: Iterator[tuple[str, bytes]], when: datetime) -> None:
    """Write the archive, whose first file says what it is."""
    start = [("mimetype", b"application/epub+zip"), ("META-INF/container.xml", CONTAINER.encode())]
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in [*start, *((f"book/{name}", data) for name, data in contained)]:
            entry = zipfile.ZipInfo(name, when.timetuple()[:6])
            plain = name == "mimetype" or name.endswith(".png")
            entry.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)


def main(site: Path = SITE, epub: Path = EPUB, toc: Path = ROOT / "_toc.yml") -> int:
    """Bind the book; say what is wrong with it, if anything is."""
    project = project_table()
    pages = order(yaml.safe_load(toc.read_text(encoding="utf-8")))
    if not (program := chromium()):
        print("No Chromium or Chrome is here, which opens the pages. Do: CHROMIUM=/path make epub")
        return 1
    when = commit_day(ROOT)
    with opened(program) as browser:
        desk = Desk(browser, site, scripts=False)
        texts = read_pages(desk, pages, project.get("urls", {}).get("Book", "").rstrip("/"))
        front = cover(browser, texts[0]["title"], "One weighted average at a time")
    if desk.faults:
        print(*desk.faults, sep="\n", file=sys.stderr)
        return 1
    bind(epub, files(site, texts, project, front, when), when)
    print(f"{epub}: {len(texts)} pages, {epub.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
