"""What a language model draws from, by hand; and that it draws it."""

import math
from types import SimpleNamespace

import backends
import numpy as np
import pytest
from layer_harness import randomized

from attnbook.generate.sampling import probabilities, sample

HALVES = np.log([1 / 8, 1 / 2, 1 / 8, 1 / 4])  # two are equally probable


def assert_close(out, expected):
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


BY_HAND = [
    ({}, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
    ({"temperature": 0.5}, np.array([1, 16, 1, 4]) / 22),  # squares
    ({"temperature": 2.0}, np.sqrt([1, 4, 1, 2]) / (4 + math.sqrt(2))),
    ({"temperature": math.inf}, [1 / 4] * 4),
    ({"temperature": 5e-324}, [0, 1, 0, 0]),
    ({"temperature": 0}, [0, 1, 0, 0]),
    ({"top_k": 1}, [0, 1, 0, 0]),
    ({"top_k": 2}, [0, 2 / 3, 0, 1 / 3]),
    ({"top_k": 3}, [1 / 7, 4 / 7, 0, 2 / 7]),  # of two that tie the first
    ({"top_k": 9}, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
    ({"top_p": 1e-9}, [0, 1, 0, 0]),
    ({"top_p": 0.49}, [0, 1, 0, 0]),
    ({"top_p": 0.51}, [0, 2 / 3, 0, 1 / 3]),
    ({"top_p": 0.76}, [1 / 7, 4 / 7, 0, 2 / 7]),
    ({"top_p": 0.88}, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
    # the sum is that of what top_k keeps, 2/3 and 1/3; the temperature comes before both
    ({"top_k": 2, "top_p": 0.6}, [0, 1, 0, 0]),
    ({"top_k": 2, "top_p": 0.7}, [0, 2 / 3, 0, 1 / 3]),
    ({"temperature": 0.5, "top_p": 0.7}, [0, 1, 0, 0]),  # 16/22 = 0.727
    ({"temperature": 0.5, "top_p": 0.75}, [0, 4 / 5, 0, 1 / 5]),
]


@pytest.mark.parametrize(("how", "expected"), BY_HAND)
def test_by_hand(how, expected):
    """Each row by itself, and of logits of any size, without an overflow."""
    with np.errstate(all="raise", under="ignore"):
        assert_close(probabilities(HALVES, **how), expected)
    assert_close(probabilities(HALVES - 700, **how), expected)
    order = [3, 1, 0, 2]
    rows = probabilities(np.stack([HALVES, HALVES[order]]), **how)
    assert_close(rows[0], expected)
    assert_close(np.sort(rows[1]), np.sort(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("temperature", [1.0, 0.01])
def test_rounding_does_not_decide_how_many_reach_the_share(dtype, temperature):
    """log 0.3 and 0.5 are rounded, and so is their sum; a little more than it needs one more."""
    for shares in ([10, 6, 2, 2], [14, 4, 1, 1], [8, 8, 3, 1], [5] * 4, [10, 8, 2]):
        logits = (temperature * np.log(np.array(shares[::-1]) / 20)).astype(dtype)
        for kept in range(1, len(shares)):
            share = sum(shares[:kept]) / 20
            for top_p, expected in ((share, kept), (share + 1e-6, kept + 1)):
                p = probabilities(logits, temperature=temperature, top_p=top_p)
                assert np.count_nonzero(p) == expected, (shares, top_p)
    logits = np.array([0.0, -45.0, -80.0], dtype)
    assert np.all(probabilities(logits, top_p=1) > 0)


def test_ties_go_to_the_smaller_number(rng):
    logits = rng.integers(0, 3, size=(50, 40)).astype(float)  # long rows of ties
    for row, p in zip(logits, probabilities(logits, top_k=7), strict=True):
        kept = sorted(range(40), key=lambda i: (-row[i], i))[:7]
        assert np.flatnonzero(p).tolist() == sorted(kept)


@pytest.mark.parametrize("temperature", [math.inf, 1.0, 1e-300])
def test_a_token_ruled_out_is_so_at_every_temperature(temperature):
    found = probabilities(np.array([0.0, -np.inf, 0.0]), temperature=temperature)
    np.testing.assert_array_equal(found, [0.5, 0, 0.5])


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_logits_of_any_library_stay_as_they_are(name):
    """A tensor that has a gradient too; bfloat16 as it is rounded; float64 comes out."""
    backend, logits = backends.load_or_skip(name), np.array([0.0, 1.0, -2.0])
    for dtype in ("float32", "bfloat16"):
        given = backend.cast(backend.array(logits), dtype)
        given = given.requires_grad_() if name == "torch" else given
        assert_close(probabilities(given), probabilities(logits))
    probabilities(logits, temperature=0.5, top_k=2, top_p=0.5)
    np.testing.assert_array_equal(logits, [0.0, 1.0, -2.0])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"temperature": -1.0}, "temperature: got -1.0, expected a number, 0 or more"),
        ({"temperature": "1"}, "temperature: got '1', expected a number, 0 or more"),
        ({"top_k": 0}, "top_k: got 0, expected an integer, 1 or more"),
        ({"top_p": 0}, "top_p: got 0, expected a share above 0, at most 1"),
        ({"top_p": 1.01}, "top_p: got 1.01, expected a share"),
        ({"logits": np.zeros((3, 0))}, r"logits: got shape \(3, 0\), expected \(\.\.\., vocab\)"),
        ({"logits": np.array([[1, 2], [np.nan, 0]])}, "logits: got NaN, infinity or a row of"),
        ({"logits": np.full((1, 3), -np.inf)}, "logits: got NaN, infinity or a row of −infinity"),
    ],
)
def test_bad_arguments(how, message):
    with pytest.raises(ValueError, match=message):
        probabilities(**{"logits": HALVES} | how)


class Counter:
    """A model of four tokens, most of all the last one and 1; it keeps what it was given."""

    max_length = 9

    def __init__(self):
        self.seen = []

    def empty(self, batch):
        assert batch == 1
        return SimpleNamespace(length=np.zeros(1, np.int32), tokens=[])

    def step(self, cache, token):
        assert token.shape == (1,)
        tokens = [*cache.tokens, int(token[0])]
        assert int(cache.length[0]) == len(cache.tokens)
        self.seen.append(tokens)
        grown = SimpleNamespace(length=cache.length + 1, tokens=tokens)
        return grown, np.log([[1.0, 1.0, 1.0, 1.0]]) + 3 * np.eye(4)[[(tokens[-1] + 1) % 4]]


@pytest.mark.parametrize(("length", "room"), [(1, 8), (7, 2)])
def test_sample_feeds_every_token_once(length, room):
    """The prompt as it is, then what was drawn; the last one need not be fed."""
    model, prompt = Counter(), np.arange(room) % 4
    out = sample(model, prompt, length, seed=3)
    assert out.shape == (9,)
    np.testing.assert_array_equal(out[:room], prompt)
    assert model.seen == [out[: n + 1].tolist() for n in range(8)]
    for how in ({"top_k": 1}, {"temperature": 0}, {"top_p": 0.5}):
        assert sample(Counter(), [2], 3, **how).tolist() == [2, 3, 0, 1]


def test_sample_draws_what_the_probabilities_say():
    """Two tokens over 2003 seeds, each within four standard errors; neither says of the other."""
    draws = np.array([sample(Counter(), [1], 2, seed=seed) for seed in range(2003)])
    p = math.exp(3) / (3 + math.exp(3))
    expected = np.array([1 - p, 3 * p, 1 - p, 1 - p]) / 3
    error = np.sqrt(expected * (1 - expected) / len(draws))
    for place in (1, 2):
        steps = np.bincount((draws[:, place] - draws[:, place - 1]) % 4, minlength=4) / len(draws)
        assert np.all(np.abs(steps - expected) < 4 * error)
    first, second = ((draws[:, 1] == 2), (draws[:, 2] - draws[:, 1]) % 4 == 1)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(len(draws))


def test_a_model_is_sampled_by_its_cache(library):
    """The same tokens as by full passes and one draw a token."""
    model, known = randomized(library, "DecoderOnly", 11, 7, 12, 3, 5, 1), [3, 10, 0]
    how = {"temperature": 1.7, "top_k": 9, "top_p": 0.95}
    prompt, rng = library.moved(np.array(known)), np.random.default_rng(5)
    out = sample(model, prompt, 4, seed=5, **how)
    for _ in range(4):
        p = probabilities(library.call(model, np.array([known]))[0, -1], **how)
        known.append(int(rng.choice(11, p=p)))
    assert out.tolist() == known


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"prompt": []}, "prompt, length: got 0 and 3 tokens, expected one or more and at most 9"),
        ({"prompt": [1] * 7}, "prompt, length: got 7 and 3 tokens, expected one or more and at mo"),
        ({"length": 0}, "length: got 0, expected an integer, 1 or more"),
        ({"seed": -1}, "seed: got -1, expected an integer, 0 or more"),
        ({"prompt": [1.7]}, r"prompt: got dtype float64, shape \(1,\), expected integers of shape"),
        ({"prompt": [[1, 2]]}, r"prompt: got dtype int64, shape \(1, 2\), expected integers of sh"),
    ],
)
def test_bad_prompts(wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        sample(**{"model": Counter(), "prompt": [1], "length": 3} | wrong)
    with pytest.raises(TypeError, match=r"^model: got a \w+, expected a DecoderOnly$"):
        sample(Counter, [1], 3)
