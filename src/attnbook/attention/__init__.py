"""Attention: scores, their softmax under a mask, the weighted average, positions, heads."""

from attnbook.attention.masks import causal_mask, padding_mask
from attnbook.attention.weighted_average import attend, softmax

__all__ = ["attend", "causal_mask", "padding_mask", "softmax"]
