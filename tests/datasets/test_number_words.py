"""Number words: what is held out, how rows are laid out, and that num2words wrote them."""

import inspect
import math

import numpy as np
import pytest

pytest.importorskip("num2words")

from num2words import num2words

from attnbook import datasets
from attnbook.datasets import END, PAD, START
from attnbook.datasets.number_words import _words

LANGUAGES = ("de", "fr")
by_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture(scope="module", params=LANGUAGES)
def task(request):
    return datasets.number_words(request.param, train=701, held_out=101)


@pytest.fixture(scope="module")
def german():
    return datasets.number_words(train=701, held_out=101)


def language(task):
    return "de" if "ß" in task.target_vocabulary else "fr"


def test_no_number_twice_and_none_of_the_held_out_in_training(task):
    train, held_out = task.train.numbers, task.held_out.numbers
    assert (train.shape, held_out.shape) == ((701,), (101,))
    assert len(np.unique(np.concatenate([train, held_out]))) == 802
    assert not set(train) & set(held_out)
    assert train.min() >= 0
    assert train.max() <= 999_999


def test_small_numbers_and_large_ones_in_both_parts(german):
    """A tenth below 1000, a tenth below 10,000 and the rest anywhere, in random order."""
    for numbers in (german.train.numbers, german.held_out.numbers):
        assert 0.04 < np.mean(numbers < 1000) < 0.16
        assert 0.03 < np.mean((numbers >= 1000) & (numbers < 10_000)) < 0.18
        assert 0.3 < np.mean(numbers >= 500_000) < 0.5
    assert abs(np.corrcoef(np.arange(701), german.train.numbers)[0, 1]) < 0.15


def test_a_seed_settles_it(german):
    again, other = (datasets.number_words(train=701, held_out=101, seed=s) for s in (0, 1))
    for part in ("train", "held_out"):
        for name in ("numbers", "source", "target"):
            ours, same = (getattr(getattr(task, part), name) for task in (german, again))
            np.testing.assert_array_equal(ours, same)
        drawn = getattr(german, part).numbers, getattr(other, part).numbers
        assert np.mean(drawn[0] == drawn[1]) < 0.01
    assert again.source_vocabulary == german.source_vocabulary
    assert again.target_vocabulary == german.target_vocabulary


def test_the_numbers_are_the_same_in_either_language():
    german, french = (datasets.number_words(name, train=53, held_out=11) for name in LANGUAGES)
    np.testing.assert_array_equal(german.train.numbers, french.train.numbers)
    np.testing.assert_array_equal(german.held_out.numbers, french.held_out.numbers)
    words = [
        [t.read(row) for part in (t.train, t.held_out) for row in part.source]
        for t in (german, french)
    ]
    assert words[0] == words[1]


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_words_put_together_are_those_of_the_whole_number(language):
    """Where French drops an s, English says "and", and German writes "eins" before "tausend"."""
    edges = [1000 * t + r for t in (1, 21, 80, 101, 200, 999) for r in (0, 1, 80, 99, 100, 200)]
    drawn = np.random.default_rng(0).integers(0, 1_000_000, 300).tolist()
    for number in (*edges, *drawn, 0, 7, 999_999):
        assert _words(number, language) == num2words(number, lang=language)


def test_the_words_are_num2words(task):
    """English words without hyphens and commas; the other language letter by letter."""
    for part in (task.train, task.held_out):
        for number, source, target in zip(part.numbers, part.source, part.target, strict=True):
            english = num2words(int(number), lang="en").replace(",", "").replace("-", " ")
            assert task.read(source) == english.split(" ")
            assert task.decode(target) == num2words(int(number), lang=language(task))


HAND = {  # small numbers, some of which are among a few hundred drawn
    5: ("five", "fünf", "cinq"),
    7: ("seven", "sieben", "sept"),
    50: ("fifty", "fünfzig", "cinquante"),
    62: ("sixty two", "zweiundsechzig", "soixante-deux"),
    203: ("two hundred and three", "zweihundertdrei", "deux cent trois"),
    999: (
        "nine hundred and ninety nine",
        "neunhundertneunundneunzig",
        "neuf cent quatre-vingt-dix-neuf",
    ),
}


def test_by_hand(task):
    rows = {n: i for i, n in enumerate(task.train.numbers.tolist()) if n in HAND}
    assert len(rows) >= 3
    for number, i in rows.items():
        english, *others = HAND[number]
        assert " ".join(task.read(task.train.source[i])) == english
        assert task.decode(task.train.target[i]) == others[LANGUAGES.index(language(task))]


def test_rows_are_start_characters_end_padding(task):
    """In both parts as wide as the longest of all; the source has neither START nor END."""
    for name in ("source", "target"):
        parts = [getattr(part, name) for part in (task.train, task.held_out)]
        assert parts[0].shape[1] == parts[1].shape[1]
        rows = np.concatenate(parts)
        assert np.any(rows[:, -1] != PAD)
        lengths = (rows != PAD).sum(-1)
        assert lengths.min() >= 1
        np.testing.assert_array_equal(rows != PAD, np.arange(rows.shape[1]) < lengths[:, None])
        if name == "source":
            assert rows[rows != PAD].min() > END
            continue
        np.testing.assert_array_equal(rows[:, 0], START)
        np.testing.assert_array_equal(rows[np.arange(len(rows)), lengths - 1], END)
        assert ((rows == START).sum(), (rows == END).sum()) == (len(rows), len(rows))
        assert rows.dtype == np.int64


