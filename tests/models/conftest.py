"""What the tests of models share: attnbook.torch and attnbook.jax, one after the other."""

from layer_harness import library

__all__ = ["library"]
