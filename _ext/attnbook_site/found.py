"""What search engines and the previews of links are told of a page: in its head, and in two files.

A page's front matter has its ``description`` and, as ``names``, what the world calls its subject.
Addresses, the picture, sitemap.xml and robots.txt are there as soon as pyproject.toml has an
address for the book.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from attnbook_course.road import TOLD, minutes

CARD = "_static/card.png"
NUMBER = re.compile(r"(\d+)\. (.*)", re.DOTALL)
LONGEST = 160  # characters of a description that a page of results has room for
LICENCE = "https://creativecommons.org/licenses/by/4.0/"
LEVEL = "University, from the third year on"
logger = logging.getLogger(__name__)


def head_tags(
    config: Config,
    title: str,
    description: str,
    path: str,
    image: str = CARD,
    about: dict[str, Any] | None = None,
) -> str:
    """The title of a page and all that its head says about it, as HTML.

    ``path`` and ``image`` are the places of the page and of its picture in the site; ``about`` is
    what schema.org's words can say of this page more, or otherwise.
    """
    if not 0 < len(description) <= LONGEST:
        raise ValueError(
            f"{path}: got a description of {len(description)} characters, "
            f"expected 1 to {LONGEST}: {description!r}"
        )
    book, address = config.project, config.html_baseurl
    whole = title if title.startswith(book) else f"{title} — {book}"
    data = {
        "@context": "https://schema.org",
        "@type": "LearningResource",
        "name": title,
        "description": description,
        "inLanguage": config.language,
        "author": {"@type": "Organization", "name": config.author},
        "license": LICENCE,
        "isAccessibleForFree": True,
        "educationalLevel": LEVEL,
        "isPartOf": {"@type": "Book", "name": book} | ({"url": address} if address else {}),
    }
    properties = {"title": title, "description": description, "site_name": book}
    tags = [f"<title>{escape(whole)}</title>"]
    tags += [f'<meta name="description" content="{escape(description)}" />']
    if address:
        tags += [f'<link rel="canonical" href="{escape(address + path)}" />']
        tags += ['<meta name="twitter:card" content="summary_large_image" />']
        data |= {"url": address + path, "image": address + image}
        alt = f"{book}: a row of dots, sized by their weights" if image == CARD else title
        properties |= {"url": address + path, "image": address + image, "image:alt": alt}
    data |= about or {}
    properties["type"] = "website" if path == "index.html" else "article"
    tags += [
        f'<meta property="og:{name}" content="{escape(text)}" />'
        for name, text in properties.items()
    ]
    told = json.dumps({name: data[name] for name in data if data[name]}, ensure_ascii=False)
    told = told.replace("<", "\\u003c")  # nothing in it ends the script
    return "\n".join([*tags, f'<script type="application/ld+json">{told}</script>'])


def about_page(app: Sphinx, page: str, number: str) -> dict[str, Any]:
    """What is said of the book itself and of its chapters, beside what is said of every page."""
    if page == app.config.root_doc:
        kind = {"@type": ["Book", "LearningResource"], "learningResourceType": "textbook"}
        return kind | {"bookFormat": "https://schema.org/EBook", "isPartOf": None}
    if not page.startswith("chapters/"):
        return {}
    about = {"@type": ["Chapter", "LearningResource"], "learningResourceType": "chapter"}
    source = Path(app.srcdir) / f"{page}.md"
    time = minutes(source).road if source.stem in TOLD else 0
    return about | {"position": number, "timeRequired": f"PT{time}M" if time else None}


def tell(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Make the tags of a page of the book; what is none, the search, has none."""
    context["pageurl"] = None  # which the theme would write, once more
    if tree is None:
        return
    meta, title = context.get("meta") or {}, str(Markup(context["title"]).striptags())
    number, title = found.groups() if (found := NUMBER.fullmatch(title)) else ("", title)
    about = about_page(app, page, number)
    names = f" ({meta['names']})" if "names" in meta else ""
    words = title + names, meta.get("description", "")
    try:
        context["head_tags"] = head_tags(app.config, *words, f"{page}.html", about=about)
    except ValueError as error:
        logger.warning(str(error), location=page)


def write(app: Sphinx, error: Exception | None) -> None:
    """List every page that says where it lives, also those that are no pages of the book."""
    address, site = app.config.html_baseurl, Path(app.outdir)
    if error or app.builder.format != "html" or not address:
        return
    urls = ""
    for file in sorted([*site.glob("*.html"), *site.glob("[!_]*/**/*.html")]):
        text = file.read_text("utf-8")
        for lives_at in re.findall(r'<link rel="canonical" href="([^"]*)"', text):
            urls += f"<url><loc>{lives_at}</loc></url>\n"
    (site / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n',
        "utf-8",
    )
    (site / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {address}sitemap.xml\n")


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", tell)
    app.connect("build-finished", write, priority=900)  # when all pages are there
