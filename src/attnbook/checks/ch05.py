"""Checks for chapter 5. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook.checks._ch05_heads import bilateral, convolution_by_heads, running_attention
from attnbook.checks.answers import call
from attnbook.checks.verdict import Function, Wrong, check, expect

__all__ = [
    "bilateral",
    "convolution_by_heads",
    "crossover_length",
    "rotary_complex",
    "running_attention",
    "shift_matrix",
    "sliding_mask",
]


@check
def crossover_length(function: Function) -> str:
    """function(d): the length at which self-attention costs as much as a GRU, both of width d."""
    for d in (64, 7):
        expect(call(function, d), 1.5 * d, f"for d = {d}", [
            (1.5, "That is n/d: the length grows with the width."),
            (1.5 * d * d, "Divide by n, and then by d: d² is one d too many."),
            (d, "That counts four matrices, or only the orders: here there are three."),
            (3 * d, "Scores and averages are n² d each, and the projections count too."),
            (4.5 * d, "The 3 n d² of the projections are on the wrong side."),
            (0.75 * d, "A product and its sum count once, on both sides."),
            (0, "That is for three matrices: a GRU has three for the input, three for the state."),
            (-0.5 * d, "That is for a plain recurrent layer of two matrices: a GRU has six."),
            (2 * d / 3, "Turned over: solve for n, not for d."),
            (np.floor(1.5 * d), "Do not round: the length need not be whole."),
            (np.ceil(1.5 * d), "Do not round: the length need not be whole."),
            (d / 2, "A GRU has six matrices: three are left, and n² comes twice."),
            (2 * d, "That counts one matrix too many: three of six are left."),
            (6 * d, "The projections count, and scores and averages are two products."),
            (1.5 * d**2 / 1.5, "Divide by n, and then by d: d² is one d too many."),
            (3, "That is the number of matrices: the length grows with the width."),
            (9 * d**3, "That is a number of multiply–adds: return the length."),
        ], secret=True)  # fmt: skip
    return "below it attention costs less, above it more, and it has no steps to wait for."


@check
def sliding_mask(function: Function) -> str:
    """function(n, width): (n, n), True where key j is query i or one of the width − 1 before it."""
    for n, width in ((6, 3), (5, 1), (4, 9)):
        back = np.arange(n)[:, None] - np.arange(n)  # i − j
        right = (back >= 0) & (back < width)
        expect(call(function, n, width), right, f"for n = {n} and width = {width}", [
            (right.T, "It is transposed: a row belongs to a query, and it looks back."),
            ((back > 0) & (back < width), "No token sees itself: it counts as one of the width."),
            ((back > 0) & (back <= width), "The width counts from i itself, not from i − 1."),
            ((back >= 0) & (back <= width), "One key too many: i and the width − 1 before it."),
            ((back >= 0) & (back < width - 1), "One key too few: i and the width − 1 before it."),
            (abs(back) < width, "It looks ahead as far as it looks back: it is not causal."),
            (abs(back) <= width // 2, "The window is centred on i: it must end there."),
            (back < width, "All that is later may be seen: the mask must be causal too."),
            (back >= 0, "That is causal, but not local: nothing depends on the width."),
            (back >= width, "That is what the window leaves out: True means may attend."),
            (~right, "It is inverted: in this book, True means may attend."),
            ((back % n) < width, "i − j is negative for later keys: no remainder."),
            (right * (np.arange(n)[:, None] // width == np.arange(n) // width),
             "These are blocks that stand still: the window moves with i."),
            ((back >= 0) & (np.arange(n) < width),
             "Those are the first keys of all: the window moves with i."),
            ((back >= 0) & (np.arange(n) >= n - width),
             "Those are the last keys of all: the window moves with i."),
            ((back >= -width) & (back <= 0), "It looks ahead: i − j is 0 or more."),
            (back == width - 1, "That is the farthest key alone: all between it and i count too."),
            (np.eye(n), "A token sees itself alone: the width − 1 before it too."),
            (np.ones((n, n)), "All see all: the window ends at i, and begins width − 1 before."),
            (np.where(right, 1, -np.inf), "That is for adding to scores: return True and False."),
            (np.where(right, 0, -1e9), "That is for adding to scores: return True and False."),
            (right * -1e9, "That is for adding to scores: return True and False."),
            (np.where(right, 0, -np.inf), "That is for adding to scores: return True and False."),
        ])  # fmt: skip
    return "each query sees at most width keys, the last of them its own."


def _angles(positions: Any, d: int, frequency: Callable[[Any], Any] | None = None) -> Any:
    """The angles p θ_i, of shape (n, d/2)."""
    share = np.arange(0, d, 2) / d
    theta = 10000.0**-share if frequency is None else frequency(share)
    return np.asarray(positions, dtype=float)[..., None] * theta


def _sinusoidal(positions: Any, d: int) -> np.ndarray:
    a = _angles(positions, d)
    return np.stack([np.sin(a), np.cos(a)], axis=-1).reshape(*a.shape[:-1], d)


OTHER_FREQUENCIES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda share: 10000.0 ** -(share / 2), "The exponent of θ_i is −2i/d, not −i/d."),
    (lambda share: 10000.0 ** -(share * 2), "The 2 of 2i is there twice: i counts pairs."),
    (lambda share: 10000.0**share, "The angles grow from pair to pair: the exponent is negative."),
    (lambda share: 1000.0**-share, "The base is 10000."),
    (lambda share: 10000.0 ** -(share + share[1] / 2), "The exponent is −2i/d, with i from 0."),
    (
        lambda share: 10000.0 ** -(share * (len(share) / max(1, len(share) - 1))),
        "The exponent divides by d, so the last θ_i is above 1/10000.",
    ),
    (lambda share: 1 + 0 * share, "All pairs turn by the same angle: θ_i depends on the pair i."),
]


@check
def shift_matrix(function: Function) -> str:
    """function(k, d): the matrix that takes the sinusoids of p to those of p + k, for every p."""
    for k, d in ((3, 8), (-2, 6)):
        where = f"for k = {k} and d = {d}".replace("-", "−")
        got, a = call(function, k, d), _angles(k, d)
        right, here, there = _turns(a), _sinusoidal(0, d), _sinusoidal(k, d)
        causes = [
            (right.T, "It shifts by −k. In a pair the sine comes first."),
            (_turns(_angles(1, d)), "It shifts by 1: the angle is k θ_i."),
            (_halves(right), "The sines are not in the first half: a pair is 2i and 2i + 1."),
            (np.eye(d) * right, "That is the diagonal: sin(a + b) has a cosine of a too."),
            (np.diag(there), "A product entry by entry does not add two angles."),
            (k * _turns(_angles(1, d)), "k belongs to the angle, not in front of the matrix."),
            (_turns(_angles(k, d)[::-1]), "The frequencies fall from pair to pair, from θ_0 = 1."),
            (np.abs(right), "The signs are lost."),
            (_turns(np.deg2rad(_angles(k, d))), "Angles are in radians: no degrees."),
            (_turns(2 * np.pi * _angles(k, d)), "There is no 2π in the angle."),
            (np.roll(np.eye(d), k, axis=0), "That moves columns: a shift of p turns every pair."),
            *((_turns(_angles(k, d, f)), cause) for f, cause in OTHER_FREQUENCIES),
        ]
        if got.shape == (d, d) and np.allclose(here @ got.T, there, atol=1e-5):
            causes.append((got, "That is right for p = 0, and for no other p."))
        expect(got, right, where, causes)
    return "the same rotation at every position: the shift is linear."


def _turns(angles: np.ndarray) -> np.ndarray:
    """A block [[cos, sin], [−sin, cos]] for every angle, along the diagonal."""
    d = 2 * len(angles)
    sines = np.zeros((d, d))
    sines[range(0, d, 2), range(1, d, 2)] = np.sin(angles)
    return np.diag(np.repeat(np.cos(angles), 2)) + sines - sines.T


def _halves(matrix: np.ndarray) -> np.ndarray:
    """The same for positions with all sines before all cosines."""
    order = np.r_[0 : len(matrix) : 2, 1 : len(matrix) : 2]
    return matrix[order][:, order]


@check
def rotary_complex(function: Function) -> str:
    """function(x, positions): x (n, d) with pair (2i, 2i + 1) turned by p θ_i."""
    d, p = 6, np.asarray([0, 1, 4, 4, 40])
    x = np.random.default_rng(4).normal(size=(5, d))
    z, a = x[:, 0::2] + 1j * x[:, 1::2], _angles(p, d)
    first, second = np.split(x, 2, axis=1)
    turned = z * np.exp(1j * a)

    def real(*arguments: Any) -> Any:
        answer = function(*arguments)
        if "complex" in str(getattr(answer, "dtype", "")):
            raise Wrong("your numbers are complex: return two real columns for each of them.")
        return answer

    expect(call(real, x, p), _pairs(turned), "for n, d = 5, 6 and positions 0, 1, 4, 4, 40", [
        (_two_halves((first + 1j * second) * np.exp(1j * a)),
         "Column i is paired with i + d/2, as some libraries do: a pair is 2i and 2i + 1."),
        (_two_halves(turned), "Real parts first, then imaginary ones: put each pair in its place."),
        (_pairs(z * np.exp(-1j * a)), "It turns the other way: the angle is +p θ_i."),
        (_pairs(turned.conj()), "The imaginary part has the wrong sign."),
        (_pairs(z.conj() * np.exp(1j * a)), "That is x_2i − i x_2i+1: the pair is mirrored first."),
        (_pairs(z * np.exp(1j * _angles(range(5), d))), "That numbers the rows: use positions."),
        (_pairs(z * np.exp(1j * _angles(1, d))), "All rows turn alike: p is missing in the angle."),
        (_pairs(turned * np.exp(1j * _angles(1, d))), "Use positions as they are, from 0."),
        (_pairs(turned.imag + 1j * turned.real), "Real part first, then the imaginary part."),
        (_pairs(z * np.exp(2j * np.pi * a)), "There is no 2π in the angle."),
        (_pairs(z.real * np.cos(a) + 1j * z.imag * np.sin(a)), "A complex product has four terms."),
        (_pairs(z * np.cos(a)), "Only the cosine: e^{ia} has a sine too."),
        (_pairs(z * np.exp(a)), "The i in the exponent is missing: that grows."),
        (_pairs(np.abs(turned.real) + 1j * np.abs(turned.imag)), "The signs are lost."),
        (x + _sinusoidal(p, d), "You add: a rotary position multiplies."),
        *((_pairs(z * np.exp(1j * _angles(p, d, f))), cause) for f, cause in OTHER_FREQUENCIES),
    ])  # fmt: skip
    return "one product turns a pair, and no length changes."


def _pairs(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], axis=-1).reshape(len(z), -1)


def _two_halves(z: np.ndarray) -> np.ndarray:
    return np.concatenate([z.real, z.imag], axis=-1)
