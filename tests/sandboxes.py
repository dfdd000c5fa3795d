"""The sandbox that tests grade in: bubblewrap, or a skip that says why, which CI does not allow."""

from __future__ import annotations

import os

import pytest

from attnbook.checks.grading.sandbox import NoSandbox, probed


def bubblewrap() -> str:
    """The kind of the sandbox; skips where there is none, and fails there with CI=true."""
    try:
        return probed("bwrap")
    except NoSandbox as problem:
        if os.environ.get("CI") == "true":
            pytest.fail(str(problem))
        pytest.skip(str(problem))
