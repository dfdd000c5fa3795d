"""What computed drawings are made of: lines, dots, and words.

A canvas is 480 units wide. Shown 350 pixels wide, as on a phone, its type is still 11 pixels high.
Every colour is a custom property of CSS with a fallback that reads on white and on near black.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

WIDTH = 480
SHOWN = 560  # pixels on a page, so that type is as high as that of the text
SIZE = 16
WIDE = "\u2002"  # two of a browser's spaces are one
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
COLOURS = {
    "ink": "#737373",
    "line": "#8c8c8c",
    "queries": "#b8639b",
    "keys": "#737373",
    "values": "#009e73",
    "weights": "#d55e00",
    "output": "#1f7fc4",
}  # those of figures.COLOURS, by what a colour stands for
MARKED = re.compile(r"([_^])(?:\{(.+?)\}|(.))")  # W_q, W_{out}, Kᵀ or 10^{-2}
Point = tuple[float, float]


@dataclass(frozen=True)
class Drawing:
    """A drawing.

    Args:
        name: of its file, or of the function that drew it.
        svg: the picture, as text; notebooks show it.
    """

    name: str
    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


def colour(role: str) -> str:
    """The paint of a role, as CSS."""
    return f"var(--drawing-{role}, {COLOURS[role]})"


def number(x: float) -> str:
    """A length, to a tenth."""
    return f"{round(float(x), 1) + 0:g}"


def plain(text: str) -> str:
    """A label without mark-up: W_q is Wq."""
    return MARKED.sub(lambda found: found[2] or found[3], text)


class Canvas:
    """A sheet of so many units; each method puts one thing on it.

    Args:
        name: of the drawing, for the site and for tests.
        height: in units; the width is 480.
        about: the drawing in a sentence, for who cannot see it.
    """

    def __init__(self, name: str, height: float, about: str) -> None:
        self.name, self.height, self.about = name, height, about
        self.parts: list[str] = []
        self.data: dict[str, str] = {}

    def drawing(self) -> Drawing:
        """What was put on the canvas."""
        shown = number(self.height * SHOWN / WIDTH)
        data = "".join(f'data-{key}="{escape(value)}" ' for key, value in self.data.items())
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {number(self.height)}" '
            f'width="{SHOWN}" height="{shown}" data-drawing="{self.name}" {data}role="img" '
            f'aria-label="{escape(self.about)}" font-family="{FONT}" font-size="{SIZE}" '
            f'fill="none" stroke-linecap="round" stroke-linejoin="round" '
            f'style="max-width: 100%; height: auto">\n' + "\n".join(self.parts) + "\n</svg>"
        )
        return Drawing(self.name, svg)

    @contextmanager
    def group(self, **attributes: Any) -> Iterator[None]:
        """What is put on the canvas meanwhile is one group; a script of the site may move it."""
        words = "".join(f' {k.replace("_", "-")}="{escape(str(v))}"' for k, v in attributes.items())
        self.parts.append(f"<g{words}>")
        yield
        self.parts.append("</g>")

    def add(self, tag: str, **attributes: Any) -> None:
        """An element; numbers are rounded, _ in a name is -, None is left out."""
        words = [
            f'{key.replace("_", "-")}="{number(v) if isinstance(v, int | float) else v}"'
            for key, v in attributes.items()
            if v is not None
        ]
        self.parts.append(f"<{tag} {' '.join(words)}/>")

    def text(
        self,
        x: float,
        y: float,
        label: str,
        role: str = "ink",
        *,
        anchor: str = "middle",
        size: float = SIZE,
        bold: bool = False,
        part: str | None = None,
        turn: float = 0,
    ) -> None:
        """A label, its middle at height y; W_q has a subscript, x^{2} a superscript.

        ``part`` names it for a script: of two steps, labels of one name are one that moves.
        ``turn`` is by how many degrees it is turned around (x, y), to the right.
        """
        style = ' font-weight="600"' if bold else ""
        style += f' font-size="{number(size)}"' if size != SIZE else ""
        style += f' data-part="{part}"' if part else ""
        style += f' transform="rotate({turn:g} {number(x)} {number(y)})"' if turn else ""
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y + 0.35 * size)}" text-anchor="{anchor}" '
            f'fill="{colour(role)}"{style}>{_marked(label, size)}</text>'
        )

    def stripe(self, x: float, y: float, w: float, h: float) -> None:
        """A stripe of colour from x on, its middle at height y: what is new stands on it."""
        box = {"x": x, "y": y - h / 2, "width": w, "height": h, "rx": 4}
        self.add("rect", **box, fill=colour("weights"), fill_opacity="0.13")
        self.line((x, y - h / 2 + 2), (x, y + h / 2 - 2), role="weights", width=4)

    def line(
        self, *points: Point, role: str = "line", width: float = 1.5, dashed: bool = False
    ) -> None:
        """A line from point to point."""
        self.path(
            "M" + " L".join(f"{number(x)},{number(y)}" for x, y in points), role, width, dashed
        )

    def path(self, d: str, role: str = "line", width: float = 1.5, dashed: bool = False) -> None:
        """Any line."""
        dashes = "5 4" if dashed else None
        self.add("path", d=d, stroke=colour(role), stroke_width=width, stroke_dasharray=dashes)

    def dots(
        self, places: Sequence[Point], weights: Sequence[float], *, radius: float, full: float = 1
    ) -> None:
        """A dot for each weight, its area the share of ``full``; below 0, a hidden one, a ring."""
        for (x, y), weight in zip(places, weights, strict=True):
            if weight < 0:
                self.ring(x, y, 0.45 * radius, "line", 1.2)
            else:
                self.dot(x, y, max(1.6, radius * math.sqrt(weight / full)), "weights")

    def dot(self, x: float, y: float, r: float, role: str) -> None:
        """A filled circle."""
        self.add("circle", cx=x, cy=y, r=r, fill=colour(role))

    def ring(self, x: float, y: float, r: float, role: str, width: float) -> None:
        """A circle."""
        self.add("circle", cx=x, cy=y, r=r, stroke=colour(role), stroke_width=width)


def _marked(line: str, size: float) -> str:
    """A line's sub- and superscripts as tspans; what follows stands on the line again."""
    parts, end, back = [], 0, 0.0
    for found in (*MARKED.finditer(line), None):
        between = escape(line[end : found.start() if found else None], quote=False)
        if between and back:
            between, back = f'<tspan dy="{number(-back)}">{between}</tspan>', 0.0
        parts.append(between)
        if found:
            shift = (0.22 if found[1] == "_" else -0.38) * size
            inner, end = escape(found[2] or found[3], quote=False), found.end()
            small = number(0.8 * size)
            parts.append(f'<tspan dy="{number(shift - back)}" font-size="{small}">{inner}</tspan>')
            back = shift
    return "".join(parts)
