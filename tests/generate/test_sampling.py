"""What a language model draws from, by hand; and that it draws it."""

import math
from types import SimpleNamespace

import backends
import numpy as np
import pytest
from layer_harness import Library, randomized

from attnbook import convert
from attnbook.generate.sampling import probabilities, sample

HALVES = np.log([1 / 8, 1 / 2, 1 / 8, 1 / 4])  # two are equally probable


def assert_close(out, expected):
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


def test_plain_is_the_softmax(rng):
    logits = rng.normal(size=(2, 3, 5))
    p = probabilities(logits)
    for row, found in zip(logits.reshape(-1, 5).tolist(), p.reshape(-1, 5), strict=True):
        assert_close(found, np.exp(row) / math.fsum(map(math.exp, row)))
    assert_close(probabilities(logits + 1e4).sum(-1), 1)
    assert_close(probabilities(HALVES), [1 / 8, 1 / 2, 1 / 8, 1 / 4])


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (1.0, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
        (0.5, np.array([1, 16, 1, 4]) / 22),  # squares
        (2.0, np.sqrt([1, 4, 1, 2]) / (4 + math.sqrt(2))),
        (math.inf, [1 / 4] * 4),
        (1e300, [1 / 4] * 4),
        (1e-3, [0, 1, 0, 0]),
        (1e-300, [0, 1, 0, 0]),
        (5e-324, [0, 1, 0, 0]),
    ],
)
def test_temperatures(temperature, expected):
    """No overflow, at either end, of logits of any size."""
    assert_close(probabilities(HALVES, temperature=temperature), expected)
    assert_close(probabilities(HALVES - 700, temperature=temperature), expected)
    if temperature < 1e-2:
        assert_close(probabilities(1e6 * HALVES, temperature=temperature), expected)
    with np.errstate(all="raise", under="ignore"):
        assert_close(probabilities(HALVES, temperature=temperature), expected)


