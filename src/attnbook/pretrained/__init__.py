"""Models that others trained, in the book's own blocks.

GPT-2, Llama, SmolLM2, Qwen2, Mistral, BERT, ALBERT and ViT are options of the same block. An
adapter reads what a published file says, refuses what the block cannot compute, and puts every
tensor where the book has it. Importing attnbook.pretrained imports neither PyTorch nor JAX.
"""

from attnbook.pretrained.bert import albert, bert
from attnbook.pretrained.fetch import Unavailable, fetch
from attnbook.pretrained.gpt2 import gpt2
from attnbook.pretrained.llama import llama
from attnbook.pretrained.published import from_folder, from_gguf
from attnbook.pretrained.tabpfn import tabpfn
from attnbook.pretrained.tokens import tokens_from_folder, tokens_from_gguf
from attnbook.pretrained.vit import vit
from attnbook.train.byte_pairs import BytePairs

__all__ = [
    "BytePairs",
    "Unavailable",
    "albert",
    "bert",
    "fetch",
    "from_folder",
    "from_gguf",
    "gpt2",
    "llama",
    "tabpfn",
    "tokens_from_folder",
    "tokens_from_gguf",
    "vit",
]
