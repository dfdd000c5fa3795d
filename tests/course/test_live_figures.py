"""Live figures without a browser: what they hold, what moves them, how they come into a page."""

import html
import json
import re
from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest
from bokeh.models import Button, ColumnDataSource, CustomJS, NumericInput, Select, Slider, TextInput

from attnbook.distributed.layout import Layout
from attnbook_course import live
from attnbook_course.live.query_and_keys import convex_hull

X, Y = np.array([-1.0, 0.5, 2.0]), np.array([3.0, -4.0, 5.0])
TRUTH = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [4.0], [9.0]])
KEYS = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0], [0.0, -1.0], [0.1, 0.1]])
WEIGHTS = {"one": [[1.0, 0.0, 0.0], [0.25, 0.25, 0.5]], "two": [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]}
CASE = live.Attention("mat", ["a", " "], ["x", "y", "z"], WEIGHTS)
STATES = np.arange(30.0).reshape(2, 3, 5) - 14
STREAM = live.Stream("short", ["a", "b", " "], ["embedding", "attention"], STATES)
PAIRS = [("x", 1.0), ("z", 0.5)]
ABSENT = {"model": "absent", "source_vocabulary": ["one"], "target_vocabulary": ["e", "f"]}
HEAD, ONES = {"h": [[1, 0]]}, np.ones(17)
SAMPLING = {"temperature": 0.5, "top_p": 0.9}

FIGURES = {
    "kernel_regression": lambda: live.kernel_regression(X, Y, TRUTH),
    "kernel_heads": lambda: live.kernel_heads(X, Y, TRUTH),
    "bandwidth_descent": lambda: descent(start=100, learning_rate=0.1),
    "query_and_keys": lambda: live.query_and_keys(KEYS, 2 * KEYS),
    "self_attention_points": lambda: live.self_attention_points(KEYS),
    "attention_browser": lambda: live.attention_browser([CASE], name="live-a"),
    "model_heads": lambda: live.model_heads("smollm2", head=(17, 2)),
    "ask_model": lambda: live.ask_model("smollm2", head=(17, 2)),
    "residual_stream": lambda: live.residual_stream([STREAM], name="live-s"),
    "translation_attention": lambda: live.translation_attention([CASE], name="live-t", **ABSENT),
    "estimators": lambda: live.estimators(X / 2, Y),
    "parts": lambda: live.parts(Y, X),
    "ring": live.ring,
    "planner": live.planner,
    "text_writer": lambda: live.text_writer("The mean of", model="absent", **SAMPLING),
    "regressor_training": lambda: live.regressor_training(pairs=8, learning_rate=0.01, seed=7),
    "in_context_regression": lambda: live.in_context_regression(
        X / 2, Y, model="absent", bandwidth=0.01
    ),
}
POINT = {"point": "1", "point_x": -0.5, "point_y": 3.0}
OF_MODEL = {"measure": "first", "layer": 17, "head": 2, "token": 16}
STARTS = {  # of a figure's controls, those that are seen at the start and what they are set to
    "kernel_regression": {"kernel": "gaussian", "bandwidth": -0.92, "position": -0.5},
    "kernel_heads": {"heads": "2", "bandwidth1": -0.92, "bandwidth2": 2.0, "bandwidth3": -0.4}
    | {"weight1": 1.0, "weight2": 0.0, "weight3": 0.0},
    "bandwidth_descent": {"start": 2.0, "rate": -1.0},
    "query_and_keys": {"score": "gaussian", "temperature": 0, "query_x": 2.0, "query_y": 1.0},
    "self_attention_points": {"score": "gaussian", "residual": "off", "bandwidth": -0.3}
    | {"temperature": 0, "layers": 1, "point": "A", "point_x": 1.0, "point_y": 0.0},
    "attention_browser": {"example": "0", "head": "0", "row": 1},
    "model_heads": {"sentence": "0", **OF_MODEL},
    "ask_model": OF_MODEL,
    "residual_stream": {"example": "0", "colour": "change", "token": 1, "step": 1},
    "translation_attention": {"example": "0", "head": "0", "row": 1, "number": 759_002},
    "estimators": {"shown": "delta", "order": "as given", "position": 0.25, "beta": 1}
    | {"passes": 2, **POINT},
    "parts": {"order": "left to right", "arithmetic": "double precision", "count": 3, "step": 0}
    | {"cut": "1", "place": 1, "key": "1", "score": 3.0, "value": -1.0},
    "ring": {"devices": "4", "split": "contiguous", "mask": "causal", "step": 2, "tokens": 15}
    | {"speed": 2.0},
    "planner": {"model": "Llama 3 70B", "device": "H100", "zero": "1", "recompute": "attention"}
    | dict.fromkeys(("stages", "ring", "experts"), "1")
    | {"heads": "8", "count": 10, "batch": 22, "sequence": 13, "micro_batches": 2, "reached": 100},
    "text_writer": {"beginning": "The mean of", **SAMPLING, "head": "mean", "reader": 0},
    "regressor_training": {"seed": 7, "rate": -2.0, "pairs": 8},
    "in_context_regression": {"position": 0.25, "bandwidth": -2.0, **POINT},
}


