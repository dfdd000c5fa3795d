"""Published models for tests, where they can be had."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from attnbook.pretrained.fetch import Unavailable, fetch


@functools.cache
def _found(name: str) -> Path | str:
    try:
        return fetch(name)
    except Unavailable as missing:
        return str(missing)


def folder(name: str) -> Path:
    """The folder of a published model; without it the test is skipped, says why, and fails on CI."""
    found = _found(name)
    if isinstance(found, str):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(found)
    return found


def smollm2() -> Path:
    """SmolLM2's GGUF file."""
    return folder("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
