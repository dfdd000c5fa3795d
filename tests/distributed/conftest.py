"""Tests with many devices run apart: JAX takes the number of its devices once in a process."""

from __future__ import annotations

import os

import pytest

FIRST = "test_a_killed_worker"  # what make test runs: torchrun starts both workers anew


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All but one are slow: each starts processes."""
    for item in items:
        if item.name != FIRST:
            item.add_marker("slow")


os.environ["JAX_NUM_CPU_DEVICES"] = "8"  # for the processes that tests start, too
os.environ["JAX_PLATFORMS"] = "cpu"
