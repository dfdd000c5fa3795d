"""Which key judges which notebooks: both carry a fingerprint of the questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from attnbook_course.checks.grading.homework import BadHomework


def fingerprint(name: str, read: Iterable[str]) -> str:
    """Of a set's questions as students read them, with the numbers of their class.

    It tells nothing of the seed that those do not: seeds of the same numbers have the same one.
    """
    return hashlib.sha256("\n\n".join([name, *read]).encode()).hexdigest()[:16]


def refuse_to_lose(key: Path, seed: int, questions: str) -> None:
    """Leave a key of another seed, or of other questions, where it is.

    Raises:
        BadHomework: such a key lies there; notebooks may be handed out that it alone can judge.
    """
    try:
        there = json.loads(key.read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # none, or one that was not written to its end
        return
    whose = f"seed {there.get('seed')}"
    if there.get("seed") == seed:
        if there.get("questions", questions) == questions:
            return
        whose += " for other questions"
    words = f"this is the key of {whose}, and the notebooks that came with it need it"
    do = f"move {key.parents[2]} elsewhere to keep it, or add REPLACE=1 (--replace) to lose it"
    raise BadHomework(f"{key}: got seed {seed}, but {words}. Do: {do}")
