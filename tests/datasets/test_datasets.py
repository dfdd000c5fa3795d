"""The data sets: their sizes, their first numbers, and that a seed settles them."""

import math
import re
from importlib.resources import files

import numpy as np
import pytest

from attnbook import datasets

STORED = files("attnbook").joinpath("datasets", "results")
RESULTS = sorted(f.name.removesuffix(".json") for f in STORED.iterdir()) if STORED.is_dir() else []


def test_curve_and_noise_by_hand():
    x = np.array([0.0, np.pi / 2, -2.0])
    expected = [0, 1.5 + 0.2 * (np.pi / 2) ** 2, -0.5 * np.sin(2) + np.sin(6) + 0.8]
    np.testing.assert_allclose(datasets.curve(x), expected, rtol=1e-14)
    np.testing.assert_allclose(datasets.noise_level(x), [0.2, 0.2 + 0.025 * np.pi, 0.3])


def test_heteroskedastic():
    x, y = datasets.heteroskedastic()
    assert x.shape == y.shape == (150, 1)
    np.testing.assert_allclose(x[:, 0], np.linspace(-3, 3, 150))
    again = datasets.heteroskedastic(seed=0)[1]
    np.testing.assert_array_equal(y, again)
    assert np.all(y != datasets.heteroskedastic(seed=1)[1])
    drawn = datasets.heteroskedastic(13, spacing="random")[0]
    assert drawn.shape == (13, 1)
    assert np.all(np.abs(drawn) <= 3)
    assert np.ptp(np.diff(drawn[:, 0])) > 0.1  # no grid
    with pytest.raises(ValueError, match="spacing: got 'odd', expected 'even' or 'random'"):
        datasets.heteroskedastic(spacing="odd")


@pytest.mark.parametrize("spacing", ["even", "random"])
def test_the_noise_is_as_large_as_it_says(spacing):
    """(y − f(x)) / s(x) is standard normal: mean and variance of 20 011 draws."""
    x, y = datasets.heteroskedastic(20_011, spacing=spacing)
    z = (y - datasets.curve(x)) / datasets.noise_level(x)
    assert abs(z.mean()) < 0.03
    assert abs(z.var() - 1) < 0.05
    outer = np.abs(x) > 2
    assert abs(z[outer].var() - z[~outer].var()) < 0.08


def test_engel():
    pytest.importorskip("statsmodels")
    income, food = datasets.engel()
    assert income.shape == food.shape == (235, 1)
    assert income.dtype == food.dtype == np.float64
    assert np.all(np.diff(income[:, 0]) >= 0)
    assert income[0, 0] == pytest.approx(377.058, abs=1e-3)
    assert income[-1, 0] == pytest.approx(4957.813, abs=1e-3)
    assert income.mean() == pytest.approx(982.473, abs=1e-3)
    assert food.mean() == pytest.approx(624.150, abs=1e-3)


def test_digits():
    pytest.importorskip("sklearn")
    digits = datasets.digits()
    assert digits.train_images.shape == (1347, 64)
    assert digits.test_images.shape == (450, 64)
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 16)
    share = np.bincount(digits.test_labels) / np.bincount(digits.train_labels)
    np.testing.assert_allclose(share, 1 / 3, atol=0.02)
    again, other = datasets.digits(), datasets.digits(seed=1)
    np.testing.assert_array_equal(digits.test_labels, again.test_labels)
    assert np.any(digits.test_labels != other.test_labels)
    together = np.concatenate([digits.train_images, digits.test_images])
    assert len(np.unique(together, axis=0)) == 1797