@pytest.mark.parametrize(
    ("top_k", "expected"),
    [
        (1, [0, 1, 0, 0]),
        (2, [0, 2 / 3, 0, 1 / 3]),
        (3, [1 / 7, 4 / 7, 0, 2 / 7]),  # of two that tie the first
        (4, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
        (np.int64(9), [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
    ],
)
def test_top_k(top_k, expected):
    assert_close(probabilities(HALVES, top_k=top_k), expected)
    rows = probabilities(np.stack([HALVES, HALVES[::-1]]), top_k=top_k)
    assert_close(rows[0], expected)
    assert np.count_nonzero(rows[1]) == np.count_nonzero(expected)


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (1e-9, [0, 1, 0, 0]),
        (0.49, [0, 1, 0, 0]),
        (0.51, [0, 2 / 3, 0, 1 / 3]),
        (0.74, [0, 2 / 3, 0, 1 / 3]),
        (0.76, [1 / 7, 4 / 7, 0, 2 / 7]),
        (0.88, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
        (1, [1 / 8, 1 / 2, 1 / 8, 1 / 4]),
    ],
)
def test_top_p(top_p, expected):
    """The fewest whose sum is at least as large; each row by itself."""
    assert_close(probabilities(HALVES, top_p=top_p), expected)
    order = [3, 1, 0, 2]
    rows = probabilities(np.stack([HALVES, HALVES[order]]), top_p=top_p)
    assert_close(rows[0], expected)
    assert_close(np.sort(rows[1]), np.sort(expected))


def test_exactly_as_much_is_enough():
    """Four of 1/4, exact in binary: a sum of exactly 1/2 needs two."""
    for top_p, kept in ((0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 4), (1.0, 4)):
        assert_close(probabilities(np.zeros(4), top_p=top_p), [1 / kept] * kept + [0] * (4 - kept))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("temperature", [1.0, 0.01])
def test_rounding_does_not_decide_how_many_reach_the_share(name, dtype, temperature):
    """log 0.3 and 0.5 are rounded, and so is their sum; a little more than it needs one more."""
    backend = backends.load_or_skip(name)
    twentieths = [[10, 6, 2, 2], [10, 8, 1, 1], [14, 4, 1, 1], [12, 6, 1, 1], [8, 8, 3, 1], [5] * 4]
    for shares in [*twentieths, [10, 8, 2]]:
        logits = temperature * np.log(np.array(shares[::-1]) / 20)
        logits = backend.cast(backend.array(logits), dtype)
        for kept in range(1, len(shares)):
            share = sum(shares[:kept]) / 20
            for top_p, expected in ((share, kept), (share + 1e-6, kept + 1)):
                p = probabilities(logits, temperature=temperature, top_p=top_p)
                assert np.count_nonzero(p) == expected, (shares, top_p)


def test_the_greatest_share_keeps_every_token():
    """Even those that are less than the rounding of a sum; a share near it does not."""
    logits = np.array([0.0, -45.0, -80.0])
    assert np.all(probabilities(logits, top_p=1) > 0)
    assert np.count_nonzero(probabilities(logits, top_p=1 - 1e-13)) == 1
    for least in (1e-4, 1e-17, 5e-324):  # and the smallest one keeps the most probable
        assert_close(probabilities(np.float16([9, 30, 29]), top_p=least), [0, 1, 0])


def test_at_temperature_0_the_most_probable_is_written():
    """Of ties the first; whatever else is asked for."""
    for how in ({}, {"top_k": 3}, {"top_p": 0.1}, {"top_k": 2, "top_p": 0.9}):
        for zero in (0, 0.0, -0.0, np.float32(0)):
            rows = probabilities([[1, 3, 3], [-math.inf, -1, -9]], temperature=zero, **how)
            np.testing.assert_array_equal(rows, [[0, 1, 0], [0, 1, 0]])
    assert sample(Counter(), [2], 3, temperature=0, seed=5).tolist() == [2, 3, 0, 1]
    with pytest.raises(ValueError, match="top_k: got 0, expected an integer, 1 or more"):
        probabilities(HALVES, temperature=0, top_k=0)


def test_ties_go_to_the_smaller_number(rng):
    for n in (2, 3, 5):
        for k in range(1, n + 1):
            assert_close(probabilities(np.full(n, 7.0), top_k=k), [1 / k] * k + [0] * (n - k))
    logits = rng.integers(0, 3, size=(50, 40)).astype(float)  # long rows of ties
    for row, p in zip(logits, probabilities(logits, top_k=7), strict=True):
        kept = sorted(range(40), key=lambda i: (-row[i], i))[:7]
        assert np.flatnonzero(p).tolist() == sorted(kept)


def test_both_together_and_after_the_temperature():
    """The sum is that of what top_k keeps, 2/3 and 1/3; the temperature comes before both."""
    assert_close(probabilities(HALVES, top_k=2, top_p=0.6), [0, 1, 0, 0])
    assert_close(probabilities(HALVES, top_k=2, top_p=0.7), [0, 2 / 3, 0, 1 / 3])
    assert_close(probabilities(HALVES, top_k=3, top_p=0.84), [0, 2 / 3, 0, 1 / 3])
    assert_close(probabilities(HALVES, temperature=0.5, top_p=0.7), [0, 1, 0, 0])  # 16/22 = 0.727
    assert_close(probabilities(HALVES, temperature=0.5, top_p=0.75), [0, 4 / 5, 0, 1 / 5])
    assert_close(probabilities(HALVES, temperature=0.5, top_k=2, top_p=0.75), [0, 1, 0, 0])


def test_the_logits_stay_as_they_are():
    """Any numbers go in, float64 comes out; an impossible token stays impossible."""
    logits = HALVES.copy()
    probabilities(logits, temperature=0.5, top_k=2, top_p=0.5)
    np.testing.assert_array_equal(logits, HALVES)
    assert probabilities(np.zeros(3, np.float32)).dtype == np.float64
    assert probabilities(np.zeros(3, int)).dtype == np.float64
    assert_close(probabilities([0, -math.inf, 0]), [1 / 2, 0, 1 / 2])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"temperature": None}, "temperature: got None, expected a number, 0 or more"),
        ({"temperature": "1"}, "temperature: got '1', expected a number, 0 or more"),
        ({"temperature": True}, "temperature: got True, expected a number, 0 or more"),
        ({"top_p": "1"}, "top_p: got '1', expected a share above 0, at most 1"),
        ({"top_p": True}, "top_p: got True, expected a share above 0, at most 1"),
        ({"top_k": True}, "top_k: got True, expected an integer, 1 or more"),
        ({"top_k": "1"}, "top_k: got '1', expected an integer, 1 or more"),
        ({"temperature": -1.0}, "temperature: got -1.0, expected a number, 0 or more"),
        ({"temperature": math.nan}, "temperature: got nan, expected a number, 0 or more"),
        ({"top_k": 0}, "top_k: got 0, expected an integer, 1 or more"),
        ({"top_k": -2}, "top_k: got -2, expected an integer"),
        ({"top_k": 1.5}, "top_k: got 1.5, expected an integer"),
        ({"top_p": 0}, "top_p: got 0, expected a share above 0, at most 1"),
        ({"top_p": -0.1}, "top_p: got -0.1, expected a share"),
        ({"top_p": 1.01}, "top_p: got 1.01, expected a share"),
        ({"top_p": math.nan}, "top_p: got nan, expected a share"),
    ],
)
def test_bad_arguments(how, message):
    with pytest.raises(ValueError, match=message):
        probabilities(HALVES, **how)


