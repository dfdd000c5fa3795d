"""Attention: scores, their softmax under a mask, the weighted average, positions, heads."""

from attnbook.attention.masked_softmax import softmax
from attnbook.attention.masks import causal_mask, padding_mask
from attnbook.attention.weighted_average import attend

__all__ = ["attend", "causal_mask", "padding_mask", "softmax"]
