"""The data sets: their sizes, known numbers, and that a seed settles them."""

import json
import math
import re
from importlib.resources import files

import numpy as np
import pytest

from attnbook import attend, datasets, nadaraya_watson
from attnbook.datasets import regression_prompts

STORED = files("attnbook").joinpath("datasets", "results")
RESULTS = sorted(f.name.removesuffix(".json") for f in STORED.iterdir())


def test_curve_and_noise_by_hand():
    x = np.array([0.0, np.pi / 2, -2.0])
    expected = [0, 1.5 + 0.2 * (np.pi / 2) ** 2, -0.5 * np.sin(2) + np.sin(6) + 0.8]
    np.testing.assert_allclose(datasets.curve(x), expected, rtol=1e-14)
    np.testing.assert_allclose(datasets.noise_level(x), [0.2, 0.2 + 0.025 * np.pi, 0.3])


@pytest.mark.parametrize("spacing", ["even", "random"])
def test_heteroskedastic(spacing):
    """A grid or draws; (y − f(x)) / s(x) is standard normal, by 20 011 draws."""
    x, y = datasets.heteroskedastic(20_011, spacing=spacing)
    assert x.shape == y.shape == (20_011, 1)
    assert np.allclose(x[:, 0], np.linspace(-3, 3, 20_011)) == (spacing == "even")
    z = (y - datasets.curve(x)) / datasets.noise_level(x)
    assert abs(z.mean()) < 0.03
    assert abs(z.var() - 1) < 0.05
    outer = np.abs(x) > 2
    assert abs(z[outer].var() - z[~outer].var()) < 0.08


def test_engel():
    income, food = datasets.engel()
    assert income.shape == food.shape == (235, 1)
    assert np.all(np.diff(income[:, 0]) >= 0)
    assert income.mean() == pytest.approx(982.473, abs=1e-3)
    assert food.mean() == pytest.approx(624.150, abs=1e-3)


def test_digits():
    digits = datasets.digits()
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 16)
    share = np.bincount(digits.test_labels) / np.bincount(digits.train_labels)
    np.testing.assert_allclose(share, 1 / 3, atol=0.02)
    together = np.concatenate([digits.train_images, digits.test_images])
    assert len(np.unique(together, axis=0)) == 1797
    assert np.any(digits.test_labels != datasets.digits(seed=1).test_labels)


def test_digit_comparisons():
    """Labels against a loop; every digit equally often."""
    digits, labels = datasets.digit_comparisons(2011, length=13)
    assert (digits.shape, digits.dtype, labels.dtype) == ((2011, 13), np.int64, np.float32)
    expected = [1.0 if row.count(4) > row.count(2) else 0.0 for row in digits.tolist()]
    assert labels.tolist() == expected
    np.testing.assert_allclose(np.bincount(digits.ravel()) / digits.size, 0.1, atol=0.01)


def test_means_of_even():
    """Means against a loop; no row without an even digit, and the five of them equally often."""
    digits, means = datasets.means_of_even(2011, length=3)
    assert (digits.shape, digits.dtype, means.dtype) == ((2011, 3), np.int64, np.float32)
    for row, mean in zip(digits.tolist(), means.tolist(), strict=True):
        even = [digit for digit in row if digit in (0, 2, 4, 6, 8)]
        assert mean == pytest.approx(sum(even) / len(even), rel=1e-6)  # fails for an empty list
    digits, _ = datasets.means_of_even(20_011, length=1)
    share = np.bincount(digits[:, 0])[::2] / len(digits)
    np.testing.assert_allclose(share, 0.2, atol=4 * math.sqrt(0.16 / 20_011))


def test_photograph():
    """The luma of a square as it is shipped, and noise as large as it says, not clipped."""
    from sklearn.datasets import load_sample_image

    picture = load_sample_image("china.jpg").astype(float)
    clean, noisy = datasets.photograph(211)
    for i, j in ((0, 0), (7, 13), (210, 0), (210, 210)):
        red, green, blue = picture[60 + i, 200 + j].tolist()
        luma = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
        assert clean[i, j] == pytest.approx(luma, rel=1e-12)
    z = (noisy - clean) / 0.1
    assert abs(z.mean()) < 4 / 211
    assert abs(z.std() - 1) < 0.02
    assert noisy.min() < 0
    np.testing.assert_array_equal(*datasets.photograph(noise=0))


def test_repeated_sequences():
    """What the mask says is predictable stood a period before, and nothing else did."""
    tokens, predictable = datasets.repeated_sequences(211)
    assert (tokens.shape, tokens.dtype) == ((211, 48), np.int64)
    assert set(np.unique(tokens)) == set(range(64))
    periods = set()
    for row, mask in zip(tokens.tolist(), predictable.tolist(), strict=True):
        period = mask.index(True)
        periods.add(period)
        for j in range(48):
            assert mask[j] == (j >= period) == (row[j] in row[:j])
            assert not mask[j] or row[j] == row[j - period]
    assert periods == set(range(8, 25))


SQUARES = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])  # 2 × 2 pixels


