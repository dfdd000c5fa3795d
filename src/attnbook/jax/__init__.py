"""The book's layers in JAX: parameters and initialisation; the formulas are attnbook's."""

from attnbook import devices  # noqa: F401  JAX must not take the whole GPU: set before its first use
from attnbook.jax.attention import MultiHeadAttention, SelfAttention
from attnbook.jax.blocks import MLP, DecoderBlock, EncoderBlock
from attnbook.jax.linear_attention import GatedDelta, LinearAttention
from attnbook.jax.pooling import AttentionPooling
from attnbook.jax.recurrent import EncoderDecoder, GRUCell
from attnbook.jax.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.jax.training import train
from attnbook.jax.transformer import AttentionOnly, DecoderOnly, EncoderOnly, Transformer

__all__ = [
    "MLP",
    "AttentionOnly",
    "AttentionPooling",
    "DecoderBlock",
    "DecoderOnly",
    "EncoderBlock",
    "EncoderDecoder",
    "EncoderOnly",
    "GRUCell",
    "GatedDelta",
    "KernelRegression",
    "LinearAttention",
    "MetricKernelRegression",
    "MultiHeadAttention",
    "MultiHeadKernelRegression",
    "SelfAttention",
    "Transformer",
    "train",
]
