"""The drawings: every label of a shape is that of an array, and the ladder is the appendix's."""

import ast
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import draw
import nbformat
import numpy as np
import pytest

from attnbook import kernels, nadaraya_watson
from attnbook.attention import heads
from attnbook.datasets import regression_prompts, six_words
from attnbook_course import drawings, figures
from attnbook_course.drawings import averages, canvas, published, rows_of_chapters, sequences
from attnbook_course.drawings import heads as heads_drawn

ladder = sys.modules["attnbook_course.drawings.ladder"]  # the function has its name

ROOT = Path(__file__).resolve().parents[2]

RUNGS = range(1, 1 + len(drawings.RUNGS))
NAMED = [name for name in drawings.__all__ if name[0].islower() and name != "rung"]
ALL = [getattr(drawings, name)() for name in NAMED] + [drawings.rung(n) for n in RUNGS]
ALL += [drawings.average_in_steps(n) for n in rows_of_chapters.CHAPTERS]
ALL += [drawings.sentence([(14, head) for head in range(1, 10)])]
SLIDES = [
    drawings.one_matrix(),
    drawings.fixed_state(),
    drawings.chunks(),
    drawings.parts(),
    drawings.delta_triangle(),
    drawings.flash_blocks(),
    drawings.block_masks(),
    drawings.page_table(),
    drawings.data_parallel(),
    drawings.heads_split(),
    drawings.ring(),
    drawings.killed_worker(),
    drawings.data_parallel(workers=3, rows=24),
    drawings.heads_split(ranks=4, num_heads=8, hidden_dim=24),
    drawings.ring(devices=2, step=1),
    drawings.killed_worker(steps=6, every=2, killed=5),
]
SVG = "{http://www.w3.org/2000/svg}"
SHAPE = re.compile(r"(.+) (\d+ × \d+)")


def shapes(drawing):
    """The labels of shapes, by what stands before each; those of one name together."""
    found = {}
    for name, shape in (m.groups() for text in drawing.texts if (m := SHAPE.fullmatch(text))):
        found.setdefault(name, []).append(tuple(map(int, shape.split(" × "))))
    return found


@pytest.mark.parametrize("drawing", ALL, ids=lambda d: d.name)
def test_a_drawing_is_an_image_whose_labels_are_text(drawing):
    root = ET.fromstring(drawing._repr_svg_())
    assert root.tag == f"{SVG}svg"
    assert root.get("data-drawing") == drawing.name
    assert root.get("role") == "img"
    assert len(root.get("aria-label")) > 40
    written = ["".join(text.itertext()).replace("\u2002", " ") for text in root.iter(f"{SVG}text")]
    assert tuple(written) == drawing.texts
    assert all(drawing.texts)


@pytest.mark.parametrize("drawing", ALL, ids=lambda d: d.name)
def test_many_fit_on_a_page_in_any_theme(drawing):
    """No ids that could meet another's, no background, every colour one of the palette's."""
    root = ET.fromstring(drawing.svg)
    assert not [e for e in root.iter() if e.get("id")]
    assert root.get("style") == "max-width: 100%; height: auto"
    palette = {canvas.colour(role) for role in canvas.COLOURS}
    paints = {e.get(paint) for e in root.iter() for paint in ("fill", "stroke")} - {None, "none"}
    spots = {p for p in paints if re.fullmatch("#[0-9a-f]{6}", p)}
    assert paints - spots <= palette
    assert len(spots) == (7 if drawing.name == "soft_lookup" else 0)


@pytest.mark.parametrize("drawing", ALL, ids=lambda d: d.name)
def test_type_is_large_enough_on_a_phone(drawing):
    """At least 11 pixels at a width of 350; subscripts at least 9."""
    root = ET.fromstring(drawing.svg)
    scale = 350 / float(root.get("viewBox").split()[2])
    for element in (root, *root.iter(f"{SVG}text")):
        assert scale * float(element.get("font-size", 16)) >= 11
    for part in root.iter(f"{SVG}tspan"):
        assert scale * float(part.get("font-size", 16)) >= 9


