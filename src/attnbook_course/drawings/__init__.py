"""The book's drawings: each a function that gives an SVG, its labels computed from shapes.

What queries, keys, values, weights and outputs are is told by five colours, the same in all. A dot
is a weight, and its area says how large.
"""

from attnbook_course.drawings.averages import soft_lookup, weighted_average
from attnbook_course.drawings.blocks import (
    block,
    decoder_block,
    pre_and_post_norm,
    three_transformers,
)
from attnbook_course.drawings.canvas import Canvas, Drawing
from attnbook_course.drawings.devices import data_parallel, heads_split, killed_worker, ring
from attnbook_course.drawings.heads import induction, multi_head, rotary, self_attention
from attnbook_course.drawings.in_steps import average_in_steps
from attnbook_course.drawings.ladder import RUNGS, Rung, ladder, rung
from attnbook_course.drawings.language_model import induction_in_depth, prompt_of_pairs
from attnbook_course.drawings.published import Published, published_blocks
from attnbook_course.drawings.sequences import cache, encoder_decoder, prompt
from attnbook_course.drawings.states import chunks, delta_triangle, fixed_state, one_matrix
from attnbook_course.drawings.tiles import block_masks, flash_blocks, page_table, parts
from attnbook_course.drawings.words_read import sentence

__all__ = [
    "RUNGS",
    "Canvas",
    "Drawing",
    "Published",
    "Rung",
    "average_in_steps",
    "block",
    "block_masks",
    "cache",
    "chunks",
    "data_parallel",
    "decoder_block",
    "delta_triangle",
    "encoder_decoder",
    "fixed_state",
    "flash_blocks",
    "heads_split",
    "induction",
    "induction_in_depth",
    "killed_worker",
    "ladder",
    "multi_head",
    "one_matrix",
    "page_table",
    "parts",
    "pre_and_post_norm",
    "prompt",
    "prompt_of_pairs",
    "published_blocks",
    "ring",
    "rotary",
    "rung",
    "self_attention",
    "sentence",
    "soft_lookup",
    "three_transformers",
    "weighted_average",
]
