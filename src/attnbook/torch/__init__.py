"""The book's layers in PyTorch: parameters and initialisation; the formulas are attnbook's."""

from attnbook.torch.pooling import AttentionPooling
from attnbook.torch.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.torch.training import train

__all__ = [
    "AttentionPooling",
    "KernelRegression",
    "MetricKernelRegression",
    "MultiHeadKernelRegression",
    "train",
]
