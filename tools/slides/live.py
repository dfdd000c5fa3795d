"""What a deck knows of a live figure: its title, and the controls that it sets."""

from __future__ import annotations

import json
import re


def settings(html: str, wanted: str) -> list[tuple[str, str]]:
    """``control=value; control=value`` as a live figure has them: titles, and values of menus."""
    controls: dict[str, dict[str, str]] = {}  # by title: a menu's values by what it shows
    for found in re.finditer(r'\{"type":"object","name":"(?:Select|Slider)",', html):
        control = json.JSONDecoder().raw_decode(html, found.start())[0]["attributes"]
        entries = [(e, e) if isinstance(e, str) else e for e in control.get("options", [])]
        controls[control["title"]] = {shown: value for value, shown in entries}
    pairs = []
    for one in wanted.split(";"):
        title, _, value = map(str.strip, one.partition("="))
        if title not in controls:
            raise LookupError(f"set: no control {title!r}; there are {', '.join(controls)}")
        if menu := controls[title]:
            if value not in menu:
                raise LookupError(f"set: {title} has no {value!r}; it has {', '.join(menu)}")
            value = menu[value]
        elif not re.fullmatch(r"-?\d+(\.\d+)?", value):
            raise LookupError(f"set: {title}: got {value!r}, expected a number")
        pairs.append((title, value))
    return pairs


def title_of(html: str) -> str:
    """A live figure's title, as HTML."""
    found = re.search(r"<strong>(.*?)</strong>", html)
    assert found is not None
    return found[1]
