"""Speculative decoding: its distribution by enumeration, its shares, and what it refuses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from attnbook.generate.speculative import accepted_share, keep, residual, tokens_per_pass

VOCAB = 3
STEP = 4  # numbers between 0 and 1 that stand for all: every p / q below is a multiple of 1 / STEP


def distributions(rng, *shape):
    p = rng.exponential(size=shape) ** 2
    return p / p.sum(axis=-1, keepdims=True)


class Scripted(np.random.Generator):
    """Gives out what a script says, and notes how probable that was; asks for more if it ends."""

    def __init__(self, script):
        super().__init__(np.random.PCG64(0))
        self.script, self.probability = list(script), 1.0

    def random(self):
        self.probability /= STEP
        return (self._next(STEP) + 0.5) / STEP

    def choice(self, n, p):
        place = self._next(n)
        self.probability *= p[place]
        return place

    def _next(self, outcomes):
        if not self.script:
            raise Missing(outcomes)
        return self.script.pop(0)


class Missing(Exception):
    """How many outcomes the next decision has."""


def outcomes(write, script=()):
    """Every result of a function of a generator, with its probability."""
    rng = Scripted(script)
    try:
        found = write(rng)
    except Missing as error:
        for place in range(error.args[0]):
            yield from outcomes(write, (*script, place))
    else:
        if rng.probability > 0:
            yield found, rng.probability


P = np.array([[1, 3, 4], [3, 3, 2], [4, 2, 2], [2, 5, 1]]) / 8
Q = np.array([[4, 3, 1], [4, 2, 2], [4, 2, 2], [2, 2, 4]]) / 8


def code(text):
    """Which row of a table stands for what may follow a text."""
    return sum((token + 1) * 3**i for i, token in enumerate(text)) % 4


def by_passes(rng, drafts, length):
    """A text of at least this length, pass by pass; the small model's drafts come from rng too."""
    text = []
    while len(text) < length:
        tokens = []
        for _ in range(drafts):
            tokens.append(int(rng.choice(VOCAB, p=Q[code(text + tokens)])))
        p = P[[code(text + tokens[:i]) for i in range(drafts + 1)]]
        q = Q[[code(text + tokens[:i]) for i in range(drafts)]].reshape(drafts, VOCAB)
        text += (new := keep(tokens, p, q, rng))
        assert new
    return tuple(text[:length])


@pytest.mark.parametrize(("drafts", "length"), [(0, 2), (1, 2), (2, 2), (2, 1)])
def test_a_text_has_exactly_the_targets_distribution(drafts, length):
    """All ways to draft, keep and replace, summed up: every text as probable as the target has it.

    The quotients p / q are multiples of 1 / STEP, so that STEP numbers stand for all.
    """
    found = {}
    for text, probability in outcomes(lambda rng: by_passes(rng, drafts, length)):
        found[text] = found.get(text, 0.0) + probability
    assert len(found) == VOCAB**length
    for text in itertools.product(range(VOCAB), repeat=length):
        expected = math.prod(P[code(text[:i])][token] for i, token in enumerate(text))
        assert found[text] == pytest.approx(expected, abs=1e-12)


def test_another_residual_would_not_have_it():
    """The test above can fail: refused drafts replaced by a draw from p itself."""
    q, p = Q[0], P[0]
    kept = np.minimum(p, q)
    np.testing.assert_allclose(kept + (1 - kept.sum()) * residual(p, q), p, atol=1e-15)
    assert np.abs(kept + (1 - kept.sum()) * p - p).max() > 0.05


@pytest.mark.parametrize("vocab", [2, 7, 31, 1009])
def test_kept_and_replaced_sum_to_the_target(rng, vocab):
    """Σ over drafts of q min(1, p / q), and the refused share times the residual."""
    for p, q in zip(distributions(rng, 5, vocab), distributions(rng, 5, vocab), strict=True):
        kept = [y * min(1.0, x / y) for x, y in zip(p, q, strict=True)]
        total = np.array(kept) + (1 - math.fsum(kept)) * residual(p, q)
        np.testing.assert_allclose(total, p, atol=1e-12)
        assert accepted_share(p, q) == pytest.approx(math.fsum(kept), abs=1e-12)


def test_the_share_is_what_total_variation_leaves(rng):
    p, q = distributions(rng, 2, 5, 3, 11)
    found = accepted_share(p, q)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found, 1 - np.abs(p - q).sum(axis=-1) / 2, atol=1e-12)
    np.testing.assert_allclose(accepted_share(q, p), found, atol=1e-12)
    np.testing.assert_allclose(accepted_share(p, p), 1, atol=1e-12)
    assert accepted_share(np.array([1.0, 0, 0]), np.array([0, 0.3, 0.7])) == 0


def test_a_residual_by_hand():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    np.testing.assert_allclose(residual(p, q), [0.75, 0.25, 0], atol=1e-12)
    np.testing.assert_allclose(residual(p, p), p, atol=1e-15)


