"""Models that others trained, in the book's own blocks."""

from attnbook.pretrained.bert import albert, bert
from attnbook.pretrained.gpt2 import gpt2
from attnbook.pretrained.llama import llama
from attnbook.pretrained.published import from_folder, from_gguf
from attnbook.pretrained.vit import vit

__all__ = ["albert", "bert", "from_folder", "from_gguf", "gpt2", "llama", "vit"]
