"""Bugs that a test must catch: where, the text as it is, the text as it would be wrong, in words.

Each is planted alone in a copy of the package, and the tests of its module must fail.
"""

from __future__ import annotations

from faults import (
    averages,
    blocks,
    coefficients,
    devices,
    divided,
    fused_and_chunked,
    heads,
    learning,
    parts,
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
    coefficients,
    parts,
    devices,
    divided,
)
FAULTS = [f for group in GROUPS for f in group.FAULTS]
TESTS = {  # of each module whose faults name no others
    "kernel/kernels": ("kernel/test_kernels.py",),
    "attention/distances": ("kernel/test_kernels.py",),
    "attention/scores": ("attention/test_scores.py",),
    "attention/weighted_average": ("attention/test_attention.py", "attention/test_causal.py"),
    "attention/masks": ("attention/test_attention.py", "attention/test_causal.py"),
    "kernel/regression": (
        "kernel/test_regression.py",
        "attention/test_multi_head.py",
        "kernel/test_in_metric.py",
    ),
    "_fast/chunked": ("fast/test_fast_chunked.py", "kernel/test_regression.py"),
    "_fast/gaussian": ("fast/test_fast_gaussian.py",),
    "exact/online_softmax": ("exact/test_online_softmax.py",),
    "exact/flash": ("exact/test_flash.py",),
    "exact/paged_cache": ("exact/test_paged_cache.py",),
    "attention/pooling": ("attention/test_pooling.py",),
    "attention/positions": ("attention/test_positions.py",),
    "attention/heads": ("attention/test_heads.py", "attention/test_multi_head_attention.py"),
    "linear_attention/forms": ("linear_attention/test_linear_attention.py",),
    "layers/activations": ("layers/test_activations.py",),
    "models/blocks": ("models/test_blocks.py",),
    "layers/norms": ("models/test_blocks.py",),
    "layers/mlp": ("models/test_blocks.py",),
    "models/transformer": ("models/test_transformer.py",),
    "generate/sampling": ("generate/test_sampling.py",),
    "generate/ngrams": ("generate/test_ngrams.py",),
    "generate/speculative": ("generate/test_speculative.py",),
    "kernel/gaussian_process": ("kernel/test_gaussian_process.py",),
    "kernel/non_local_means": ("kernel/test_non_local_means.py",),
    "models/recurrent": ("models/test_recurrent.py",),
    "generate/decoding": ("generate/test_decoding.py",),
    "models/losses": ("models/test_losses.py",),
    "train/training": ("train/test_training_run.py",),
    "datasets/regression_prompts": ("datasets/test_regression_prompts.py",),
    "kernel/random_features": ("kernel/test_random_features.py",),
    "linear_attention/online_regression": ("linear_attention/test_online_regression.py",),
    "torch/training": ("train/test_training.py",),
    "jax/training": ("train/test_training.py",),
    "distributed/traffic": ("costs/test_traffic.py",),
    "distributed/communication_time": ("costs/test_traffic.py",),
    "distributed/layout": ("costs/test_plans.py",),
    "distributed/plan": ("costs/test_plans.py",),
    "torch/counting": ("costs/test_counting.py",),
}
