"""A drawing of the book in parts that come with clicks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from attnbook_site.drawings import FALLBACK

from attnbook_course import drawings
from attnbook_course.drawings import Drawing

COMPUTED: dict[str, Callable[..., Drawing]] = {
    "average_in_steps": drawings.average_in_steps,
    "rung": drawings.rung,
    "sentence": drawings.sentence,
    "weighted_average": drawings.weighted_average,
}
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = r"-?\d+(?:\.\d+)?"
SIDES = {"top": (1, 1), "bottom": (1, -1), "left": (0, 1), "right": (0, -1)}


def draw(name: str, given: dict[str, str]) -> Drawing:
    """A drawing of ``attnbook_course.drawings``; a computed one with some of its arguments."""
    if name in drawings.names() and not given:
        return drawings.show(name)
    if name not in COMPUTED:
        known = ", ".join(sorted([*drawings.names(), *COMPUTED]))
        options = f" with {', '.join(given)}" if given else ""
        raise LookupError(f"no drawing {name!r}{options}; there are {known}")
    try:
        arguments = {key.replace("-", "_"): _argument(value) for key, value in given.items()}
        return COMPUTED[name](**arguments)
    except TypeError as error:
        raise LookupError(str(error)) from error


def _argument(value: str) -> Any:
    """A number; or, with commas between them, lists of whole numbers, such as layer and head."""
    if "," in value:
        return [tuple(map(int, one.split())) for one in value.split(",")]
    return float(value) if "." in value else int(value)


def in_clicks(drawing: Drawing, cuts: list[str], side: str = "top") -> str:
    """The drawing's SVG; behind each cut its parts come with one more click.

    A cut is a place in the drawing's own units, or a label, which then is the first that comes.
    ``side`` is where the drawing begins. A drawing in steps has its own cuts, and takes no other.
    """
    if side not in SIDES:
        raise LookupError(f"from: got {side!r}, expected one of {', '.join(SIDES)}")
    axis, sign = SIDES[side]
    ElementTree.register_namespace("", SVG[1:-1])
    root = ElementTree.fromstring(drawing.svg)
    steps_of = [e for e in root if "data-step" in e.attrib]
    if steps_of and cuts:
        raise LookupError(f"clicks: {drawing.name} comes in its own {len(steps_of)} steps")
    for element in steps_of:
        element.set("class", "fragment")
    _ungroup(root)
    labels = {"".join(e.itertext()): e for e in reversed(list(root)) if e.tag == f"{SVG}text"}
    places = [sign * _cut(cut, labels, axis, sign) for cut in cuts]
    if places != sorted(places):
        raise LookupError(f"clicks: {', '.join(cuts)} do not follow each other from the {side}")
    steps: list[list[ElementTree.Element]] = [[] for _ in range(len(cuts) + 1)]
    for element in list(root):
        root.remove(element)
        at = sign * _place(element, axis, sign)
        steps[sum(at >= place for place in places)].append(element)
    root.extend(steps[0])
    for step in steps[1:]:
        group = ElementTree.SubElement(root, f"{SVG}g", {"class": "fragment"})
        group.extend(step)
    for name in ("width", "height", "style"):
        root.attrib.pop(name, None)
    return FALLBACK.sub(r"var(\1)", ElementTree.tostring(root, encoding="unicode"))


def _ungroup(root: ElementTree.Element) -> None:
    """What a group's parts have in common is given to each, so that a cut can part them."""
    parts: list[ElementTree.Element] = []
    for element in list(root):
        root.remove(element)
        if element.tag != f"{SVG}g" or "data-step" in element.attrib:
            parts.append(element)
            continue
        for part in element:
            part.attrib = {**element.attrib, **part.attrib}
            parts.append(part)
    root.extend(parts)


def _cut(cut: str, labels: dict[str, ElementTree.Element], axis: int, sign: int) -> float:
    """Where a cut lies: just before a label."""
    if re.fullmatch(NUMBER, cut):
        return float(cut)
    if cut not in labels:
        raise LookupError(f"clicks: no label {cut!r} in the drawing; it has {', '.join(labels)}")
    return _place(labels[cut], axis, sign) - sign * 18


def _place(element: ElementTree.Element, axis: int, sign: int) -> float:
    """Where an element lies: its middle; of a line and an arrow its far end."""
    name = "xy"[axis]
    if f"c{name}" in element.attrib:
        return float(element.attrib[f"c{name}"])
    if name in element.attrib:
        size = float(element.attrib.get(("width", "height")[axis], 0))
        return float(element.attrib[name]) + size / 2
    pairs = re.findall(rf"({NUMBER}),({NUMBER})", element.get("d") or element.get("points") or "")
    along = [float(pair[axis]) for pair in pairs]
    if not along:
        return -sign * 1e9
    return (
        sum(along) / len(along)
        if element.tag == f"{SVG}polygon"
        else sign * max(sign * one for one in along)
    )