points, attention = live.self_attention_points, live.Attention
regression = partial(live.in_context_regression, model="a")
write = partial(live.text_writer, model="a")
translate = partial(live.translation_attention, **ABSENT)
OF_CASES = live.attention_browser, live.residual_stream, translate


def read(records):
    """A stream of two tokens that reads out these."""
    return live.Stream("", "ab", "de", STATES[:, :2], records)


def descent(x=X, y=Y, **how):
    return live.bandwidth_descent(x, y, TRUTH, **how)


def source(figure: live.LiveFigure, name: str) -> dict:
    found = figure.layout.select_one({"name": name})
    if found is None:  # used by a script alone
        scripts = figure.layout.select({"type": CustomJS})
        given = [m for s in scripts for m in s.args.values() if isinstance(m, ColumnDataSource)]
        found = next(m for m in given if m.name == name)
    return found.data


def test_every_figure_is_looked_at():
    assert {name for name in live.__all__ if name.islower()} == set(FIGURES)
    assert len({make().name for make in FIGURES.values()}) == len(FIGURES)  # all on one page


@pytest.mark.parametrize("name", FIGURES)
def test_every_control_starts_somewhere_and_moves_something(name):
    layout = FIGURES[name]().layout
    kinds = (Select, Slider, NumericInput, TextInput)
    controls = [c for kind in kinds for c in layout.select({"type": kind})]
    assert {c.name: c.value for c in controls} == pytest.approx(STARTS[name])
    for control in controls:
        assert control.title
        assert control.js_property_callbacks["change:value"], control.name
    for button in layout.select({"type": Button}):
        assert button.js_event_callbacks["button_click"], button.label


@pytest.mark.parametrize("name", FIGURES)
def test_the_script_uses_all_that_it_is_given(name):
    layout = FIGURES[name]().layout
    (update,) = {s.id: s for s in layout.select({"type": CustomJS}) if s.name == "update"}.values()
    for argument in update.args:
        assert re.search(rf"\b{argument}\b", update.code), argument


@pytest.mark.parametrize("name", FIGURES)
def test_a_page_gets_all_of_a_figure(name):
    figure = FIGURES[name]()
    text = figure._repr_html_()
    assert text == FIGURES[name]()._repr_html_()
    assert text.startswith(f'<div id="{figure.name}" class="attnbook-live"')
    assert f'style.minHeight = "{figure.min_height}rem"' in text
    assert text.count(html.escape(figure.description)) == 2
    assert re.search(r"%[A-Z_]+%", text) is None
    item = re.search(r"const item = (.*);\n", text)[1]
    assert "</" not in item
    assert json.loads(item)["doc"]["roots"]
    assert repr(figure) == f"Live figure: {figure.description}"


BROWSER = partial(live.attention_browser, units=("letter", "word"))


def test_a_token_cannot_end_the_script():
    case = live.Attention("</script>", ["</script>"], ["x"], {"one": [[1.0]]})
    text = live.attention_browser([case], name="live-a")._repr_html_()
    assert text.count("</script>") == text.count("<script") == 2  # the figure's own alone
    assert "<\\/script>" in text