@pytest.mark.parametrize(
    ("offsets", "size", "expected"),
    [
        ([[0, 0], [1, 1]], 3, ["120 340 000", "000 056 078"]),  # down and to the right
        ([[0, 0], [0, 0]], 4, ["0000 0120 0340 0000", "0000 0560 0780 0000"]),
        ([[1, 0], [0, -1]], 2, ["00 12", "60 80"]),  # what leaves it is cut off
        ([[-2, 0], [0, 7]], 2, ["00 00", "00 00"]),
    ],
)
def test_shifted_by_hand(offsets, size, expected):
    out = datasets.shifted(SQUARES, np.array(offsets), size).reshape(2, size, size)
    found = [" ".join("".join(map(str, row)) for row in image) for image in out]
    assert found == expected


def test_the_six_words():
    sentence = datasets.six_words()
    assert " ".join(sentence.words) == "to be or not to be"
    assert [sentence.vocabulary[token] for token in sentence.tokens] == list(sentence.words)
    np.testing.assert_array_equal(sentence.x[:2], sentence.x[4:])
    assert np.linalg.matrix_rank(sentence.embedding) == 4  # four words that can be told apart


def test_one_head_has_the_models_weights():
    """Those that the model gave, in 1/255; and keys of one length make a Gaussian kernel of it."""
    head = datasets.one_head()
    q, k, v = head.queries, head.keys, head.values
    _, weights = attend(q, k, v, causal=True, return_weights=True)
    given = np.array(datasets.results("sentence")["heads"]["14.9"].split(), float) / 255
    np.testing.assert_allclose(weights[np.tril_indices(16)], given, rtol=0, atol=1 / 510 + 3e-4)
    squares = (k**2).sum(axis=1, keepdims=True)
    q, k = np.hstack([q, np.zeros((16, 1))]), np.hstack([k, np.sqrt(squares.max() - squares)])
    same = nadaraya_watson(q, k, np.eye(16), bandwidth=64**0.25, mask=np.tri(16, dtype=bool))
    np.testing.assert_allclose(same, weights, rtol=0, atol=1e-12)


def test_a_regression_prompt_and_its_mask_by_hand():
    found = regression_prompts.prompt(np.array([1.0, 2.0]), np.array([5.0, 7.0]), np.array([3.0]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, 5, 0], [2, 7, 0], [3, 0, 1]])
    expected = [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],  # a query that sees no pair
        [1, 1, 0, 0, 1],
    ]
    found = regression_prompts.mask(3, np.array([0, 2]))
    np.testing.assert_array_equal(found, np.array(expected, dtype=bool))


def test_results_have_a_date_and_a_machine():
    for name in RESULTS:
        found = datasets.results(name)
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", found["date"]), name
        assert "Python 3." in found["machine"], name
        assert found == json.loads(STORED.joinpath(f"{name}.json").read_text(encoding="utf-8"))


SEEDED = {
    "heteroskedastic": {"n": 3, "seed": 0},
    "smooth_functions": {"n": 3, "points": 3, "seed": 0},
    "digit_comparisons": {"n": 3, "length": 3, "seed": 0},
    "means_of_even": {"n": 3, "length": 3, "seed": 0},
    "repeated_sequences": {"n": 3, "seed": 0},
    "photograph": {"size": 3, "seed": 0},
    "python_reference": {"seed": 0},
    "his_or_her": {"n": 3, "seed": 0},
    "number_words": {"train": 3, "held_out": 3, "seed": 0},
}


@pytest.mark.parametrize("name", SEEDED)
def test_counts_and_seeds(name):
    """The same seed gives the same, another does not; wrong numbers are refused by name."""
    make, how = getattr(datasets, name), SEEDED[name]
    one, same, other = (repr(make(**(how | {"seed": seed}))) for seed in (0, 0, 1))
    assert one == same != other
    for argument in how:
        for wrong in (-1, 1.5, None):
            with pytest.raises(ValueError, match=f"^{argument}: got {wrong!r}, expected "):
                make(**(how | {argument: wrong}))


ONES, ZEROS = np.ones((2, 4)), np.zeros((2, 2), int)
REFUSED = [
    (lambda: datasets.heteroskedastic(spacing="odd"), "spacing: got 'odd', expected 'even' or"),
    (lambda: datasets.photograph(301), "size: got 301, expected 1 to 300"),
    (lambda: datasets.photograph(noise=-0.1), "noise: got -0.1, expected 0 or more"),
    (lambda: datasets.smooth_functions(3, length_scale=(0.1, -1)), "length_scale: got (0.1, -1)"),
    (lambda: datasets.smooth_functions(3, noise=math.nan), "noise: got nan, expected 0 or more"),
    (lambda: datasets.python_reference(held_out=1.0), "held_out: got 1.0, expected a share above"),
    (lambda: datasets.shifted(ONES[:, :3], ZEROS, 4), "images: got shape (2, 3), expected (n, wid"),
    (lambda: datasets.shifted(ONES, ZEROS[:1], 4), "offsets: got int64 of shape (1, 2), expected"),
    (lambda: datasets.shifted(ONES, ZEROS, 1), "size: got 1, expected an integer, 2 or more"),
    (lambda: datasets.results("x"), f"name: got 'x', expected one of {', '.join(RESULTS)}"),
    (lambda: regression_prompts.mask(3, np.array([4])), "seen: got array([4]), expected integers"),
    (lambda: regression_prompts.prompt(ONES, ZEROS, ONES), "keys, values: got shapes (2, 4) and"),
    (lambda: regression_prompts.prompt(ONES, ONES, ONES[0]), "queries: got shape (4,), expected"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
