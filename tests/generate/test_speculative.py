"""Speculative decoding: its distribution by enumeration, its shares, and what it refuses."""

import itertools
import math

import numpy as np
import pytest

from attnbook.generate.speculative import accepted_share, keep, residual, tokens_per_pass

VOCAB = 3
STEP = 4  # numbers between 0 and 1 that stand for all: every p / q below is a multiple of 1 / STEP


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
        rows = [code(text + tokens[:i]) for i in range(drafts + 1)]
        text += (new := keep(tokens, P[rows], Q[rows[:-1]].reshape(drafts, VOCAB), rng))
        assert new
    return tuple(text[:length])


@pytest.mark.parametrize(("drafts", "length"), [(0, 2), (1, 2), (2, 2)])
def test_a_text_has_exactly_the_targets_distribution(drafts, length):
    """All ways to draft, keep and replace, summed up: every text as probable as the target has it."""
    found = {}
    for text, probability in outcomes(lambda rng: by_passes(rng, drafts, length)):
        found[text] = found.get(text, 0.0) + probability
    assert len(found) == VOCAB**length
    for text in itertools.product(range(VOCAB), repeat=length):
        expected = math.prod(P[code(text[:i])][token] for i, token in enumerate(text))
        assert found[text] == pytest.approx(expected, abs=1e-12)


def test_equal_models_keep_every_draft(rng):
    """And what the large one rules out is never kept."""
    p = rng.dirichlet(np.ones(7), size=4)
    np.testing.assert_allclose(residual(p[0], p[0]), p[0], atol=1e-15)
    ruled_out, drafted = np.array([[0.0, 0.4, 0.6], [1, 0, 0]]), np.array([[0.9, 0.05, 0.05]])
    for _ in range(50):
        assert keep([3, 0, 6], p, p[:3], rng)[:3] == [3, 0, 6]
        (token,) = keep([0], ruled_out, drafted, rng)
        assert token in (1, 2)


def test_tokens_per_pass_counts_them():
    """What keep yields on average, within 5 standard errors, of a share of 0.7."""
    p, q = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    rng, drafts = np.random.default_rng(0), 3
    counts = [
        len(keep(rng.choice(2, size=drafts, p=q), np.tile(p, (4, 1)), np.tile(q, (3, 1)), rng))
        for _ in range(4000)
    ]
    error = np.std(counts) / math.sqrt(len(counts))
    assert abs(np.mean(counts) - tokens_per_pass(accepted_share(p, q), drafts)) < 5 * error
    assert (tokens_per_pass(1, 4), tokens_per_pass(0, 4)) == (5, 1)


EVEN = np.full((2, 4), 0.25)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"target": EVEN[0]},
            r"target, draft: got shapes \(4,\), .*, expected \(drafts \+ 1, vocab\)",
        ),
        ({"target": 2 * EVEN}, "target: got other numbers, expected rows of 0 or more that sum"),
        ({"draft": EVEN}, r"target, draft: got shapes \(2, 4\), \(2, 4\), expected"),
        ({"draft": np.array([[-0.5, 0.5, 0.5, 0.5]])}, "draft: got other numbers"),
        ({"tokens": [1, 2]}, "tokens: got 2, expected 1, one less than target"),
        ({"tokens": [4]}, "tokens: got"),
    ],
)
def test_keep_refuses(how, message):
    given = {"tokens": [1], "target": EVEN, "draft": EVEN[:1], "rng": np.random.default_rng(0)}
    with pytest.raises(ValueError, match=message):
        keep(**(given | how))
