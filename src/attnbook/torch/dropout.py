"""Dropout: entries left out at random while a model learns."""

from functools import partial
from typing import Any

from torch import nn


def dropping(layer: Any) -> Any:
    """What leaves entries out, in training mode; None where nothing is to be left out."""
    if not layer.training or layer.dropout == 0:
        return None
    return partial(nn.functional.dropout, p=layer.dropout)