def test_equal_models_keep_every_draft(rng):
    """And what the large one rules out is never kept."""
    p = distributions(rng, 4, 7)
    for seed in range(50):
        generator = np.random.default_rng(seed)
        assert keep([3, 0, 6], p, p[:3], generator)[:3] == [3, 0, 6]
        ruled_out = np.array([[0.0, 0.4, 0.6], [1, 0, 0]])
        (token,) = keep([0], ruled_out, np.array([[0.9, 0.05, 0.05]]), generator)
        assert token in (1, 2)


def test_one_seed_gives_one_text(rng):
    p, q = distributions(rng, 6, 13), distributions(rng, 5, 13)
    tokens = np.array([1, 2, 3, 5, 8])
    first, again = (keep(tokens, p, q, np.random.default_rng(3)) for _ in range(2))
    assert first == again
    assert all(type(token) is int for token in first)


def test_no_draft_is_sampling(rng):
    """20,000 draws: chi-square with 4 degrees of freedom is below 23.5 but once in 10,000."""
    p = np.array([[0.1, 0.15, 0.2, 0.25, 0.3]])
    drawn = [keep([], p, np.zeros((0, 5)), rng)[0] for _ in range(20_000)]
    expected = 20_000 * p[0]
    assert np.sum((np.bincount(drawn, minlength=5) - expected) ** 2 / expected) < 23.5


@pytest.mark.parametrize("drafts", [0, 1, 4, 9])
@pytest.mark.parametrize("share", [0, 0.37, 0.5, 0.99, 1])
def test_tokens_per_pass(share, drafts):
    """The closed form in fractions; its limit where every draft is kept."""
    a = Fraction(share)
    expected = drafts + 1 if share == 1 else (1 - a ** (drafts + 1)) / (1 - a)
    found = tokens_per_pass(share, drafts)
    assert type(found) is float
    assert found == pytest.approx(float(expected), rel=1e-12)


def test_tokens_per_pass_counts_them():
    """The same positions again and again: what keep yields on average, within 5 deviations."""
    p, q = np.array([0.5, 0.5]), np.array([0.8, 0.2])  # a share of 0.7
    rng, drafts = np.random.default_rng(0), 3
    counts = []
    for _ in range(4000):
        tokens = rng.choice(2, size=drafts, p=q)
        counts.append(len(keep(tokens, np.tile(p, (4, 1)), np.tile(q, (3, 1)), rng)))
    deviation = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - tokens_per_pass(0.7, drafts)) < 5 * deviation


EVEN = np.full((2, 4), 0.25)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"target": EVEN[0]}, r"target: got shape \(4,\), expected \(drafts \+ 1, vocab\)"),
        ({"target": 2 * EVEN}, "target: got other numbers, expected rows of 0 or more that sum"),
        ({"target": EVEN * np.nan}, "target: got dtype float64, expected finite real numbers"),
        ({"draft": EVEN}, r"draft: got shape \(2, 4\), expected \(1, 4\), as target's"),
        ({"draft": np.array([[-0.5, 0.5, 0.5, 0.5]])}, "draft: got other numbers"),
        ({"draft": np.zeros((1, 0))}, r"draft: got shape \(1, 0\), expected \(..., vocab\)"),
        ({"tokens": [1, 2]}, "tokens: got 2, expected 1, one less than target"),
        ({"tokens": [4]}, "tokens: got"),
        ({"tokens": [0.5]}, "tokens: got dtype float64"),
        (
            {"draft": np.array([[1.0, 0, 0, 0]]), "tokens": [2]},
            "tokens: got 2 at 0, expected one of a probability above 0",
        ),
    ],
)
def test_keep_refuses(how, message):
    given = {"tokens": [1], "target": EVEN, "draft": EVEN[:1], "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        keep(**(given | how))


def test_what_the_others_refuse():
    with pytest.raises(TypeError, match=r"rng: got a int, expected a numpy.random.Generator"):
        keep([1], EVEN, EVEN[:1], 0)
    with pytest.raises(ValueError, match=r"target: got shape \(2, 4\), expected \(vocab,\)"):
        residual(EVEN, EVEN)
    for function in (accepted_share, residual):
        message = r"draft: got shape \(3,\), expected \(4,\), as target"
        with pytest.raises(ValueError, match=message):
            function(EVEN[0], np.full(3, 1 / 3))
        with pytest.raises(ValueError, match="target: got other numbers"):
            function(EVEN[0] / 2, EVEN[0])
    for share in (-0.1, 1.1, math.nan, "0.5", None):
        message = f"share: got {share!r}, expected a number from 0 to 1"
        with pytest.raises(ValueError, match=message):
            tokens_per_pass(share, 3)
    for drafts in (-1, 1.5):
        message = f"drafts: got {drafts}, expected an integer, 0 or more"
        with pytest.raises(ValueError, match=message):
            tokens_per_pass(0.5, drafts)
