"""The moving drawings: every number on them is the package's, or a stored weight."""

import base64
import gzip
import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import nbformat
import numpy as np
import pytest

from attnbook import attend, datasets, kernels, leave_one_out, nadaraya_watson, scores, softmax
from attnbook_course import drawings
from attnbook_course.drawings import averages, canvas
from attnbook_course.drawings import rows_of_chapters as rows
from attnbook_course.drawings import words_read as sentences
from attnbook_course.live import weights

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = list(rows.CHAPTERS)


def number(text):
    return float(text.replace("−", "-"))


def steps_of(chapter):
    """Of each step its name, and its numbers by part; nan where a key is hidden."""
    root = ET.fromstring(drawings.average_in_steps(chapter).svg)
    found = {}
    for step in root.iter(f"{SVG}g"):
        labels = [e for e in step.iter(f"{SVG}text") if (e.get("data-part") or "").startswith("n")]
        found[step.get("data-name")] = {
            e.get("data-part"): np.nan if e.text == "hidden" else number(e.text) for e in labels
        }
    return found


def row(parts, head=0):
    return np.array([value for part, value in parts.items() if part.startswith(f"n{head}.")])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_steps_follow_each_other_and_move_what_they_share(chapter):
    root = ET.fromstring(drawings.average_in_steps(chapter).svg)
    groups = [e for e in root if e.tag == f"{SVG}g"]
    assert len(groups) == int(root.get("data-steps")) >= 3
    assert [g.get("data-step") for g in groups] == [str(n) for n in range(1, len(groups) + 1)]
    tops = [float(g.get("data-top")) for g in groups]
    assert tops == sorted(tops)
    for top, group in zip(tops, groups, strict=True):
        assert group.get("style") == f"--up: {tops[0] - top:g}px"
    ends = [*tops[1:], float(root.get("viewBox").split()[3])]
    highest = max(end - top for top, end in zip(tops, ends, strict=True))
    assert float(root.get("data-stage")) == tops[0] + highest
    parts = [[e.get("data-part") for e in g.iter() if e.get("data-part")] for g in groups]
    names = [g.get("data-name") for g in groups]
    for name, (before, after) in zip(names[1:], pairwise(parts), strict=True):
        assert len(set(before)) == len(before)
        assert set(before) & set(after) or name == "stream"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_weights_and_exponentials_are_those_of_the_scores(chapter):
    """To the digits that are drawn: a score of one decimal moves its exponential by 5 %."""
    steps = steps_of(chapter)
    for head in range(len(rows.average_of(chapter).values)):
        if chapter == 11:
            continue
        drawn, shares = row(steps["scores"], head), row(steps["weights"], head)
        seen = ~np.isnan(drawn)
        assert not shares[~seen].any()
        groups = np.array(rows.average_of(chapter).groups)
        for group in set(groups):
            its = seen & (groups == group)
            np.testing.assert_allclose(shares[its], softmax(drawn[its]), atol=0.04)
            assert shares[its].sum() == pytest.approx(1, abs=0.005 * its.sum() + 1e-9)
        if "exponentials" in steps and len(set(groups)) == 1:
            powers = row(steps["exponentials"], head)[seen]
            np.testing.assert_allclose(powers, np.exp(drawn[seen]), rtol=0.06, atol=0.52)
        np.testing.assert_array_equal(row(steps["weighted sum"], head), shares[seen])


def points(query):
    keys, values = np.array(averages.KEYS), np.array(averages.VALUES)
    return np.array([[query]]), keys[:, None], values[:, None]


@pytest.mark.parametrize("chapter", [1, 9, 12, 13])
def test_one_average_in_three_forms(chapter):
    """Chapter 1's, chapter 9's one head, chapter 12's parts: the same answer."""
    q, k, v = points(rows.QUERY)
    answer = nadaraya_watson(q, k, v, bandwidth=rows.BANDWIDTH).item()
    assert drawings.average_in_steps(chapter).texts[-1].split("= ")[-1] == f"{answer:.2f}"
    if chapter in (1, 9):
        kernel = kernels.gaussian(np.abs(q - k)[:, 0] / rows.BANDWIDTH)
        drawn = row(steps_of(chapter)["weights"])
        np.testing.assert_allclose(drawn, kernel / kernel.sum(), atol=0.005)