def test_vocabularies(task):
    """PAD, START and END first, then all that occurs, in alphabetical order."""
    assert (PAD, START, END) == (0, 1, 2)
    for vocabulary, name in (
        (task.source_vocabulary, "source"),
        (task.target_vocabulary, "target"),
    ):
        assert vocabulary[:3] == ["·", "<", ">"]
        assert vocabulary[3:] == sorted(set(vocabulary[3:]))
        seen = np.concatenate([getattr(p, name).ravel() for p in (task.train, task.held_out)])
        unused = {START, END} if name == "source" else set()
        assert set(seen.tolist()) | unused == set(range(len(vocabulary)))
    assert "hundred" in task.source_vocabulary
    assert all(len(character) == 1 for character in task.target_vocabulary)


def tokens(task, text):
    return [task.target_vocabulary.index(character) for character in text]


def test_read_and_spell(german):
    """PAD is never shown; what stands behind END is not read, START is no character."""
    two, one = (german.source_vocabulary.index(word) for word in ("two", "one"))
    assert german.read([PAD, two, one, PAD]) == ["two", "one"]
    assert german.read([]) == []
    eins = tokens(german, "eins")
    for row in (eins, [START, *eins], [START, *eins, END, PAD, PAD], [*eins, END, *eins, END]):
        assert german.decode(row) == "eins"
        assert german.decode(np.array(row)) == "eins"
    assert german.decode([END, *eins]) == german.decode([START]) == german.decode([]) == ""


def test_right(german):
    """From after START up to END, token by token; what stands behind END is not looked at."""
    eins, acht = tokens(german, "eins"), tokens(german, "acht")
    e, i, n, s = eins
    written = {
        "END to the limit": ([*eins, END, END, END, END, END], True),
        "padding behind END": ([*eins, END, PAD, PAD, PAD, PAD], True),
        "another text behind END": ([*eins, END, *eins], True),
        "a letter is missing": ([e, i, n, END, s, END, END, END, END], False),
        "a letter too many": ([*eins, e, END, END, END, END], False),
        "a letter is another": ([n, i, n, s, END, END, END, END, END], False),
        "another text": ([*acht, END, END, END, END, END], False),
        "no END": ([*eins, PAD, PAD, PAD, PAD, PAD], False),
        "no END to the limit": ([*eins, *eins, e], False),
        "padding inside": ([e, PAD, i, n, s, END, END, END, END], False),
        "START inside": ([e, i, START, n, s, END, END, END, END], False),
        "START in front": ([START, *eins, END, END, END, END], False),
        "nothing": ([END] * 9, False),
    }
    target = np.array([[START, *eins, END, PAD, PAD]] * len(written))
    out = german.is_correct(np.array([row for row, _ in written.values()]), target)
    assert out.dtype == bool
    assert dict(zip(written, out.tolist(), strict=True)) == {w: r for w, (_, r) in written.items()}
    lengths = [[START, *eins, END], [START, *acht[:2], END, PAD, PAD]]
    texts = np.array([[*eins, END], [*acht[:2], END, END, END]])
    assert german.is_correct(texts, np.array(lengths)).all()
    assert german.is_correct(texts[:, :4], np.array(lengths)).tolist() == [False, True]
    every = german.held_out.target
    assert german.is_correct(every[:, 1:], every).all()
    assert not german.is_correct(every[1:], every[:-1]).any()
    with pytest.raises(ValueError, match="zip"):
        german.is_correct(every[1:], every)


@by_language
def test_the_two_parts_may_be_of_one(language):
    task = datasets.number_words(language, train=1, held_out=1)
    assert task.train.numbers.shape == task.held_out.numbers.shape == (1,)
    assert task.train.numbers != task.held_out.numbers


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"language": "en"}, "language: got 'en', expected 'de' or 'fr'"),
        ({"language": None}, "language: got None, expected 'de' or 'fr'"),
        ({"train": 0}, "train, held_out: got 0, 2000, expected 1 or more each, 300000 in all"),
        ({"held_out": 0}, "train, held_out: got 20000, 0, expected 1 or more each"),
        ({"train": 300_000, "held_out": 1}, "train, held_out: got 300000, 1, expected 1 or more"),
    ],
)
def test_what_is_refused(how, message, monkeypatch):
    """Before anything is drawn."""
    module = inspect.getmodule(datasets.number_words)
    monkeypatch.setattr(module, "_drawn", lambda *_: pytest.fail("not refused"))
    with pytest.raises(ValueError, match=message):
        datasets.number_words(**how)


def test_small_numbers_do_not_come_first():
    """All below 1000 are drawn early, as there are few: they stand anywhere all the same."""
    drawn = inspect.getmodule(datasets.number_words)._drawn(100_000, 0)
    places = np.flatnonzero(drawn < 1000) / len(drawn)
    assert len(places) == 1000
    assert abs(places.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 1000)
    assert abs(np.quantile(places, 0.9) - 0.9) < 0.04
