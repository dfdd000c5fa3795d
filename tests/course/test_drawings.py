"""The drawings: files are sound and used, and every computed number is the package's."""

import ast
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import draw
import nbformat
import numpy as np
import pytest
from slides.clicks import in_clicks

from attnbook import datasets, leave_one_out, nadaraya_watson, scores, softmax
from attnbook_course import drawings
from attnbook_course.drawings import averages, canvas, ladder, words_read
from attnbook_course.drawings import rows_of_chapters as rows
from attnbook_course.live import weights

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = list(rows.CHAPTERS)
HEADS = [(14, head) for head in range(1, 10)]
ALL = [drawings.show(name) for name in drawings.names()]
ALL += [drawings.rung(n) for n in range(1, 1 + len(drawings.RUNGS))]
ALL += [drawings.average_in_steps(n) for n in CHAPTERS]
ALL += [drawings.weighted_average(), drawings.sentence(), drawings.sentence(HEADS)]


def labels(drawing):
    """Every label, without mark-up, in the order of drawing."""
    return ["".join(text.itertext()) for text in ET.fromstring(drawing.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("drawing", ALL, ids=lambda d: d.name)
def test_a_drawing_is_an_image_for_any_theme(drawing):
    """It has words for who listens, the palette's colours alone, and no id to meet another's.

    On a phone, 350 pixels wide, type is at least 11 pixels high, and 9 in sub- and superscripts.
    """
    root = ET.fromstring(drawing._repr_svg_())
    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    assert root.get("data-drawing") == drawing.name
    assert len(root.get("aria-label")) > 40
    assert not [e for e in root.iter() if e.get("id")]
    paints = {e.get(paint) for e in root.iter() for paint in ("fill", "stroke")} - {None, "none"}
    spots = {paint for paint in paints if re.fullmatch("#[0-9a-f]{6}", paint)}
    assert paints - spots <= {canvas.colour(role) for role in canvas.COLOURS}
    assert len(spots) == (7 if drawing.name == "soft_lookup" else 0)
    for element in root.iter():
        least = 9 if element.tag == f"{SVG}tspan" else 11
        assert 350 / canvas.WIDTH * float(element.get("font-size", 16)) >= least


def test_every_drawing_is_shown_and_every_shown_one_is_there():
    text = "".join(path.read_text("utf-8") for path in ROOT.glob("*/*.md"))
    text += (ROOT / "index.md").read_text("utf-8")
    text += (ROOT / "tools" / "print_book.py").read_text("utf-8")  # the ladder, on its title page
    shown = {*re.findall(r'drawings\.show\("(\w+)"\)', text)}
    shown |= {*re.findall(r"drawings/(\w+)\.svg", text)}
    assert shown <= {*drawings.names()}
    on_slides = {*re.findall(r"^```\{diagram\} (\w+)", text, re.MULTILINE)}
    assert {*drawings.names()} <= shown | on_slides


@pytest.mark.parametrize(
    ("draw", "wrong", "message"),
    [
        (drawings.show, "blocks", "name: got 'blocks', expected one of block, block_masks"),
        (drawings.rung, 0, "n: got 0"),
        (drawings.average_in_steps, 14, "chapter: got 14"),
        (drawings.sentence, [(1, 1)], r"heads: got \(1, 1\)"),
    ],
)
def test_there_is_no_drawing_of_another_name_or_number(draw, wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        draw(wrong)


def test_what_is_stored_of_drawings_is_fresh():
    for name, call in draw.LANDING.items():
        stored = (ROOT / f"images/{name}.svg").read_text(encoding="utf-8")
        assert stored == call().svg + "\n", "do: python tools/draw.py"
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for output, data in draw.drawn(nbformat.read(path, as_version=4)):
            assert dict(output.data) == data, f"{path.name}: do: python tools/draw.py"


def test_in_a_deck_each_step_is_a_click():
    assert in_clicks(drawings.average_in_steps(1), []).count('class="fragment"') == 4


def test_the_ladder_is_the_appendixs():
    page = (ROOT / "appendices/ladder.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| *(.+?) *\|$", page, re.MULTILINE)
    header, _, *entries = (line.split(" | ") for line in lines)
    assert header[1:] == list(ladder.SLOTS)
    for rung, row in zip(drawings.RUNGS, entries, strict=True):
        for slot, latex in zip(ladder.SLOTS, row[1:], strict=True):
            both = latex.replace(r"\tanh", "tanh").replace(r"\log", "log"), getattr(rung, slot)
            plain = [re.sub(r"\\[a-zA-Z]+|\^2|\W", "", one, flags=re.ASCII) for one in both]
            assert plain[0] == plain[1], (rung.name, slot)
    names = [f"{n}\u2002{rung.name}" for n, rung in enumerate(drawings.RUNGS, 1)]
    assert [text for text in labels(drawings.show("ladder")) if "\u2002" in text] == names


def test_numbers_in_files_are_those_of_the_package():
    keys, values = np.array(rows.FIVE_KEYS), np.array(rows.FIVE_VALUES)
    gram = np.exp(-((keys[:, None] - keys) ** 2) / (2 * 0.6**2))
    kernel = np.exp(-((0.7 - keys) ** 2) / (2 * 0.6**2))
    posterior = kernel @ np.linalg.solve(gram + 0.2**2 * np.eye(5), values)
    one_pass = kernel @ np.linalg.solve(np.tril(gram), values)
    texts = labels(drawings.show("one_matrix"))
    answers = [float(text) for text in texts if re.fullmatch(r"\d\.\d\d", text)]
    np.testing.assert_allclose(answers, [kernel @ values, one_pass, posterior], atol=0.005)

    both = softmax(np.array([1.2, 2.0, 0.4, 1.6, 3.0, 0.7, 2.4]))
    assert labels(drawings.show("parts"))[-1] == f"{both @ [1, 3, 2, 4, 5, 2, 6]:.2f}"


def points(query):
    keys, values = np.array(averages.KEYS), np.array(averages.VALUES)
    return np.array([[query]]), keys[:, None], values[:, None]


def steps_of(chapter):
    """Of each step its numbers, a row for each head; nan where a key is hidden."""
    found = {}
    for step in ET.fromstring(drawings.average_in_steps(chapter).svg).iter(f"{SVG}g"):
        heads = found.setdefault(step.get("data-name"), {})
        for text in step.iter(f"{SVG}text"):
            if named := re.fullmatch(r"n(\d)\.\d+", text.get("data-part") or ""):
                value = float(text.text.replace("−", "-").replace("hidden", "nan"))
                heads.setdefault(int(named[1]), []).append(value)
    return {name: [np.array(row) for row in heads.values()] for name, heads in found.items()}


@pytest.mark.parametrize("chapter", [n for n in CHAPTERS if n != 11])
def test_weights_and_exponentials_are_those_of_the_scores(chapter):
    """To the digits that are drawn: a score of one decimal moves its exponential by 5 %."""
    steps, in_parts = steps_of(chapter), rows.CHAPTERS[chapter]().in_parts
    for head, (drawn, shares) in enumerate(zip(steps["scores"], steps["weights"], strict=True)):
        seen = ~np.isnan(drawn)
        assert not shares[~seen].any()
        for part in np.split(np.arange(len(drawn)), 2 if in_parts else 1):
            its = part[seen[part]]
            np.testing.assert_allclose(shares[its], softmax(drawn[its]), atol=0.04)
        if "exponentials" in steps and not in_parts:
            powers = steps["exponentials"][head][seen]
            np.testing.assert_allclose(powers, np.exp(drawn[seen]), rtol=0.06, atol=0.52)
        np.testing.assert_array_equal(steps["weighted sum"][head], shares[seen])


def test_one_average_in_three_forms():
    """Chapter 1's, chapter 9's one head, chapter 12's parts: the same answer."""
    answer = nadaraya_watson(*points(rows.QUERY), bandwidth=rows.BANDWIDTH).item()
    for drawing in (*map(drawings.average_in_steps, (1, 9, 12, 13)), drawings.weighted_average()):
        assert labels(drawing)[-1].split("= ")[-1] == f"{answer:.2f}"


def test_what_single_chapters_say_is_computed():
    """Chapter 2's bandwidth, 3's relation, 4's letter, 11's sum."""
    _, k, v = points(0)
    h = rows.learned_bandwidth()
    errors = [np.mean((leave_one_out(k, v, bandwidth=b) - v) ** 2) for b in (h - 0.01, h, h + 0.01)]
    assert np.argmin(errors) == 1
    answer = leave_one_out(k, v, bandwidth=h)[rows.GIVEN, 0]
    assert labels(drawings.average_in_steps(2))[-1] == f"= {answer:.2f}"

    found = softmax(scores.scaled_dot(*rows.two_matrices()), ~np.eye(6, dtype=bool))
    assert found.argmax(axis=1).tolist() == list(rows.POINTS_TO) and found.max(axis=1).min() > 0.9

    look = datasets.results("translation")["looks"]["with"][0]
    assert look["texts"]["846"][rows.WRITES :] == "vierzig"
    (drawn,) = steps_of(4)["weights"]
    np.testing.assert_allclose(drawn, look["weights"][rows.WRITES], atol=0.0051)

    (drawn,) = steps_of(11)["weights"]
    answer = float(labels(drawings.average_in_steps(11))[-1].removeprefix("= "))
    assert drawn.min() < 0
    assert drawn @ rows.FIVE_VALUES == pytest.approx(answer, abs=0.03)


def test_matrices_are_those_that_the_chapters_print():
    line = re.compile(r"^W_([qkv]) = np\.array\((\[\[.*\]\])\)$", re.MULTILINE)
    printed = line.findall((ROOT / "chapters/05-self-attention.md").read_text("utf-8"))
    matrices = dict(zip("qkv", rows.MATRICES.tolist(), strict=True))
    assert {name: ast.literal_eval(table) for name, table in printed} == matrices


def test_the_sentences_weights_are_the_models():
    """Those that chapter 10's live figure has of all heads; the best head is the captions'."""
    live = weights.load("smollm2").sentences[0]
    model, tokens, units = words_read.stored()
    assert (model, tokens) == (weights.load("smollm2").model, [t.strip() for t in live.tokens])
    for (layer, head), table in units.items():
        np.testing.assert_array_equal(table, np.rint(255 * live.weights[layer - 1, head - 1]))
    man = np.asarray(live.weights)[:, :, words_read.HIS, tokens.index("man")]
    layer, head = words_read.BEST
    assert man.argmax() == np.ravel_multi_index((layer - 1, head - 1), man.shape)
    assert labels(drawings.sentence())[-1] == "“his” reads man 0.63, <s> 0.26, old 0.05"
