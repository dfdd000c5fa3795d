"""From Kernel Regression to the Transformer, one weighted average at a time.

The functions on attention, kernels, heads, norms and losses take NumPy, PyTorch or JAX arrays and
give back the same kind, dtype and device. Tables of positions, sampling, n-grams, images, prompts
and Gaussian processes are NumPy.

Importing attnbook imports neither PyTorch nor JAX: the library in use is the one whose arrays
come in. Learned layers live in attnbook.torch and attnbook.jax.
"""

from importlib.metadata import version

from attnbook.attention import attend, causal_mask, padding_mask, scores, softmax
from attnbook.kernel import kernels
from attnbook.kernel.regression import leave_one_out, nadaraya_watson

__version__ = version("attnbook")

__all__ = [
    "attend",
    "causal_mask",
    "kernels",
    "leave_one_out",
    "nadaraya_watson",
    "padding_mask",
    "scores",
    "softmax",
]
