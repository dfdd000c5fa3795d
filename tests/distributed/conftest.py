"""Tests with many devices run apart: JAX takes the number of its devices once in a process."""

from __future__ import annotations

import os

os.environ["JAX_NUM_CPU_DEVICES"] = "8"  # for the processes that tests start, too
os.environ["JAX_PLATFORMS"] = "cpu"