@pytest.mark.parametrize("logits", [1.0, np.zeros(0), np.zeros((3, 0))])
def test_no_logits(logits):
    with pytest.raises(ValueError, match=r"logits: got shape \(.*\), expected \(\.\.\., vocab\)"):
        probabilities(logits)


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


def test_sample_feeds_every_token_once():
    """The prompt as it is, then what was drawn; the last one need not be fed."""
    for length, room in ((1, 8), (7, 2)):
        model, prompt = Counter(), np.arange(room) % 4
        out = sample(model, prompt, length, seed=3)
        assert out.shape == (9,)
        assert np.issubdtype(out.dtype, np.integer)
        np.testing.assert_array_equal(out[:room], prompt)
        assert model.seen == [out[: n + 1].tolist() for n in range(8)]
    assert sample(Counter(), [2], 3, top_k=1).tolist() == [2, 3, 0, 1]
    assert sample(Counter(), [2], 3, temperature=1e-9).tolist() == [2, 3, 0, 1]
    assert sample(Counter(), [2], 3, top_p=0.5).tolist() == [2, 3, 0, 1]


def test_sample_draws_what_the_probabilities_say():
    """The first token over many seeds, and the second after it; each from its own logits."""
    draws = np.array([sample(Counter(), [1], 2, seed=seed) for seed in range(2003)])
    p = math.exp(3) / (3 + math.exp(3))
    for place in (1, 2):
        steps = np.bincount((draws[:, place] - draws[:, place - 1]) % 4, minlength=4) / len(draws)
        expected = np.array([1 - p, 3 * p, 1 - p, 1 - p]) / 3
        error = np.sqrt(expected * (1 - expected) / len(draws))
        assert np.all(np.abs(steps - expected) < 4 * error)
    first, second = ((draws[:, 1] == 2), (draws[:, 2] - draws[:, 1]) % 4 == 1)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(len(draws))


