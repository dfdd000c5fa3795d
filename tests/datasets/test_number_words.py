"""Number words: what is held out, how rows are laid out, and that num2words wrote them."""

import numpy as np
import pytest
from num2words import num2words

from attnbook import datasets
from attnbook.datasets import END, PAD, START
from attnbook.datasets.number_words import _words

LANGUAGES = ("de", "fr")


@pytest.fixture(scope="module", params=LANGUAGES)
def task(request):
    return request.param, datasets.number_words(request.param, train=701, held_out=101)


def test_the_words_are_num2words(task):
    """English words without hyphens and commas; the other language letter by letter."""
    language, words = task
    for part in (words.train, words.held_out):
        for number, source, target in zip(part.numbers, part.source, part.target, strict=True):
            english = num2words(int(number), lang="en").replace(",", "").replace("-", " ")
            assert words.read(source) == english.split(" ")
            assert words.decode(target) == num2words(int(number), lang=language)


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_words_put_together_are_those_of_the_whole_number(language):
    """Where French drops an s, English says "and", and German writes "eins" before "tausend"."""
    edges = [1000 * t + r for t in (1, 21, 80, 101, 200, 999) for r in (0, 1, 80, 99, 100, 200)]
    edges += [1000 * edge + r for edge in edges for r in (0, 1, 80, 200)]
    drawn = np.random.default_rng(0).integers(0, 10 ** np.arange(6, 10).repeat(75)).tolist()
    for number in (*edges, *drawn, 0, 7, 999_999_999):
        assert _words(number, language) == num2words(number, lang=language)


def test_no_number_twice(task):
    """A tenth below 1000, a tenth below 10,000 and the rest anywhere, in random order."""
    train, held_out = task[1].train.numbers, task[1].held_out.numbers
    assert (train.shape, held_out.shape) == ((701,), (101,))
    assert len({*train, *held_out}) == 802
    for numbers in (train, held_out):
        assert 0.04 < np.mean(numbers < 1000) < 0.16
        assert 0.3 < np.mean(numbers >= 500_000) < 0.5
    assert abs(np.corrcoef(np.arange(701), train)[0, 1]) < 0.15


@pytest.mark.parametrize(("digits", "kept"), [(9, [3, 27, 38] + [38] * 4 + [39] * 2), (2, [3, 27])])
def test_each_number_of_digits_equally_often(digits, kept):
    """Of the few short numbers three tenths are held out, and the others come again; in any order."""
    held_out = sum(kept)
    words = datasets.number_words(train=90 * digits, held_out=held_out, digits=digits)
    for part, counts in ((words.train, [90] * digits), (words.held_out, kept)):
        lengths = [len(str(number)) for number in part.numbers]
        assert np.bincount(lengths)[1:].tolist() == counts
        assert abs(np.corrcoef(np.arange(len(lengths)), lengths)[0, 1]) < 0.35
    assert len({*words.held_out.numbers} - {*words.train.numbers}) == held_out
    for number, source in zip(words.train.numbers, words.train.source, strict=True):
        assert words.read(source) == num2words(number).replace(",", "").replace("-", " ").split()


def test_rows_and_vocabularies(task):
    """START, characters, END and padding; PAD, START and END first, the others in order."""
    for vocabulary, name in (
        (task[1].source_vocabulary, "source"),
        (task[1].target_vocabulary, "target"),
    ):
        rows = np.concatenate([getattr(part, name) for part in (task[1].train, task[1].held_out)])
        lengths = (rows != PAD).sum(-1)
        np.testing.assert_array_equal(rows != PAD, np.arange(rows.shape[1]) < lengths[:, None])
        if name == "target":
            assert np.all(rows[:, 0] == START)
            assert np.all(rows[np.arange(len(rows)), lengths - 1] == END)
        assert vocabulary[:3] == ["·", "<", ">"]
        assert vocabulary[3:] == sorted(set(vocabulary[3:]))
        assert {*rows.ravel().tolist()} | {START, END} == set(range(len(vocabulary)))


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("eins>>>>>", True),  # END to the limit
        ("eins>eins", True),  # what stands behind END is not looked at
        ("ein>s>>>>", False),
        ("einse>>>>", False),
        ("eins·····", False),  # no END
        ("e·ins>>>>", False),
        ("<eins>>>>", False),
        (">>>>>>>>>", False),
    ],
)
def test_right(written, right):
    """From after START up to END, token by token."""
    task = datasets.number_words(train=701, held_out=101)
    tokens = [
        [task.target_vocabulary.index(sign) for sign in text] for text in (written, "<eins>·")
    ]
    assert task.is_correct(*(np.array([row]) for row in tokens)).tolist() == [right]
    assert task.decode(tokens[1]) == "eins"


def test_what_is_refused():
    with pytest.raises(ValueError, match="language: got 'it', expected 'de' or 'fr'"):
        datasets.number_words("it")
    with pytest.raises(ValueError, match="train, held_out: got 300000, 1, expected 300000 in all"):
        datasets.number_words(train=300_000, held_out=1)
    with pytest.raises(ValueError, match="digits: got 10, expected 1 to 9"):
        datasets.number_words(digits=10)
    with pytest.raises(ValueError, match="held_out: got 31, expected at most 30 of 2 digits"):
        datasets.number_words(held_out=31, digits=2)