def test_the_bandwidth_of_chapter_2_has_the_least_leave_one_out_error():
    h = rows.learned_bandwidth()
    _, k, v = points(0)
    near = (h - 0.01, h, h + 0.01)
    errors = {b: np.mean((leave_one_out(k, v, bandwidth=b) - v) ** 2) for b in near}
    assert min(errors, key=errors.get) == h
    texts = drawings.average_in_steps(2).texts
    assert any(f"h = {h:.2f} learned" in text for text in texts)
    assert texts[-1] == f"= {leave_one_out(k, v, bandwidth=h)[rows.GIVEN, 0]:.2f}"


def test_learned_queries_find_what_no_symmetric_score_finds():
    q, k = rows.two_matrices()
    others = ~np.eye(6, dtype=bool)
    found = softmax(scores.scaled_dot(q, k), others)
    assert found.argmax(axis=1).tolist() == list(rows.POINTS_TO)
    assert found.max(axis=1).min() > 0.9


def test_the_translator_of_chapter_4_reads_as_it_was_stored():
    """The letter is the first of forty in 346; its weights are those of figure fig-alignment."""
    look = datasets.results("translation")["looks"]["with"]
    text = look["texts"]["346"]
    assert text[rows.WRITES :] == "vierzig"
    drawn = row(steps_of(4)["weights"])
    np.testing.assert_allclose(drawn, look["weights"][rows.WRITES], atol=0.0051)
    assert min(look["weights"][rows.WRITES]) > 0.0035  # so a logarithm is right to 0.15
    texts = drawings.average_in_steps(4).texts
    assert [one for one in texts if one in look["read"]] == look["read"]
    assert texts[-1] == "0.94 h4 + 0.03 h5 + …"


def test_the_stream_of_chapter_7_is_the_sum():
    x, output, stream = (
        [number(one) for one in re.search(r"\((.*)\)", text)[1].split(", ")]
        for text in drawings.average_in_steps(7).texts[-3:]
    )
    np.testing.assert_allclose(np.add(x, output), stream, atol=0.011)
    normed = rows.rms_norm(rows.six_words().x)
    q, k, v = (normed @ w.T for w in rows.MATRICES[:3])
    np.testing.assert_allclose(attend(q, k, v)[rows.ASKS], output, atol=0.006)


def test_the_mask_of_chapter_8_hides_what_comes_later():
    drawn = row(steps_of(8)["scores"])
    assert np.isnan(drawn).tolist() == [False] * 4 + [True] * 2


def test_weights_without_the_softmax_may_be_below_zero():
    drawn = row(steps_of(11)["weights"])
    assert drawn.min() < 0
    values = np.array(rows.states.VALUES)
    answer = number(drawings.average_in_steps(11).texts[-1].removeprefix("= "))
    assert drawn @ values == pytest.approx(answer, abs=0.005 * values.sum() + 0.005)


@pytest.fixture(scope="module")
def stored():
    """The sentence as chapter 10's live figure has it, with all heads."""
    return weights.load("smollm2").sentences[0]


def test_the_sentence_is_the_one_that_the_model_was_asked(stored):
    kept = sentences.stored()
    assert kept.tokens == tuple(stored.tokens)
    assert kept.model == weights.load("smollm2").model
    for (layer, head), units in kept.units.items():
        expected = np.rint(255 * stored.weights[layer - 1, head - 1])
        np.testing.assert_array_equal(units, expected)


def test_the_head_was_picked_because_of_one_word(stored):
    """What the captions say: of all heads it gives "man" the most weight."""
    asked = np.asarray(stored.weights)[:, :, sentences.HIS]
    assert (stored.tokens[5], stored.tokens[3]) == (" his", " man")
    best = np.unravel_index(asked[:, :, 3].argmax(), asked.shape[:2])
    assert tuple(int(one) + 1 for one in best) == sentences.BEST
    largest = np.argwhere(asked.argmax(axis=-1) == 3) + 1
    assert {tuple(one) for one in largest.tolist()} == set(sentences.stored().largest)
    assert asked[:, :, 0].size == sentences.stored().all_heads == 270


