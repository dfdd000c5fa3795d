"""The book's layers in PyTorch: parameters and initialisation; the formulas are attnbook's."""

from attnbook.torch.attention import AttentionOnly, MultiHeadAttention, SelfAttention
from attnbook.torch.blocks import MLP, DecoderBlock, EncoderBlock
from attnbook.torch.halves import DecoderOnly, EncoderOnly
from attnbook.torch.pooling import AttentionPooling
from attnbook.torch.recurrent import EncoderDecoder, GRUCell
from attnbook.torch.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.torch.training import train
from attnbook.torch.transformer import Transformer

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
    "KernelRegression",
    "MetricKernelRegression",
    "MultiHeadAttention",
    "MultiHeadKernelRegression",
    "SelfAttention",
    "Transformer",
    "train",
]
