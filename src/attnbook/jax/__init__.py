"""The book's layers in JAX: parameters and initialisation; the formulas are attnbook's."""

from attnbook import devices  # noqa: F401  JAX must not take the whole GPU: set before its first use
from attnbook.jax.regression import KernelRegression

__all__ = ["KernelRegression"]
