"""Bugs that a test must catch: where, the text as it is, the text as it would be wrong, in words.

Each is planted alone in a copy of the package, and the tests of its module must fail.
"""

from __future__ import annotations

from faults import (
    averages,
    blocks,
    coefficients,
    divided,
    fused_and_chunked,
    heads,
    learning,
    parts,
    pretrained,
    recurrence,
    states,
    transformers,
    writing,
)
from faults.fault import Fault

__all__ = ["FAULTS", "TESTS", "Fault"]

GROUPS = (
    averages,
    fused_and_chunked,
    heads,
    blocks,
    recurrence,
    states,
    transformers,
    learning,
    writing,
    pretrained,
    coefficients,
    parts,
    divided,
)
FAULTS = [f for group in GROUPS for f in group.FAULTS]
TESTS = {  # of each module whose faults or mutants name no others
    "kernels": ("test_kernels.py",),
    "scores": ("test_scores.py",),
    "attention": ("test_attention.py", "test_causal.py"),
    "regression": ("test_regression.py", "test_multi_head.py", "test_in_metric.py"),
    "_fast/chunked": ("test_fast_chunked.py", "test_regression.py"),
    "_fast/gaussian": ("test_fast_gaussian.py",),
    "streams": ("test_streams.py",),
    "flash": ("test_flash.py",),
    "pages": ("test_pages.py",),
    "pooling": ("test_pooling.py",),
    "positions": ("test_positions.py",),
    "heads": ("test_heads.py", "test_multi_head_attention.py"),
    "linear_attention": ("test_linear_attention.py",),
    "activations": ("test_activations.py",),
    "blocks": ("test_blocks.py",),
    "transformer": ("test_transformer.py",),
    "sampling": ("test_sampling.py",),
    "ngrams": ("test_ngrams.py",),
    "gaussian_process": ("test_gaussian_process.py",),
    "images": ("test_images.py",),
    "recurrent": ("test_recurrent.py",),
    "decoding": ("test_decoding.py",),
    "losses": ("test_losses.py",),
    "training": ("test_training_run.py",),
    "in_context": ("test_in_context.py",),
    "features": ("test_features.py",),
    "test_time": ("test_test_time.py",),
    "torch/training": ("test_training.py",),
    "jax/training": ("test_training.py",),
}