def test_figures_hold_what_they_are_given_and_reach_beyond_it():
    """What is drawn of it a browser shows; here the ends of sliders, names and texts."""
    figure = live.query_and_keys(KEYS, 2 * KEYS, "KLMNOP")
    assert source(figure, "keys")["name"] == source(figure, "values")["name"] == list("KLMNO")
    assert figure.layout.select_one({"name": "query_x"}).end == 4  # 1.3 · 3, rounded up
    live.query_and_keys(KEYS[:1], KEYS[:1])._repr_html_()  # values in one point
    points = live.self_attention_points(KEYS[:2] / 9)
    assert source(points, "start")["name"] == ["A", "B"]
    assert points.layout.select_one({"name": "point_x"}).end == 1  # never less
    figure = live.estimators(X / 2, Y)
    context = source(figure, "context")
    np.testing.assert_array_equal([context["x"], context["y"]], [X / 2, Y])
    assert figure.layout.select_one({"name": "point_y"}).end == 6  # 1.1 · 5, rounded up
    row = live.parts(Y, X)
    assert source(row, "cuts")["after"] == [1, 2]
    assert row.layout.select_one({"name": "step"}).end == 2
    for make in (live.kernel_heads, live.bandwidth_descent):
        assert make(X, Y, TRUTH).description.startswith("3 points")


@pytest.mark.parametrize(
    ("make", "case", "all_of_one", "chosen"),
    [
        (BROWSER, CASE, "a letter a row, a word a column", "a row"),
        (live.residual_stream, STREAM, "a token a column", "a token and a step"),
    ],
)
def test_a_description_says_what_can_be_chosen(make, case, all_of_one, chosen):
    one, four = make([case], name="live-a"), make([case] * 4, name="live-a")
    assert f"on one example: {all_of_one}" in one.description
    assert f"on 4 examples: {all_of_one}" in four.description
    assert f"Choose {chosen}" in one.description
    assert f"Choose an example{',' if ' and ' in chosen else ' and'} {chosen}" in four.description
    given = make([case], name="live-b", description="Heads of a model.")
    assert (given.name, given.description) == ("live-b", "Heads of a model.")


