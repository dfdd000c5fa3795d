"""Values that are computed where a file is there, and read where it is not."""

import json

import numpy as np
import pytest

from attnbook.datasets import recorded
from attnbook.datasets import recorded_values as module


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A file of results in the place of the package's."""
    folder = tmp_path / "datasets" / "results"
    folder.mkdir(parents=True)
    file = folder / "case.json"
    file.write_text('{"found": {"measured": {"a": [1.0, 10.0], "b": "x"}}}')
    monkeypatch.setattr(module, "files", lambda _: tmp_path)
    monkeypatch.setattr(module, "results", lambda name: json.loads(file.read_text()))
    return file


def made(value):
    """A function of the name under which values are stored here."""

    def measured():
        return value

    return measured


@pytest.mark.parametrize(
    "value",
    [
        {"share": np.array([[0.25, 0.5], [1 / 3, np.nan]]), "right": 7, "said": "a text"},
        {"1": np.arange(3), "words": ["to", "be"], "none": None},
        "one text",
    ],
)
def test_with_and_without_the_file_are_the_same(store, value, monkeypatch):
    monkeypatch.setenv("ATTNBOOK_RECORD", "1")
    first = recorded("case", live=True)(made(value))()
    monkeypatch.delenv("ATTNBOOK_RECORD")
    live = recorded("case", live=True)(made(value))()
    read = recorded("case", live=False)(made(AssertionError))()
    for found in (live, read):
        np.testing.assert_equal(found, first)
    assert set(json.loads(store.read_text())) == {"date", "machine", "found"}
    if "share" in value:
        np.testing.assert_allclose(read["share"], value["share"], rtol=1e-5)


@pytest.mark.parametrize(
    ("now", "fits"),
    [
        ({"a": [1.0, 10.1], "b": "x"}, True),
        ({"a": [1.0, 10.3], "b": "x"}, False),
        ({"a": [1.0], "b": "x"}, False),
        ({"a": [1.0, 10.0], "b": "y"}, False),
        ({"a": [1.0, np.nan], "b": "x"}, False),
        ({"a": [1.0, 10.0]}, False),
    ],
)
def test_what_runs_is_close_to_what_was_recorded(store, now, fits):
    run = recorded("case", live=True)(made(now))
    if fits:
        assert run()["a"][1] == 10.0  # as recorded, so that every processor prints the same
    else:
        with pytest.warns(UserWarning, match=r"measured.*recorded was.*shown is what came now"):
            np.testing.assert_equal(run(), module._arrays(now))


def test_a_function_that_was_not_recorded_is_named(store):
    store.write_text('{"found": {}}')
    with pytest.raises(ValueError, match=r"measured: got a function that was not recorded"):
        recorded("case", live=False)(made(1))()
