"""The book's layers in JAX: parameters and initialisation; the formulas are attnbook's."""

from attnbook import devices  # noqa: F401  JAX must not take the whole GPU: set before its first use
from attnbook.jax.attention import AttentionOnly, MultiHeadAttention, SelfAttention
from attnbook.jax.pooling import AttentionPooling
from attnbook.jax.recurrent import EncoderDecoder, GRUCell
from attnbook.jax.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.jax.training import train

__all__ = [
    "AttentionOnly",
    "AttentionPooling",
    "EncoderDecoder",
    "GRUCell",
    "KernelRegression",
    "MetricKernelRegression",
    "MultiHeadAttention",
    "MultiHeadKernelRegression",
    "SelfAttention",
    "train",
]
