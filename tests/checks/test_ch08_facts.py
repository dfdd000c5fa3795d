"""Facts behind chapter 8's exercises and their solutions."""

from __future__ import annotations

import numpy as np
from checks.ch08 import drafts


def test_accepted_and_redrawn_tokens_have_the_model_s_distribution():
    p, q = np.random.default_rng(0).dirichlet(np.ones(11), 2)
    accept, residual = drafts(p, q)
    np.testing.assert_allclose(q * accept + (1 - q @ accept) * residual, p, rtol=1e-12)
    np.testing.assert_allclose(q @ accept, 1 - np.abs(p - q).sum() / 2, rtol=1e-12)
