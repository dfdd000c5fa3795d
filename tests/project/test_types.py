"""What mypy, and with it an editor, knows of the package's arrays and of return_weights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
# PyTorch and JAX take mypy most of a minute; that their arrays fit, the package's layers show.
SETTINGS = """
[mypy]
strict = true
follow_imports = silent
[mypy-torch.*,jax.*]
follow_imports = skip
"""
START = """
from typing import Any, assert_type
import numpy as np
from attnbook._validation.types import Array, MultiHead
from attnbook.attention import attend, scores, softmax
from attnbook.attention.heads import multi_head_attention, self_attention
from attnbook.kernel.regression import nadaraya_watson

Pair = tuple[Array, Array]
x = np.ones((3, 2))
asked = bool(x[0, 0] > 0)

def score(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    return queries @ keys.T

def of(layer: MultiHead, array: Array) -> None:
"""
CALLS = ("attend(x, x, x", "nadaraya_watson(x, x, x", "self_attention(x, x, x, x")
CALLS += ("multi_head_attention(layer, x",)
FITS = [
    line
    for call in CALLS
    for line in (
        f"assert_type({call}), Array)",
        f"assert_type({call}, return_weights=False), Array)",
        f"assert_type({call}, return_weights=True), Pair)",
        f"assert_type({call}, return_weights=asked), Array | Pair)",
    )
] + [
    "assert_type(multi_head_attention(layer, x, x, x, None, True), Array | Pair)",
    "assert_type(softmax(array, array > 0), Array)",
    "assert_type(array.shape, tuple[int, ...])",
    "assert_type(array.ndim, int)",
    "assert_type(len(array), int)",
    "assert_type((array.dtype, array.device, array.T, array.mT), tuple[Any, Any, Any, Any])",
    "assert_type(1 - abs(-array @ array.mT)[..., 0] ** 2, Any)",
    "assert_type(float(array), float)",
    "attend(array, array, array, score=score)",
    "attend(array, array, array, score=scores.dot)",
]
REFUSED = {
    "attend('q', x, x)": "call-overload",
    "attend(x, x, x, return_weights=1)": "call-overload",
    "attend(x, x, x, is_causal=True)": "call-overload",
    "softmax([1.0, 2.0])": "arg-type",
    "array[0] = 1.0": "index",
    "array.tolist()": "attr-defined",
    "attend(x, x, x).unsqueeze(0)": "attr-defined",
}


def test_types_of_calls(tmp_path):
    """mypy accepts each line of FITS, and refuses each of REFUSED for the reason beside it."""
    pytest.importorskip("mypy")
    lines = [*FITS, *REFUSED]
    program, settings = tmp_path / "uses.py", tmp_path / "mypy.ini"
    program.write_text(START + "".join(f"    {line}\n" for line in lines), encoding="utf-8")
    settings.write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--no-pretty"]
    command += ["--cache-dir", str(tmp_path / "cache"), str(program)]
    environment = os.environ | {"MYPYPATH": str(SOURCES)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    first = START.count("\n") + 1
    found = re.findall(r"^.*uses\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    said = {lines[int(at) - first]: code for at, code in found}
    assert said == REFUSED, done.stdout + done.stderr
