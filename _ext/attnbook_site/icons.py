"""The site's few icons, drawn here, in place of the theme's icon library.

The theme's templates write ``<i class="fa-solid fa-moon">``; the style sheet made here gives each
such element its drawing as a mask, so that it takes the colour of the text around it.
"""

from __future__ import annotations

# strokes on a 24 by 24 grid
PATHS = {
    "angle-left": "M15 5l-7 7 7 7",
    "angle-right": "M9 5l7 7-7 7",
    "bars": "M4 6h16M4 12h16M4 18h16",
    "circle-half-stroke": "M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18v18"
    "M13.5 4v16M15 5v14M16.5 5.5v13M18 7v10M19.5 9v6",
    "code": "M8 7l-5 5 5 5M16 7l5 5-5 5",
    "download": "M12 3v12M7 10l5 5 5-5M4 20h16",
    "file": "M6 3h8l4 4v14H6zM14 3v4h4",
    "file-pdf": "M7 9V3h10v6M7 17H4V9h16v8h-3M7 14h10v7H7z",
    "github": "M6 8v8M6 4a2 2 0 1 0 0 4 2 2 0 1 0 0-4M6 16a2 2 0 1 0 0 4 2 2 0 1 0 0-4"
    "M18 4a2 2 0 1 0 0 4 2 2 0 1 0 0-4M18 8c0 6-8 4-12 8",
    "lightbulb": "M12 8v5M12 16.5v.01M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18",
    "list": "M9 6h11M9 12h11M9 18h11M4.5 6v.01M4.5 12v.01M4.5 18v.01",
    "magnifying-glass": "M11 4a7 7 0 1 0 0 14 7 7 0 1 0 0-14M16 16l5 5",
    "moon": "M20 14.5A8.5 8.5 0 1 1 9.5 4 7 7 0 0 0 20 14.5z",
    "outdent": "M20 5H4M20 19H4M20 10h-8M20 14h-8M8 9l-3 3 3 3",
    "pencil-alt": "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
    "rocket": "M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18M10 8.5v7l6-3.5z",
    "sun": "M12 8a4 4 0 1 0 0 8 4 4 0 1 0 0-8M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4"
    "M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
}
SVG = (
    "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' "
    "stroke='%23000' stroke-width='2' "
    "stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath d='{path}'/%3E%3C/svg%3E"
)
BASE = (
    ".fa-solid,.fas,.fab,.far,.fa-brands{display:inline-block;width:1em;height:1em;vertical-align:-.125em;"
    "background:currentColor;-webkit-mask:var(--icon) center/contain no-repeat;"
    "mask:var(--icon) center/contain no-repeat}\n.fa-lg{font-size:1.2em}\n"
    "@media (forced-colors:active){.fa-solid,.fas,.fab,.far{background:CanvasText}}\n"
)


def icon_styles() -> str:
    """The style sheet for all icons."""
    rules = [
        f'.fa-{name}{{--icon:url("data:image/svg+xml,{SVG.format(path=path)}")}}\n'
        for name, path in PATHS.items()
    ]
    return BASE + "".join(rules)
