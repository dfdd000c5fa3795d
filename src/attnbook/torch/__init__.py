"""The book's layers in PyTorch: parameters and initialisation; the formulas are attnbook's."""

from attnbook.torch.attention import MultiHeadAttention, SelfAttention
from attnbook.torch.blocks import MLP, DecoderBlock, EncoderBlock
from attnbook.torch.linear_attention import GatedDelta, LinearAttention
from attnbook.torch.pooling import AttentionPooling
from attnbook.torch.recurrent import EncoderDecoder, GRUCell
from attnbook.torch.regression import (
    KernelRegression,
    MetricKernelRegression,
    MultiHeadKernelRegression,
)
from attnbook.torch.training import train
from attnbook.torch.transformer import AttentionOnly, DecoderOnly, EncoderOnly, Transformer

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