@pytest.mark.parametrize("drawing", SLIDES, ids=lambda d: d.name)
def test_a_drawing_fits_a_slide(drawing):
    root = ET.fromstring(drawing.svg)
    assert float(root.get("viewBox").split()[3]) <= 560
    for text in root.iter(f"{SVG}text"):
        wide = canvas.width_of("".join(text.itertext()), float(text.get("font-size", 16)))
        share = {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        left = float(text.get("x")) - share * wide
        assert left > -4 and left + wide < 484, "".join(text.itertext())


def test_the_same_call_gives_the_same_file():
    assert [getattr(drawings, name)() for name in NAMED] == ALL[: len(NAMED)]


def test_colours_are_those_of_the_figures():
    assert canvas.COLOURS["output"] == figures.COLOURS["estimate"]
    assert canvas.COLOURS["weights"] == figures.COLOURS["weights"]
    assert canvas.COLOURS["values"] == figures.COLOURS["truth"]
    assert canvas.COLOURS["queries"] == figures.COLOURS["other"]
    assert canvas.COLOURS["keys"] == figures.COLOURS["data"]


@pytest.mark.parametrize("query", [0.7, 1.9, 3.1])
def test_weighted_average_is_kernel_regression(query):
    texts = drawings.weighted_average(query=query, bandwidth=0.5).texts
    x, y = np.array(averages.KEYS)[:, None], np.array(averages.VALUES)[:, None]
    answer = nadaraya_watson(np.array([[query]]), x, y, bandwidth=0.5).item()
    assert texts[-1] == f"{answer:.2f}"
    k = kernels.gaussian(np.abs(x[:, 0] - query) / 0.5)
    for distance, weight, value in zip(np.abs(x[:, 0] - query), k / k.sum(), y[:, 0], strict=True):
        assert {f"{distance:.1f}", f"{weight:.2f}", f"{value:.1f}"} <= set(texts)


def test_soft_lookup_has_the_chapters_colours_and_shares():
    """Chapter 3 prints the shares of the same query under the same score."""
    chapter = (ROOT / "chapters/03-queries-keys-values.md").read_text(encoding="utf-8")
    for name, rgb in averages.RAINBOW.items():
        assert f'"{name}": {rgb}' in chapter
    assert f"tomato = {averages.TOMATO}" in chapter
    assert "bandwidth=0.25" in chapter
    assert drawings.soft_lookup().texts[-2] == "0.59 orange + 0.30 red + …"


@pytest.mark.parametrize(("tokens", "embed_dim", "head_dim"), [(6, 4, 4), (7, 5, 3)])
def test_shapes_of_self_attention(tokens, embed_dim, head_dim):
    x = np.ones((tokens, embed_dim))
    w = np.ones((head_dim, embed_dim))
    y, weights = heads.self_attention(x, w, w, w, return_weights=True)
    q = (x @ w.T).shape
    labels = shapes(drawings.self_attention(tokens, embed_dim, head_dim))
    expected = {"X": x.shape, "Q": q, "K": q, "V": q, "weights": weights.shape, "output": y.shape}
    assert labels == {name: [shape] for name, shape in expected.items()}


@pytest.mark.parametrize(("tokens", "embed_dim", "num_heads"), [(6, 4, 2), (5, 6, 3), (7, 4, 1)])
def test_shapes_of_multi_head(tokens, embed_dim, num_heads):
    torch = pytest.importorskip("torch")
    from attnbook.torch import MultiHeadAttention

    layer = MultiHeadAttention(embed_dim, num_heads)
    x = torch.ones(tokens, embed_dim)
    split = heads.split_heads(layer.query(x), num_heads)
    labels = shapes(drawings.multi_head(tokens, embed_dim, num_heads))
    assert labels["X"] == [x.shape]
    assert labels["Q"] == labels["K"] == labels["V"] == [layer.query(x).shape]
    assert labels["output"] == [layer(x).shape]
    columns = layer.output.weight.split(embed_dim // num_heads, dim=1)
    for h in range(1, num_heads + 1):
        assert labels[f"q{h}, k{h}, v{h}"] == labels[f"head{h}"] == [split[h - 1].shape]
        assert labels[f"U{h}T"] == [columns[h - 1].T.shape]
    assert not any(f"head{num_heads + 1}" in text for text in labels)


def test_shapes_of_the_blocks():
    torch = pytest.importorskip("torch")
    from attnbook.torch import DecoderBlock, EncoderBlock

    x, memory = torch.ones(1, 7, 6), torch.ones(1, 5, 6)
    after = EncoderBlock(6, 2, 12)(x)[0].shape
    assert shapes(drawings.block(7, 6)) == {"X": [x[0].shape], "Z": [after]}
    after = DecoderBlock(6, 2, 12)(x, memory)[0].shape
    labels = shapes(drawings.decoder_block(7, 6, 5))
    assert labels == {"X": [x[0].shape], "U": [after], "M": [memory[0].shape]}


def test_order_of_the_parts_is_the_blocks():
    """Norm, attention, norm, MLP; post-norm has its norms after the sums."""
    parts = [t for t in drawings.block().texts if t in ("norm", "attention", "MLP")]
    assert parts == ["norm", "attention", "norm", "MLP"]
    both = [t for t in drawings.pre_and_post_norm().texts if t in ("norm", "attention", "MLP")]
    assert both == [*parts, "attention", "norm", "MLP", "norm"]


def test_shapes_of_the_cache():
    """Of a step's query, of the keys and values with it, and of its output."""
    rng = np.random.default_rng(0)
    w_q, w_k, w_v = rng.normal(size=(3, 3, 8))
    k = v = np.zeros((0, 3))
    expected = []
    for x in rng.normal(size=(6, 8)):
        k, v = np.vstack([k, w_k @ x]), np.vstack([v, w_v @ x])
        expected.append([(w_q @ x)[None].shape, k.shape, v.shape, (1, v.shape[1])])
    found = [t for t in drawings.cache(tokens=5, head_dim=3).texts if "×" in t]
    assert found == [f"{m} × {n}" for step in expected[-2:] for m, n in step]


def test_prompt_shows_its_tokens_and_its_mask():
    drawing = drawings.prompt(pairs=3, queries=2)
    numbers = [float(t.replace("−", "-")) for t in drawing.texts if t[-1].isdigit()]
    table = np.array(numbers).reshape(3, 5).T
    expected = regression_prompts.prompt(table[:3, 0], table[:3, 1], table[3:, 0])
    np.testing.assert_allclose(table, expected, rtol=1e-6)
    allowed = regression_prompts.mask(3, np.array([2, 3]))
    cells = re.findall(r'fill-opacity="(0.75|0.06)"', drawing.svg)
    np.testing.assert_array_equal(np.array(cells).reshape(5, 5) == "0.75", allowed)


def test_induction_predicts_what_followed():
    texts = drawings.induction().texts
    words = six_words().words
    assert texts[-1] == words[5]
    for number, word in enumerate(words[:5]):
        assert texts.count(word) >= 3 - (number == 4)


def test_encoder_decoder_weights_are_shares():
    for weights in sequences.LOOKS.values():
        assert sum(weights) == pytest.approx(1)


def test_rotary_keeps_the_angle():
    """Each arc begins and ends on its vectors, as far apart left as right."""
    for svg in (drawings.rotary().svg, drawings.rotary(query=5, key=3, shift=1).svg):
        arcs = re.findall(r"M([\d.]+),([\d.]+) A34,34 0 0 [01] ([\d.]+),([\d.]+)", svg)
        chords = [np.hypot(float(a) - float(c), float(b) - float(d)) for a, b, c, d in arcs]
        assert len(chords) == 2
        assert chords[0] == pytest.approx(chords[1], abs=0.2)


def test_a_rung_highlights_what_changed():
    changed = ladder.changed
    assert changed(1) == set()
    assert changed(2) == {"queries", "hidden", "learned"}
    for n in RUNGS:
        root = ET.fromstring(drawings.rung(n).svg)
        bold = ["".join(e.itertext()) for e in root.iter(f"{SVG}text") if e.get("font-weight")]
        assert len(bold) == 1 + len(changed(n))


def plain(latex: str) -> str:
    """An entry of the appendix's table as a rung has it."""
    for old, new in (
        *((r"\lVert", "‖"), (r"\rVert", "‖"), (r"\cdot", "·"), (r"\sqrt d", "√d")),
        *((r"\tanh", "tanh"), (r"\log", "log"), (r"\phi", "φ")),
        *(("^2", "²"), ("-", "−"), ("$", "")),
    ):
        latex = latex.replace(old, new)
    return latex.replace(" ", "")


def test_the_ladder_is_the_appendixs():
    page = (ROOT / "appendices/ladder.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    header, _, *entries = rows
    slots = ladder.SLOTS
    assert header[1:] == list(slots)
    for rung, row in zip(drawings.RUNGS, entries, strict=True):
        for slot, entry in zip(slots, row[1:], strict=True):
            assert plain(entry) == getattr(rung, slot).replace(" ", ""), (rung.name, slot)


@pytest.mark.parametrize("name", draw.LANDING)
def test_the_landing_pages_drawings_are_fresh(name):
    stored = (ROOT / f"images/{name}.svg").read_text(encoding="utf-8")
    assert stored == draw.LANDING[name]().svg + "\n", "do: python tools/draw.py"


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").glob("*.ipynb")), ids=lambda p: p.stem)
def test_the_notebooks_drawings_are_fresh(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    for output, drawing in draw.drawn(notebook):
        assert dict(output.data) == draw.stored(drawing), (
            f"{drawing.name}: do: python tools/draw.py"
        )


def test_what_a_notebook_stores_beside_the_picture_is_short():
    assert repr(drawings.block()) == "Drawing(name='block')"


def test_matrices_are_those_that_the_chapters_print():
    """So that the dots of the drawings are the weights that a reader sees as numbers."""
    matrices = dict(zip("qkvo", heads_drawn.MATRICES.tolist(), strict=True))
    line = re.compile(r"^W_([qkvo]) = np\.array\((\[\[.*\]\])\)$", re.MULTILINE)
    found = [
        (name, ast.literal_eval(rows))
        for chapter in ("05-self-attention", "06-multi-head-attention")
        for name, rows in line.findall((ROOT / f"chapters/{chapter}.md").read_text("utf-8"))
    ]
    assert len(found) >= 3
    assert all(rows == matrices[name] for name, rows in found)


@pytest.mark.parametrize(
    ("draw", "name", "least", "most"),
    [(drawings.rung, "n", 1, len(RUNGS)), (drawings.average_in_steps, "chapter", 1, 13)],
)
def test_there_is_no_drawing_of_another_number(draw, name, least, most):
    for wrong in (least - 1, most + 1, 1.5, "1"):
        with pytest.raises((ValueError, TypeError), match=f"^{name}: got"):
            draw(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: drawings.prompt(3, 4), "queries: got 4 for 3 pairs"),
        (lambda: drawings.prompt(8, 2), "queries: got 2 for 8 pairs"),
        (lambda: drawings.sentence(heads=[(1, 1)]), r"heads: got \(1, 1\)"),
        (lambda: drawings.sentence(heads=[]), "heads: got none"),
        (lambda: drawings.sentence(token=16), "token: got 16"),
        *(
            (lambda r=r: drawings.induction_in_depth(readers=r), "readers: got layers")
            for r in ([], ["17.4"], ["18.1", "19.1", "20.1"], ["31.1"])
        ),
        (lambda: drawings.fixed_state(5), "key_dim: got 5"),
        (lambda: drawings.fixed_state(times=(1, 2, 9)), r"times: got \[1, 2, 9\]"),
        (lambda: drawings.chunks(12, 5), "chunk: got 5 for 12 tokens"),
        (lambda: drawings.delta_triangle(decay=1.5), "decay: got 1.5"),
        (lambda: drawings.delta_triangle(beta=0), "beta: got 0"),
        (lambda: drawings.parts([[1.0, 2.0]]), r"scores: got groups of \[2\]"),
        (lambda: drawings.parts(values=[[1.0], [2.0]]), r"values: got groups of \[1, 1\]"),
        (lambda: drawings.flash_blocks(keys=100), "keys: got 100"),
        (lambda: drawings.flash_blocks(row=9), "row: got 9"),
        (lambda: drawings.block_masks(block=5), "block: got 5"),
        (lambda: drawings.block_masks(ends=(6, 16)), r"ends: got \[6, 16\]"),
        (lambda: drawings.page_table(16), "tokens: got 16, expected at most 15"),
        (lambda: drawings.data_parallel(workers=5), "workers: got 5"),
        (lambda: drawings.data_parallel(rows=10), "rows: got 10 for 4 workers"),
        (lambda: drawings.data_parallel(rows=64), "rows: got 64 for 4 workers"),
        (lambda: drawings.heads_split(ranks=1), "ranks: got 1"),
        (lambda: drawings.heads_split(num_heads=5), "num_heads: got 5"),
        (lambda: drawings.heads_split(ranks=3, num_heads=3), "hidden_dim: got 16"),
        (lambda: drawings.ring(devices=7), "devices: got 7"),
        (lambda: drawings.ring(step=5), "step: got 5"),
        (lambda: drawings.killed_worker(killed=4), "killed: got step 4"),
        (lambda: drawings.killed_worker(killed=13), "killed: got step 13"),
        (lambda: drawings.killed_worker(every=12, killed=12), "killed: got step 12"),
        (lambda: drawings.killed_worker(every=1), "every: got 1"),
        (lambda: drawings.prompt_of_pairs(pairs=[]), "pairs: got 0, expected one to four"),
        (lambda: drawings.prompt_of_pairs(pairs=[(1, 100)]), "pairs: got 100"),
        (lambda: drawings.prompt_of_pairs(question=-1), "question: got -1"),
        (lambda: drawings.prompt_of_pairs(same=0), "same: got 0"),
        (lambda: drawings.published_blocks([published.BERT]), "models: got 1, expected three"),
    ],
)
def test_what_cannot_be_drawn_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()