@pytest.mark.parametrize(
    ("points", "corners"),
    [
        (KEYS, [(-3, 0), (0, -1), (1, 0), (0, 2)]),
        (np.array([[0.0, 0], [1, 1], [2, 2], [3, 3]]), [(0, 0), (3, 3)]),  # on a line
        (np.array([[0.0, 0], [2, 0], [2, 0], [1, 0], [0, 2]]), [(0, 0), (2, 0), (0, 2)]),
        (np.array([[1.0, 1], [1, 1]]), []),
    ],
)
def test_hull_by_hand(points, corners):
    assert convex_hull(points) == corners


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: live.query_and_keys(KEYS, KEYS[1:]), r"keys, values: got \(5, 2\), \(4, 2\)"),
        (lambda: live.query_and_keys(KEYS[:, :1], KEYS), r"keys, values: got \(5, 1\), \(5, 2\)"),
        (lambda: live.query_and_keys(KEYS[:0], KEYS[:0]), r"keys, values: got \(0, 2\), \(0, 2\)"),
        (lambda: live.query_and_keys(KEYS * np.nan, KEYS), "^keys: got .*, expected finite real"),
        (lambda: live.query_and_keys(KEYS, KEYS + np.inf), "^values: got .*, expected finite real"),
        (lambda: live.query_and_keys(KEYS, KEYS, "abcd"), "names: got 4 letters, expected 5"),
        (lambda: live.kernel_regression(X, Y[:2], TRUTH), "^x, y: got 3, 2 numbers, expected as"),
        (lambda: live.kernel_regression(X, Y, (X, X[:2])), "^truth: got 3 x and 2 y, expected"),
        (lambda: live.kernel_heads(X, Y, None), "^truth: got a NoneType, expected a pair"),
        (lambda: live.kernel_heads(KEYS, KEYS, TRUTH), r"^x: got shape \(5, 2\), expected \(n,\)"),
        (lambda: live.bandwidth_descent(X, Y, X), "^truth: got a ndarray, expected a pair"),
        (lambda: descent(X[:2], Y[:2]), "x, y: got 2 points, expected 3 or more"),
        (lambda: descent(X, Y[:2]), "x, y: got 3, 2 numbers, expected as many"),
        (lambda: live.self_attention_points(KEYS[:1]), r"points: got \(1, 2\), expected \(n, 2\)"),
        (lambda: live.self_attention_points(np.ones((13, 2))), r"points: got \(13, 2\), expected"),
        (lambda: live.self_attention_points(KEYS[:, :1]), r"points: got \(5, 1\), expected"),
        (lambda: live.self_attention_points(KEYS[0]), r"points: got \(2,\), expected"),
        (lambda: live.self_attention_points(KEYS * 1j), "^points: got dtype complex128, expected"),
        *(
            (partial(points, KEYS, names), f"got '{names}', expected 5 different letters")
            for names in ("abcca", "abc")
        ),
        (lambda: live.Attention("", [], ["x"], WEIGHTS), r"rows, columns: got \(0, 1\) tokens"),
        (lambda: live.Attention("", ["a"], ["x"], {}), "weights: got no head"),
        *(
            (partial(attention, "", "a", "xy", HEAD | {"i": [row]}), "rows of head i that are no")
            for row in ([0.5, 0], [2, 0], [0.5, -0.5], [np.nan, np.nan], [1.5, -0.5])
        ),
        (lambda: attention("", "a", "x", WEIGHTS), r"\(2, 3\) for head one, expected \(1, 1\)"),
        (
            lambda: live.attention_browser([CASE, live.Attention("", "a", "xy", HEAD)], name="a"),
            r"cases: got heads \['h'\], expected \['one', 'two'\]",
        ),
        (lambda: live.estimators(X), "x, y: got x alone, expected both or none"),
        (lambda: live.estimators(y=X), "x, y: got y alone, expected both or none"),
        (lambda: live.estimators(X, Y), "x, y: got a point elsewhere, expected x from"),
        (lambda: live.estimators(ONES, ONES), "x, y: got 17, 17 numbers, expected 1 to 16"),
        (lambda: live.estimators(bandwidth="wide"), "^bandwidth: got wide, expected 0.01 to 3"),
        *(
            (partial(regression, x, x), f"x, y: got {len(x)}, {len(x)} numbers, expected 1 to 32")
            for x in (np.ones(33), X[:0])
        ),
        (lambda: regression(X / 2, X[:2]), "x, y: got 3, 2 numbers, expected 1 to 32"),
        *(
            (partial(regression, x, y), "x, y: got a point elsewhere")
            for x, y in ((X, Y), (X / 2, Y * np.nan), (X * np.nan, Y))
        ),
        (lambda: regression(X / 2, Y, noise="x"), "^noise: got x, expected 0 or more"),
        (lambda: regression(X / 2, Y, model="A B"), "name: got 'A B', expected small letters"),
        (lambda: live.ring(bandwidth=1e8), r"bandwidth: got 1e\+08, expected 1e9 to 1e12"),
        *((lambda make=make: make([], name="a"), "cases: got none") for make in OF_CASES),
        (lambda: translate([CASE], name="a", model="x/y"), "name: got 'x/y', expected small"),
        (lambda: live.parts(X), "scores, values: got scores alone"),
        (lambda: live.parts(X[:2], X[:2]), "scores, values: got 2 keys, expected 3 to 16"),
        (lambda: live.parts(X, 9 * Y), "scores, values: got a number out of reach"),
        (lambda: live.parts(X, X[:2]), "^scores, values: got 3, 2 numbers, expected as many"),
        (lambda: live.parts(X * np.nan, X), "^scores: got .*, expected finite real numbers"),
        *(
            (partial(live.model_heads, "smollm2", head=(layer, 1)), f"^head: got {layer}, expected")
            for layer in (17.5, 0)
        ),
        (lambda: live.ask_model("smollm2", head=(0, 1)), "^head: got 0, expected 1 to 30"),
        (lambda: live.ask_model("smollm2", next_tokens=["a"]), "^next_tokens: got 'a', expected a"),
        *(
            (partial(write, "a", next_tokens=[pair]), "next_tokens: got .*, expected a text")
            for pair in (" the", ("a", 2.0), ("a", np.nan), (3, 0.5), ("a", 0.5, 0.1))
        ),
        (lambda: write("a", next_tokens=9 * PAIRS[:1]), "next_tokens: got 9, expected at most 8"),
        (lambda: write("a", temperature="warm"), "temperature: got warm, expected a number"),
        (lambda: write("a", top_p="most"), "top_p: got most, expected a number from 0.1 to"),
        (lambda: write("a", model="A B"), "name: got 'A B', expected small letters"),
        (
            lambda: live.planner(layout=Layout(heads=16)),
            r"layout.heads: got 16, expected one of \(1, 2, 4, 8\)",
        ),
        (
            lambda: live.planner(layout=Layout(micro_batches=3)),
            "layout.micro_batches: got 3, expected a power",
        ),
        (lambda: live.Stream("", [], ["a", "b"], STATES), "tokens: got none"),
        (lambda: live.Stream("", ["a"], ["b"], STATES), "labels: got 1, expected two or more"),
        *(
            (
                lambda states=states: live.Stream("", "abc", "de", states),
                rf"states: got shape {re.escape(str(np.shape(states)))}, expected \(2, 3, e\)",
            )
            for states in (STATES[:1], STATES.mT, STATES[0], STATES[..., :0], 1.0)
        ),
        (lambda: live.Stream("", "abc", "de", STATES * np.nan), "states: got nan or inf"),
        (lambda: live.Stream("", "abc", "de", STATES + np.inf), "states: got nan or inf"),
        (lambda: read([PAIRS]), r"readout: got 1 records of \[2\] pairs, expected 2 of 2"),
        (lambda: read([PAIRS, PAIRS[:1]]), r"readout: got 2 records of \[1, 2\] pairs"),
        *(
            (
                partial(read, [PAIRS, [PAIRS[0], ("y", p)]]),
                f"readout: got {p} for 'y', expected a probability",
            )
            for p in (2.0, -0.1, np.nan)
        ),
    ],
)
def test_what_cannot_be_drawn_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: live.self_attention_points(KEYS, None), "names: got None, expected letters"),
        (lambda: live.Attention("t", None, ["b"], {"h": X}), "rows: got None, expected a list of"),
        (lambda: live.Attention("t", ["a"], ["b"], X), "weights: got a ndarray, expected an array"),
        (lambda: live.planner(layout={}), "layout: got a dict, expected a Layout"),
        (lambda: live.model_heads("smollm2", head=17.1), "head: got 17.1, expected a pair"),
        (lambda: live.attention_browser(["a"], name="n"), "cases: got a list, expected a list of"),
    ],
)
def test_what_is_of_another_type_is_named(call, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        call()


@pytest.mark.parametrize(
    ("figure", "argument", "wrong", "expected"),
    [
        (descent, "start", (0, "1"), "a number from 0.001 to 500"),
        (descent, "learning_rate", (11, None), "a number from 0.1 to 10"),
        (live.estimators, "noise", (-1,), "0 or more"),
        (partial(regression, X / 2, Y), "length_scale", (0.0,), "a number above 0"),
        (partial(regression, X / 2, Y), "noise", (-0.1, np.nan), "0 or more"),
        (partial(regression, X / 2, Y), "bandwidth", (0.001,), "0.01 to 3"),
        (live.ring, "world", (3,), "one of (2, 4, 8)"),
        (live.ring, "world", ("4",), "an integer"),
        (live.ring, "tokens", (5000, 2**21), "a power of 2 from 4,096"),
        (live.ring, "flops", (0,), "a number above 0"),
        (live.ring, "latency", (-1,), "0 or more"),
        (live.ring, "width", (2.5,), "an integer"),
        (live.regressor_training, "length_scale", (0.01, "1"), "a number from 0.05 to 2"),
        (live.regressor_training, "noise", (-0.1, None), "a number from 0 to 1"),
        (live.regressor_training, "pairs", (1, 2.5), "2 to 32"),
        (live.regressor_training, "learning_rate", (4, [0.1]), "a number from 0.001 to 3"),
        (live.regressor_training, "seed", (100, "0"), "0 to 99"),
        (live.planner, "model", ("GPT-2", 8), ""),
        (live.planner, "device", ("TPU",), ""),
        (live.planner, "devices", (100, 4), "a power of 2 from 8 to 16,384"),
        (live.planner, "devices", ("8",), "an integer"),
        (live.planner, "batch", (2**27,), "a power of 2 from 262,144"),
        (live.planner, "batch", (2.5,), "an integer"),
        (live.planner, "sequence", (1024,), "a power of 2 from 2,048"),
        (write, "beginning", ("", None, 3), "some text"),
        (partial(write, "a"), "temperature", (-0.1, 1.6, np.nan), "a number"),
        (partial(write, "a"), "top_p", (0, 0.05, 1.1, np.nan), "a number from 0.1 to"),
    ],
)
def test_an_argument_out_of_range_is_named(figure, argument, wrong, expected):
    for given in wrong:
        with pytest.raises(ValueError) as error:
            figure(**{argument: given})
        assert f"{argument}: got {given!r}, expected {expected}" in str(error.value)


def test_what_is_shown_stays_as_it_is():
    with pytest.raises(FrozenInstanceError):
        CASE.title = "y"
