"""The book's layers in PyTorch: parameters and initialisation; the formulas are attnbook's."""

from attnbook.torch.attention import AttentionOnly, MultiHeadAttention, SelfAttention
from attnbook.torch.pooling import AttentionPooling
from attnbook.torch.recurrent import EncoderDecoder, GRUCell
from attnbook.torch.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.torch.training import train

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