def test_the_drawn_weights_are_the_stored_ones(stored):
    drawing = drawings.sentence()
    root = ET.fromstring(drawing.svg)
    expected = np.asarray(stored.weights)[13, 8]
    units = json.loads(root.get("data-units"))[0]
    for i, line in enumerate(units):
        np.testing.assert_allclose(np.array(line) / 255, expected[i, : i + 1], atol=1e-6)
    groups = list(root.iter(f"{SVG}g"))
    assert len(groups) == len(stored.tokens)
    for k, group in enumerate(groups):
        word, shown = ["".join(e.itertext()) for e in group.iter(f"{SVG}text")]
        assert word == stored.tokens[k].strip()
        weight = expected[sentences.HIS, k]
        assert shown == (f"{weight:.2f}" if weight >= 0.05 else "\u2007")
        (dot,) = group.iter(f"{SVG}circle")
        radius = float(root.get("data-radius"))
        assert (float(dot.get("r")) / radius) ** 2 == pytest.approx(weight, abs=0.01)
    assert drawing.texts[-1] == "“his” reads man 0.63, <s> 0.26, old 0.05"


def test_chapter_10s_live_figure_has_the_same_weights(stored):
    """In its notebook, where all numbers of the sentence lie."""
    notebook = nbformat.read(ROOT / "chapters/10-a-real-model.ipynb", as_version=4)
    html = next(
        "".join(out["data"]["text/html"])
        for cell in notebook.cells
        if "live.ask_model(" in cell.source
        for out in cell.get("outputs", [])
        if "text/html" in out.get("data", {})
    )
    html = html.replace('\\"', '"')
    assert all(f'"{token}"' in html for token in stored.tokens)
    packed = re.search(
        r'"units",\[\{"type":"ndarray","array":\{"type":"bytes","data":"([^"]+)"', html
    )
    units = np.frombuffer(gzip.decompress(base64.b64decode(packed[1])), np.uint8)
    np.testing.assert_array_equal(units, stored.units())


def test_several_heads_are_rows_and_words_are_columns():
    """So that the weights of all heads are seen at once."""
    root = ET.fromstring(drawings.sentence([(12, 2), (17, 1), (14, 9)], token=14).svg)
    groups = list(root.iter(f"{SVG}g"))
    assert len(groups) == len(sentences.stored().tokens)
    places = np.array(
        [[(e.get("cx"), e.get("cy")) for e in g.iter(f"{SVG}circle")] for g in groups], dtype=float
    )  # words, heads, (x, y)
    assert (places[:, :, 0] == places[:, :1, 0]).all()
    assert (np.diff(places[:, 0, 0]) > 20).all()
    assert (places[:, :, 1] == places[:1, :, 1]).all()
    assert (np.diff(places[0, :, 1]) > 20).all()
    bold = [e.text for g in groups for e in g.iter(f"{SVG}text") if e.get("font-weight")]
    assert bold == ["down"]


def test_what_the_chapters_say_of_words_that_read():
    tokens = [one.strip() for one in sentences.stored().tokens]

    def most(head, word):
        at = tokens.index(word)
        return tokens[int(sentences.weights_of(*head)[at].argmax())]

    assert [most((14, 9), word) for word in ("walked", "along", "down")] == ["man", "dog", "sun"]
    of_went = [most((14, head), "went") for head in range(1, 10)]
    assert (of_went.count("sun"), of_went.count("before"), of_went.count("<s>")) == (3, 2, 4)
    went = sentences.weights_of(14, 9)[tokens.index("went")]
    assert np.sort(went)[-1] > 0.995 > 0.05 > np.sort(went)[-2]
    for head in ((12, 2), (17, 1)):
        table = sentences.weights_of(*head)
        before = [int(table[i].argmax()) == i - 1 for i in range(1, len(tokens))]
        assert np.mean(before) >= 14 / 15


@pytest.mark.parametrize("heads", [[(14, h) for h in range(1, 10)], [(12, 2), (17, 1)]])
def test_the_sentence_with_several_heads(heads):
    root = ET.fromstring(drawings.sentence(heads).svg)
    assert json.loads(root.get("data-heads")) == [f"layer {la}, head {h}" for la, h in heads]
    for group in root.iter(f"{SVG}g"):
        k = int(group.get("data-token"))
        sizes = [float(e.get("r")) for e in group.iter(f"{SVG}circle")]
        expected = [sentences.weights_of(*head)[sentences.HIS, k] for head in heads]
        np.testing.assert_allclose(
            np.square(np.array(sizes) / float(root.get("data-radius"))), expected, atol=0.02
        )


def test_a_group_is_written_around_what_is_put_into_it():
    sheet = canvas.Canvas("one", 10, "A sheet with a dot in a group.")
    with sheet.group(data_step=1):
        sheet.dot(1, 2, 3, "ink")
    (group,) = ET.fromstring(sheet.drawing().svg)
    assert group.get("data-step") == "1"
    assert len(group) == 1
