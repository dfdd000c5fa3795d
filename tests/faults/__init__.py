"""Bugs that a test must catch: where, the text as it is, the text as it would be wrong, in words.

Each is planted alone in a copy of the package, and the tests of its module must fail.
"""

from __future__ import annotations

from faults import (
    averages,
    blocks,
    data,
    formulas,
    heads,
    layers,
    learning,
    paths,
    recurrence,
    transformers,
)
from faults.planting import Fault

__all__ = ["FAULTS", "TESTS", "Fault"]

GROUPS = (
    formulas,
    averages,
    paths,
    layers,
    learning,
    heads,
    blocks,
    recurrence,
    transformers,
    data,
)
FAULTS = [f for group in GROUPS for f in group.FAULTS]
TESTS = {  # of each module; on NumPy alone unless a fault names another back end
    "kernels": ("test_kernels.py",),
    "scores": ("test_scores.py",),
    "attention": ("test_attention.py", "test_causal.py"),
    "regression": ("test_regression.py", "test_multi_head.py", "test_in_metric.py"),
    "streaming": ("test_streaming.py", "test_regression.py"),
    "arguments": (
        "test_arguments.py",
        "test_argument_values.py",
        "test_scores.py",
        "test_multi_head.py",
    ),
    "fused": ("test_attend_fast.py",),
    "fused_gaussian": ("test_fused.py",),
    "pooling": ("test_pooling.py",),
    "starting": ("test_starting.py",),
    "sizes": ("test_sizes.py",),
    "positions": ("test_positions.py",),
    "heads": ("test_heads.py", "test_multi_head_attention.py"),
    "stack": ("test_stack.py",),
    "activations": ("test_activations.py",),
    "blocks": ("test_blocks.py",),
    "transformer": ("test_transformer.py",),
    "sampling": ("test_sampling.py",),
    "ngrams": ("test_ngrams.py",),
    "gaussian_process": ("test_gaussian_process.py",),
    "images": ("test_images.py",),
    "datasets/images": ("test_datasets.py",),
    "datasets/sequences": ("test_datasets.py",),
    "datasets/functions": ("test_functions.py",),
    "datasets/reference": ("test_text.py",),
    "recurrent": ("test_recurrent.py",),
    "decoding": ("test_decoding.py",),
    "losses": ("test_losses.py",),
    "tokens": ("test_tokens.py",),
    "datasets/number_words": ("test_number_words.py",),
    "training": ("test_training_run.py",),
    "in_context": ("test_in_context.py",),
    "convert": ("test_convert.py",),
    "torch/pooling": ("test_pooling.py",),
    "jax/pooling": ("test_pooling.py",),
    "torch/attention": ("test_attention_layers.py",),
    "jax/attention": ("test_attention_layers.py",),
    "torch/blocks": ("test_block_layers.py", "test_block_oracles.py"),
    "torch/originals": ("test_block_oracles.py",),
    "jax/blocks": ("test_block_layers.py",),
    "torch/transformer": ("test_transformer.py", "test_transformer_layers.py"),
    "jax/transformer": ("test_transformer.py", "test_transformer_layers.py"),
    "torch/halves": ("test_transformer.py", "test_transformer_layers.py"),
    "jax/halves": ("test_transformer.py", "test_transformer_layers.py"),
    "torch/regression": ("test_layers.py",),
    "jax/regression": ("test_layers.py",),
    "torch/training": ("test_training.py",),
    "jax/training": ("test_training.py",),
    "torch/recurrent": ("test_recurrent_layers.py",),
    "jax/recurrent": ("test_recurrent_layers.py",),
}
