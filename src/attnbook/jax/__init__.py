"""The book's layers in JAX: parameters and initialisation; the formulas are attnbook's."""

from attnbook import devices  # noqa: F401  JAX must not take the whole GPU: set before its first use
from attnbook.jax.pooling import AttentionPooling
from attnbook.jax.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.jax.training import train

__all__ = [
    "AttentionPooling",
    "KernelRegression",
    "MetricKernelRegression",
    "MultiHeadKernelRegression",
    "train",
]
