"""Models that others trained, in the book's own blocks.

Llama, SmolLM2, GPT-2, ALBERT and TabPFN are options of the same block. A reader takes what a
published file says, refuses what the block cannot compute, and puts every tensor where the book has
it. Importing attnbook.pretrained imports neither PyTorch nor JAX.
"""

from attnbook.pretrained.fetch import Unavailable, fetch
from attnbook.pretrained.published import from_folder, from_gguf
from attnbook.pretrained.tabpfn import tabpfn
from attnbook.pretrained.tokens import tokens_from_folder, tokens_from_gguf
from attnbook.train.byte_pairs import BytePairs

__all__ = [
    "BytePairs",
    "Unavailable",
    "fetch",
    "from_folder",
    "from_gguf",
    "tabpfn",
    "tokens_from_folder",
    "tokens_from_gguf",
]
