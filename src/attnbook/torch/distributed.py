"""One average on many machines: a ring, keys that are divided, layers cut by their heads."""

from attnbook.torch.launch import run

__all__ = ["run"]
