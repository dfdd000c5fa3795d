"""Attention without the softmax: a state of fixed size in three forms, layers, regression."""

from attnbook.linear_attention.forms import affine_scan, chunked, recurrent, weights

__all__ = ["affine_scan", "chunked", "recurrent", "weights"]