def test_a_seed_settles_the_sample():
    one, same, other = (sample(Counter(), [1], 8, seed=s, temperature=3) for s in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
    np.testing.assert_array_equal(sample(Counter(), [1], 8, temperature=3), one)


@pytest.mark.parametrize(
    ("prompt", "length", "message"),
    [
        ([], 3, "prompt, length: got 0 and 3 tokens, expected one or more and at most 9 together"),
        ([1] * 5, 5, "prompt, length: got 5 and 5 tokens, expected one or more and at most 9"),
        ([1], 0, "length: got 0, expected an integer, 1 or more"),
        ([1], 2.5, "length: got 2.5, expected an integer"),
    ],
)
def test_bad_prompts(prompt, length, message):
    with pytest.raises(ValueError, match=message):
        sample(Counter(), prompt, length)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_model_is_sampled_by_its_cache(library):
    """The same tokens as by full passes and one draw a token."""
    library = Library(library)
    model = randomized(library, "DecoderOnly", 11, 7, 12, 3, 5, 1)
    prompt = library.moved(np.array([3, 10, 0]))
    how = {"temperature": 1.7, "top_k": 9, "top_p": 0.95}
    out, rng = sample(model, prompt, 4, seed=5, **how), np.random.default_rng(5)
    known = [3, 10, 0]
    for _ in range(4):
        p = probabilities(library.call(model, np.array([known]))[0, -1], **how)
        known.append(int(rng.choice(11, p=p)))
    assert out.tolist() == known
    with pytest.raises(ValueError, match="token: got 11 to 11, expected 0 to 10"):
        sample(model, [11], 3)


def test_both_libraries_draw_alike():
    torch, _ = Library("torch"), Library("jax")
    model = randomized(torch, "DecoderOnly", 11, 7, 12, 3, 5, 1)
    twin = convert.torch_to_jax(model)
    texts = {tuple(sample(model, [4], 6, seed=seed).tolist()) for seed in range(5)}
    assert len(texts) == 5
    assert texts == {tuple(sample(twin, [4], 6, seed=seed).tolist()) for seed in range(5)}


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("row", [[1, NAN, 0], [INF, 1, 0], [-INF] * 3, [NAN] * 3, [INF, -INF, 0]])
def test_logits_that_are_no_numbers(row):
    message = "logits: got NaN, infinity or a row of −infinity, expected a finite largest"
    for logits in ([row], [[1, 2, 3], row], [row, [1, 2, 3]]):
        with pytest.raises(ValueError, match=message):
            probabilities(np.array(logits, float))


@pytest.mark.parametrize("temperature", [math.inf, 1e300, 2.0, 1.0, 1e-300])
def test_a_token_ruled_out_is_so_at_every_temperature(temperature):
    found = probabilities([0.0, -np.inf, 0.0], temperature=temperature)
    np.testing.assert_array_equal(found, [0.5, 0, 0.5])
    assert_close(probabilities([-np.inf, 0.0], temperature=temperature), [0, 1])


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_probabilities_of_any_librarys_logits(library, dtype):
    """A tensor that has a gradient too; bfloat16 as it is rounded."""
    library = Library(library)
    logits = library.backend.cast(library.moved(np.array([0.0, 1.0, -2.0])), dtype)
    if library.name == "torch":
        logits = logits.requires_grad_()
    assert_close(probabilities(logits), probabilities(np.array([0.0, 1.0, -2.0])))


@pytest.mark.parametrize("logits", [[1j, 0], ["1", "2"], [None, 1.0], [True, False]])
def test_logits_are_real(logits):
    with pytest.raises(ValueError, match=r"^logits: got dtype .*, expected a real one$"):
        probabilities(np.array(logits))


@pytest.mark.parametrize(
    ("prompt", "got"),
    [
        ([1.7, 2.9], r"dtype float64, shape \(2,\)"),
        ("12", r"dtype <U2, shape \(\)"),
        (["1", "2"], r"dtype <U1, shape \(2,\)"),
        ([[1, 2]], r"dtype int64, shape \(1, 2\)"),
        (np.ones((2, 3), int), r"dtype int64, shape \(2, 3\)"),
        (3, r"dtype int64, shape \(\)"),
        (None, r"dtype object, shape \(\)"),
        ([True, False], r"dtype bool, shape \(2,\)"),
        ([[1], [2, 3]], r"dtype float64, shape \(\)"),
        ([np.nan], r"dtype float64, shape \(1,\)"),
    ],
)
def test_a_prompt_is_one_row_of_integers(prompt, got):
    with pytest.raises(ValueError, match=rf"^prompt: got {got}, expected integers of shape \(n,\)"):
        sample(Counter(), prompt, 3)


def test_prompts_of_any_library():
    for library in map(Library, ("torch", "jax")):
        given = library.moved(np.array([2, 3], np.int32))
        np.testing.assert_array_equal(sample(Counter(), given, 3), sample(Counter(), [2, 3], 3))


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match=f"seed: got {seed!r}, expected an integer, 0 or more"):
        sample(Counter(), [1], 3, seed=seed)


@pytest.mark.parametrize("model", [None, "model", Counter, SimpleNamespace(max_length=9)])
def test_models_that_write_no_text(model):
    with pytest.raises(TypeError, match=r"^model: got a \w+, expected a DecoderOnly$"):
        sample(model, [1], 3)
    library = Library("torch")
    with pytest.raises(TypeError, match=r"^model: got a Transformer, expected a DecoderOnly$"):
        sample(library.make("Transformer", 5, 5, 7, 6, 2, 5, 1), [1], 3)
