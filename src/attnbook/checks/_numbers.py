"""What several chapters' checks compute answers with."""

import numpy as np


def softmax(s: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Weights along the last axis, 0 where the mask is false."""
    s = s if mask is None else np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def gauss(x: np.ndarray, z: np.ndarray, scale: float) -> np.ndarray:
    """Covariance exp(−(x − z)² / (2ℓ²)), of shape (m, n)."""
    return np.asarray(np.exp(-0.5 * ((x[:, None] - z) / scale) ** 2))
