"""What the drawings are made of: boxes, arrows, matrices, rows of weighted dots, and words.

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
    """A drawing: its SVG, and every label in it.

    Args:
        name: of the function that drew it.
        svg: the picture, as text; notebooks show it.
        texts: all labels without mark-up, in the order of drawing.
    """

    name: str
    svg: str = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg


def colour(role: str) -> str:
    """The paint of a role, as CSS."""
    return f"var(--drawing-{role}, {COLOURS[role]})"


def number(x: float) -> str:
    """A length, to a tenth."""
    return f"{round(float(x), 1) + 0:g}"


def plain(text: str) -> str:
    """A label without mark-up: W_q is Wq, and a wide space is one."""
    return MARKED.sub(lambda found: found[2] or found[3], text).replace(WIDE, " ")


def width_of(text: str, size: float = SIZE) -> float:
    """About how wide a label is."""
    bare = plain(text)
    narrow = sum(c in "iljtfrI.,:;'|()[] " for c in bare)
    return size * (0.57 * len(bare) - 0.25 * narrow)


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
        self.texts: list[str] = []
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
        return Drawing(self.name, svg, tuple(self.texts))

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
        italic: bool = False,
        part: str | None = None,
        turn: float = 0,
    ) -> None:
        """A label, its middle at height y; W_q has a subscript, x^{2} a superscript.

        ``part`` names it for a script: of two steps, labels of one name are one that moves.
        ``turn`` is by how many degrees it is turned around (x, y), to the right.
        """
        lines = label.split("\n")
        for k, line in enumerate(lines):
            self.texts.append(plain(line))
            middle = y + 0.35 * size + (k - (len(lines) - 1) / 2) * 1.2 * size
            style = ' font-weight="600"' * bold + ' font-style="italic"' * italic
            style += f' font-size="{number(size)}"' * (size != SIZE)
            style += f' data-part="{part}"' if part else ""
            style += f' transform="rotate({turn:g} {number(x)} {number(y)})"' if turn else ""
            self.parts.append(
                f'<text x="{number(x)}" y="{number(middle)}" text-anchor="{anchor}" '
                f'fill="{colour(role)}"{style}>{_marked(line, size)}</text>'
            )

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        label: str = "",
        role: str = "line",
        *,
        fill: float = 0.1,
        radius: float = 7,
        dashed: bool = False,
        bold: bool = False,
        words: str | None = None,
        edge: float = 1.5,
    ) -> None:
        """A box around its middle (x, y), with a label in it."""
        self.add(
            "rect",
            x=x - w / 2,
            y=y - h / 2,
            width=w,
            height=h,
            rx=radius,
            fill=colour(role),
            fill_opacity=f"{fill:g}",
            stroke=colour(role) if edge else None,
            stroke_width=edge or None,
            stroke_dasharray="5 4" if dashed else None,
        )
        if label:
            self.text(x, y, label, words or ("ink" if role == "line" else role), bold=bold)

    def line(
        self, *points: Point, role: str = "line", width: float = 1.5, dashed: bool = False
    ) -> None:
        """A line from point to point, its corners rounded."""
        self.path(_rounded(points), role, width, dashed)

    def path(self, d: str, role: str = "line", width: float = 1.5, dashed: bool = False) -> None:
        """Any line."""
        dashes = "5 4" if dashed else None
        self.add("path", d=d, stroke=colour(role), stroke_width=width, stroke_dasharray=dashes)

    def arrow(
        self,
        *points: Point,
        role: str = "line",
        width: float = 1.5,
        bow: float = 0,
        dashed: bool = False,
    ) -> None:
        """An arrow from the first point to the last; ``bow`` bends it to its left, by so much."""
        (x0, y0), (x1, y1) = points[-2:]
        size = 6 + 1.4 * width
        if bow:
            length = math.hypot(x1 - x0, y1 - y0)
            middle = (
                (x0 + x1) / 2 + 2 * bow * (y1 - y0) / length,
                (y0 + y1) / 2 - 2 * bow * (x1 - x0) / length,
            )
            x0, y0 = middle
        angle = math.atan2(y1 - y0, x1 - x0)
        end = (x1 - 0.7 * size * math.cos(angle), y1 - 0.7 * size * math.sin(angle))
        start = f"M{_point(points[0])}"
        curve = f"{start} Q{_point(middle)} {_point(end)}" if bow else ""
        self.path(curve or _rounded((*points[:-1], end)), role, width, dashed)
        corners = [
            (x1 - size * math.cos(angle + turn), y1 - size * math.sin(angle + turn))
            for turn in (-0.42, 0.42)
        ]
        outline = " ".join(_point(p) for p in ((x1, y1), *corners))
        self.add("polygon", points=outline, fill=colour(role))

    def dots(
        self,
        places: Sequence[Point],
        weights: Sequence[float],
        role: str = "weights",
        *,
        radius: float = 14,
        full: float | None = None,
    ) -> None:
        """A dot for each weight, its area the share of ``full``, the largest; hidden ones rings."""
        full = full or max(weights)
        for (x, y), weight in zip(places, weights, strict=True):
            if weight < 0:
                self.ring(x, y, 0.45 * radius, "line", 1.2)
            else:
                self.dot(x, y, max(1.6, radius * math.sqrt(weight / full)), role)

    def signed(
        self,
        places: Sequence[Point],
        weights: Sequence[float],
        role: str = "weights",
        *,
        radius: float = 14,
        full: float,
    ) -> None:
        """As dots, but weights may be below zero: rings, as large around as a dot would be."""
        for (x, y), weight in zip(places, weights, strict=True):
            r = max(1.2, radius * math.sqrt(abs(weight) / full))
            if weight < 0:
                self.ring(x, y, max(r - 0.9, 0.6), role, 1.8)
            elif weight > 0:
                self.dot(x, y, r, role)

    def dot(self, x: float, y: float, r: float, role: str) -> None:
        """A filled circle."""
        self.add("circle", cx=x, cy=y, r=r, fill=colour(role))

    def ring(self, x: float, y: float, r: float, role: str, width: float = 1.5) -> None:
        """A circle."""
        self.add("circle", cx=x, cy=y, r=r, stroke=colour(role), stroke_width=width)

    def matrix(
        self,
        x: float,
        y: float,
        values: Sequence[Sequence[float]],
        role: str,
        cell: float = 16,
        *,
        dots: bool = False,
        rows: Sequence[str] = (),
    ) -> None:
        """A matrix around its middle x and below y: entries from 0 to 1 as shades, or as dots."""
        height, width = cell * len(values), cell * len(values[0])
        left = x - width / 2
        for i, line in enumerate(values):
            for j, value in enumerate(line):
                self.add(
                    "rect",
                    x=left + j * cell,
                    y=y + i * cell,
                    width=cell,
                    height=cell,
                    fill=colour(role),
                    fill_opacity=f"{0.05 if dots else 0.05 + 0.8 * min(max(value, 0), 1):.2f}",
                    stroke=colour(role),
                    stroke_width=0.5,
                )
            if dots:
                places = [(left + (j + 0.5) * cell, y + (i + 0.5) * cell) for j in range(len(line))]
                self.dots(places, line, role, radius=0.46 * cell, full=1)
        self.box(x, y + height / 2, width, height, role=role, fill=0, radius=1)
        for i, word in enumerate(rows):
            self.text(left - 8, y + (i + 0.5) * cell, word, anchor="end")

    def bracket(self, x0: float, x1: float, y: float, depth: float = 7) -> None:
        """A bracket below what stands from x0 to x1; it opens upwards if depth is positive."""
        self.line((x0, y - depth), (x0, y), (x1, y), (x1, y - depth))

    def plus(self, x: float, y: float, role: str = "ink", r: float = 11) -> None:
        """A circled plus."""
        self.ring(x, y, r, role)
        self.line((x - 0.5 * r, y), (x + 0.5 * r, y), role=role, width=1.8)
        self.line((x, y - 0.5 * r), (x, y + 0.5 * r), role=role, width=1.8)


def _point(point: Point) -> str:
    return f"{number(point[0])},{number(point[1])}"


def _rounded(points: Sequence[Point], radius: float = 9) -> str:
    """A path along straight lines whose corners are rounded."""
    path = f"M{_point(points[0])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        ends = []
        for other in (before, after):
            length = math.dist(corner, other)
            share = min(radius, length / 2) / length
            x, y = (c + share * (o - c) for c, o in zip(corner, other, strict=True))
            ends.append((x, y))
        path += f" L{_point(ends[0])} Q{_point(corner)} {_point(ends[1])}"
    return f"{path} L{_point(points[-1])}"


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