def test_digit_comparisons():
    """Labels against a loop; every digit occurs, equally often; a seed settles it."""
    digits, labels = datasets.digit_comparisons(211, length=13)
    assert digits.shape == (211, 13)
    assert digits.dtype == np.int64
    assert labels.dtype == np.float32
    expected = [1.0 if row.count(4) > row.count(2) else 0.0 for row in digits.tolist()]
    assert labels.tolist() == expected
    share = np.bincount(digits.ravel(), minlength=10) / digits.size
    assert len(share) == 10
    np.testing.assert_allclose(share, 0.1, atol=0.02)
    for drawn in np.moveaxis(digits, 1, 0):  # every place has every digit
        assert set(drawn.tolist()) == set(range(10))
    again, other = (datasets.digit_comparisons(211, length=13, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again[0], digits)
    assert np.any(other[0] != digits)
    assert datasets.digit_comparisons(3)[0].shape == (3, 10)


def test_means_of_even():
    """Means against a loop; no row without an even digit; a seed settles it."""
    digits, means = datasets.means_of_even(211, length=3)
    assert digits.shape == (211, 3)
    assert digits.dtype == np.int64
    assert means.dtype == np.float32
    assert set(digits.ravel()) == set(range(10))
    for row, mean in zip(digits.tolist(), means.tolist(), strict=True):
        even = [digit for digit in row if digit in (0, 2, 4, 6, 8)]
        assert mean == pytest.approx(sum(even) / len(even), rel=1e-6)  # fails for an empty list
    again, other = (datasets.means_of_even(211, length=3, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again[0], digits)
    assert np.any(other[0] != digits)
    assert datasets.means_of_even(3)[0].shape == (3, 10)
    assert datasets.means_of_even(0)[0].shape == (0, 10)


def test_every_even_digit_is_as_frequent_in_a_row_of_one():
    """Rows of one that are drawn again until they are even: the five digits, a fifth each."""
    digits, means = datasets.means_of_even(20_011, length=1)
    np.testing.assert_array_equal(digits[:, 0], means)
    share = np.bincount(digits[:, 0], minlength=10) / len(digits)
    np.testing.assert_allclose(share[::2], 0.2, atol=4 * math.sqrt(0.16 / 20_011))
    assert not share[1::2].any()


@pytest.mark.parametrize("length", [1, 2, 10])
def test_the_share_of_labels_is_the_exact_probability(length):
    """4s and 2s are trinomial: Σ over a > b of n! / (a! b! (n − a − b)!) · 0.1^(a + b) · 0.8^(n − a − b)."""
    probability = sum(
        math.comb(length, a) * math.comb(length - a, b) * 0.1 ** (a + b) * 0.8 ** (length - a - b)
        for a in range(length + 1)
        for b in range(length + 1 - a)
        if a > b
    )
    by_hand = {1: 0.1, 2: 0.1**2 + 2 * 0.1 * 0.8}
    if length in by_hand:
        assert probability == pytest.approx(by_hand[length])
    n = 20_011
    labels = datasets.digit_comparisons(n, length=length)[1]
    error = math.sqrt(probability * (1 - probability) / n)
    assert abs(labels.mean() - probability) < 4 * error


def test_photograph_is_the_luma_of_its_square():
    """Pixels of the picture as it is shipped: 0.299 red, 0.587 green, 0.114 blue, black is 0."""
    pytest.importorskip("PIL")
    from sklearn.datasets import load_sample_image

    picture = load_sample_image("china.jpg").astype(float)
    clean, noisy = datasets.photograph()
    assert clean.shape == noisy.shape == (96, 96)
    assert clean.dtype == noisy.dtype == np.float64
    for i, j in ((0, 0), (7, 13), (95, 0), (0, 95), (95, 95)):
        red, green, blue = picture[60 + i, 200 + j].tolist()
        luma = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
        assert clean[i, j] == pytest.approx(luma, rel=1e-12)
    assert clean.min() >= 0
    assert clean.max() <= 1
    assert np.ptp(clean) > 0.5


def test_photograph_of_another_size():
    """The same corner; up to 300 rows and columns."""
    pytest.importorskip("PIL")
    largest, _ = datasets.photograph(300, noise=0)
    assert largest.shape == (300, 300)
    for size in (1, 31):
        part = datasets.photograph(size)[0]
        np.testing.assert_allclose(part, largest[:size, :size], rtol=1e-14)


def test_the_noise_of_the_photograph():
    """Normal, as large as it says, apart in every pixel, of its own seed, and not clipped."""
    pytest.importorskip("PIL")
    clean, noisy = datasets.photograph(211)
    z = (noisy - clean) / 0.1
    assert abs(z.mean()) < 4 / 211
    assert abs(z.std() - 1) < 0.02
    assert abs(np.mean(np.abs(z) < 1) - 0.6827) < 0.01
    assert abs(np.corrcoef(z[1:].ravel(), z[:-1].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(z[:, 1:].ravel(), z[:, :-1].ravel())[0, 1]) < 0.02
    twice = datasets.photograph(211, noise=0.2)[1] - clean
    np.testing.assert_allclose(twice, 2 * (noisy - clean), rtol=0, atol=1e-14)
    assert np.abs(twice + clean - 0.5).max() > 0.5
    np.testing.assert_array_equal(datasets.photograph(211, seed=0)[1], noisy)
    other, moved = datasets.photograph(211, seed=1)
    np.testing.assert_array_equal(other, clean)
    assert np.all(moved != noisy)
    np.testing.assert_array_equal(*datasets.photograph(noise=0))


def test_repeated_sequences_repeat():
    """Token by token: what the mask says is predictable stood a period before, and nothing else did."""
    tokens, predictable = datasets.repeated_sequences(211, length=31, vocab_size=13, periods=(3, 7))
    assert tokens.shape == predictable.shape == (211, 31)
    assert (tokens.dtype, predictable.dtype) == (np.int64, bool)
    found = set()
    for row, mask in zip(tokens.tolist(), predictable.tolist(), strict=True):
        period = mask.index(True)
        found.add(period)
        assert len(set(row[:period])) == period
        for j in range(31):
            assert mask[j] == (j >= period)
            assert mask[j] == (row[j] in row[:j])
            if mask[j]:
                assert row[j] == row[j - period]
    assert found == {3, 4, 5, 6, 7}


def test_repeated_sequences_are_random():
    """Every token equally often, every period too; a seed settles them."""
    tokens, predictable = datasets.repeated_sequences(5003, length=11, vocab_size=7, periods=(2, 6))
    assert set(np.unique(tokens)) == set(range(7))
    for place in (0, 1):  # before the first repetition
        share = np.bincount(tokens[:, place], minlength=7) / 5003
        np.testing.assert_allclose(share, 1 / 7, atol=0.02)
    share = np.bincount(predictable.argmax(axis=1), minlength=7)[2:] / 5003
    np.testing.assert_allclose(share, 0.2, atol=0.025)
    how = dict(length=11, vocab_size=7, periods=(2, 6))
    np.testing.assert_array_equal(datasets.repeated_sequences(5003, seed=0, **how)[0], tokens)
    assert np.any(datasets.repeated_sequences(5003, seed=1, **how)[0] != tokens)
    tokens, predictable = datasets.repeated_sequences(101)
    assert tokens.shape == (101, 48)
    assert 50 < tokens.max() < 64
    assert 8 <= predictable.argmax(axis=1).min() < predictable.argmax(axis=1).max() <= 24


@pytest.mark.parametrize("period", [1, 5])
def test_repeated_sequences_of_one_period(period):
    """A period of 1 is one token; the longest leaves one place, or uses up all tokens."""
    how = dict(length=6, vocab_size=5, periods=(period, period))
    tokens, predictable = datasets.repeated_sequences(3, **how)
    assert predictable.sum(axis=1).tolist() == [6 - period] * 3
    assert [len(set(row)) for row in tokens.tolist()] == [period] * 3


@pytest.mark.parametrize("periods", [(0, 3), (4, 3), (3, 6), (-1, 2), (6, 6)])
def test_repeated_sequences_bad_periods(periods):
    for length, vocab_size in ((6, 11), (11, 5)):
        with pytest.raises(ValueError, match=r"periods: got \(.*\), expected two from 1 to 5, in"):
            datasets.repeated_sequences(3, length=length, vocab_size=vocab_size, periods=periods)


SQUARES = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])  # 2 × 2 pixels


def moved(offsets, size, images=SQUARES):
    out = datasets.shifted(images, np.array(offsets), size)
    assert out.shape == (len(images), size**2)
    assert out.dtype == images.dtype
    return out.reshape(-1, size, size).tolist()


def test_shifted_by_hand():
    """Down and to the right of the centre of 4 × 4; each image by its own offset."""
    middle = [[0, 0, 0, 0], [0, 1, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0]]
    down = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 5, 6, 0], [0, 7, 8, 0]]
    right = [[0, 0, 0, 0], [0, 0, 5, 6], [0, 0, 7, 8], [0, 0, 0, 0]]
    assert moved([[0, 0], [1, 0]], 4) == [middle, down]
    assert moved([[0, 0], [0, 1]], 4) == [middle, right]
    up_left = [[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert moved([[-1, -1], [0, 1]], 4) == [up_left, right]


def test_shifted_off_the_canvas():
    """What leaves it is cut off, and does not come in again on the other side."""
    assert moved([[0, 0], [0, 0]], 2) == SQUARES.reshape(2, 2, 2).tolist()
    assert moved([[1, 0], [0, -1]], 2) == [[[0, 0], [1, 2]], [[6, 0], [8, 0]]]
    assert moved([[-1, -1], [1, 1]], 2) == [[[4, 0], [0, 0]], [[0, 0], [0, 5]]]
    for far in (2, 7, -2, -7):
        assert moved([[far, 0], [0, far]], 2) == [[[0, 0], [0, 0]]] * 2
    assert moved([[2, 0], [0, 0]], 4)[0] == [[0, 0, 0, 0]] * 3 + [[0, 1, 2, 0]]
    odd = [[[1, 2, 0], [3, 4, 0], [0, 0, 0]], [[0, 0, 0], [0, 5, 6], [0, 7, 8]]]
    assert moved([[0, 0], [1, 1]], 3) == odd
    before = SQUARES.copy()
    assert moved([[0, 0], [0, 0]], 3, SQUARES / 2)[0][0][:2] == [0.5, 1.0]
    np.testing.assert_array_equal(SQUARES, before)
    assert datasets.shifted(SQUARES[:0], np.zeros((0, 2), int), 3).shape == (0, 9)


@pytest.mark.parametrize(
    ("images", "offsets", "size", "message"),
    [
        (SQUARES[:, :3], [[0, 0]] * 2, 4, r"images: got shape \(2, 3\), expected \(n, width"),
        (SQUARES[0], [[0, 0]], 4, r"images: got shape \(4,\), expected"),
        (SQUARES[:, :0], [[0, 0]] * 2, 4, r"images: got shape \(2, 0\), expected"),
        (SQUARES.reshape(2, 2, 2), [[0, 0]] * 2, 4, r"images: got shape \(2, 2, 2\), expected"),
        (SQUARES, [[0, 0]], 4, r"offsets: got int64 of shape \(1, 2\), expected integers \(2, 2\)"),
        (SQUARES, [[0], [0]], 4, r"offsets: got int64 of shape \(2, 1\), expected integers"),
        (
            SQUARES,
            [[0.0, 0.5]] * 2,
            4,
            r"offsets: got float64 of shape \(2, 2\), expected integers",
        ),
        (SQUARES, [[0, 0]] * 2, 1, "size: got 1, expected 2 or more, as wide as the images"),
    ],
)
def test_shifted_bad_arguments(images, offsets, size, message):
    with pytest.raises(ValueError, match=message):
        datasets.shifted(images, np.array(offsets), size)


def test_results_have_a_date_and_a_machine():
    for name in RESULTS:
        found = datasets.results(name)
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", found["date"]), name
        assert "Python 3." in found["machine"], name
        assert len(found) > 2, name


COUNTED = {
    "heteroskedastic": {"n": 3, "seed": 0},
    "smooth_functions": {"n": 3, "points": 3, "seed": 0},
    "digit_comparisons": {"n": 3, "length": 3, "seed": 0},
    "means_of_even": {"n": 3, "length": 3, "seed": 0},
    "repeated_sequences": {"n": 3, "length": 30, "vocab_size": 30, "seed": 0},
    "digits": {"seed": 0},
    "photograph": {"seed": 0},
    "python_reference": {"seed": 0},
    "number_words": {"train": 3, "held_out": 3, "seed": 0},
}


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", None, True])
@pytest.mark.parametrize("name", COUNTED)
def test_counts_and_seeds_are_integers(name, wrong):
    make, how = getattr(datasets, name), COUNTED[name]
    for argument in how:
        with pytest.raises(ValueError, match=f"^{argument}: got {wrong!r}, expected an integer, "):
            make(**(how | {argument: wrong}))


@pytest.mark.parametrize("wrong", [50, 0, 1.0, -0.1, None, "0.1", True, math.nan])
def test_what_is_held_out_is_a_share(wrong):
    message = f"^held_out: got {wrong!r}, expected a share above 0 "
    for make in (datasets.digits, datasets.python_reference):
        with pytest.raises(ValueError, match=message):
            make(held_out=wrong)
    with pytest.raises(ValueError, match=r"^whole_topics: got 'no', expected True or False$"):
        datasets.python_reference(whole_topics="no")


@pytest.mark.parametrize("wrong", [None, "0.1", True, math.nan, math.inf, -0.1])
def test_noise_is_an_amount(wrong):
    for make in (datasets.photograph, lambda noise: datasets.smooth_functions(3, noise=noise)):
        with pytest.raises(ValueError, match=f"^noise: got {wrong!r}, expected 0 or more$"):
            make(noise=wrong)


@pytest.mark.parametrize("wrong", [None, "96", 96.0, True, 0, -1, 301])
def test_the_size_of_a_photograph(wrong):
    with pytest.raises(ValueError, match=f"^size: got {wrong!r}, expected 1 to 300$"):
        datasets.photograph(wrong)


NO_SCALES = [None, "x", "0.3", math.inf, math.nan, (0.1, 0.2, 0.3), [0.1], True]
NO_SCALES += [0, (0.1, -1), (0.0, 1)]


@pytest.mark.parametrize("wrong", NO_SCALES)
def test_length_scales(wrong):
    message = f"^length_scale: got {re.escape(repr(wrong))}, expected above 0"
    with pytest.raises(ValueError, match=message):
        datasets.smooth_functions(3, length_scale=wrong)


NO_PAIRS = [(8.0, 24.0), (8.5, 24), None, 8, (8,), (8, 9, 10), "89", (True, True), (9, 8)]


@pytest.mark.parametrize("wrong", NO_PAIRS)
def test_periods_are_two_integers(wrong):
    with pytest.raises(ValueError, match=r"^periods: got .*, expected two from 1 to 47, in order"):
        datasets.repeated_sequences(3, periods=wrong)
    given = datasets.repeated_sequences(3, periods=np.array([8, 24]))
    np.testing.assert_array_equal(given[0], datasets.repeated_sequences(3)[0])


@pytest.mark.parametrize("wrong", ["x", "../timeline", "../results/in_context", "", None, 3, "."])
def test_results_are_those_of_the_folder(wrong):
    message = f"^name: got {re.escape(repr(wrong))}, expected one of {', '.join(RESULTS)}$"
    with pytest.raises(ValueError, match=message):
        datasets.results(wrong)


def test_what_is_shifted_is_an_array():
    images, offsets = np.ones((2, 4)), np.zeros((2, 2), int)
    for given in ((images.tolist(), offsets), (images, offsets.tolist())):
        with pytest.raises(TypeError, match=r"^\w+: got a list, expected a NumPy array$"):
            datasets.shifted(*given, 4)
    for wrong in (None, "4", 4.0, True):
        with pytest.raises(ValueError, match=f"^size: got {wrong!r}, expected an integer$"):
            datasets.shifted(images, offsets, wrong)


def test_the_six_words():
    sentence = datasets.six_words()
    assert " ".join(sentence.words) == "to be or not to be"
    assert [sentence.vocabulary[token] for token in sentence.tokens] == list(sentence.words)
    assert sentence.x.shape == (6, 4) and sentence.x.dtype == np.float64
    np.testing.assert_array_equal(sentence.x[:2], sentence.x[4:])
    assert np.linalg.matrix_rank(sentence.embedding) == 4  # four words that can be told apart
