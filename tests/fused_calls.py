"""The calls of PyTorch's fused kernel, noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def noted(monkeypatch: pytest.MonkeyPatch, what: Callable[..., Any]) -> list[Any]:
    """A list that grows with every call, by what is to be kept of its arguments."""
    functional = pytest.importorskip("torch").nn.functional
    kernel, calls = functional.scaled_dot_product_attention, []

    def noting(*args: Any, **how: Any) -> Any:
        calls.append(what(*args, **how))
        return kernel(*args, **how)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", noting)
    return calls
