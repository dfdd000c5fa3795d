"""What every test module shares: the back ends, and settings under which nothing passes by luck."""

from __future__ import annotations

import functools
from typing import Any

import backends
import numpy as np
import pytest
from layer_harness import Library

load = functools.cache(backends.load_or_skip)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for a back end runs on each; one that asks for gradients, where they are.

    A file may say in BACKENDS which it needs: uncompiled, JAX compiles every operation alone.
    """
    needed = getattr(metafunc.module, "BACKENDS", backends.NAMES)
    names = [n for n in backends.chosen() if n in needed]
    if "differentiable" in metafunc.fixturenames:
        names = [n for n in names if n not in ("numpy", "strict")]
        metafunc.parametrize("differentiable", names, indirect=True)
    elif "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", names, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> backends.Backend:
    return load(request.param)


@pytest.fixture
def differentiable(request: pytest.FixtureRequest) -> backends.Backend:
    return load(request.param)


@pytest.fixture(params=["torch", "jax"])
def library(request: pytest.FixtureRequest) -> Library:
    """attnbook.torch and attnbook.jax, one after the other."""
    return Library(request.param)


@pytest.fixture
def torch() -> Any:
    """PyTorch, or a skip."""
    return load("torch").xp


@pytest.fixture
def jax() -> Any:
    """JAX, or a skip."""
    return load("jax").jax


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(params=["one block", "several blocks"])
def small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything in one block, or blocks of two queries at seven float64 keys."""
    from attnbook.kernel import chunked

    if request.param == "several blocks":
        monkeypatch.setattr(chunked, "CHUNK_BYTES", 2 * 7 * 8)
        monkeypatch.setattr(chunked, "JAX_CHUNKS", 1)
        monkeypatch.setattr(chunked, "TORCH_CHUNKS", 1)
    return request.param
