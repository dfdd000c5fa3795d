"""The language reference as text: nothing in both parts, what is held out, and how it is spelt."""

import string
import sys

import numpy as np
import pytest

from attnbook import datasets
from attnbook.datasets.python_reference import Text, _parts

whole = pytest.mark.parametrize("whole_topics", [False, True])


def paragraphs(text, tokens):
    return [p.strip() for p in text.decode(tokens).split("\n\n") if p.strip()]


# the function python_reference has the name of its module
MODULE = sys.modules["attnbook.datasets.python_reference"]


@pytest.mark.skipif(sys.version_info[:3] != (3, 11, 7), reason="the stored text is Python 3.11.7's")
def test_stored_topics_are_python_s():
    from pydoc_data.topics import topics

    assert MODULE._topics() == topics


@pytest.fixture
def topics(monkeypatch):
    """In place of the reference: eleven topics of seven paragraphs, and one that all share."""
    made = {}
    for t in range(11):
        own = [f"Paragraph {p} of {t}. " + 9 * f"{t}{p} " for p in range(7)]
        made[f"topic{t}"] = "\n\n".join(["Shared.", *own])
    monkeypatch.setattr(MODULE, "_topics", lambda: made)
    monkeypatch.setattr(MODULE, "PART", 100)
    return made


@whole
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_paragraph_stands_in_both_parts(whole_topics, seed):
    """Or twice in one; together they are all there is."""
    text = datasets.python_reference(whole_topics=whole_topics, seed=seed)
    train, held_out = (paragraphs(text, part) for part in (text.train, text.held_out))
    assert len(train) > 1000
    assert len(held_out) > 50
    assert not set(train) & set(held_out)
    assert len(set(train)) == len(train)
    assert len(set(held_out)) == len(held_out)
    other = datasets.python_reference(whole_topics=not whole_topics, seed=seed)
    found = {*paragraphs(other, other.train), *paragraphs(other, other.held_out)}
    assert found == {*train, *held_out}


def test_characters():
    """Line feeds and the printable part of ASCII, by their places; all of them occur in any Python."""
    text = datasets.python_reference()
    assert text.vocabulary == "\n" + "".join(chr(c) for c in range(32, 127))
    assert sorted(text.vocabulary[1:]) == sorted(set(string.printable) - set("\t\n\r\x0b\x0c"))
    for tokens in (text.train, text.held_out):
        assert tokens.dtype == np.int64
        assert tokens.ndim == 1
        assert tokens.min() == 0
        assert tokens.max() < 96
        spelt = text.decode(tokens)
        assert [text.vocabulary.index(c) for c in spelt[:1000]] == tokens[:1000].tolist()
        assert spelt.endswith("\n\n")
        assert "\n\n\n\n" not in spelt
    assert "statement" in text.decode(text.train)
    assert len(text.train) > 200_000


@whole
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_the_share_that_is_held_out(whole_topics, share):
    """As much as asked, and less than one more part."""
    text = datasets.python_reference(held_out=share, whole_topics=whole_topics, seed=3)
    total = len(text.train) + len(text.held_out)
    longest = 45_000 if whole_topics else 10_000
    assert share * total <= len(text.held_out) < share * total + longest


def test_a_seed_settles_it():
    one, same, other = (datasets.python_reference(seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.train, same.train)
    np.testing.assert_array_equal(one.held_out, same.held_out)
    np.testing.assert_array_equal(datasets.python_reference().held_out, one.held_out)
    assert set(paragraphs(one, one.held_out)) != set(paragraphs(other, other.held_out))


def test_whole_topics_by_hand(topics):
    """Four of eleven, of all their paragraphs but the shared one, which the first topic keeps."""
    for seed in range(5):
        text = datasets.python_reference(held_out=0.3, whole_topics=True, seed=seed)
        train, held_out = (paragraphs(text, part) for part in (text.train, text.held_out))
        one, other = (
            {p.split(" of ")[1][0:2] for p in part if p != "Shared."} for part in (train, held_out)
        )
        assert not one & other
        assert (len(one), len(other)) == (7, 4)
        assert len(train) + len(held_out) == 78
        assert (train + held_out).count("Shared.") == 1
        assert ("Shared." in train) == ("0." in one)


def test_parts_by_hand(topics):
    """In their order; of 100 characters or a little more, which topics share."""
    text = datasets.python_reference(held_out=0.3, seed=1)
    expected = [p.strip() for t in sorted(topics) for p in topics[t].split("\n\n")]
    expected = list(dict.fromkeys(expected))
    for tokens in (text.train, text.held_out):
        found = paragraphs(text, tokens)
        assert found == [p for p in expected if p in found]
    held_out = paragraphs(text, text.held_out)
    runs = np.flatnonzero(np.diff([expected.index(p) for p in held_out]) != 1)
    assert len(runs) > 3
    assert len(held_out) < 45
    parts = _parts([p + "\n\n" for p in expected])
    assert [p for part in parts for p in part] == [p + "\n\n" for p in expected]
    for part in parts[:-1]:
        assert sum(map(len, part[:-1])) < 100 <= sum(map(len, part))


def test_what_is_not_ascii_is_replaced_or_dropped(monkeypatch):
    given = {"a": "“A”—‘b’ – c…\n\n  \n\n   indented é\n\n  “A”—‘b’ – c…  ", "b": "two\nlines\n"}
    monkeypatch.setattr(MODULE, "_topics", lambda: given)
    text = datasets.python_reference(held_out=0.01, whole_topics=True)
    both = {text.decode(text.train), text.decode(text.held_out)}
    assert both == {"\"A\"-'b' - c.\n\n   indented \n\n", "two\nlines\n\n"}


def test_spell():
    text = Text(np.array([1]), np.array([2]), "abc")
    assert text.decode(np.array([2, 0, 1, 1])) == "cabb"
    assert text.decode([]) == ""
