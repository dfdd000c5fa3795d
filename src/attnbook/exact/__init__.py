"""Exact attention with little memory: averages in parts, FlashAttention, a cache in pages."""
