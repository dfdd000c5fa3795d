#!/usr/bin/env python3
"""How the road reads, page by page: its words and minutes, its sentences, numbers and terms.

python tools/road.py            the pages that are told
python tools/road.py --all      and the others
"""

from __future__ import annotations

import re
import sys

from check_environment import ROOT

from attnbook_course.road import ROAD, TOLD, minutes, pieces, readable, words

HEAD = f"{'page':24} words  min build deeper  mean  short  numbers/100  terms"


def main() -> None:
    """Print the table."""
    print(HEAD)
    known, all_pages = set[str](), "--all" in sys.argv[1:]
    for name in ROAD:
        page = ROOT / "chapters" / f"{name}.md"
        if page.is_file() and (all_pages or name in TOLD):
            road = [one for one in pieces(page) if one.place == "road"]
            text = [one for one in road if one.kind == "prose"]
            sentences = [readable(sentence) for one in text for sentence in one.sentences()]
            lengths = [len(re.findall(r"\$[^$]+\$|\w\S*", sentence)) for sentence in sentences]
            numbers = sum(len(re.findall(r"(?<![\w.])\d[\d.,]*", one)) for one in sentences)
            terms = {found[1] for one in sentences for found in re.finditer(r"\*+([^*]+)\*", one)}
            time = minutes(page)
            print(
                f"{name:24} {words(road):5} {time.road:4} {time.build:5} {time.deeper:6} "
                f"{sum(lengths) / len(lengths):5.1f} "
                f"{sum(length <= 8 for length in lengths) / len(lengths):6.0%} "
                f"{100 * numbers / sum(lengths):12.1f} {len(terms - known):6}"
            )
            known |= terms


if __name__ == "__main__":
    main()
