"""The language reference as text: nothing in both parts, what is held out, and how it is spelt."""

import string
import sys

import numpy as np
import pytest

from attnbook import datasets

# the function python_reference has the name of its module
MODULE = sys.modules["attnbook.datasets.python_reference"]


def paragraphs(text, tokens):
    return [p.strip() for p in text.decode(tokens).split("\n\n") if p.strip()]


@pytest.mark.skipif(sys.version_info[:3] != (3, 11, 7), reason="the stored text is Python 3.11.7's")
def test_stored_topics_are_python_s():
    from pydoc_data.topics import topics

    assert MODULE._topics() == topics


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_no_paragraph_stands_in_both_parts(share):
    """Or twice in one; as much is held out as asked, and less than one more part."""
    text = datasets.python_reference(held_out=share, seed=3)
    train, held_out = (paragraphs(text, part) for part in (text.train, text.held_out))
    both = [*train, *held_out]
    assert len(set(both)) == len(both) > 1000
    total = len(text.train) + len(text.held_out)
    assert share * total <= len(text.held_out) < share * total + 10_000


def test_characters_and_seeds():
    """Line feeds and the printable part of ASCII, by their places; a seed settles what is held out."""
    text, same, other = (datasets.python_reference(seed=seed) for seed in (0, 0, 1))
    assert text.vocabulary == "\n" + "".join(chr(c) for c in range(32, 127))
    assert sorted(text.vocabulary[1:]) == sorted(set(string.printable) - set("\t\n\r\x0b\x0c"))
    spelt = text.decode(text.train)
    assert [text.vocabulary.index(c) for c in spelt[:1000]] == text.train[:1000].tolist()
    assert len(text.train) > 200_000 and text.train.dtype == np.int64
    assert "\n\n\n\n" not in spelt
    np.testing.assert_array_equal(text.held_out, same.held_out)
    assert set(paragraphs(text, text.held_out)) != set(paragraphs(other, other.held_out))


def test_what_is_not_ascii_is_replaced_or_dropped(monkeypatch):
    given = {"a": "“A”—‘b’ – c…\n\n  \n\n   indented é\n\n  “A”—‘b’ – c…  ", "b": "two\nlines\n"}
    monkeypatch.setattr(MODULE, "_topics", lambda: given)
    monkeypatch.setattr(MODULE, "PART", 1)
    text = datasets.python_reference(held_out=0.01)
    both = {text.decode(text.train), text.decode(text.held_out)}
    kept = ["\"A\"-'b' - c.\n\n", "   indented \n\n", "two\nlines\n\n"]
    assert {part for text in both for part in text.split("\n\n") if part} == {
        part.removesuffix("\n\n") for part in kept
    }
