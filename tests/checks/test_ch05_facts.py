"""A fact behind chapter 5's exercises."""

from __future__ import annotations

import numpy as np
from checks.ch05 import heads


def test_how_sharp_the_heads_of_the_convolution_exercise_must_be():
    kernel = np.asarray([-1.0, 2.0, -1.0])
    constant, ramp, alternating = np.ones(40), np.arange(40.0), (-1.0) ** np.arange(40)

    def errors(x, sharpness):
        y = np.convolve(x, kernel[::-1], mode="same")
        return np.abs(heads(x, kernel, sharpness) - y) / np.abs(y).max()

    for sharpness in (1, 2, 4, 6, 9, 12):
        worst = [errors(x, sharpness).max() for x in (constant, ramp, alternating)]
        assert worst[2] == max(worst)
    assert errors(alternating, 6).max() < 0.01 < errors(alternating, 5.9).max()
    assert errors(alternating, 6 + np.log(10)).max() < 0.001
    np.testing.assert_allclose(errors(alternating, 9)[3:-3], 4 * np.exp(-9), rtol=1e-2)
    for x in (constant, ramp):
        assert errors(x, 6)[4:-4].max() < 1e-6 < errors(x, 6).max()
